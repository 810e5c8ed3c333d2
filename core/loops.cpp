#include "loops.hpp"

namespace busbw {

template <class Handle>
Samples stream(const Exchange<Handle>& exchange, const Heartbeat& beat, std::size_t count, std::uint64_t calls) {
    const MpiApi<Handle>& mpi = *exchange.mpi;
    Samples samples{count};
    with_call(exchange, [&](auto&& call) {
        for (std::size_t sample = 0; sample < count; ++sample) {
            check(mpi, mpi.barrier(exchange.communicator), "MPI_Barrier");
            beat.enter_call();
            const nanoseconds processor_start = processor_clock();
            const nanoseconds start = wall_clock();
            for (std::uint64_t repeat = 0; repeat < calls; ++repeat) {
                call();
            }
            const nanoseconds end = wall_clock();
            const nanoseconds processor_end = processor_clock();
            beat.leave_call(calls);
            samples.duration[sample] = end - start;
            samples.off_processor[sample] = (end - start) - (processor_end - processor_start);
            beat.count_sample();
        }
    });
    return samples;
}

namespace {

template <class Handle, class Call>
class MpiStep {
   public:
    MpiStep(const Exchange<Handle>& exchange, const Heartbeat& beat, Call& call, Samples& samples)
        : exchange_{&exchange}, beat_{&beat}, call_{&call}, samples_{&samples} {}

    nanoseconds meet(const Window& window) const {
        const MpiApi<Handle>& mpi = *exchange_->mpi;
        std::int64_t start = exchange_->seat.rank == 0 ? wall_clock() + window.offset + window.lead : 0;
        check(mpi, mpi.bcast(&start, sizeof start, exchange_->byte, 0, exchange_->communicator), "MPI_Bcast");
        return start;
    }
    void enter() const { beat_->enter_call(); }
    void leave() const {
        beat_->leave_call(1);
        beat_->count_sample();
    }
    nanoseconds run(std::size_t) {
        (*call_)();
        end_ = wall_clock();
        return end_;
    }
    void keep(std::size_t sample, const AlignedCall& call) const {
        samples_->duration[sample] = end_ - call.common_start;
        samples_->lateness[sample] = call.start - call.common_start;
        samples_->off_processor[sample] = call.off_processor;
        samples_->missed[sample] = call.missed ? 1 : 0;
    }

   private:
    const Exchange<Handle>* exchange_;
    const Heartbeat* beat_;
    Call* call_;
    Samples* samples_;
    nanoseconds end_ = 0;
};

}  // namespace

template <class Handle>
Samples isolated(const Exchange<Handle>& exchange, const Heartbeat& beat, std::size_t count, const Window& window) {
    Samples samples{count};
    with_call(exchange, [&](auto&& call) {
        MpiStep step{exchange, beat, call, samples};
        measure_isolated(step, count, window);
    });
    return samples;
}

template Samples stream(const Exchange<pointer_handle>&, const Heartbeat&, std::size_t, std::uint64_t);
template Samples stream(const Exchange<integer_handle>&, const Heartbeat&, std::size_t, std::uint64_t);
template Samples isolated(const Exchange<pointer_handle>&, const Heartbeat&, std::size_t, const Window&);
template Samples isolated(const Exchange<integer_handle>&, const Heartbeat&, std::size_t, const Window&);

}  // namespace busbw
