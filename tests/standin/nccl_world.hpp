// Communicators: which ranks there are, and what a rank keeps about them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "nccl_config.hpp"
#include "nccl_profiler.hpp"
#include "nccl_segment.hpp"
#include "nccl_task.hpp"

namespace standin::nccl {

struct UserOperation {
    DataType type;
    Reduction reduction;
    bool exists = true;
};

struct Communicator {
    int rank = 0;
    int ranks = 0;
    // Of the communicator that this one was split from in the end: what faults are counted by.
    int world_rank = 0;
    int device = 0;
    UniqueId id{};
    Config config;
    // Set before all ranks are there.
    std::shared_ptr<Segment> segment;
    // in_progress until they are; an error since a collective failed on the stream.
    std::atomic<Status> state{in_progress};
    Profiler profiler;

    // Held while a group is on a stream: two streams take turns.
    std::mutex on_stream;

    std::mutex mutex;
    std::condition_variable changed;
    int outstanding = 0;  // groups that were launched and are not done
    bool finalized = false;
    bool aborted = false;
    std::vector<UserOperation> operations;

    // Notes that a group was launched, or done.
    void begin_work();
    void end_work();
    // Sets the segment, and ends all waiting in it, before or after it is set.
    void use(std::shared_ptr<Segment> shared);
    void abort();
    // Waits until no group is outstanding.
    void drain();
};

// The communicator behind a handle; throws Problem.
std::shared_ptr<Communicator> communicator_of(const Communicator* handle);
// The same, ready for a collective.
std::shared_ptr<Communicator> ready_communicator(const Communicator* handle);

}  // namespace standin::nccl
