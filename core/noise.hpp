// Fixed work, repeated on every processor at once: what a repeat takes beyond the least was taken by something else.
// Units: nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "clock.hpp"

namespace busbw {

// What the repeats on one processor took.
struct NoiseOfProcessor {
    int cpu;
    std::uint64_t repeats;
    nanoseconds total;
    nanoseconds least;
    nanoseconds median;
    nanoseconds p99;
    nanoseconds p999;
    nanoseconds most;
    // Repeats that took longer than `limit`, and the time beyond the median in them.
    nanoseconds limit;
    std::uint64_t detours;
    nanoseconds detoured;
    // How far apart detours are, where they come regularly, and how regular they are (0 to 1); 0: they do not.
    nanoseconds period;
    double regularity;
    // How often the kernel gave the processor to another thread meanwhile.
    std::uint64_t preempted;
    // Repeats by what they took beyond the least: entry N counts those below 2 to the power of N.
    std::vector<std::uint64_t> excess;
};

// How many rounds of the work take about `quantum` on this processor at its best.
std::uint64_t rounds_for(nanoseconds quantum);

// Repeats `rounds` until `duration` has passed or there is no room left, and writes what each repeat took, at most
// 4.29 s. The clock is read once a repeat, so that the times follow each other without a gap. Returns the repeats.
std::size_t repeat_work(std::uint64_t rounds, nanoseconds duration, std::span<std::uint32_t> took) noexcept;

// What repeats that follow each other without a gap come to. Throws std::invalid_argument where there is none.
NoiseOfProcessor summary_of(int cpu, std::span<const std::uint32_t> took, std::uint64_t preempted);

// Works on all these processors at once, one thread bound to each. Throws std::system_error where a thread cannot be
// started or bound.
std::vector<NoiseOfProcessor> noise_on(const std::vector<int>& cpus, nanoseconds quantum, nanoseconds duration);

}  // namespace busbw
