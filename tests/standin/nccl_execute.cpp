// What the stream does for a group: its tasks, as fast as they shall be, and what a fault adds to them.
#include <algorithm>
#include <chrono>
#include <ranges>
#include <thread>
#include <vector>

#include "nccl_task.hpp"

namespace standin::nccl {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// How often a collective's size goes over the bus, as nccl-tests counts it; `bytes` of one contribution.
double bus_bytes(const Task& task, int ranks) {
    const auto bytes = static_cast<double>(task.bytes());
    const double others = ranks - 1;
    switch (task.function) {
        case Function::all_reduce: return bytes * 2 * others / ranks;
        case Function::all_gather:
        case Function::alltoall:
        case Function::gather:
        case Function::scatter:
        case Function::reduce_scatter: return bytes * others;
        default: return bytes;
    }
}

// How long the tasks take at STANDIN_GBPS, in units of 1e9 bytes a second, after STANDIN_LATENCY_US.
Seconds pace(std::span<const Task> collectives, std::span<const Task> messages, int ranks) {
    const auto latency_us = static_cast<double>(environment_number("STANDIN_LATENCY_US", 0));
    const auto rate_GBps = static_cast<double>(environment_number("STANDIN_GBPS", 0));
    double bytes = 0;
    for (const Task& task : collectives) {
        bytes += bus_bytes(task, ranks);
    }
    double out = 0;
    double in = 0;
    for (const Task& task : messages) {
        (task.function == Function::send ? out : in) += static_cast<double>(task.bytes());
    }
    bytes += std::max(out, in);
    return Seconds{latency_us * 1e-6 + (rate_GBps > 0 ? bytes / (rate_GBps * 1e9) : 0)};
}

void sleep_until(Clock::time_point end) {
    constexpr auto coarse = std::chrono::microseconds{200};
    if (end - Clock::now() > coarse) {
        std::this_thread::sleep_until(end - coarse / 2);
    }
    while (Clock::now() < end) {
        std::this_thread::yield();
    }
}

void suffer_before(const Segment& segment, const StreamFault& fault) {
    std::this_thread::sleep_for(std::chrono::microseconds{fault.sleep_us});
    while (fault.hangs) {
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
        expect(!segment.is_aborted(), remote_error, "the communicator was aborted");
    }
}

void suffer_after(const Task& task, std::size_t written) {
    if (task.fault.wrong_element) {
        const std::size_t last_byte = (*task.fault.wrong_element + 1) * bytes_of(task.type) - 1;
        if (last_byte < written) {
            task.to[last_byte] ^= std::byte{0x10};
        }
    }
}

}  // namespace

void execute(Segment& segment, int rank, std::span<const Task> tasks) {
    std::vector<Task> collectives;
    std::vector<Task> messages;
    for (const Task& task : tasks) {
        (task.is_point_to_point() ? messages : collectives).push_back(task);
        suffer_before(segment, task.fault);
    }
    const auto start = Clock::now();
    for (const Task& task : collectives) {
        run_collective(segment, rank, task);
    }
    exchange_messages(segment, rank, messages);
    for (const Task& task : tasks) {
        suffer_after(task, bytes_written(task, rank, segment.ranks));
    }
    sleep_until(start + std::chrono::duration_cast<Clock::duration>(pace(collectives, messages, segment.ranks)));
}

const char* name_of(Function function) {
    switch (function) {
        case Function::all_gather: return "AllGather";
        case Function::all_reduce: return "AllReduce";
        case Function::alltoall: return "AlltoAll";
        case Function::broadcast: return "Broadcast";
        case Function::gather: return "Gather";
        case Function::reduce: return "Reduce";
        case Function::reduce_scatter: return "ReduceScatter";
        case Function::scatter: return "Scatter";
        case Function::send: return "Send";
        case Function::recv: return "Recv";
    }
    return "Invalid";
}

std::size_t bytes_read(const Task& task, int rank, int ranks) {
    const std::size_t all = task.bytes() * static_cast<std::size_t>(ranks);
    switch (task.function) {
        case Function::alltoall:
        case Function::reduce_scatter: return all;
        case Function::scatter: return rank == task.root ? all : 0;
        case Function::broadcast: return rank == task.root ? task.bytes() : 0;
        case Function::recv: return 0;
        default: return task.bytes();
    }
}

std::size_t bytes_written(const Task& task, int rank, int ranks) {
    const std::size_t all = task.bytes() * static_cast<std::size_t>(ranks);
    switch (task.function) {
        case Function::alltoall:
        case Function::all_gather: return all;
        case Function::gather: return rank == task.root ? all : 0;
        case Function::reduce: return rank == task.root ? task.bytes() : 0;
        case Function::send: return 0;
        default: return task.bytes();
    }
}

}  // namespace standin::nccl
