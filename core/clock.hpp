// The clock every sample is read from, and the one that tells time on a processor.
// Units: nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace busbw {

using nanoseconds = std::int64_t;

inline nanoseconds read_clock(clockid_t clock) noexcept {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<nanoseconds>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// CLOCK_MONOTONIC: one clock for all processes of a host, served without a system call.
inline nanoseconds wall_clock() noexcept { return read_clock(CLOCK_MONOTONIC); }

// Time this thread has spent on a processor. A system call (0.1 to 0.5 us): never inside a timed stretch.
inline nanoseconds processor_clock() noexcept { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

// Cost of one wall_clock() call and the smallest step it shows, over `reads` back-to-back reads.
struct ClockQuality {
    double cost_ns;
    nanoseconds step_ns;
};
ClockQuality clock_quality(int reads);

}  // namespace busbw
