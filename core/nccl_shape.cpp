#include "nccl_shape.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>

namespace busbw {
namespace {

std::size_t index(int number) { return static_cast<std::size_t>(number); }

std::vector<Segment> whole(std::size_t count, int source) { return {{0, count, source, 0}}; }

std::vector<Segment> one_part_each(int ranks, std::size_t count, std::size_t source_at) {
    std::vector<Segment> parts;
    for (int rank = 0; rank < ranks; ++rank) {
        parts.push_back({index(rank) * count, count, rank, source_at});
    }
    return parts;
}

Contract varied(const NcclShape& shape, int rank) {
    Contract rules{sent_before(shape, rank, shape.ranks), false, 0, {}};
    std::size_t at = 0;
    for (int source = 0; source < shape.ranks; ++source) {
        const std::size_t count = sent(shape, source, rank);
        rules.output.push_back({at, count, source, sent_before(shape, source, rank)});
        at += count;
    }
    return rules;
}

Contract paired(const NcclShape& shape, int rank) {
    const auto [left, right] = shape.pair;
    if (rank != left && rank != right) {
        return {0, false, 0, {}};
    }
    return {shape.count, false, 0, whole(shape.count, rank == left ? right : left)};
}

}  // namespace

void check_shape(const NcclShape& shape) {
    const auto fail = [](const char* why) { throw std::invalid_argument(why); };
    switch (shape.kind) {
        case NcclKind::hypercube:
            if (!std::has_single_bit(static_cast<unsigned>(shape.ranks))) {
                fail("a hypercube needs a power of two of ranks");
            }
            break;
        case NcclKind::alltoall_2dh:
            if (shape.group < 1 || shape.ranks % shape.group != 0) {
                fail("groups of a two-level alltoall must be equal");
            }
            break;
        case NcclKind::alltoallv:
            if (shape.matrix.size() != index(shape.ranks) * index(shape.ranks)) {
                fail("the matrix of an alltoallv has one number for each pair of ranks");
            }
            break;
        case NcclKind::sendrecv_pair:
            if (std::min(shape.pair.first, shape.pair.second) < 0 ||
                std::max(shape.pair.first, shape.pair.second) >= shape.ranks || shape.pair.first == shape.pair.second) {
                fail("a pair is two different ranks");
            }
            break;
        default: break;
    }
}

std::size_t sent(const NcclShape& shape, int from, int to) { return shape.matrix[index(from * shape.ranks + to)]; }

std::size_t sent_before(const NcclShape& shape, int from, int to) {
    const auto row = shape.matrix.begin() + from * shape.ranks;
    return std::accumulate(row, row + to, std::size_t{0});
}

Contract nccl_contract(const NcclShape& shape, int rank) {
    check_shape(shape);
    const std::size_t all = shape.count * index(shape.ranks);
    const std::size_t mine = index(rank) * shape.count;
    const bool at_root = rank == shape.root;
    const bool placed = shape.in_place;
    switch (shape.kind) {
        case NcclKind::all_reduce: return {shape.count, placed, 0, whole(shape.count, all_ranks)};
        case NcclKind::all_gather:
        case NcclKind::hypercube:
            return {shape.count, placed, placed ? mine : 0, one_part_each(shape.ranks, shape.count, 0)};
        case NcclKind::reduce_scatter: return {all, placed, 0, {{placed ? mine : 0, shape.count, all_ranks, mine}}};
        case NcclKind::broadcast: return {at_root ? shape.count : 0, placed, 0, whole(shape.count, shape.root)};
        case NcclKind::reduce:
            return {shape.count, placed, 0, at_root ? whole(shape.count, all_ranks) : std::vector<Segment>{}};
        case NcclKind::gather:
            return {shape.count, placed && at_root, placed && at_root ? mine : 0,
                    at_root ? one_part_each(shape.ranks, shape.count, 0) : std::vector<Segment>{}};
        case NcclKind::scatter:
            return {at_root ? all : 0,
                    placed && at_root,
                    0,
                    {{placed && at_root ? mine : 0, shape.count, shape.root, mine}}};
        default: break;
    }
    if (placed) {
        throw std::invalid_argument("NCCL has no in-place form of this exchange");
    }
    switch (shape.kind) {
        case NcclKind::alltoall:
        case NcclKind::alltoall_2dh: return {all, false, 0, one_part_each(shape.ranks, shape.count, mine)};
        case NcclKind::alltoallv: return varied(shape, rank);
        case NcclKind::sendrecv:
            return {shape.count, false, 0, whole(shape.count, (rank + shape.ranks - 1) % shape.ranks)};
        case NcclKind::sendrecv_pair: return paired(shape, rank);
        default: break;
    }
    throw std::invalid_argument("unknown collective");
}

NcclFootprint nccl_footprint(const NcclShape& shape, int rank) {
    const Contract rules = nccl_contract(shape, rank);
    std::size_t receive = rules.input_in_receive ? rules.input_at + rules.input_count : 0;
    for (const Segment& segment : rules.output) {
        receive = std::max(receive, segment.at + segment.count);
    }
    // A hypercube gathers step by step in place, and an in-place reduction is read where it will be written.
    const std::size_t scratch = shape.kind == NcclKind::alltoall_2dh ? rules.input_count : 0;
    return {rules.input_in_receive ? 0 : rules.input_count, receive, scratch};
}

}  // namespace busbw
