// Schedules and the two ways to time them, for Python. The interpreter's lock is let go of while they are timed.
#include "bind_schedule.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "schedule.hpp"
#include "schedule_events.hpp"
#include "schedule_steps.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace busbw {

namespace {

// First, stride, count.
using Range = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
// Times, plus, modulo.
using Map = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

RankRange range_of(const Range& ranks) { return {std::get<0>(ranks), std::get<1>(ranks), std::get<2>(ranks)}; }

AffineMap map_of(const Map& map) { return {std::get<0>(map), std::get<1>(map), std::get<2>(map)}; }

std::size_t add(Schedule& schedule, const Range& ranks, const std::vector<double>& seconds) {
    return schedule.add(range_of(ranks), seconds);
}

void wait(Schedule& schedule, std::size_t block, const Range& ranks, std::size_t source, const Map& peer,
          std::uint32_t lag, const std::vector<double>& latencies_s) {
    schedule.wait(block, range_of(ranks), source, map_of(peer), lag, latencies_s);
}

void pass(Schedule& schedule, std::size_t block, const Range& ranks, std::int64_t first, const Map& server,
          double seconds) {
    schedule.pass(block, range_of(ranks), first, map_of(server), seconds);
}

}  // namespace

void bind_schedule(nb::module_& module) {
    nb::class_<StepsResult>(module, "StepsResult")
        .def_ro("seconds", &StepsResult::seconds)
        .def_ro("rounds", &StepsResult::rounds)
        .def_ro("operations", &StepsResult::operations);
    nb::class_<EventsResult>(module, "EventsResult")
        .def_ro("seconds", &EventsResult::seconds)
        .def_ro("events", &EventsResult::events)
        .def_ro("rounds", &EventsResult::rounds)
        .def_ro("period_s", &EventsResult::period_s)
        .def_ro("busiest", &EventsResult::busiest);
    nb::class_<Schedule>(module, "Schedule")
        .def(nb::init<>())
        .def("add", add, "ranks"_a, "seconds"_a)
        .def("wait", wait, "block"_a, "ranks"_a, "source"_a, "peer"_a, "lag"_a, "latencies_s"_a)
        .def("pass_by", pass, "block"_a, "ranks"_a, "first"_a, "server"_a, "seconds"_a)
        .def("slow", &Schedule::slow, "block"_a, "rank"_a, "times"_a)
        .def("folded", &Schedule::folded, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("operations", &Schedule::size);
    module.def("time_steps", &time_steps, "schedule"_a, "rounds"_a, "skips"_a,
               nb::call_guard<nb::gil_scoped_release>());
    module.def(
        "time_events",
        [](const Schedule& schedule, std::uint64_t rounds, bool in_turns, bool skips) {
            return time_events(schedule, rounds, in_turns ? Queueing::in_turns : Queueing::first_come, skips);
        },
        "schedule"_a, "rounds"_a, "in_turns"_a, "skips"_a, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace busbw
