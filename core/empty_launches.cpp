#include "empty_launches.hpp"

#include <array>
#include <cmath>

#include "portable/kernel_arguments.hpp"

namespace busbw {
namespace {

// A point in a GPU's stream, with the time when the stream came by.
class TimedEvent {
   public:
    explicit TimedEvent(const Gpu& gpu) : gpu_{&gpu}, event_{make_event(gpu.cuda())} {}

    void record() const {
        gpu_->cuda().check(gpu_->cuda().event_record(event_.get(), gpu_->stream()), "cuEventRecord");
    }
    // Both must have come by.
    [[nodiscard]] nanoseconds since(const TimedEvent& earlier) const {
        float milliseconds = 0;
        gpu_->cuda().check(gpu_->cuda().event_elapsed_time(&milliseconds, earlier.event_.get(), event_.get()),
                           "cuEventElapsedTime");
        return std::llround(static_cast<double>(milliseconds) * 1e6);
    }

   private:
    const Gpu* gpu_;
    UniqueEvent event_;
};

struct Batch {
    nanoseconds issue;
    nanoseconds device;
    nanoseconds done;
};

Batch one_batch(const Gpu& gpu, const TimedEvent& first, const TimedEvent& last, cuda_function function,
                std::uint64_t launches) {
    NothingArguments nothing{};
    std::array<void*, 1> parameters{&nothing};
    const CudaApi& cuda = gpu.cuda();
    first.record();
    const nanoseconds start = wall_clock();
    for (std::uint64_t launch = 0; launch < launches; ++launch) {
        cuda.check(cuda.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, gpu.stream(), parameters.data(), nullptr),
                   "cuLaunchKernel nothing");
    }
    const nanoseconds issued = wall_clock();
    last.record();
    gpu.wait();
    const nanoseconds done = wall_clock();
    return {issued - start, last.since(first), done - start};
}

}  // namespace

std::vector<EmptyLaunches> empty_launches(std::span<const Gpu* const> gpus, const Gate& gate, std::size_t batches,
                                          std::uint64_t launches) {
    std::vector<EmptyLaunches> taken;
    for (const Gpu* gpu : gpus) {
        gpu->use();
        const cuda_function function = gpu->function("nothing");
        const TimedEvent first{*gpu};
        const TimedEvent last{*gpu};
        EmptyLaunches& one = taken.emplace_back(batches);
        gate.meet(0);
        one_batch(*gpu, first, last, function, launches);
        for (std::size_t batch = 0; batch < batches; ++batch) {
            gate.meet(0);
            const Batch took = one_batch(*gpu, first, last, function, launches);
            one.issue[batch] = took.issue;
            one.device[batch] = took.device;
            one.done[batch] = took.done;
        }
    }
    return taken;
}

}  // namespace busbw
