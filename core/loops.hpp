// The two ways of taking time. Both write one entry per sample into memory made beforehand.
// Units: nanoseconds.
#pragma once

#include <sched.h>

#include <concepts>
#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "exchange.hpp"
#include "heartbeat.hpp"

namespace busbw {

// One rank's view of a block of samples. `duration` covers all calls of a sample; in isolated mode it runs from the
// common start to this rank's return, and `lateness` from the common start to this rank's own. `off_processor` is the
// time between start and return that this thread did not run. `issued`, over NCCL only: from the start until every call
// had returned to the host; the GPU may still be at work. `missed` marks starts announced too late to be kept.
struct Samples {
    explicit Samples(std::size_t count)
        : duration(count), lateness(count), off_processor(count), issued(count), missed(count) {}
    std::vector<nanoseconds> duration;
    std::vector<nanoseconds> lateness;
    std::vector<nanoseconds> off_processor;
    std::vector<nanoseconds> issued;
    std::vector<std::uint8_t> missed;
};

// Back to back: `calls` calls a sample, a barrier before each sample outside its time.
template <class Handle>
Samples stream(const Exchange<Handle>& exchange, const Heartbeat& beat, std::size_t count, std::uint64_t calls);

// How the ranks agree on a start: the first rank announces "now + lead" on its clock, everyone waits for that instant.
// `offset` turns this rank's clock into the first rank's; `yields` gives the processor away while waiting, for more
// ranks than cores.
struct Window {
    nanoseconds offset;
    nanoseconds lead;
    bool yields;
};

// One call after an aligned start, as this process saw it; `start` is when it began, `common_start` when it should
// have, both on this rank's clock.
struct AlignedCall {
    nanoseconds common_start;
    nanoseconds start;
    nanoseconds off_processor;
    bool missed;
};

// What the loop of isolated mode needs of an exchange.
template <class Step>
concept IsolatedStep = requires(Step step, const Window& window, std::size_t sample, const AlignedCall& call) {
    // Waits for the ranks and returns the start they agree on, on the first rank's clock.
    { step.meet(window) } -> std::same_as<nanoseconds>;
    // Tells the heartbeats that a call begins, and that it is done.
    step.enter();
    step.leave();
    // Does call `sample` and returns when it was done.
    { step.run(sample) } -> std::same_as<nanoseconds>;
    // Writes the sample down.
    step.keep(sample, call);
};

// Waits until `instant` on this rank's clock; returns whether it had passed before.
inline bool wait_until(nanoseconds instant, bool yields) {
    const bool missed = wall_clock() > instant;
    while (wall_clock() < instant) {
        if (yields) {
            sched_yield();
        }
    }
    return missed;
}

// Each call alone, after an aligned start (window-based: Hunold, Carpen-Amarie, "MPI Benchmarking Revisited", 2015).
// `off_processor` counts from before the ranks meet.
template <IsolatedStep Step>
void measure_isolated(Step& step, std::size_t count, const Window& window) {
    for (std::size_t sample = 0; sample < count; ++sample) {
        const nanoseconds processor_before = processor_clock();
        const nanoseconds before = wall_clock();
        const nanoseconds local = step.meet(window) - window.offset;
        const bool missed = wait_until(local, window.yields);
        step.enter();
        const nanoseconds start = wall_clock();
        const nanoseconds end = step.run(sample);
        const nanoseconds processor_end = processor_clock();
        step.leave();
        step.keep(sample, {local, start, (end - before) - (processor_end - processor_before), missed});
    }
}

// The same of an exchange over MPI.
template <class Handle>
Samples isolated(const Exchange<Handle>& exchange, const Heartbeat& beat, std::size_t count, const Window& window);

}  // namespace busbw
