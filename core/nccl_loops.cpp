#include "nccl_loops.hpp"

#include <sched.h>

#include <algorithm>
#include <list>
#include <stdexcept>
#include <string>
#include <utility>

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

}  // namespace

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

namespace {

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

// A call alone, on every GPU of this process.
class NcclStep {
   public:
    NcclStep(const NcclExchange& exchange, const NcclBench& bench, std::vector<Samples>& samples)
        : exchange_{&exchange}, bench_{&bench}, samples_{&samples}, ends_(samples.size()) {}

    nanoseconds meet(const Window& window) const { return bench_->gate->meet(window.lead); }
    void enter() const { enter_calls(*bench_); }
    void leave() const { leave_calls(*bench_, 1); }
    nanoseconds run(std::size_t sample) {
        exchange_->launch(sample);
        issued_ = wall_clock();
        wait_in_calls(*bench_);
        wait_for_all(*exchange_, *bench_, ends_);
        return wall_clock();
    }
    void keep(std::size_t sample, const AlignedCall& call) const {
        for (std::size_t member = 0; member < samples_->size(); ++member) {
            Samples& one = (*samples_)[member];
            one.duration[sample] = ends_[member] - call.common_start;
            one.lateness[sample] = call.start - call.common_start;
            one.issued[sample] = issued_ - call.start;
            one.missed[sample] = call.missed ? 1 : 0;
            one.off_processor[sample] = call.off_processor;
        }
    }

   private:
    const NcclExchange* exchange_;
    const NcclBench* bench_;
    std::vector<Samples>* samples_;
    std::vector<nanoseconds> ends_;  // when each GPU was first seen done
    nanoseconds issued_ = 0;         // when the call had returned to the host
};

// A stream that captures for as long as this lives: what is put on it goes into a graph.
class StreamCapture {
   public:
    explicit StreamCapture(const Gpu& gpu) : gpu_{&gpu} {
        gpu.use();
        // NCCL may allocate while a call is captured for the first time; only this thread's calls are captured.
        gpu.cuda().check(gpu.cuda().begin_capture(gpu.stream(), cuda_capture_thread_local), "cuStreamBeginCapture");
        captures_ = true;
    }
    StreamCapture(const StreamCapture&) = delete;
    StreamCapture& operator=(const StreamCapture&) = delete;
    ~StreamCapture() {
        if (captures_) {
            static_cast<void>(gpu_->try_use());
            static_cast<void>(close());
        }
    }

    // Ends the capture and returns what was captured.
    UniqueGraph end() {
        gpu_->use();
        auto [result, graph] = close();
        gpu_->cuda().check(result, "cuStreamEndCapture");
        return std::move(graph);
    }

   private:
    // However it ends, the stream captures no more; with an error there may be part of a graph.
    std::pair<cuda_result, UniqueGraph> close() noexcept {
        captures_ = false;
        cuda_graph graph = nullptr;
        const cuda_result result = gpu_->cuda().end_capture(gpu_->stream(), &graph);
        return {result, UniqueGraph{graph, {&gpu_->cuda()}}};
    }

    const Gpu* gpu_;
    bool captures_ = false;
};

// Captures calls 0 to calls-1; one graph for each member.
std::vector<UniqueGraph> capture(const NcclExchange& exchange, std::uint64_t calls) {
    std::list<StreamCapture> captures;
    for (const NcclMember& member : exchange.members()) {
        captures.emplace_back(*member.gpu);
    }
    for (std::uint64_t call = 0; call < calls; ++call) {
        exchange.launch(call);
    }
    std::vector<UniqueGraph> graphs;
    for (StreamCapture& one : captures) {
        graphs.push_back(one.end());
    }
    return graphs;
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
    NcclStep step{exchange, bench, samples};
    measure_isolated(step, count, window);
    return samples;
}

NcclGraph::NcclGraph(const NcclExchange& exchange, std::uint64_t calls)
    : exchange_{&exchange}, calls_{calls}, graphs_{capture(exchange, calls)} {
    // Only now: while any stream of this thread captures, the driver refuses to make a graph ready.
    for (const UniqueGraph& graph : graphs_) {
        const Gpu& gpu = *exchange.members()[ready_.size()].gpu;
        gpu.use();
        ready_.push_back(instantiate(gpu.cuda(), graph));
        gpu.cuda().check(gpu.cuda().graph_upload(ready_.back().get(), gpu.stream()), "cuGraphUpload");
        gpu.wait();
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
                cuda.check(cuda.graph_launch(ready_[member].get(), members[member].gpu->stream()), "cuGraphLaunch");
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

void GpuLoad::products(std::size_t count) const {
    for (std::size_t number = 0; number < count; ++number) {
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
