#include "clock_sync.hpp"

#include <limits>

namespace busbw {
namespace {

constexpr int sync_tag = 7;

template <class Handle>
void serve_time(const Peers<Handle>& peers, int child, int rounds, const ClockOffset& mine) {
    const MpiApi<Handle>& mpi = *peers.mpi;
    status_space status;
    for (int round = 0; round < rounds; ++round) {
        std::int64_t message[2] = {};
        check(mpi, mpi.recv(message, sizeof message, peers.byte, child, sync_tag, peers.communicator, &status),
              "MPI_Recv");
        message[0] = wall_clock() + mine.offset;
        message[1] = mine.error;
        check(mpi, mpi.send(message, sizeof message, peers.byte, child, sync_tag, peers.communicator), "MPI_Send");
    }
}

template <class Handle>
ClockOffset ask_time(const Peers<Handle>& peers, int parent, int rounds) {
    const MpiApi<Handle>& mpi = *peers.mpi;
    status_space status;
    ClockOffset best;
    nanoseconds fastest = std::numeric_limits<nanoseconds>::max();
    for (int round = 0; round < rounds; ++round) {
        std::int64_t message[2] = {};
        const nanoseconds asked = wall_clock();
        check(mpi, mpi.send(message, sizeof message, peers.byte, parent, sync_tag, peers.communicator), "MPI_Send");
        check(mpi, mpi.recv(message, sizeof message, peers.byte, parent, sync_tag, peers.communicator, &status),
              "MPI_Recv");
        const nanoseconds answered = wall_clock();
        if (answered - asked < fastest) {
            fastest = answered - asked;
            best = {message[0] - (asked + answered) / 2, message[1] + (fastest + 1) / 2};
        }
    }
    return best;
}

}  // namespace

template <class Handle>
ClockOffset synchronise(const Peers<Handle>& peers, int rounds) {
    ClockOffset mine;
    int step = 1;
    while (step < peers.ranks) {
        step *= 2;
    }
    for (step /= 2; step > 0; step /= 2) {
        if (peers.rank % (2 * step) == 0 && peers.rank + step < peers.ranks) {
            serve_time(peers, peers.rank + step, rounds, mine);
        } else if (peers.rank % (2 * step) == step) {
            mine = ask_time(peers, peers.rank - step, rounds);
        }
    }
    return mine;
}

template ClockOffset synchronise(const Peers<pointer_handle>&, int);
template ClockOffset synchronise(const Peers<integer_handle>&, int);

}  // namespace busbw
