// What is exchanged over NCCL, and what must come out: a value, the same on every rank. Counts are elements.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "element.hpp"
#include "exchange.hpp"

namespace busbw {

enum class NcclKind {
    all_reduce,
    all_gather,
    reduce_scatter,
    broadcast,
    reduce,
    alltoall,
    alltoallv,
    gather,
    scatter,
    sendrecv,       // to the next rank, from the one before
    sendrecv_pair,  // between two ranks, both ways; the others look on
    hypercube,      // all_gather in log2(n) steps of twice as much each
    alltoall_2dh,   // within groups of `group` ranks, then between the ranks of one place in their groups
};
inline constexpr std::string_view nccl_kind_names[] = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast",     "reduce",    "alltoall",    "alltoallv",
    "gather",     "scatter",    "sendrecv",       "sendrecv_pair", "hypercube", "alltoall_2dh"};

// What is exchanged. A value; the same on every rank.
struct NcclShape {
    NcclKind kind;
    DataType type;
    Operation operation;
    int ranks;
    int root;
    std::size_t count;  // elements of one part: the whole message, or what goes to or comes from one rank
    bool in_place;
    std::pair<int, int> pair;         // sendrecv_pair
    int group;                        // alltoall_2dh: ranks of one node
    std::vector<std::size_t> matrix;  // alltoallv: elements from rank i to rank j at [i * ranks + j]
};

// Throws std::invalid_argument for a shape that no exchange has.
void check_shape(const NcclShape& shape);

// Elements that rank `from` of an alltoallv sends to rank `to`, and to all ranks before it.
std::size_t sent(const NcclShape& shape, int from, int to);
std::size_t sent_before(const NcclShape& shape, int from, int to);

// As exchange.hpp's: where a rank's input lies and what must stand in its receive buffer afterwards. In place, all of
// it lies in the receive buffer, where NCCL's own rules put it. Throws std::invalid_argument for what NCCL cannot do.
Contract nccl_contract(const NcclShape& shape, int rank);

// Elements of the send, receive and scratch buffers that `rank` needs.
struct NcclFootprint {
    std::size_t send;
    std::size_t receive;
    std::size_t scratch;
};
NcclFootprint nccl_footprint(const NcclShape& shape, int rank);

}  // namespace busbw
