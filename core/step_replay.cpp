#include "step_replay.hpp"

#include <sched.h>

#include <functional>
#include <stdexcept>
#include <string>

namespace busbw {

void check_moves(std::span<const StepMove> moves, std::size_t exchanges) {
    std::vector<bool> under_way(exchanges);
    for (const StepMove& move : moves) {
        if (move.act == StepAct::compute) {
            continue;
        }
        if (move.which >= exchanges) {
            throw std::invalid_argument("a step of " + std::to_string(exchanges) + " exchanges has no number " +
                                        std::to_string(move.which));
        }
        if (under_way[move.which] != (move.act == StepAct::finish)) {
            throw std::invalid_argument("exchange " + std::to_string(move.which) +
                                        (under_way[move.which] ? " is still under way" : " has not begun"));
        }
        under_way[move.which] = move.act == StepAct::begin;
    }
    for (const bool left : under_way) {
        if (left) {
            throw std::invalid_argument("an exchange is not finished at the end of the step");
        }
    }
}

namespace {

// Begins an exchange and returns how many requests stand for it.
template <class Handle>
std::size_t begin(const Exchange<Handle>& x) {
    const MpiApi<Handle>& mpi = *x.mpi;
    Handle* const request = x.requests.data();
    switch (x.kind) {
        case Kind::all_reduce:
            check(mpi, mpi.iallreduce(x.send, x.receive, x.count, x.datatype, x.operation, x.communicator, request),
                  "MPI_Iallreduce");
            return 1;
        case Kind::all_gather:
            check(mpi,
                  mpi.iallgather(x.send, x.count, x.datatype, x.receive, x.count, x.datatype, x.communicator, request),
                  "MPI_Iallgather");
            return 1;
        case Kind::reduce_scatter:
            check(
                mpi,
                mpi.ireduce_scatter_block(x.send, x.receive, x.count, x.datatype, x.operation, x.communicator, request),
                "MPI_Ireduce_scatter_block");
            return 1;
        case Kind::alltoall:
            check(mpi,
                  mpi.ialltoall(x.send, x.count, x.datatype, x.receive, x.count, x.datatype, x.communicator, request),
                  "MPI_Ialltoall");
            return 1;
        case Kind::sendrecv:
            check(mpi, mpi.irecv(x.receive, x.count, x.datatype, x.seat.previous(), 0, x.communicator, request),
                  "MPI_Irecv");
            check(mpi, mpi.isend(x.send, x.count, x.datatype, x.seat.next(), 0, x.communicator, request + 1),
                  "MPI_Isend");
            return 2;
        default: throw std::invalid_argument("no form of this exchange goes on in the background");
    }
}

// The exchanges of a step, and which of them are under way.
template <class Handle>
class StepRunner {
   public:
    StepRunner(std::span<const Exchange<Handle>* const> exchanges, const Heartbeat& beat, bool yields)
        : exchanges_{exchanges}, beat_{&beat}, yields_{yields}, running_(exchanges.size()) {
        for (const Exchange<Handle>* exchange : exchanges) {
            calls_.push_back(with_call(*exchange, [](auto&& call) -> std::function<void()> { return call; }));
        }
    }

    void run(std::span<const StepMove> moves, StepTimes& times) {
        const nanoseconds start = wall_clock();
        for (const StepMove& move : moves) {
            switch (move.act) {
                case StepAct::compute: compute(move.time, times); break;
                case StepAct::call: call(move.which, times); break;
                case StepAct::begin: begin_one(move.which); break;
                case StepAct::finish: finish(move.which, times); break;
            }
        }
        times.step = wall_clock() - start;
    }

   private:
    struct Running {
        std::size_t requests = 0;  // 0: it is done, or has not begun
        nanoseconds began = 0;
        nanoseconds ended = 0;
    };

    void compute(nanoseconds time, StepTimes& times) {
        const nanoseconds start = wall_clock();
        nanoseconds now = start;
        for (; now - start < time; now = wall_clock()) {
            help();
            if (yields_) {
                sched_yield();
            }
        }
        times.compute += now - start;
    }

    void call(std::size_t which, StepTimes& times) {
        beat_->enter_call();
        const nanoseconds start = wall_clock();
        calls_[which]();
        const nanoseconds took = wall_clock() - start;
        beat_->leave_call(1);
        times.busy[which] += took;
        times.exposed[which] += took;
    }

    void begin_one(std::size_t which) {
        Running& one = running_[which];
        one.began = wall_clock();
        one.requests = begin(*exchanges_[which]);
        ++under_way_;
    }

    void finish(std::size_t which, StepTimes& times) {
        const Running& one = running_[which];
        beat_->enter_call();
        const nanoseconds start = wall_clock();
        while (one.requests > 0) {
            help();
            if (yields_) {
                sched_yield();
            }
        }
        times.exposed[which] += wall_clock() - start;
        times.busy[which] += one.ended - one.began;
        beat_->leave_call(1);
    }

    // MPI moves data only while it is called.
    void help() {
        for (std::size_t which = 0; under_way_ > 0 && which < running_.size(); ++which) {
            Running& one = running_[which];
            if (one.requests == 0) {
                continue;
            }
            const Exchange<Handle>& exchange = *exchanges_[which];
            int done = 1;
            for (std::size_t request = 0; request < one.requests; ++request) {
                int flag = 0;
                check(*exchange.mpi, exchange.mpi->test(&exchange.requests[request], &flag, &exchange.statuses[0]),
                      "MPI_Test");
                done &= flag;
            }
            if (done != 0) {
                one.ended = wall_clock();
                one.requests = 0;
                --under_way_;
            }
        }
    }

    std::span<const Exchange<Handle>* const> exchanges_;
    const Heartbeat* beat_;
    bool yields_;
    std::vector<Running> running_;
    std::size_t under_way_ = 0;
    std::vector<std::function<void()>> calls_;
};

}  // namespace

template <class Handle>
std::vector<StepTimes> replay(std::span<const Exchange<Handle>* const> exchanges, std::span<const StepMove> moves,
                              const Heartbeat& beat, Handle everyone, std::size_t count, bool yields) {
    check_moves(moves, exchanges.size());
    std::vector<StepTimes> taken(count, StepTimes{exchanges.size()});
    if (exchanges.empty()) {
        throw std::invalid_argument("a step without exchanges");
    }
    const MpiApi<Handle>& mpi = *exchanges[0]->mpi;
    StepRunner<Handle> runner{exchanges, beat, yields};
    for (StepTimes& times : taken) {
        check(mpi, mpi.barrier(everyone), "MPI_Barrier");
        runner.run(moves, times);
        beat.count_sample();
    }
    return taken;
}

template std::vector<StepTimes> replay(std::span<const Exchange<pointer_handle>* const>, std::span<const StepMove>,
                                       const Heartbeat&, pointer_handle, std::size_t, bool);
template std::vector<StepTimes> replay(std::span<const Exchange<integer_handle>* const>, std::span<const StepMove>,
                                       const Heartbeat&, integer_handle, std::size_t, bool);

}  // namespace busbw
