// One GPU of this process: its context, a stream to measure on, one for a load beside it, its kernels, and memory.
#pragma once

#include <span>
#include <string>

#include "cuda_api.hpp"
#include "cuda_handles.hpp"
#include "nccl_api.hpp"

namespace busbw {

// What the driver says of a device.
struct GpuFacts {
    int ordinal;
    std::string name;
    std::string bus_id;
    std::size_t memory_bytes;
    std::size_t free_bytes;
    std::size_t l2_bytes;
    int multiprocessors;
    int capability;  // 90 for 9.0
};
GpuFacts gpu_facts(const CudaApi& cuda, int ordinal);

// The source of the kernels, complete.
const std::string& kernel_source();

class Gpu {
   public:
    // `code` is what NVRTC made of kernel_source() for this kind of GPU; empty: nothing runs on the GPU but copies, and
    // the host checks results.
    Gpu(const CudaApi& cuda, int ordinal, std::span<const char> code);
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;
    ~Gpu();

    // Makes this GPU the calling thread's current one.
    void use() const { cuda_->check(cuda_->context_set_current(context_.get()), "cuCtxSetCurrent"); }
    // The same for destructors: false where the driver refuses, as while it shuts down.
    [[nodiscard]] bool try_use() const noexcept { return cuda_->context_set_current(context_.get()) == cuda_success; }
    [[nodiscard]] const CudaApi& cuda() const noexcept { return *cuda_; }
    [[nodiscard]] const GpuFacts& facts() const noexcept { return facts_; }
    [[nodiscard]] cuda_stream stream() const noexcept { return stream_.get(); }
    [[nodiscard]] cuda_stream load_stream() const noexcept { return load_stream_.get(); }
    [[nodiscard]] bool has_kernels() const noexcept { return module_ != nullptr; }

    // The kernel called `name`, for whoever launches it many times. Throws std::runtime_error when the GPU has no
    // kernels, or none of this name.
    [[nodiscard]] cuda_function function(const std::string& name) const;

    // Starts kernel `name` over about `items` items on `stream`. `arguments` is copied by the driver. Throws as
    // `function` does.
    template <class Arguments>
    void launch(const std::string& name, Arguments arguments, std::size_t items, cuda_stream stream) const {
        launch_with(name, &arguments, items, stream);
    }

    // Waits until everything on the measuring stream is done; for what is not timed.
    void wait() const { cuda_->check(cuda_->stream_synchronize(stream()), "cuStreamSynchronize"); }

   private:
    void launch_with(const std::string& name, void* arguments, std::size_t items, cuda_stream stream) const;

    const CudaApi* cuda_;
    GpuFacts facts_;
    // What follows lies in it, and goes before it.
    PrimaryContext context_;
    UniqueStream stream_;
    UniqueStream load_stream_;
    UniqueModule module_;
};

// Memory of one GPU, from the driver or from NCCL, whose memory can be registered as a window.
class GpuMemory {
   public:
    GpuMemory(const Gpu& gpu, std::size_t size, const NcclApi* from_nccl);
    GpuMemory(const GpuMemory&) = delete;
    GpuMemory& operator=(const GpuMemory&) = delete;
    ~GpuMemory();
    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

   private:
    const Gpu* gpu_;
    const NcclApi* nccl_;
    std::byte* data_ = nullptr;
    std::size_t size_;
};

inline cuda_address address_of(const std::byte* memory) { return reinterpret_cast<cuda_address>(memory); }

}  // namespace busbw
