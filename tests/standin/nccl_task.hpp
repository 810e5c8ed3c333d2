// One call of a collective or of a send or receive, and what its rank does for it on the stream.
#pragma once

#include <optional>
#include <span>

#include "nccl_reduce.hpp"
#include "nccl_segment.hpp"

namespace standin::nccl {

enum class Function : int {
    all_gather,
    all_reduce,
    alltoall,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
    send,
    recv
};

const char* name_of(Function function);

// What a fault does to the work on the stream.
struct StreamFault {
    bool hangs = false;
    long long sleep_us = 0;
    std::optional<std::size_t> wrong_element;
};

struct Task {
    Function function;
    const std::byte* from;
    std::byte* to;
    // Of what one rank contributes, or of what it gets in reduce_scatter and scatter.
    std::size_t count;
    DataType type;
    Reduction reduction{};
    // The root, or the peer of a send or receive.
    int root = 0;
    StreamFault fault{};

    [[nodiscard]] std::size_t bytes() const { return count * bytes_of(type); }
    [[nodiscard]] bool is_point_to_point() const { return function == Function::send || function == Function::recv; }
};

// Where the task reads and writes in the memory of `rank`, in bytes; zero where it does not.
std::size_t bytes_read(const Task& task, int rank, int ranks);
std::size_t bytes_written(const Task& task, int rank, int ranks);

// Does what `rank` has to do for all tasks of one group: first the collectives, in order, then all messages at once.
// Throws Problem when it is aborted or the ranks did not make the same call.
void execute(Segment& segment, int rank, std::span<const Task> tasks);

// Does what `rank` has to do for one collective, or for all messages of a group.
void run_collective(Segment& segment, int rank, const Task& task);
void exchange_messages(Segment& segment, int rank, std::span<const Task> messages);

}  // namespace standin::nccl
