#include "loops.hpp"

#include <sched.h>

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

// Waits for the announced start and returns it on this rank's own clock; `missed` is set when it had passed already.
template <class Handle>
nanoseconds wait_for_start(const Exchange<Handle>& exchange, const Window& window, std::uint8_t& missed) {
    const MpiApi<Handle>& mpi = *exchange.mpi;
    std::int64_t start = exchange.seat.rank == 0 ? wall_clock() + window.offset + window.lead : 0;
    check(mpi, mpi.bcast(&start, sizeof start, exchange.byte, 0, exchange.communicator), "MPI_Bcast");
    const nanoseconds local = start - window.offset;
    missed = wall_clock() > local ? 1 : 0;
    while (wall_clock() < local) {
        if (window.yields) {
            sched_yield();
        }
    }
    return local;
}

}  // namespace

template <class Handle>
Samples isolated(const Exchange<Handle>& exchange, const Heartbeat& beat, std::size_t count, const Window& window) {
    Samples samples{count};
    with_call(exchange, [&](auto&& call) {
        for (std::size_t sample = 0; sample < count; ++sample) {
            const nanoseconds processor_before = processor_clock();
            const nanoseconds before = wall_clock();
            const nanoseconds local = wait_for_start(exchange, window, samples.missed[sample]);
            beat.enter_call();
            const nanoseconds start = wall_clock();
            call();
            const nanoseconds end = wall_clock();
            beat.leave_call(1);
            const nanoseconds processor_after = processor_clock();
            samples.duration[sample] = end - local;
            samples.lateness[sample] = start - local;
            samples.off_processor[sample] = (end - before) - (processor_after - processor_before);
            beat.count_sample();
        }
    });
    return samples;
}

template Samples stream(const Exchange<pointer_handle>&, const Heartbeat&, std::size_t, std::uint64_t);
template Samples stream(const Exchange<integer_handle>&, const Heartbeat&, std::size_t, std::uint64_t);
template Samples isolated(const Exchange<pointer_handle>&, const Heartbeat&, std::size_t, const Window&);
template Samples isolated(const Exchange<integer_handle>&, const Heartbeat&, std::size_t, const Window&);

}  // namespace busbw
