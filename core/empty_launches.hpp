// What starting work on a GPU takes: a kernel that does nothing, launched back to back as a sample of `stream` launches
// calls. Units: nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "clock.hpp"
#include "gate.hpp"
#include "gpu.hpp"

namespace busbw {

// Batches of launches on one GPU, one entry a batch. `issue`: by the host's clock, from before the first launch until
// the last has returned. `device`: by the GPU's clock, from before the first kernel until the last has ended; while the
// host is the slower of the two, both are the host's. `done`: by the host's clock, from before the first launch until
// the host has seen the last kernel end; a few microseconds more than `issue`, or far more where the GPU runs other
// work.
struct EmptyLaunches {
    explicit EmptyLaunches(std::size_t batches) : issue(batches), device(batches), done(batches) {}
    std::vector<nanoseconds> issue;
    std::vector<nanoseconds> device;
    std::vector<nanoseconds> done;
};

// Takes `batches` batches of `launches` launches on each GPU of this process in turn, after one that is not kept. The
// ranks meet before each batch, so that all hosts launch at the same time, as in a sample. Every rank calls this with
// as many GPUs. Throws std::runtime_error when a GPU has no kernels.
std::vector<EmptyLaunches> empty_launches(std::span<const Gpu* const> gpus, const Gate& gate, std::size_t batches,
                                          std::uint64_t launches);

}  // namespace busbw
