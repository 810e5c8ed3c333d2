// One exchange between ranks: a collective, or one of the point-to-point patterns, with its buffers. A value; the
// loops repeat it. Counts are elements, offsets bytes unless named otherwise.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "element.hpp"
#include "mpi_api.hpp"
#include "pattern.hpp"
#include "slices.hpp"

namespace busbw {

enum class Kind {
    all_reduce,
    all_gather,
    reduce_scatter,
    broadcast,
    reduce,
    alltoall,
    gather,
    scatter,
    sendrecv,
    latency,       // ping-pong between the ranks of a pair
    bandwidth,     // `window` messages one way, then a 4-byte answer
    bibw,          // `window` messages each way at once
    alltoall_2dh,  // within groups of ranks, then between the ranks of one place in their groups
};
inline constexpr std::string_view kind_names[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                                                  "alltoall",   "gather",     "scatter",        "sendrecv",  "latency",
                                                  "bandwidth",  "bibw",       "alltoall_2dh"};

// Who a rank is and whom it meets; pairs are rank i and rank i + ranks / 2.
struct Seat {
    int rank;
    int ranks;
    int root;
    [[nodiscard]] int next() const noexcept { return (rank + 1) % ranks; }
    [[nodiscard]] int previous() const noexcept { return (rank + ranks - 1) % ranks; }
    [[nodiscard]] bool starts_pair() const noexcept { return rank < ranks / 2; }
    [[nodiscard]] int peer() const noexcept { return starts_pair() ? rank + ranks / 2 : rank - ranks / 2; }
};

// What a two-level alltoall needs beside: the ranks of this rank's group, in order; the ranks of its place in every
// group, in order of the groups; and room for a copy of the input. Groups are `group` neighbouring ranks each.
template <class Handle>
struct Levels {
    Handle intra{};
    Handle rail{};
    int group = 1;
    std::span<std::byte> scratch{};
};

template <class Handle>
struct Exchange {
    const MpiApi<Handle>* mpi;
    Handle communicator;
    Handle datatype;
    Handle operation;
    Handle byte;          // MPI_BYTE, for the answer of `bandwidth`
    void* in_place_mark;  // MPI_IN_PLACE
    Kind kind;
    Seat seat;
    int count;  // elements in one part: the whole message, or what goes to or comes from one rank
    bool in_place;
    int window;
    std::byte* send;  // unused in place
    std::byte* receive;
    std::size_t element_bytes;
    // Room for the requests and statuses of one window; a loop never allocates.
    mutable std::vector<Handle> requests;
    mutable std::vector<status_space> statuses;
    Levels<Handle> levels{};  // alltoall_2dh
};

// Throws std::invalid_argument unless the groups are equal, their communicators number the ranks as `Levels` says, the
// scratch is as large as the input, and no message has more elements than MPI counts.
template <class Handle>
void check_levels(const Exchange<Handle>& exchange);

// Where a rank's input lies, and what must stand in its output afterwards, in elements of a part of `count`.
struct Contract {
    std::size_t input_count;
    bool input_in_receive;  // the input is in the receive buffer, at `input_at`
    std::size_t input_at;
    std::vector<Segment> output;  // in the receive buffer; empty where the rank receives nothing
};
Contract contract(Kind kind, const Seat& seat, std::size_t count, bool in_place);

// Elements of the send and receive buffers that this rank needs.
struct Footprint {
    std::size_t send;
    std::size_t receive;
};
Footprint footprint(Kind kind, const Seat& seat, std::size_t count, bool in_place);

namespace detail {

template <class Handle>
void ping_pong(const Exchange<Handle>& x) {
    const MpiApi<Handle>& mpi = *x.mpi;
    const int peer = x.seat.peer();
    status_space status;
    if (x.seat.starts_pair()) {
        check(mpi, mpi.send(x.send, x.count, x.datatype, peer, 1, x.communicator), "MPI_Send");
        check(mpi, mpi.recv(x.receive, x.count, x.datatype, peer, 1, x.communicator, &status), "MPI_Recv");
    } else {
        check(mpi, mpi.recv(x.receive, x.count, x.datatype, peer, 1, x.communicator, &status), "MPI_Recv");
        check(mpi, mpi.send(x.send, x.count, x.datatype, peer, 1, x.communicator), "MPI_Send");
    }
}

template <class Handle>
void post(const Exchange<Handle>& x, bool sending, std::size_t first) {
    const MpiApi<Handle>& mpi = *x.mpi;
    for (int message = 0; message < x.window; ++message) {
        Handle* request = &x.requests[first + static_cast<std::size_t>(message)];
        if (sending) {
            check(mpi, mpi.isend(x.send, x.count, x.datatype, x.seat.peer(), 2, x.communicator, request), "MPI_Isend");
        } else {
            check(mpi, mpi.irecv(x.receive, x.count, x.datatype, x.seat.peer(), 2, x.communicator, request),
                  "MPI_Irecv");
        }
    }
}

template <class Handle>
void window_one_way(const Exchange<Handle>& x) {
    const MpiApi<Handle>& mpi = *x.mpi;
    int answer = 0;
    status_space status;
    post(x, x.seat.starts_pair(), 0);
    check(mpi, mpi.waitall(x.window, x.requests.data(), x.statuses.data()), "MPI_Waitall");
    if (x.seat.starts_pair()) {
        check(mpi, mpi.recv(&answer, sizeof answer, x.byte, x.seat.peer(), 3, x.communicator, &status), "MPI_Recv");
    } else {
        check(mpi, mpi.send(&answer, sizeof answer, x.byte, x.seat.peer(), 3, x.communicator), "MPI_Send");
    }
}

template <class Handle>
void window_both_ways(const Exchange<Handle>& x) {
    const MpiApi<Handle>& mpi = *x.mpi;
    post(x, false, 0);
    post(x, true, static_cast<std::size_t>(x.window));
    check(mpi, mpi.waitall(2 * x.window, x.requests.data(), x.statuses.data()), "MPI_Waitall");
}

// Tutel's two-level alltoall (Hwang et al., "Tutel", MLSys 2023, appendix A): slices for one place of every group are
// brought together, exchanged within the group, brought together by group, and exchanged between the groups. What
// arrives last stands in the order of the ranks it came from.
template <class Handle>
void two_level(const Exchange<Handle>& x) {
    const MpiApi<Handle>& mpi = *x.mpi;
    const int groups = x.seat.ranks / x.levels.group;
    const auto members = static_cast<std::size_t>(x.levels.group);
    const auto others = static_cast<std::size_t>(groups);
    const std::size_t slice = static_cast<std::size_t>(x.count) * x.element_bytes;
    const std::span<std::byte> sent{x.send, slice * members * others};
    const std::span<std::byte> received{x.receive, sent.size()};
    std::byte* const scratch = x.levels.scratch.data();
    const int to_member = x.count * groups;
    const int to_group = x.count * x.levels.group;
    stride_copy(sent, x.levels.scratch, slice, others, members);
    check(mpi, mpi.alltoall(scratch, to_member, x.datatype, x.receive, to_member, x.datatype, x.levels.intra),
          "MPI_Alltoall");
    stride_copy(received, x.levels.scratch, slice, members, others);
    check(mpi, mpi.alltoall(scratch, to_group, x.datatype, x.receive, to_group, x.datatype, x.levels.rail),
          "MPI_Alltoall");
}

}  // namespace detail

// Calls `visit` with a function that does the exchange once; each kind gets a loop of its own, without a branch in it.
template <class Handle, class Visitor>
auto with_call(const Exchange<Handle>& x, Visitor&& visit) {
    const MpiApi<Handle>& mpi = *x.mpi;
    const bool at_root = x.seat.rank == x.seat.root;
    const void* const from = x.in_place ? x.in_place_mark : x.send;
    const void* const from_at_root = x.in_place && at_root ? x.in_place_mark : x.send;
    switch (x.kind) {
        case Kind::all_reduce:
            return visit([=, &mpi, &x] {
                check(mpi, mpi.allreduce(from, x.receive, x.count, x.datatype, x.operation, x.communicator),
                      "MPI_Allreduce");
            });
        case Kind::all_gather:
            return visit([=, &mpi, &x] {
                check(mpi, mpi.allgather(from, x.count, x.datatype, x.receive, x.count, x.datatype, x.communicator),
                      "MPI_Allgather");
            });
        case Kind::reduce_scatter:
            return visit([=, &mpi, &x] {
                check(mpi, mpi.reduce_scatter_block(from, x.receive, x.count, x.datatype, x.operation, x.communicator),
                      "MPI_Reduce_scatter_block");
            });
        case Kind::broadcast:
            return visit([=, &mpi, &x] {
                check(mpi, mpi.bcast(x.receive, x.count, x.datatype, x.seat.root, x.communicator), "MPI_Bcast");
            });
        case Kind::reduce:
            return visit([=, &mpi, &x] {
                check(
                    mpi,
                    mpi.reduce(from_at_root, x.receive, x.count, x.datatype, x.operation, x.seat.root, x.communicator),
                    "MPI_Reduce");
            });
        case Kind::alltoall:
            return visit([=, &mpi, &x] {
                check(mpi, mpi.alltoall(from, x.count, x.datatype, x.receive, x.count, x.datatype, x.communicator),
                      "MPI_Alltoall");
            });
        case Kind::gather:
            return visit([=, &mpi, &x] {
                check(mpi,
                      mpi.gather(from_at_root, x.count, x.datatype, x.receive, x.count, x.datatype, x.seat.root,
                                 x.communicator),
                      "MPI_Gather");
            });
        case Kind::scatter:
            return visit([=, &mpi, &x] {
                void* const into = x.in_place && at_root ? x.in_place_mark : x.receive;
                check(mpi,
                      mpi.scatter(x.send, x.count, x.datatype, into, x.count, x.datatype, x.seat.root, x.communicator),
                      "MPI_Scatter");
            });
        case Kind::sendrecv:
            if (x.in_place) {
                return visit([=, &mpi, &x] {
                    status_space status;
                    check(mpi,
                          mpi.sendrecv_replace(x.receive, x.count, x.datatype, x.seat.next(), 0, x.seat.previous(), 0,
                                               x.communicator, &status),
                          "MPI_Sendrecv_replace");
                });
            }
            return visit([=, &mpi, &x] {
                status_space status;
                check(mpi,
                      mpi.sendrecv(x.send, x.count, x.datatype, x.seat.next(), 0, x.receive, x.count, x.datatype,
                                   x.seat.previous(), 0, x.communicator, &status),
                      "MPI_Sendrecv");
            });
        case Kind::latency: return visit([&x] { detail::ping_pong(x); });
        case Kind::bandwidth: return visit([&x] { detail::window_one_way(x); });
        case Kind::bibw: return visit([&x] { detail::window_both_ways(x); });
        case Kind::alltoall_2dh: return visit([&x] { detail::two_level(x); });
    }
    throw std::invalid_argument("unknown collective");
}

}  // namespace busbw
