#include "nccl_replay.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace busbw {

NcclReplay::NcclReplay(const GpuLoad& load, std::vector<const NcclExchange*> exchanges, std::vector<StepMove> moves)
    : load_{&load},
      gpu_{&load.gpu()},
      exchanges_{std::move(exchanges)},
      moves_{std::move(moves)},
      began_at_(moves_.size()) {
    check_moves(moves_, exchanges_.size());
    for (const NcclExchange* exchange : exchanges_) {
        if (exchange->members().size() != 1) {
            throw std::invalid_argument("a step is replayed with one GPU in each process");
        }
    }
    gpu_->use();
    begins_ = make_event(gpu_->cuda());
    std::vector<std::size_t> latest(exchanges_.size());
    nanoseconds due = 0;
    nanoseconds filled = 0;
    for (std::size_t number = 0; number < moves_.size(); ++number) {
        const StepMove& move = moves_[number];
        Marks& marks = marks_.emplace_back();
        marks.passed = make_event(gpu_->cuda());
        if (move.act == StepAct::compute) {
            // What rounding leaves over goes into the next product.
            due += move.time;
            marks.products = static_cast<std::size_t>(
                std::max<nanoseconds>(0, (due - filled + load_->product_time() / 2) / load_->product_time()));
            filled += static_cast<nanoseconds>(marks.products) * load_->product_time();
        } else if (move.act == StepAct::finish) {
            began_at_[number] = latest[move.which];
        } else {
            latest[move.which] = number;
            marks.ready = make_event(gpu_->cuda());
            marks.began = make_event(gpu_->cuda());
            marks.ended = make_event(gpu_->cuda());
        }
    }
}

void NcclReplay::record(const UniqueEvent& event, cuda_stream stream) const {
    gpu_->cuda().check(gpu_->cuda().event_record(event.get(), stream), "cuEventRecord");
}

void NcclReplay::wait_for(const UniqueEvent& event, cuda_stream stream) const {
    gpu_->cuda().check(gpu_->cuda().stream_wait_event(stream, event.get(), 0), "cuStreamWaitEvent");
}

nanoseconds NcclReplay::between(const UniqueEvent& from, const UniqueEvent& to) const {
    float milliseconds = 0;
    gpu_->cuda().check(gpu_->cuda().event_elapsed_time(&milliseconds, from.get(), to.get()), "cuEventElapsedTime");
    return std::llround(static_cast<double>(milliseconds) * 1e6);
}

void NcclReplay::start(const StepMove& move, const Marks& marks, std::uint64_t call) const {
    const cuda_stream own = gpu_of(move.which).stream();
    record(marks.ready, gpu_->load_stream());
    wait_for(marks.ready, own);
    record(marks.began, own);
    exchanges_[move.which]->launch(call);
    record(marks.ended, own);
}

void NcclReplay::put(const NcclBench& bench, std::vector<std::uint64_t>& calls) const {
    const cuda_stream computing = gpu_->load_stream();
    record(begins_, computing);
    for (std::size_t number = 0; number < moves_.size(); ++number) {
        const StepMove& move = moves_[number];
        const Marks& marks = marks_[number];
        switch (move.act) {
            case StepAct::compute: load_->products(marks.products); break;
            case StepAct::call:
                start(move, marks, calls[move.which]++);
                wait_for(marks.ended, computing);
                break;
            case StepAct::begin: start(move, marks, calls[move.which]++); break;
            case StepAct::finish: wait_for(marks_[began_at_[number]].ended, computing); break;
        }
        record(marks.passed, computing);
        for (const Heartbeat& beat : bench.beats) {
            beat.leave_call(move.act == StepAct::call || move.act == StepAct::begin ? 1 : 0);
        }
    }
}

StepTimes NcclReplay::times() const {
    StepTimes taken{exchanges_.size()};
    const UniqueEvent* before = &begins_;
    for (std::size_t number = 0; number < moves_.size(); ++number) {
        const StepMove& move = moves_[number];
        const Marks& marks = marks_[number];
        const nanoseconds passed = between(*before, marks.passed);
        before = &marks.passed;
        if (move.act == StepAct::compute) {
            taken.compute += passed;
            continue;
        }
        if (move.act != StepAct::finish) {
            taken.busy[move.which] += between(marks.began, marks.ended);
        }
        if (move.act != StepAct::begin) {
            taken.exposed[move.which] += passed;
        }
    }
    taken.step = between(begins_, *before);
    return taken;
}

std::vector<StepTimes> NcclReplay::run(const NcclBench& bench, std::size_t count) const {
    std::vector<StepTimes> taken;
    taken.reserve(count);
    std::vector<nanoseconds> ends(1);
    std::vector<std::uint64_t> calls(exchanges_.size());
    for (std::size_t step = 0; step < count; ++step) {
        bench.gate->meet(0);
        gpu_->use();
        put(bench, calls);
        // The streams of all exchanges wait for the last move, and are waited for with an eye on NCCL.
        for (const NcclExchange* exchange : exchanges_) {
            if (!moves_.empty()) {
                wait_for(marks_.back().passed, exchange->members()[0].gpu->stream());
            }
            for (const Heartbeat& beat : bench.beats) {
                beat.wait_in_call();
            }
            wait_for_all(*exchange, bench, ends);
        }
        for (const Heartbeat& beat : bench.beats) {
            beat.leave_call(0);
            beat.count_sample();
        }
        taken.push_back(times());
    }
    return taken;
}

}  // namespace busbw
