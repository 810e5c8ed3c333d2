// Tests of one pair of ranks over MPI, in which every wait has a deadline: a partner that stands still is given up.
// Units: nanoseconds, bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clock.hpp"
#include "heartbeat.hpp"
#include "mpi_api.hpp"

namespace busbw {

// One test as one of its two ranks does it. The rank that leads begins, and its samples are the result.
struct PairTask {
    int peer;
    // Of all messages of this test; no other test between these two ranks has it.
    int tag;
    bool leads;
    std::size_t size;
    // Round trips of one sample, or messages of one window.
    std::size_t calls;
    // A test ends with the first sample after `budget`, but takes `least` of them; `most` at most.
    nanoseconds budget;
    std::size_t least;
    std::size_t most;
    // From now on; then the partner is given up.
    nanoseconds limit;
};

// What a sample took, each of `PairTask::calls` round trips or messages; the first, which warms up, is not kept. With
// `gave_up` requests are left that MPI may still write to.
struct PairSamples {
    std::vector<nanoseconds> duration;
    bool gave_up = false;
};

// Holds the requests and uses the buffers of tests, one after the other. After a test that was given up neither it nor
// its buffers may be used, or freed, before the process ends.
template <class Handle>
class PairTester {
   public:
    // `window`: most messages that one task has under way. Throws std::invalid_argument for none.
    PairTester(const MpiApi<Handle>& mpi, Handle communicator, Handle byte, std::span<std::byte> send,
               std::span<std::byte> receive, std::size_t window);

    // Messages to and fro, one at a time.
    PairSamples ping_pong(const PairTask& task, const Heartbeat& beat);
    // Windows of messages from the rank that leads, each answered by one byte.
    PairSamples one_way(const PairTask& task, const Heartbeat& beat);
    // Windows of messages both ways at once.
    PairSamples both_ways(const PairTask& task, const Heartbeat& beat);

   private:
    class Turn;

    const MpiApi<Handle>* mpi_;
    Handle communicator_;
    Handle byte_;
    std::span<std::byte> send_;
    std::span<std::byte> receive_;
    std::vector<Handle> requests_;
    std::vector<status_space> statuses_;
    // What the ranks of a pair tell each other: round trips to come, or whether to go on.
    std::uint64_t said_ = 0;
    std::uint64_t heard_ = 0;
};

}  // namespace busbw
