#include "gpu.hpp"

#include <algorithm>
#include <array>

#include "kernel_source.hpp"

namespace busbw {
namespace {

constexpr unsigned threads_per_block = 256;
// More than run at once: another kernel finds room whenever one of these ends.
constexpr unsigned blocks_per_multiprocessor = 64;

int attribute(const CudaApi& cuda, DeviceAttribute which, cuda_device device) {
    int value = 0;
    cuda.check(cuda.device_get_attribute(&value, static_cast<int>(which), device), "cuDeviceGetAttribute");
    return value;
}

}  // namespace

const std::string& kernel_source() {
    static const std::string source =
        std::string(small_floats_source) + random_data_source + kernel_arguments_source + kernels_source;
    return source;
}

GpuFacts gpu_facts(const CudaApi& cuda, int ordinal) {
    cuda_device device = 0;
    cuda.check(cuda.device_get(&device, ordinal), "cuDeviceGet");
    std::array<char, 256> name{};
    std::array<char, 64> bus_id{};
    std::size_t memory = 0;
    cuda.check(cuda.device_get_name(name.data(), name.size(), device), "cuDeviceGetName");
    cuda.check(cuda.device_get_pci_bus_id(bus_id.data(), bus_id.size(), device), "cuDeviceGetPCIBusId");
    cuda.check(cuda.device_total_mem(&memory, device), "cuDeviceTotalMem");
    return {.ordinal = ordinal,
            .name = name.data(),
            .bus_id = bus_id.data(),
            .memory_bytes = memory,
            .free_bytes = 0,
            .l2_bytes = static_cast<std::size_t>(attribute(cuda, DeviceAttribute::l2_bytes, device)),
            .multiprocessors = attribute(cuda, DeviceAttribute::multiprocessors, device),
            .capability = attribute(cuda, DeviceAttribute::capability_major, device) * 10 +
                          attribute(cuda, DeviceAttribute::capability_minor, device)};
}

Gpu::Gpu(const CudaApi& cuda, int ordinal, std::span<const char> code)
    : cuda_{&cuda}, facts_{gpu_facts(cuda, ordinal)}, context_{cuda, ordinal} {
    use();
    stream_ = make_stream(cuda);
    load_stream_ = make_stream(cuda);
    std::size_t all = 0;
    cuda.check(cuda.mem_get_info(&facts_.free_bytes, &all), "cuMemGetInfo");
    if (!code.empty()) {
        module_ = load_module(cuda, code.data());
    }
}

Gpu::~Gpu() {
    // A module is unloaded from the context that is current.
    static_cast<void>(try_use());
}

cuda_function Gpu::function(const std::string& name) const {
    if (module_ == nullptr) {
        throw std::runtime_error("no kernels: NVRTC was not found");
    }
    cuda_function function = nullptr;
    cuda_->check(cuda_->module_get_function(&function, module_.get(), name.c_str()),
                 ("cuModuleGetFunction " + name).c_str());
    return function;
}

void Gpu::launch_with(const std::string& name, void* arguments, std::size_t items, cuda_stream stream) const {
    const std::size_t most = static_cast<std::size_t>(facts_.multiprocessors) * blocks_per_multiprocessor;
    const std::size_t wanted = (items + threads_per_block - 1) / threads_per_block;
    const auto blocks = static_cast<unsigned>(std::clamp<std::size_t>(wanted, 1, most));
    std::array<void*, 1> parameters{arguments};
    cuda_->check(cuda_->launch_kernel(function(name), blocks, 1, 1, threads_per_block, 1, 1, 0, stream,
                                      parameters.data(), nullptr),
                 ("cuLaunchKernel " + name).c_str());
}

GpuMemory::GpuMemory(const Gpu& gpu, std::size_t size, const NcclApi* from_nccl)
    : gpu_{&gpu}, nccl_{from_nccl}, size_{size} {
    gpu.use();
    if (from_nccl != nullptr) {
        void* memory = nullptr;
        from_nccl->check(from_nccl->mem_alloc(&memory, size), "ncclMemAlloc");
        data_ = static_cast<std::byte*>(memory);
        return;
    }
    cuda_address memory = 0;
    gpu.cuda().check(gpu.cuda().mem_alloc(&memory, size), "cuMemAlloc");
    data_ = reinterpret_cast<std::byte*>(memory);
}

GpuMemory::~GpuMemory() {
    if (!gpu_->try_use()) {
        return;  // the driver is shutting down, and takes the memory with it
    }
    if (nccl_ != nullptr) {
        nccl_->mem_free(data_);
    } else {
        gpu_->cuda().mem_free(address_of(data_));
    }
}

}  // namespace busbw
