// The two ways of taking time. Both write one entry per sample into memory made beforehand.
// Units: nanoseconds.
#pragma once

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

// Each call alone, after an aligned start (window-based: Hunold, Carpen-Amarie, "MPI Benchmarking Revisited", 2015).
template <class Handle>
Samples isolated(const Exchange<Handle>& exchange, const Heartbeat& beat, std::size_t count, const Window& window);

}  // namespace busbw
