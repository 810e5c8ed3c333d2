// Tests of one pair of ranks, for Python. They let go of the interpreter's lock.
#include "bind_pairs.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <variant>

#include "bind_heartbeat.hpp"
#include "bind_mpi.hpp"
#include "buffer.hpp"
#include "pair_test.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace busbw {

namespace {

using AnyTester = std::variant<PairTester<pointer_handle>, PairTester<integer_handle>>;

AnyTester make_pair_tester(const AnyMpi& mpi, handle_value communicator, handle_value byte, const Buffer& send,
                           const Buffer& receive, std::size_t window) {
    return std::visit(
        [&]<class Handle>(const MpiApi<Handle>& api) -> AnyTester {
            return PairTester<Handle>{
                api, to_handle<Handle>(communicator), to_handle<Handle>(byte), send.bytes(), receive.bytes(), window};
        },
        mpi);
}

PairSamples test_pair(AnyTester& any, nb::handle memory, const std::string& kind, const PairTask& task) {
    const HeldHeartbeat held{memory};
    const nb::gil_scoped_release release;
    return std::visit(
        [&](auto& tester) {
            if (kind == "ping_pong") {
                return tester.ping_pong(task, held.beat());
            }
            if (kind == "one_way") {
                return tester.one_way(task, held.beat());
            }
            if (kind == "both_ways") {
                return tester.both_ways(task, held.beat());
            }
            throw std::invalid_argument("no test of pairs is called " + kind);
        },
        any);
}

}  // namespace

void bind_pairs(nb::module_& module) {
    nb::class_<AnyTester>(module, "PairTester");
    nb::class_<PairTask>(module, "PairTask")
        .def(nb::init<int, int, bool, std::size_t, std::size_t, nanoseconds, std::size_t, std::size_t, nanoseconds>(),
             "peer"_a, "tag"_a, "leads"_a, "size"_a, "calls"_a, "budget_ns"_a, "least"_a, "most"_a, "limit_ns"_a);
    nb::class_<PairSamples>(module, "PairSamples")
        .def_ro("duration_ns", &PairSamples::duration)
        .def_ro("gave_up", &PairSamples::gave_up);
    module.def("make_pair_tester", make_pair_tester, "mpi"_a, "communicator"_a, "byte"_a, "send"_a, "receive"_a,
               "window"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 4>(), nb::keep_alive<0, 5>());
    module.def("test_pair", test_pair, "tester"_a, "heartbeat"_a, "kind"_a, "task"_a);
}

}  // namespace busbw
