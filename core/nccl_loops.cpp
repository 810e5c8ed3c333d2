#include "nccl_loops.hpp"

#include <sched.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "portable/kernel_arguments.hpp"

namespace busbw {
namespace {

// How often, while waiting, the clock is read, NCCL asked, and the core offered to whoever needs it: NCCL's and the
// driver's own threads may, and so do other ranks where cores are few.
constexpr int polls_per_look = 64;

[[noreturn]] void stall(const NcclExchange& exchange, std::size_t member, const std::string& what) {
    const NcclMember& one = exchange.members()[member];
    const std::string words = exchange.nccl().words_about(one.comm);
    throw Stalled("rank " + std::to_string(one.rank) + ": " + what +
                  "; NCCL says: " + (words.empty() ? "nothing" : words));
}

// What NCCL noticed by itself, such as a peer that is gone: its kernel may never end then, or end without a result.
void check_health(const NcclExchange& exchange) {
    for (std::size_t member = 0; member < exchange.members().size(); ++member) {
        if (exchange.nccl().has_failed(exchange.members()[member].comm)) {
            stall(exchange, member, "NCCL gave up");
        }
    }
}

// Waits for every member's stream; the instant each was first seen done is written to `ends`.
void wait_for_all(const NcclExchange& exchange, const NcclBench& bench, std::vector<nanoseconds>& ends) {
    const auto& members = exchange.members();
    std::fill(ends.begin(), ends.end(), 0);
    const nanoseconds began = wall_clock();
    std::size_t left = members.size();
    for (int poll = 1; left > 0; ++poll) {
        for (std::size_t member = 0; member < members.size(); ++member) {
            if (ends[member] != 0) {
                continue;
            }
            const CudaApi& cuda = members[member].gpu->cuda();
            const cuda_result state = cuda.stream_query(members[member].gpu->stream());
            if (state == cuda_not_ready) {
                continue;
            }
            cuda.check(state, "cuStreamQuery");
            ends[member] = wall_clock();
            --left;
        }
        if (poll % polls_per_look != 0 || left == 0) {
            continue;
        }
        sched_yield();
        check_health(exchange);
        if (wall_clock() - began > bench.step) {
            const auto late = static_cast<std::size_t>(std::find(ends.begin(), ends.end(), 0) - ends.begin());
            stall(exchange, late, "the GPU is not done after " + std::to_string(bench.step / 1'000'000'000) + " s");
        }
    }
    check_health(exchange);
}

void enter_calls(const NcclBench& bench) {
    for (const Heartbeat& beat : bench.beats) {
        beat.enter_call();
    }
}

void wait_in_calls(const NcclBench& bench) {
    for (const Heartbeat& beat : bench.beats) {
        beat.wait_in_call();
    }
}

void leave_calls(const NcclBench& bench, std::uint64_t calls) {
    for (const Heartbeat& beat : bench.beats) {
        beat.leave_call(calls);
        beat.count_sample();
    }
}

std::vector<Samples> samples_for(const NcclExchange& exchange, std::size_t count) {
    return std::vector<Samples>(exchange.members().size(), Samples{count});
}

// One timed stretch: `work` puts everything on the streams; times are from `start` on.
template <class Work>
void time_one(const NcclExchange& exchange, const NcclBench& bench, std::vector<Samples>& samples, std::size_t sample,
              std::uint64_t calls, std::vector<nanoseconds>& ends, Work&& work) {
    enter_calls(bench);
    const nanoseconds processor_start = processor_clock();
    const nanoseconds start = wall_clock();
    work();
    const nanoseconds issued = wall_clock();
    wait_in_calls(bench);
    wait_for_all(exchange, bench, ends);
    const nanoseconds end = wall_clock();
    const nanoseconds processor_end = processor_clock();
    leave_calls(bench, calls);
    for (std::size_t member = 0; member < samples.size(); ++member) {
        samples[member].duration[sample] = ends[member] - start;
        samples[member].issued[sample] = issued - start;
        samples[member].off_processor[sample] = (end - start) - (processor_end - processor_start);
    }
}

}  // namespace

void once(const NcclExchange& exchange, const NcclBench& bench) {
    std::vector<nanoseconds> ends(exchange.members().size());
    enter_calls(bench);
    exchange.launch(0);
    wait_in_calls(bench);
    wait_for_all(exchange, bench, ends);
    for (const Heartbeat& beat : bench.beats) {
        beat.leave_call(1);
    }
}

std::vector<Samples> stream(const NcclExchange& exchange, const NcclBench& bench, std::size_t count,
                            std::uint64_t calls) {
    std::vector<Samples> samples = samples_for(exchange, count);
    std::vector<nanoseconds> ends(exchange.members().size());
    std::uint64_t call = 0;
    for (std::size_t sample = 0; sample < count; ++sample) {
        bench.gate->meet(0);
        time_one(exchange, bench, samples, sample, calls, ends, [&] {
            for (std::uint64_t repeat = 0; repeat < calls; ++repeat) {
                exchange.launch(call++);
            }
        });
    }
    return samples;
}

std::vector<Samples> isolated(const NcclExchange& exchange, const NcclBench& bench, std::size_t count,
                              const Window& window) {
    std::vector<Samples> samples = samples_for(exchange, count);
    std::vector<nanoseconds> ends(exchange.members().size());
    for (std::size_t sample = 0; sample < count; ++sample) {
        const nanoseconds processor_before = processor_clock();
        const nanoseconds before = wall_clock();
        const nanoseconds local = bench.gate->meet(window.lead) - window.offset;
        const bool missed = wall_clock() > local;
        while (wall_clock() < local) {
            if (window.yields) {
                sched_yield();
            }
        }
        enter_calls(bench);
        const nanoseconds start = wall_clock();
        exchange.launch(sample);
        const nanoseconds issued = wall_clock();
        wait_in_calls(bench);
        wait_for_all(exchange, bench, ends);
        const nanoseconds after = wall_clock();
        const nanoseconds processor_after = processor_clock();
        leave_calls(bench, 1);
        for (std::size_t member = 0; member < samples.size(); ++member) {
            samples[member].duration[sample] = ends[member] - local;
            samples[member].lateness[sample] = start - local;
            samples[member].issued[sample] = issued - start;
            samples[member].missed[sample] = missed ? 1 : 0;
            samples[member].off_processor[sample] = (after - before) - (processor_after - processor_before);
        }
    }
    return samples;
}

NcclGraph::NcclGraph(const NcclExchange& exchange, std::uint64_t calls) : exchange_{&exchange}, calls_{calls} {
    const auto& members = exchange.members();
    for (const NcclMember& member : members) {
        member.gpu->use();
        const CudaApi& cuda = member.gpu->cuda();
        // NCCL may allocate while a call is captured for the first time; only this thread's calls are captured.
        cuda.check(cuda.begin_capture(member.gpu->stream(), cuda_capture_thread_local), "cuStreamBeginCapture");
    }
    for (std::uint64_t call = 0; call < calls; ++call) {
        exchange.launch(call);
    }
    for (const NcclMember& member : members) {
        member.gpu->use();
        graphs_.push_back(nullptr);
        member.gpu->cuda().check(member.gpu->cuda().end_capture(member.gpu->stream(), &graphs_.back()),
                                 "cuStreamEndCapture");
    }
    // Only now: while any stream of this thread captures, the driver refuses to make a graph ready.
    for (const NcclMember& member : members) {
        member.gpu->use();
        const CudaApi& cuda = member.gpu->cuda();
        ready_.push_back(nullptr);
        cuda.check(cuda.graph_instantiate(&ready_.back(), graphs_[ready_.size() - 1], 0), "cuGraphInstantiate");
        cuda.check(cuda.graph_upload(ready_.back(), member.gpu->stream()), "cuGraphUpload");
        member.gpu->wait();
    }
}

NcclGraph::~NcclGraph() {
    for (std::size_t member = 0; member < ready_.size(); ++member) {
        const Gpu& gpu = *exchange_->members()[member].gpu;
        gpu.use();
        gpu.cuda().graph_exec_destroy(ready_[member]);
        gpu.cuda().graph_destroy(graphs_[member]);
    }
}

std::vector<Samples> NcclGraph::replay(const NcclBench& bench, std::size_t count) const {
    std::vector<Samples> samples = samples_for(*exchange_, count);
    std::vector<nanoseconds> ends(ready_.size());
    const auto& members = exchange_->members();
    for (std::size_t sample = 0; sample < count; ++sample) {
        bench.gate->meet(0);
        time_one(*exchange_, bench, samples, sample, calls_, ends, [&] {
            for (std::size_t member = 0; member < ready_.size(); ++member) {
                const CudaApi& cuda = members[member].gpu->cuda();
                if (ready_.size() > 1) {
                    members[member].gpu->use();
                }
                cuda.check(cuda.graph_launch(ready_[member], members[member].gpu->stream()), "cuGraphLaunch");
            }
        });
    }
    return samples;
}

GpuLoad::GpuLoad(const Gpu& gpu, std::size_t n) : gpu_{&gpu}, n_{n} {
    gpu.use();
    matrices_ = std::make_unique<GpuMemory>(gpu, 3 * n * n * sizeof(float), nullptr);
    const CudaApi& cuda = gpu.cuda();
    cuda.check(cuda.memset_d8_async(address_of(matrices_->data()), 0x3C, matrices_->size(), gpu.load_stream()),
               "cuMemsetD8Async");
    // The first product is slower, and any may be interrupted: too long a time would make the load too short.
    constexpr int tries = 4;
    for (int trial = 0; trial < tries; ++trial) {
        const nanoseconds before = wall_clock();
        product();
        wait();
        const nanoseconds took = std::max<nanoseconds>(wall_clock() - before, 1);
        product_time_ = trial == 0 ? took : std::min(product_time_, took);
    }
}

void GpuLoad::product() const {
    auto* const first = reinterpret_cast<float*>(matrices_->data());
    gpu_->launch("product", ProductArguments{first, first + n_ * n_, first + 2 * n_ * n_, n_}, n_ / 4 * n_,
                 gpu_->load_stream());
}

void GpuLoad::queue(nanoseconds time) const {
    gpu_->use();
    for (nanoseconds queued = 0; queued <= time; queued += product_time_) {
        product();
    }
}

bool GpuLoad::is_working() const {
    const cuda_result state = gpu_->cuda().stream_query(gpu_->load_stream());
    if (state != cuda_not_ready) {
        gpu_->cuda().check(state, "cuStreamQuery");
    }
    return state == cuda_not_ready;
}

void GpuLoad::wait() const {
    gpu_->use();
    gpu_->cuda().check(gpu_->cuda().stream_synchronize(gpu_->load_stream()), "cuStreamSynchronize");
}

std::vector<Samples> loaded(const NcclExchange& exchange, const NcclBench& bench, std::span<const GpuLoad* const> loads,
                            std::size_t count, std::uint64_t calls, nanoseconds expected) {
    std::vector<Samples> samples = samples_for(exchange, count);
    std::vector<nanoseconds> ends(exchange.members().size());
    std::uint64_t call = 0;
    for (std::size_t sample = 0; sample < count; ++sample) {
        bench.gate->meet(0);
        for (const GpuLoad* load : loads) {
            load->queue(expected);
        }
        // The products of every rank have begun before any exchange does.
        bench.gate->meet(0);
        time_one(exchange, bench, samples, sample, calls, ends, [&] {
            for (std::uint64_t repeat = 0; repeat < calls; ++repeat) {
                exchange.launch(call++);
            }
        });
        const bool covered = std::ranges::all_of(loads, [](const GpuLoad* load) { return load->is_working(); });
        for (Samples& one : samples) {
            one.missed[sample] = covered ? 0 : 1;
        }
        for (const GpuLoad* load : loads) {
            load->wait();
        }
    }
    return samples;
}

}  // namespace busbw
