// A training step replayed over NCCL: matrix products on one stream, the exchanges of each group of ranks on a stream
// of theirs, and events between them. Units: nanoseconds.
#pragma once

#include <memory>
#include <vector>

#include "cuda_handles.hpp"
#include "nccl_exchange.hpp"
#include "nccl_loops.hpp"
#include "step_replay.hpp"

namespace busbw {

class NcclReplay {
   public:
    // Each exchange has one member, this process's GPU. `load` computes: as many products as fill the time of a move.
    // Throws std::invalid_argument as `check_moves` does, std::runtime_error with the driver's words.
    NcclReplay(const GpuLoad& load, std::vector<const NcclExchange*> exchanges, std::vector<StepMove> moves);
    NcclReplay(const NcclReplay&) = delete;
    NcclReplay& operator=(const NcclReplay&) = delete;

    // Repeats the step `count` times; the ranks meet before each. Times are those of events: what was computed includes
    // waits for the host to start it, `exposed` is what the stream that computes waited for an exchange.
    [[nodiscard]] std::vector<StepTimes> run(const NcclBench& bench, std::size_t count) const;

   private:
    // By move: when the computing stream came by after it, and start and end of an exchange on its own stream.
    struct Marks {
        std::size_t products = 0;
        UniqueEvent passed;
        UniqueEvent ready;
        UniqueEvent began;
        UniqueEvent ended;
    };

    void start(const StepMove& move, const Marks& marks, std::uint64_t call) const;
    // `calls`: how often each exchange was called before, so that calls move through its buffers.
    void put(const NcclBench& bench, std::vector<std::uint64_t>& calls) const;
    [[nodiscard]] StepTimes times() const;
    [[nodiscard]] const Gpu& gpu_of(std::size_t which) const { return *exchanges_[which]->members()[0].gpu; }
    [[nodiscard]] nanoseconds between(const UniqueEvent& from, const UniqueEvent& to) const;
    void record(const UniqueEvent& event, cuda_stream stream) const;
    void wait_for(const UniqueEvent& event, cuda_stream stream) const;

    const GpuLoad* load_;
    const Gpu* gpu_;
    std::vector<const NcclExchange*> exchanges_;
    std::vector<StepMove> moves_;
    UniqueEvent begins_;
    std::vector<Marks> marks_;
    // By move that finishes: the move that began it.
    std::vector<std::size_t> began_at_;
};

}  // namespace busbw
