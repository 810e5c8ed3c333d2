// When a schedule ends if nothing is in the way of anything but what it waits for: a recurrence of maxima and sums.
#pragma once

#include <cstdint>

#include "schedule.hpp"

namespace busbw {

struct StepsResult {
    double seconds;
    // Rounds that were gone through; the others were told to be as the last.
    std::uint64_t rounds;
    // Operations of one round that were gone through.
    std::uint64_t operations;
};

// End of operation i in round k: the latest of its own round k - 1 and of all that it waits for, and its seconds after
// that. `skips`: where each operation's rounds have become equally long, and what it waits for latest also falls behind
// most, later rounds are not gone through. Throws std::invalid_argument for a deadlock and for no or too many rounds.
StepsResult time_steps(const Schedule& schedule, std::uint64_t rounds, bool skips);

}  // namespace busbw
