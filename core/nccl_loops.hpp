// The ways of taking the time of an exchange over NCCL. All write one entry per sample and GPU of this process into
// memory made beforehand. Units: nanoseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "gate.hpp"
#include "gpu.hpp"
#include "heartbeat.hpp"
#include "loops.hpp"
#include "nccl_exchange.hpp"

namespace busbw {

// What a loop needs beside the exchange. `beats`: one for each member. `step`: how long the GPUs may take for one
// sample before the loop gives up and says what NCCL says.
struct NcclBench {
    const Gate* gate;
    std::vector<Heartbeat> beats;
    nanoseconds step;
};

// The GPUs were not done within `step`. Any rank may be the cause, so that this one should not end the run by itself.
struct Stalled : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Waits for every member's stream, and writes the instant each was first seen done to `ends`. Throws Stalled.
void wait_for_all(const NcclExchange& exchange, const NcclBench& bench, std::vector<nanoseconds>& ends);

// One exchange, waited for. For verification and warm-up.
void once(const NcclExchange& exchange, const NcclBench& bench);

// Back to back: `calls` calls a sample, as nccl-tests does; the ranks meet before each sample.
std::vector<Samples> stream(const NcclExchange& exchange, const NcclBench& bench, std::size_t count,
                            std::uint64_t calls);

// Each call alone, after an aligned start: from the common start to the moment this process sees the GPU done.
std::vector<Samples> isolated(const NcclExchange& exchange, const NcclBench& bench, std::size_t count,
                              const Window& window);

// `calls` calls captured in a CUDA graph, one replay a sample.
class NcclGraph {
   public:
    // Throws std::runtime_error; then no stream captures any more, and no graph is left.
    NcclGraph(const NcclExchange& exchange, std::uint64_t calls);
    NcclGraph(const NcclGraph&) = delete;
    NcclGraph& operator=(const NcclGraph&) = delete;
    [[nodiscard]] std::vector<Samples> replay(const NcclBench& bench, std::size_t count) const;

   private:
    const NcclExchange* exchange_;
    std::uint64_t calls_;
    std::vector<UniqueGraph> graphs_;  // one for each member
    std::vector<UniqueGraphExec> ready_;
};

// Matrix products that keep a GPU busy while an exchange is timed.
class GpuLoad {
   public:
    // Products of n x n matrices; n is a multiple of 4. Measures how long one takes alone.
    GpuLoad(const Gpu& gpu, std::size_t n);
    // Queues products for at least `time`.
    void queue(nanoseconds time) const;
    // Whether a queued product is still at work.
    [[nodiscard]] bool is_working() const;
    void wait() const;
    // Puts so many products on the GPU's stream for loads, whose context must be current.
    void products(std::size_t count) const;
    [[nodiscard]] const Gpu& gpu() const noexcept { return *gpu_; }
    [[nodiscard]] nanoseconds product_time() const noexcept { return product_time_; }

   private:
    const Gpu* gpu_;
    std::size_t n_;
    std::unique_ptr<GpuMemory> matrices_;
    nanoseconds product_time_ = 0;
    void product() const;
};

// As `stream`, while products run on every GPU; a sample during which the load of any GPU of this process ended is
// marked as missed. `expected`: how long a sample is thought to take.
std::vector<Samples> loaded(const NcclExchange& exchange, const NcclBench& bench, std::span<const GpuLoad* const> loads,
                            std::size_t count, std::uint64_t calls, nanoseconds expected);

}  // namespace busbw
