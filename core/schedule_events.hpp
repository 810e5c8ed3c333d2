// When a schedule ends if what is under way shares servers: NICs, links of GPUs, switches that add, uplinks of leaves.
#pragma once

#include <cstdint>

#include "schedule.hpp"

namespace busbw {

enum class Queueing {
    // A server takes what came first.
    first_come,
    // Each operation has one round at a server's door at a time: those that share a server take turns.
    in_turns,
};

struct EventsResult {
    double seconds;
    std::uint64_t events;
    // Rounds that were gone through in the longest run; the others were told from the period.
    std::uint64_t rounds;
    // Of one more round at the end; 0: all rounds were gone through.
    double period_s;
    // Of the server that is longest in use: its share of the time of a round.
    double busiest;
};

// A round of an operation passes its servers one after another, its head without delay; it ends when its tail has left
// the slowest. One that passes none has a server of its own, for its seconds. `skips`: the time is told from the period
// of late rounds, where within 0.5 % that is the same twice, or the use of the busiest server. Throws
// std::invalid_argument for a deadlock and for no or too many rounds.
EventsResult time_events(const Schedule& schedule, std::uint64_t rounds, Queueing queueing, bool skips);

}  // namespace busbw
