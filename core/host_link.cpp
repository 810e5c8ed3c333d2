#include "host_link.hpp"

#include <algorithm>
#include <stdexcept>

namespace busbw {
namespace {

void check_sizes(const PinnedMemory& host, const GpuMemory& device) {
    if (host.size() != device.size() || host.size() == 0) {
        throw std::invalid_argument("memory of the host has " + std::to_string(host.size()) + " bytes, of the GPU " +
                                    std::to_string(device.size()));
    }
}

void to_gpu(const Gpu& gpu, const PinnedMemory& host, const GpuMemory& device) {
    gpu.cuda().check(gpu.cuda().copy_to_device(address_of(device.data()), host.data(), host.size(), gpu.stream()),
                     "cuMemcpyHtoDAsync");
}

void from_gpu(const Gpu& gpu, const PinnedMemory& host, const GpuMemory& device) {
    gpu.cuda().check(gpu.cuda().copy_to_host(host.data(), address_of(device.data()), host.size(), gpu.stream()),
                     "cuMemcpyDtoHAsync");
}

template <class Copy>
double rate(const Gpu& gpu, std::size_t size, std::uint64_t copies, const Copy& copy) {
    if (copies == 0) {
        throw std::invalid_argument("no copy has no rate");
    }
    gpu.use();
    const CudaApi& cuda = gpu.cuda();
    const UniqueEvent first = make_event(cuda);
    const UniqueEvent last = make_event(cuda);
    cuda.check(cuda.event_record(first.get(), gpu.stream()), "cuEventRecord");
    for (std::uint64_t number = 0; number < copies; ++number) {
        copy();
    }
    cuda.check(cuda.event_record(last.get(), gpu.stream()), "cuEventRecord");
    gpu.wait();
    float milliseconds = 0;
    cuda.check(cuda.event_elapsed_time(&milliseconds, first.get(), last.get()), "cuEventElapsedTime");
    if (!(milliseconds > 0)) {
        throw std::runtime_error("the GPU's clock did not move during " + std::to_string(copies) + " copies");
    }
    return static_cast<double>(size) * static_cast<double>(copies) / (static_cast<double>(milliseconds) * 1e-3);
}

std::byte expected(std::size_t place) {
    // No two pages are the same, and no byte is that of its neighbours.
    return static_cast<std::byte>((place * 151 + (place >> 12) * 29 + 7) & 0xFF);
}

}  // namespace

PinnedMemory::PinnedMemory(const Gpu& gpu, std::size_t size) : gpu_{&gpu}, size_{size} {
    gpu.use();
    void* memory = nullptr;
    gpu.cuda().check(gpu.cuda().mem_host_alloc(&memory, size, 0), "cuMemHostAlloc");
    data_ = static_cast<std::byte*>(memory);
}

PinnedMemory::~PinnedMemory() {
    if (gpu_->try_use()) {
        gpu_->cuda().mem_free_host(data_);
    }
}

double rate_to_gpu(const Gpu& gpu, const PinnedMemory& host, const GpuMemory& device, std::uint64_t copies) {
    check_sizes(host, device);
    return rate(gpu, host.size(), copies, [&] { to_gpu(gpu, host, device); });
}

double rate_from_gpu(const Gpu& gpu, const PinnedMemory& host, const GpuMemory& device, std::uint64_t copies) {
    check_sizes(host, device);
    return rate(gpu, host.size(), copies, [&] { from_gpu(gpu, host, device); });
}

bool comes_back(const Gpu& gpu, const PinnedMemory& host, const GpuMemory& device) {
    check_sizes(host, device);
    gpu.use();
    for (std::size_t place = 0; place < host.size(); ++place) {
        host.data()[place] = expected(place);
    }
    to_gpu(gpu, host, device);
    gpu.wait();
    std::fill_n(host.data(), host.size(), std::byte{0xFF});
    from_gpu(gpu, host, device);
    gpu.wait();
    for (std::size_t place = 0; place < host.size(); ++place) {
        if (host.data()[place] != expected(place)) {
            return false;
        }
    }
    return true;
}

}  // namespace busbw
