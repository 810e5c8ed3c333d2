// Copies between page-locked memory of the host and memory of one GPU, which cross the GPU's link to the host.
// Units: bytes, bytes per second.
#pragma once

#include <cstdint>

#include "gpu.hpp"

namespace busbw {

// Memory of the host that a GPU reads and writes by itself: pageable memory is copied once more by the driver. It lies
// on the NUMA node of the thread that makes it.
class PinnedMemory {
   public:
    // Throws std::runtime_error when the driver refuses.
    PinnedMemory(const Gpu& gpu, std::size_t size);
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    ~PinnedMemory();
    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

   private:
    const Gpu* gpu_;
    std::byte* data_ = nullptr;
    std::size_t size_;
};

// The rate of `copies` copies of the whole memory back to back, by the GPU's clock. Both memories have the same size,
// and are of `gpu`. They throw std::invalid_argument for sizes that differ or no copy, std::runtime_error for what the
// driver refuses.
double rate_to_gpu(const Gpu& gpu, const PinnedMemory& host, const GpuMemory& device, std::uint64_t copies);
double rate_from_gpu(const Gpu& gpu, const PinnedMemory& host, const GpuMemory& device, std::uint64_t copies);

// Whether what is copied to the GPU comes back as it was, every byte of it. Throws as they do.
bool comes_back(const Gpu& gpu, const PinnedMemory& host, const GpuMemory& device);

}  // namespace busbw
