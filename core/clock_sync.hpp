// Offset of this rank's clock to that of rank 0, along a binomial tree: log2(ranks) steps, each a series of small
// messages of which the fastest tells most (Cristian, 1989; the tree: Hunold, Carpen-Amarie, "Hierarchical Clock
// Synchronization in MPI", 2018). Units: nanoseconds.
#pragma once

#include "clock.hpp"
#include "mpi_api.hpp"

namespace busbw {

// `offset` added to this rank's clock gives rank 0's. The truth lies within `error` of it: half the fastest round trip
// of each step, added up.
struct ClockOffset {
    nanoseconds offset = 0;
    nanoseconds error = 0;
};

template <class Handle>
struct Peers {
    const MpiApi<Handle>* mpi;
    Handle communicator;
    Handle byte;
    int rank;
    int ranks;
};

// Every rank calls this at once; each step exchanges `rounds` messages.
template <class Handle>
ClockOffset synchronise(const Peers<Handle>& peers, int rounds);

}  // namespace busbw
