// What the driver's stand-in promises: streams that run by themselves and in order, events, graphs, memory, kernels.
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "client.hpp"

using namespace checks;

namespace {

constexpr int not_ready = 600;

struct Gate {
    Gate() {
        must(cuMemHostAlloc(reinterpret_cast<void**>(&word), 4, 0));
        must(cuMemHostGetDevicePointer_v2(&address, word, 0));
        *word = 0;
    }
    void open() const { __atomic_store_n(word, 1, __ATOMIC_SEQ_CST); }
    std::uint32_t* word = nullptr;
    cu_address address = 0;
};

cu_stream make_stream() {
    cu_stream stream = nullptr;
    must(cuStreamCreate(&stream, 1));
    return stream;
}

cu_event make_event() {
    cu_event event = nullptr;
    must(cuEventCreate(&event, 0));
    return event;
}

void a_stream_runs_in_order_and_by_itself() {
    const Gate gate;
    cu_stream stream = make_stream();
    const Buffer<unsigned char> buffer(std::vector<unsigned char>(100, 1));
    must(cuStreamWaitValue32_v2(stream, gate.address, 1, 0));
    must(cuMemsetD8Async(buffer.address, 7, 50, stream));
    must(cuMemsetD8Async(buffer.address, 9, 25, stream));
    expect_code(cuStreamQuery(stream), not_ready);
    expect(buffer.values()[0] == 1, "nothing happens before the gate opens");
    gate.open();
    must(cuStreamSynchronize(stream));
    expect_code(cuStreamQuery(stream), 0);
    const auto found = buffer.values();
    expect(found[0] == 9 && found[30] == 7 && found[60] == 1, "in order");
    must(cuStreamDestroy_v2(stream));
    expect_code(cuStreamSynchronize(stream), 400);
}

void an_event_orders_two_streams_and_tells_the_time() {
    const Gate gate;
    cu_stream first = make_stream();
    cu_stream second = make_stream();
    cu_event start = make_event();
    cu_event end = make_event();
    const Buffer<unsigned char> buffer(std::vector<unsigned char>(1, 0));
    must(cuEventRecord(start, first));
    must(cuStreamWaitValue32_v2(first, gate.address, 1, 0));
    must(cuMemsetD8Async(buffer.address, 1, 1, first));
    must(cuEventRecord(end, first));
    must(cuStreamWaitEvent(second, end, 0));
    must(cuMemsetD8Async(buffer.address, 2, 1, second));
    expect_code(cuEventQuery(end), not_ready);
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    float time_ms = 0;
    expect_code(cuEventElapsedTime(&time_ms, start, end), not_ready);
    gate.open();
    must(cuStreamSynchronize(second));
    must(cuEventElapsedTime(&time_ms, start, end));
    expect(time_ms >= 15 && time_ms < 10000, "about 20 ms passed, not " + std::to_string(time_ms));
    expect(buffer.values()[0] == 2, "the second stream waited");
}

void a_graph_is_done_as_often_as_it_is_launched() {
    cu_stream stream = make_stream();
    const Buffer<unsigned char> from(std::vector<unsigned char>(8, 5));
    const Buffer<unsigned char> to(std::vector<unsigned char>(8, 0));
    std::array<unsigned char, 8> host{};
    must(cuStreamBeginCapture_v2(stream, 1));
    must(cuMemcpyDtoHAsync_v2(host.data(), from.address, host.size(), stream));
    must(cuMemsetD8Async(from.address, 6, 8, stream));
    cu_address more = 0;
    expect_code(cuMemAlloc_v2(&more, 8), 900);
    cu_graph graph = nullptr;
    expect_code(cuStreamEndCapture(stream, &graph), 901);

    must(cuStreamBeginCapture_v2(stream, 1));
    must(cuMemcpyDtoHAsync_v2(host.data(), from.address, host.size(), stream));
    must(cuMemsetD8Async(from.address, 6, 8, stream));
    must(cuStreamEndCapture(stream, &graph));
    expect(host[0] == 0, "a capture does nothing");
    cu_graph_exec executable = nullptr;
    must(cuGraphInstantiateWithFlags(&executable, graph, 0));
    must(cuGraphDestroy(graph));
    must(cuGraphLaunch(executable, stream));
    must(cuStreamSynchronize(stream));
    expect(host[0] == 5, "the first launch");
    must(cuGraphLaunch(executable, stream));
    must(cuStreamSynchronize(stream));
    expect(host[0] == 6, "the second launch");
    must(cuGraphExecDestroy(executable));
}

void memory_is_bounded_and_its_edges_are_checked() {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    must(cuMemGetInfo_v2(&free_bytes, &total_bytes));
    expect(total_bytes == 1 << 24, "as the environment says");
    cu_address address = 0;
    expect_code(cuMemAlloc_v2(&address, free_bytes + 1), 2);
    must(cuMemAlloc_v2(&address, 1000));
    cu_stream stream = make_stream();
    expect_code(cuMemsetD8Async(address, 0, 1001, stream), 1);
    expect_code(cuMemsetD8Async(address + 999, 0, 1, stream), 0);
    must(cuMemFree_v2(address));
    expect_code(cuMemFree_v2(address), 1);
}

void a_two_dimensional_copy_transposes_blocks() {
    struct {
        std::size_t source_x = 0, source_y = 0;
        unsigned source_kind = 2;
        const void* source_host = nullptr;
        cu_address source = 0;
        void* source_array = nullptr;
        std::size_t source_pitch = 2;
        std::size_t target_x = 0, target_y = 0;
        unsigned target_kind = 2;
        void* target_host = nullptr;
        cu_address target = 0;
        void* target_array = nullptr;
        std::size_t target_pitch = 4;
        std::size_t width = 2, height = 3;
    } copy;
    const Buffer<char> from(std::vector<char>{'a', 'b', 'c', 'd', 'e', 'f'});
    const Buffer<char> to(std::vector<char>(12, '.'));
    copy.source = from.address;
    copy.target = to.address;
    cu_stream stream = make_stream();
    must(cuMemcpy2DAsync_v2(&copy, stream));
    must(cuStreamSynchronize(stream));
    const auto found = to.values();
    expect(std::string(found.begin(), found.end()) == "ab..cd..ef..", std::string(found.begin(), found.end()));
}

constexpr const char* kernels = R"(
#ifndef KERNEL
#define KERNEL(name, Arguments) extern "C" __global__ void name(const Arguments a)
#endif
#include "scale.hpp"
struct FillArguments { int* into; unsigned long long* sum; unsigned count; };
KERNEL(fill, FillArguments) {
    for (unsigned index = blockIdx.x * blockDim.x + threadIdx.x; index < a.count; index += gridDim.x * blockDim.x) {
        a.into[index] = scaled(index);
        atomicAdd(a.sum, 1ULL);
    }
}
)";

std::vector<char> compiled(const char* source) {
    const char* const header = "__device__ inline int scaled(unsigned index) { return static_cast<int>(3 * index); }";
    const char* const header_name = "scale.hpp";
    nvrtc_program program = nullptr;
    must(nvrtcCreateProgram(&program, source, "kernels.cu", 1, &header, &header_name));
    const char* const wrong[] = {"--no-such-option"};
    expect_code(nvrtcCompileProgram(program, 1, wrong), 5);
    const char* const options[] = {"--gpu-architecture=sm_90", "--std=c++17"};
    const int result = nvrtcCompileProgram(program, 2, options);
    std::size_t bytes = 0;
    must(nvrtcGetProgramLogSize(program, &bytes));
    std::vector<char> log(bytes);
    must(nvrtcGetProgramLog(program, log.data()));
    std::vector<char> image;
    if (result == 0) {
        must(nvrtcGetCUBINSize(program, &bytes));
        image.resize(bytes);
        must(nvrtcGetCUBIN(program, image.data()));
    } else {
        expect(std::strstr(log.data(), "error") != nullptr, log.data());
    }
    must(nvrtcDestroyProgram(&program));
    return image;
}

void a_kernel_is_compiled_and_run_for_every_thread() {
    expect(compiled("this is no program").empty(), "what is no program does not compile");
    expect(compiled("#include <cstdint>\n").empty(), "there is no standard library");
    const auto image = compiled(kernels);
    cu_module module = nullptr;
    cu_function function = nullptr;
    expect_code(cuModuleLoadData(&module, "no image"), 200);
    must(cuModuleLoadData(&module, image.data()));
    expect_code(cuModuleGetFunction(&function, module, "nothing"), 500);
    must(cuModuleGetFunction(&function, module, "fill"));
    const Buffer<int> into(1000);
    const Buffer<unsigned long long> sum(std::vector<unsigned long long>{0});
    struct {
        int* into;
        unsigned long long* sum;
        unsigned count;
    } arguments{into.data(), sum.data(), 1000};
    void* pointers[] = {&arguments};
    cu_stream stream = make_stream();
    must(cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, stream, pointers, nullptr));
    arguments.count = 0;  // it was taken already
    must(cuStreamSynchronize(stream));
    expect(sum.values()[0] == 1000 && into.values()[999] == 2997, "each element once");
    expect_code(cuLaunchKernel(function, 0, 1, 1, 64, 1, 1, 0, stream, pointers, nullptr), 1);
    use_device(1);
    cu_stream elsewhere = make_stream();
    expect_code(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, elsewhere, pointers, nullptr), 400);
    use_device(0);
    must(cuModuleUnload(module));
}

}  // namespace

int main() {
    use_device(0);
    int devices = 0;
    must(cuDeviceGetCount(&devices));
    expect(devices == 2, "as CUDA_VISIBLE_DEVICES says");
    const std::array<char, 16> identity{};
    const void* table = &identity;
    expect_code(cuGetExportTable(&table, identity.data()), 500);
    expect(table == nullptr, "there are no private tables");
    a_stream_runs_in_order_and_by_itself();
    an_event_orders_two_streams_and_tells_the_time();
    a_graph_is_done_as_often_as_it_is_launched();
    memory_is_bounded_and_its_edges_are_checked();
    a_two_dimensional_copy_transposes_blocks();
    a_kernel_is_compiled_and_run_for_every_thread();
    return verdict();
}
