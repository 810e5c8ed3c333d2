// Where all ranks meet between samples: nobody goes on before everyone has come, and then all know one instant.
#pragma once

#include <vector>

#include "clock.hpp"
#include "mpi_api.hpp"

namespace busbw {

class Gate {
   public:
    Gate() = default;
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;
    virtual ~Gate() = default;

    // Waits for every rank, then returns an instant `lead` after the meeting, on the first rank's clock. Throws
    // std::runtime_error when a rank is gone.
    virtual nanoseconds meet(nanoseconds lead) const = 0;
};

template <class Handle>
class MpiGate final : public Gate {
   public:
    // `offset` turns this rank's clock into the first rank's; only the first rank's own, 0, is used.
    MpiGate(const MpiApi<Handle>& mpi, Handle communicator, Handle byte, int rank)
        : mpi_{&mpi}, communicator_{communicator}, byte_{byte}, rank_{rank} {}

    nanoseconds meet(nanoseconds lead) const override {
        check(*mpi_, mpi_->barrier(communicator_), "MPI_Barrier");
        std::int64_t instant = rank_ == 0 ? wall_clock() + lead : 0;
        check(*mpi_, mpi_->bcast(&instant, sizeof instant, byte_, 0, communicator_), "MPI_Bcast");
        return instant;
    }

   private:
    const MpiApi<Handle>* mpi_;
    Handle communicator_;
    Handle byte_;
    int rank_;
};

// Over connected stream sockets: on the first rank one to each other rank in their order, elsewhere one to the first.
class SocketGate final : public Gate {
   public:
    // The sockets stay the caller's. `timeout` bounds each wait for a peer.
    SocketGate(std::vector<int> sockets, bool is_first, nanoseconds timeout);
    nanoseconds meet(nanoseconds lead) const override;

   private:
    std::vector<int> sockets_;
    bool is_first_;
    nanoseconds timeout_;
};

// For one process alone.
class NoGate final : public Gate {
   public:
    nanoseconds meet(nanoseconds lead) const override { return wall_clock() + lead; }
};

}  // namespace busbw
