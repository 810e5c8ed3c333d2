// With the other bind_*.cpp the only file that knows Python. Every function that can wait releases the interpreter
// lock.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <variant>

#include "bind_fabric.hpp"
#include "bind_heartbeat.hpp"
#include "bind_known_lines.hpp"
#include "bind_logs.hpp"
#include "bind_mpi.hpp"
#include "bind_nccl.hpp"
#include "bind_pairs.hpp"
#include "bind_schedule.hpp"
#include "buffer.hpp"
#include "ceiling.hpp"
#include "clock.hpp"
#include "clock_sync.hpp"
#include "exchange.hpp"
#include "gpu.hpp"
#include "loops.hpp"
#include "noise.hpp"
#include "reduce.hpp"
#include "step_replay.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace busbw {

namespace {

using AnyExchange = std::variant<Exchange<pointer_handle>, Exchange<integer_handle>>;

AnyMpi open_mpi(const std::string& module, std::size_t handle_bytes) {
    if (handle_bytes == sizeof(pointer_handle)) {
        return find_mpi<pointer_handle>(module);
    }
    if (handle_bytes == sizeof(integer_handle)) {
        return find_mpi<integer_handle>(module);
    }
    throw std::invalid_argument("MPI handles of " + std::to_string(handle_bytes) + " bytes are not known");
}

struct Geometry {
    Kind kind;
    Seat seat;
    std::size_t count;
    bool in_place;
};

Geometry geometry(const std::string& kind, int rank, int ranks, int root, std::size_t count, bool in_place) {
    return {by_name<Kind>(kind_names, kind), {rank, ranks, root}, count, in_place};
}

nb::typed<nb::tuple, std::size_t, std::size_t> footprint_of(const std::string& kind, int rank, int ranks, int root,
                                                            std::size_t count, bool in_place) {
    const Geometry shape = geometry(kind, rank, ranks, root, count, in_place);
    const Footprint need = footprint(shape.kind, shape.seat, shape.count, shape.in_place);
    return nb::make_tuple(need.send, need.receive);
}

// What make_exchange needs from mpi4py, beside the geometry.
struct Handles {
    handle_value communicator;
    handle_value datatype;
    handle_value operation;
    handle_value byte;
    std::uint64_t in_place_mark;
};

// `Memory` is Buffer or GpuMemory: MPI is given addresses.
template <class Memory>
AnyExchange exchange_over(const AnyMpi& mpi, const Geometry& shape, const Handles& handles, const Memory& send,
                          const Memory& receive, std::size_t element_bytes, int window) {
    const Footprint need = footprint(shape.kind, shape.seat, shape.count, shape.in_place);
    if (need.send * element_bytes > send.size() || need.receive * element_bytes > receive.size()) {
        throw std::invalid_argument("buffers are too small for this exchange");
    }
    if (shape.count > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw std::invalid_argument("MPI counts elements in 32 bits: at most 2147483647 a part");
    }
    return std::visit(
        [&]<class Handle>(const MpiApi<Handle>& api) -> AnyExchange {
            const auto slots = 2 * static_cast<std::size_t>(window);
            return Exchange<Handle>{.mpi = &api,
                                    .communicator = to_handle<Handle>(handles.communicator),
                                    .datatype = to_handle<Handle>(handles.datatype),
                                    .operation = to_handle<Handle>(handles.operation),
                                    .byte = to_handle<Handle>(handles.byte),
                                    .in_place_mark = reinterpret_cast<void*>(handles.in_place_mark),
                                    .kind = shape.kind,
                                    .seat = shape.seat,
                                    .count = static_cast<int>(shape.count),
                                    .in_place = shape.in_place,
                                    .window = window,
                                    .send = send.data(),
                                    .receive = receive.data(),
                                    .element_bytes = element_bytes,
                                    .requests = std::vector<Handle>(slots),
                                    .statuses = std::vector<status_space>(slots)};
        },
        mpi);
}

template <class Memory>
AnyExchange make_exchange(const AnyMpi& mpi, const Geometry& shape, const Handles& handles, const Memory& send,
                          const Memory& receive, std::size_t element_bytes, int window) {
    if (shape.kind == Kind::alltoall_2dh) {
        throw std::invalid_argument("a two-level alltoall needs its two levels");
    }
    return exchange_over(mpi, shape, handles, send, receive, element_bytes, window);
}

// Communicators of the two levels: see Levels.
struct LevelHandles {
    handle_value intra;
    handle_value rail;
    int group;
};

AnyExchange make_two_level(const AnyMpi& mpi, const Geometry& shape, const Handles& handles, const LevelHandles& levels,
                           const Buffer& send, const Buffer& receive, const Buffer& scratch,
                           std::size_t element_bytes) {
    AnyExchange any = exchange_over(mpi, shape, handles, send, receive, element_bytes, 1);
    const std::size_t used = footprint(shape.kind, shape.seat, shape.count, shape.in_place).send * element_bytes;
    if (used > scratch.size()) {
        throw std::invalid_argument("the scratch buffer is too small for this exchange");
    }
    std::visit(
        [&]<class Handle>(Exchange<Handle>& exchange) {
            exchange.levels = {to_handle<Handle>(levels.intra), to_handle<Handle>(levels.rail), levels.group,
                               scratch.bytes().first(used)};
            check_levels(exchange);
        },
        any);
    return any;
}

template <class Handle>
std::byte* input_of(const Exchange<Handle>& exchange, const Contract& rules) {
    return rules.input_in_receive ? exchange.receive + rules.input_at * exchange.element_bytes : exchange.send;
}

// Poisons every buffer, writes this rank's input, does the exchange once and compares every element of the output.
Mismatch verify(const AnyExchange& any, const Pattern& pattern, const Buffer& send, const Buffer& receive) {
    return std::visit(
        [&]<class Handle>(const Exchange<Handle>& exchange) {
            const auto count = static_cast<std::size_t>(exchange.count);
            const Contract rules = contract(exchange.kind, exchange.seat, count, exchange.in_place);
            send.poison();
            receive.poison();
            std::ranges::fill(exchange.levels.scratch, std::byte{0xFF});
            fill(pattern, exchange.seat.rank, 0, input_of(exchange, rules), rules.input_count);
            with_call(exchange, [](auto&& call) { call(); });
            return compare(pattern, exchange.receive, rules.output);
        },
        any);
}

// Leaves inputs behind that stay finite however often the exchange is repeated.
void settle(const AnyExchange& any, const Pattern& pattern) {
    std::visit(
        [&]<class Handle>(const Exchange<Handle>& exchange) {
            const auto count = static_cast<std::size_t>(exchange.count);
            const Contract rules = contract(exchange.kind, exchange.seat, count, exchange.in_place);
            fill_neutral(pattern, input_of(exchange, rules), rules.input_count);
        },
        any);
}

// What a GPU's memory is written from and read into. The stream of the GPU keeps the order, and is waited for.
std::vector<std::byte> poisoned(std::size_t size) { return std::vector<std::byte>(size, std::byte{0xFF}); }

void write_to(const Gpu& gpu, const GpuMemory& memory, std::span<const std::byte> from) {
    const CudaApi& cuda = gpu.cuda();
    cuda.check(cuda.copy_to_device(address_of(memory.data()), from.data(), from.size(), gpu.stream()),
               "cuMemcpyHtoDAsync");
    gpu.wait();
}

void read_from(const Gpu& gpu, const GpuMemory& memory, std::span<std::byte> into) {
    const CudaApi& cuda = gpu.cuda();
    cuda.check(cuda.copy_to_host(into.data(), address_of(memory.data()), into.size(), gpu.stream()),
               "cuMemcpyDtoHAsync");
    gpu.wait();
}

// The same as verify, over memory of a GPU: written from the host and read back, so that no kernel is needed.
Mismatch verify_on_gpu(const AnyExchange& any, const Pattern& pattern, const Gpu& gpu, const GpuMemory& send,
                       const GpuMemory& receive) {
    return std::visit(
        [&]<class Handle>(const Exchange<Handle>& exchange) {
            const auto count = static_cast<std::size_t>(exchange.count);
            const Contract rules = contract(exchange.kind, exchange.seat, count, exchange.in_place);
            gpu.use();
            std::vector<std::byte> sent = poisoned(send.size());
            std::vector<std::byte> received = poisoned(receive.size());
            std::byte* const input =
                rules.input_in_receive ? received.data() + rules.input_at * exchange.element_bytes : sent.data();
            fill(pattern, exchange.seat.rank, 0, input, rules.input_count);
            write_to(gpu, send, sent);
            write_to(gpu, receive, received);
            with_call(exchange, [](auto&& call) { call(); });
            read_from(gpu, receive, received);
            return compare(pattern, received.data(), rules.output);
        },
        any);
}

// The same as settle, over memory of a GPU.
void settle_on_gpu(const AnyExchange& any, const Pattern& pattern, const Gpu& gpu, const GpuMemory& send,
                   const GpuMemory& receive) {
    std::visit(
        [&]<class Handle>(const Exchange<Handle>& exchange) {
            const auto count = static_cast<std::size_t>(exchange.count);
            const Contract rules = contract(exchange.kind, exchange.seat, count, exchange.in_place);
            gpu.use();
            const GpuMemory& memory = rules.input_in_receive ? receive : send;
            std::vector<std::byte> staged(memory.size());
            read_from(gpu, memory, staged);
            const std::size_t at = rules.input_in_receive ? rules.input_at * exchange.element_bytes : 0;
            fill_neutral(pattern, staged.data() + at, rules.input_count);
            write_to(gpu, memory, staged);
        },
        any);
}

Pattern pattern(std::uint64_t seed, int ranks, const std::string& type, const std::string& operation) {
    return {seed, ranks, by_name<DataType>(data_type_names, type), by_name<Operation>(operation_names, operation)};
}

handle_value make_operation(const AnyMpi& mpi, const std::string& type, const std::string& operation) {
    reduction* function =
        reduction_for(by_name<DataType>(data_type_names, type), by_name<Operation>(operation_names, operation));
    return std::visit(
        [&]<class Handle>(const MpiApi<Handle>& api) {
            Handle made{};
            check(api, api.op_create(function, 1, &made), "MPI_Op_create");
            return from_handle(made);
        },
        mpi);
}

ClockOffset clock_offset(const AnyMpi& mpi, handle_value communicator, handle_value byte, int rank, int ranks,
                         int rounds) {
    return std::visit(
        [&]<class Handle>(const MpiApi<Handle>& api) {
            return synchronise(
                Peers<Handle>{&api, to_handle<Handle>(communicator), to_handle<Handle>(byte), rank, ranks}, rounds);
        },
        mpi);
}

Samples run_stream(const AnyExchange& any, nb::handle memory, std::size_t count, std::uint64_t calls) {
    const HeldHeartbeat held{memory};
    const nb::gil_scoped_release release;
    return std::visit([&](const auto& exchange) { return stream(exchange, held.beat(), count, calls); }, any);
}

Samples run_isolated(const AnyExchange& any, nb::handle memory, std::size_t count, const Window& window) {
    const HeldHeartbeat held{memory};
    const nb::gil_scoped_release release;
    return std::visit([&](const auto& exchange) { return isolated(exchange, held.beat(), count, window); }, any);
}

std::vector<StepTimes> run_replay(const AnyMpi& mpi, handle_value everyone, const std::vector<AnyExchange*>& any,
                                  const std::vector<StepMove>& moves, nb::handle memory, std::size_t count,
                                  bool yields) {
    const HeldHeartbeat held{memory};
    const nb::gil_scoped_release release;
    return std::visit(
        [&]<class Handle>(const MpiApi<Handle>&) {
            std::vector<const Exchange<Handle>*> exchanges;
            for (const AnyExchange* one : any) {
                exchanges.push_back(&std::get<Exchange<Handle>>(*one));
            }
            return replay<Handle>(exchanges, moves, held.beat(), to_handle<Handle>(everyone), count, yields);
        },
        mpi);
}

template <Movement (*Copy)(std::span<const std::byte>, std::span<std::byte>)>
Movement copied(const Buffer& from, const Buffer& into, std::size_t size) {
    const std::size_t part = std::min({size, from.size(), into.size()});
    return Copy(from.bytes().first(part), into.bytes().first(part));
}

std::string library_of(const AnyMpi& mpi) {
    return std::visit([](const auto& api) { return api.library; }, mpi);
}

std::vector<std::string> interposed_in(const AnyMpi& mpi) {
    return std::visit([](const auto& api) { return api.interposed; }, mpi);
}

}  // namespace
}  // namespace busbw

NB_MODULE(_core, module) {
    using namespace busbw;
    const nb::call_guard<nb::gil_scoped_release> waits;

    nb::class_<AnyMpi>(module, "Mpi").def_prop_ro("library", library_of).def_prop_ro("interposed", interposed_in);
    nb::class_<AnyExchange>(module, "Exchange");
    nb::class_<Buffer>(module, "Buffer")
        .def(nb::init<std::size_t>(), "size"_a)
        .def(nb::init<int, std::size_t>(), "file"_a, "size"_a)
        .def("touch", &Buffer::touch, "count"_a, waits)
        .def_prop_ro("size", &Buffer::size)
        .def("overrun", &Buffer::overrun);
    nb::class_<Geometry>(module, "Geometry");
    nb::class_<Handles>(module, "Handles")
        .def(nb::init<handle_value, handle_value, handle_value, handle_value, std::uint64_t>(), "communicator"_a,
             "datatype"_a, "operation"_a, "byte"_a, "in_place_mark"_a);
    nb::class_<LevelHandles>(module, "Levels")
        .def(nb::init<handle_value, handle_value, int>(), "intra"_a, "rail"_a, "group"_a);
    nb::class_<Pattern>(module, "Pattern");
    nb::class_<Mismatch>(module, "Mismatch")
        .def_ro("wrong", &Mismatch::wrong)
        .def_ro("index", &Mismatch::index)
        .def_ro("got", &Mismatch::got)
        .def_ro("expected", &Mismatch::expected);
    nb::class_<ClockOffset>(module, "ClockOffset")
        .def(nb::init<nanoseconds, nanoseconds>(), "offset_ns"_a, "error_ns"_a)
        .def_ro("offset_ns", &ClockOffset::offset)
        .def_ro("error_ns", &ClockOffset::error);
    nb::class_<Window>(module, "Window")
        .def(nb::init<nanoseconds, nanoseconds, bool>(), "offset_ns"_a, "lead_ns"_a, "yields"_a);
    nb::class_<Samples>(module, "Samples")
        .def_ro("duration_ns", &Samples::duration)
        .def_ro("lateness_ns", &Samples::lateness)
        .def_ro("off_processor_ns", &Samples::off_processor)
        .def_ro("issued_ns", &Samples::issued)
        .def_ro("missed", &Samples::missed);
    nb::class_<StepMove>(module, "StepMove")
        .def(
            "__init__",
            [](StepMove* self, const std::string& act, std::size_t which, nanoseconds time) {
                new (self) StepMove{by_name<StepAct>(step_act_names, act), which, time};
            },
            "act"_a, "which"_a, "time_ns"_a);
    nb::class_<StepTimes>(module, "StepTimes")
        .def_ro("step_ns", &StepTimes::step)
        .def_ro("compute_ns", &StepTimes::compute)
        .def_ro("busy_ns", &StepTimes::busy)
        .def_ro("exposed_ns", &StepTimes::exposed);
    nb::class_<ClockQuality>(module, "ClockQuality")
        .def_ro("cost_ns", &ClockQuality::cost_ns)
        .def_ro("step_ns", &ClockQuality::step_ns);
    nb::class_<Movement>(module, "Movement")
        .def_ro("size_bytes", &Movement::bytes)
        .def_ro("start_ns", &Movement::start)
        .def_ro("end_ns", &Movement::end);
    nb::class_<NoiseOfProcessor>(module, "NoiseOfProcessor")
        .def_ro("cpu", &NoiseOfProcessor::cpu)
        .def_ro("repeats", &NoiseOfProcessor::repeats)
        .def_ro("total_ns", &NoiseOfProcessor::total)
        .def_ro("least_ns", &NoiseOfProcessor::least)
        .def_ro("median_ns", &NoiseOfProcessor::median)
        .def_ro("p99_ns", &NoiseOfProcessor::p99)
        .def_ro("p999_ns", &NoiseOfProcessor::p999)
        .def_ro("most_ns", &NoiseOfProcessor::most)
        .def_ro("limit_ns", &NoiseOfProcessor::limit)
        .def_ro("detours", &NoiseOfProcessor::detours)
        .def_ro("detoured_ns", &NoiseOfProcessor::detoured)
        .def_ro("period_ns", &NoiseOfProcessor::period)
        .def_ro("regularity", &NoiseOfProcessor::regularity)
        .def_ro("preempted", &NoiseOfProcessor::preempted)
        .def_ro("excess", &NoiseOfProcessor::excess);

    module.def("open_mpi", open_mpi, "module"_a, "handle_bytes"_a);
    module.def("geometry", geometry, "kind"_a, "rank"_a, "ranks"_a, "root"_a, "count"_a, "in_place"_a);
    module.def("footprint", footprint_of, "kind"_a, "rank"_a, "ranks"_a, "root"_a, "count"_a, "in_place"_a);
    module.def("make_exchange", make_exchange<Buffer>, "mpi"_a, "geometry"_a, "handles"_a, "send"_a, "receive"_a,
               "element_bytes"_a, "window"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 4>(), nb::keep_alive<0, 5>());
    module.def("make_two_level", make_two_level, "mpi"_a, "geometry"_a, "handles"_a, "levels"_a, "send"_a, "receive"_a,
               "scratch"_a, "element_bytes"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 5>(), nb::keep_alive<0, 6>(),
               nb::keep_alive<0, 7>());
    module.def("make_operation", make_operation, "mpi"_a, "dtype"_a, "op"_a);
    module.def("pattern", pattern, "seed"_a, "ranks"_a, "dtype"_a, "op"_a);
    module.def("verify", verify, "exchange"_a, "pattern"_a, "send"_a, "receive"_a, waits);
    module.def("settle", settle, "exchange"_a, "pattern"_a, waits);
    module.def("clock_offset", clock_offset, "mpi"_a, "communicator"_a, "byte"_a, "rank"_a, "ranks"_a, "rounds"_a,
               waits);
    module.def("clock_quality", clock_quality, "reads"_a, waits);
    module.def("stream", run_stream, "exchange"_a, "heartbeat"_a, "count"_a, "calls"_a);
    module.def("isolated", run_isolated, "exchange"_a, "heartbeat"_a, "count"_a, "window"_a);
    module.def("replay", run_replay, "mpi"_a, "communicator"_a, "exchanges"_a, "moves"_a, "heartbeat"_a, "count"_a,
               "yields"_a);
    module.def("copy_with_loop", copied<copy_with_loop>, "source"_a, "target"_a, "size_bytes"_a, waits);
    module.def("copy_with_memcpy", copied<copy_with_memcpy>, "source"_a, "target"_a, "size_bytes"_a, waits);
    module.def("noise_on", noise_on, "cpus"_a, "quantum_ns"_a, "duration_ns"_a, waits);
    bind_fabric(module);
    bind_known_lines(module);
    bind_logs(module);
    bind_nccl(module);
    bind_pairs(module);
    bind_schedule(module);
    module.def("make_exchange_on_gpu", make_exchange<GpuMemory>, "mpi"_a, "geometry"_a, "handles"_a, "send"_a,
               "receive"_a, "element_bytes"_a, "window"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 4>(),
               nb::keep_alive<0, 5>());
    module.def("verify_on_gpu", verify_on_gpu, "exchange"_a, "pattern"_a, "gpu"_a, "send"_a, "receive"_a, waits);
    module.def("settle_on_gpu", settle_on_gpu, "exchange"_a, "pattern"_a, "gpu"_a, "send"_a, "receive"_a, waits);
    module.def("stream_sockets", stream_sockets, "send_socket"_a, "receive_socket"_a, "duration_ns"_a, waits);
}
