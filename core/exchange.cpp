#include "exchange.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace busbw {
namespace {

std::vector<Segment> whole(std::size_t count, int source) { return {{0, count, source, 0}}; }

// The parts of all ranks, one behind the other, each from `source_at` of its owner's input.
std::vector<Segment> one_part_each(const Seat& seat, std::size_t count, std::size_t source_at) {
    std::vector<Segment> parts;
    for (int rank = 0; rank < seat.ranks; ++rank) {
        parts.push_back({static_cast<std::size_t>(rank) * count, count, rank, source_at});
    }
    return parts;
}

}  // namespace

Contract contract(Kind kind, const Seat& seat, std::size_t count, bool in_place) {
    const auto ranks = static_cast<std::size_t>(seat.ranks);
    const std::size_t mine = static_cast<std::size_t>(seat.rank) * count;
    const bool at_root = seat.rank == seat.root;
    switch (kind) {
        case Kind::all_reduce: return {count, in_place, 0, whole(count, all_ranks)};
        case Kind::all_gather: return {count, in_place, in_place ? mine : 0, one_part_each(seat, count, 0)};
        case Kind::reduce_scatter: return {count * ranks, in_place, 0, {{0, count, all_ranks, mine}}};
        case Kind::broadcast: return {at_root ? count : 0, true, 0, whole(count, seat.root)};
        case Kind::reduce:
            return {count, in_place && at_root, 0, at_root ? whole(count, all_ranks) : std::vector<Segment>{}};
        case Kind::alltoall: return {count * ranks, in_place, 0, one_part_each(seat, count, mine)};
        case Kind::gather:
            return {count, in_place && at_root, in_place && at_root ? mine : 0,
                    at_root ? one_part_each(seat, count, 0) : std::vector<Segment>{}};
        case Kind::scatter:
            if (in_place && at_root) {
                return {count * ranks, false, 0, {}};
            }
            return {at_root ? count * ranks : 0, false, 0, {{0, count, seat.root, mine}}};
        case Kind::sendrecv: return {count, in_place, 0, whole(count, seat.previous())};
        case Kind::latency:
        case Kind::bibw: return {count, false, 0, whole(count, seat.peer())};
        case Kind::bandwidth:
            return {count, false, 0, seat.starts_pair() ? std::vector<Segment>{} : whole(count, seat.peer())};
        case Kind::alltoall_2dh:
            if (in_place) {
                throw std::invalid_argument("a two-level alltoall has no in-place form");
            }
            return {count * ranks, false, 0, one_part_each(seat, count, mine)};
    }
    throw std::invalid_argument("unknown collective");
}

Footprint footprint(Kind kind, const Seat& seat, std::size_t count, bool in_place) {
    const Contract rules = contract(kind, seat, count, in_place);
    std::size_t receive = rules.input_in_receive ? rules.input_at + rules.input_count : 0;
    for (const Segment& segment : rules.output) {
        receive = std::max(receive, segment.at + segment.count);
    }
    return {rules.input_in_receive ? 0 : rules.input_count, receive};
}

namespace {

// Throws unless this rank is number `rank` of `ranks` in the communicator.
template <class Handle>
void check_seat(const MpiApi<Handle>& mpi, Handle communicator, int rank, int ranks) {
    int found_rank = 0;
    int found_ranks = 0;
    check(mpi, mpi.comm_rank(communicator, &found_rank), "MPI_Comm_rank");
    check(mpi, mpi.comm_size(communicator, &found_ranks), "MPI_Comm_size");
    if (found_rank != rank || found_ranks != ranks) {
        throw std::invalid_argument("a two-level alltoall needs rank " + std::to_string(rank) + " of " +
                                    std::to_string(ranks) + " here, not rank " + std::to_string(found_rank) + " of " +
                                    std::to_string(found_ranks));
    }
}

}  // namespace

template <class Handle>
void check_levels(const Exchange<Handle>& exchange) {
    const auto& [intra, rail, group, scratch] = exchange.levels;
    const Seat& seat = exchange.seat;
    if (group < 1 || seat.ranks % group != 0) {
        throw std::invalid_argument(std::to_string(seat.ranks) + " ranks are not equal groups of " +
                                    std::to_string(group));
    }
    const int groups = seat.ranks / group;
    check_seat(*exchange.mpi, intra, seat.rank % group, group);
    check_seat(*exchange.mpi, rail, seat.rank / group, groups);
    const auto count = static_cast<std::size_t>(exchange.count);
    const std::size_t needed = count * static_cast<std::size_t>(seat.ranks) * exchange.element_bytes;
    if (scratch.size() != needed) {
        throw std::invalid_argument("the scratch of this exchange is " + std::to_string(needed) + " bytes, not " +
                                    std::to_string(scratch.size()));
    }
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
    const std::size_t largest = count * static_cast<std::size_t>(std::max(group, groups));
    if (largest > most) {
        throw std::invalid_argument("MPI counts elements in 32 bits: at most " + std::to_string(most) +
                                    " a message, not " + std::to_string(largest));
    }
}

template void check_levels(const Exchange<pointer_handle>&);
template void check_levels(const Exchange<integer_handle>&);

}  // namespace busbw
