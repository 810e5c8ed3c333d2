// Collectives: every rank lays a piece into its slot, all meet, every rank takes what it needs, and all meet again.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "nccl_task.hpp"

namespace standin::nccl {
namespace {

// What all ranks must agree on.
struct Call {
    Function function;
    DataType type;
    Operator operation;
    int root;
    std::size_t count;
};
static_assert(std::has_unique_object_representations_v<Call>);  // its bytes are compared

struct Round {
    Segment& segment;
    int rank;
    const Task& task;
    // Of each contribution, in bytes.
    std::size_t offset;
    std::size_t bytes;

    [[nodiscard]] std::size_t block(int index) const { return static_cast<std::size_t>(index) * task.bytes() + offset; }
    void lay(const std::byte* from) const { std::memmove(segment.slot(rank), from, bytes); }
    // Lays one piece for each rank.
    void lay_for_all() const {
        for (int to = 0; to < segment.ranks; ++to) {
            std::memcpy(segment.slot(rank) + static_cast<std::size_t>(to) * bytes, task.from + block(to), bytes);
        }
    }
    void take(int from, std::byte* to) const { std::memcpy(to, segment.slot(from), bytes); }
    void take_from_all() const {
        for (int from = 0; from < segment.ranks; ++from) {
            take(from, task.to + block(from));
        }
    }
    // Reduces the pieces that lie at `position` in each slot.
    void reduce_to(std::byte* to, std::size_t position) const {
        std::vector<const std::byte*> sources;
        for (int from = 0; from < segment.ranks; ++from) {
            sources.push_back(segment.slot(from) + position);
        }
        reduce(task.type, task.reduction, sources, to, bytes / bytes_of(task.type));
    }
};

void give(const Round& round) {
    const Task& task = round.task;
    const bool is_root = round.rank == task.root;
    switch (task.function) {
        case Function::all_gather:
        case Function::all_reduce:
        case Function::gather:
        case Function::reduce: return round.lay(task.from + round.offset);
        case Function::broadcast: return is_root ? round.lay(task.from + round.offset) : void();
        case Function::scatter: return is_root ? round.lay_for_all() : void();
        case Function::alltoall:
        case Function::reduce_scatter: return round.lay_for_all();
        default: throw Problem{internal_error, "a message is no collective"};
    }
}

void receive(const Round& round) {
    const Task& task = round.task;
    const bool is_root = round.rank == task.root;
    const std::size_t mine = static_cast<std::size_t>(round.rank) * round.bytes;
    switch (task.function) {
        case Function::all_gather: return round.take_from_all();
        case Function::all_reduce: return round.reduce_to(task.to + round.offset, 0);
        case Function::broadcast: return round.take(task.root, task.to + round.offset);
        case Function::gather: return is_root ? round.take_from_all() : void();
        case Function::reduce: return is_root ? round.reduce_to(task.to + round.offset, 0) : void();
        case Function::reduce_scatter: return round.reduce_to(task.to + round.offset, mine);
        case Function::scatter:
            std::memcpy(task.to + round.offset, round.segment.slot(task.root) + mine, round.bytes);
            return;
        case Function::alltoall:
            for (int from = 0; from < round.segment.ranks; ++from) {
                std::memcpy(task.to + round.block(from), round.segment.slot(from) + mine, round.bytes);
            }
            return;
        default: throw Problem{internal_error, "a message is no collective"};
    }
}

void agree(const Segment& segment, int rank) {
    for (int other = 0; other < segment.ranks; ++other) {
        if (std::memcmp(segment.stream_post(other).data(), segment.stream_post(rank).data(), sizeof(Call)) != 0) {
            throw Problem{invalid_usage, "the ranks did not call the same collective with the same arguments"};
        }
    }
}

}  // namespace

void run_collective(Segment& segment, int rank, const Task& task) {
    const Call call{task.function, task.type, task.reduction.kind, task.root, task.count};
    std::memcpy(segment.stream_post(rank).data(), &call, sizeof call);
    const std::size_t piece = Segment::slot_bytes / static_cast<std::size_t>(segment.ranks) / 16 * 16;
    const bool one_piece_each = task.function == Function::alltoall || task.function == Function::reduce_scatter ||
                                task.function == Function::scatter;
    const std::size_t most = one_piece_each ? piece : Segment::slot_bytes;
    for (std::size_t offset = 0; offset < task.bytes(); offset += most) {
        const Round round{segment, rank, task, offset, std::min(most, task.bytes() - offset)};
        give(round);
        segment.meet_on_stream();
        if (offset == 0) {
            agree(segment, rank);
        }
        receive(round);
        segment.meet_on_stream();
    }
}

}  // namespace standin::nccl
