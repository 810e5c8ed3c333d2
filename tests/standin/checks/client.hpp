// The three interfaces as a program sees them that has no toolkit, and what the checks are written with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string>
#include <vector>

extern "C" {
using cu_stream = struct cu_stream_handle*;
using cu_event = struct cu_event_handle*;
using cu_context = struct cu_context_handle*;
using cu_graph = struct cu_graph_handle*;
using cu_graph_exec = struct cu_graph_exec_handle*;
using cu_module = struct cu_module_handle*;
using cu_function = struct cu_function_handle*;
using cu_address = std::uint64_t;

int cuInit(unsigned);
int cuGetExportTable(const void**, const void*);
int cuDeviceGetCount(int*);
int cuDevicePrimaryCtxRetain(cu_context*, int);
int cuCtxSetCurrent(cu_context);
int cuMemAlloc_v2(cu_address*, std::size_t);
int cuMemFree_v2(cu_address);
int cuMemGetInfo_v2(std::size_t*, std::size_t*);
int cuMemHostAlloc(void**, std::size_t, unsigned);
int cuMemFreeHost(void*);
int cuMemHostGetDevicePointer_v2(cu_address*, void*, unsigned);
int cuMemcpyHtoDAsync_v2(cu_address, const void*, std::size_t, cu_stream);
int cuMemcpyDtoHAsync_v2(void*, cu_address, std::size_t, cu_stream);
int cuMemcpyHtoD_v2(cu_address, const void*, std::size_t);
int cuMemcpyDtoH_v2(void*, cu_address, std::size_t);
int cuMemsetD8Async(cu_address, unsigned char, std::size_t, cu_stream);
int cuMemcpy2DAsync_v2(const void*, cu_stream);
int cuStreamCreate(cu_stream*, unsigned);
int cuStreamDestroy_v2(cu_stream);
int cuStreamSynchronize(cu_stream);
int cuStreamQuery(cu_stream);
int cuStreamWaitEvent(cu_stream, cu_event, unsigned);
int cuStreamWaitValue32_v2(cu_stream, cu_address, std::uint32_t, unsigned);
int cuStreamWriteValue32_v2(cu_stream, cu_address, std::uint32_t, unsigned);
int cuStreamBeginCapture_v2(cu_stream, int);
int cuStreamEndCapture(cu_stream, cu_graph*);
int cuGraphInstantiateWithFlags(cu_graph_exec*, cu_graph, unsigned long long);
int cuGraphLaunch(cu_graph_exec, cu_stream);
int cuGraphExecDestroy(cu_graph_exec);
int cuGraphDestroy(cu_graph);
int cuEventCreate(cu_event*, unsigned);
int cuEventRecord(cu_event, cu_stream);
int cuEventQuery(cu_event);
int cuEventSynchronize(cu_event);
int cuEventElapsedTime(float*, cu_event, cu_event);
int cuEventDestroy_v2(cu_event);
int cuModuleLoadData(cu_module*, const void*);
int cuModuleGetFunction(cu_function*, cu_module, const char*);
int cuModuleUnload(cu_module);
int cuLaunchKernel(cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cu_stream, void**,
                   void**);

using nvrtc_program = struct nvrtc_program_handle*;
int nvrtcCreateProgram(nvrtc_program*, const char*, const char*, int, const char* const*, const char* const*);
int nvrtcCompileProgram(nvrtc_program, int, const char* const*);
int nvrtcGetProgramLogSize(nvrtc_program, std::size_t*);
int nvrtcGetProgramLog(nvrtc_program, char*);
int nvrtcGetCUBINSize(nvrtc_program, std::size_t*);
int nvrtcGetCUBIN(nvrtc_program, char*);
int nvrtcDestroyProgram(nvrtc_program*);

using nccl_comm = struct nccl_comm_handle*;
using nccl_window = struct nccl_window_handle*;
struct nccl_id {
    char internal[128];
};
int ncclGetVersion(int*);
int ncclGetUniqueId(nccl_id*);
int ncclCommInitRank(nccl_comm*, int, nccl_id, int);
int ncclCommInitRankConfig(nccl_comm*, int, nccl_id, int, const void*);
int ncclCommInitAll(nccl_comm*, int, const int*);
int ncclCommSplit(nccl_comm, int, int, nccl_comm*, const void*);
int ncclCommDestroy(nccl_comm);
int ncclCommAbort(nccl_comm);
int ncclCommGetAsyncError(nccl_comm, int*);
int ncclCommCount(nccl_comm, int*);
int ncclCommUserRank(nccl_comm, int*);
const char* ncclGetLastError(nccl_comm);
int ncclCommWindowRegister(nccl_comm, void*, std::size_t, nccl_window*, int);
int ncclCommWindowDeregister(nccl_comm, nccl_window);
int ncclRedOpCreatePreMulSum(int*, void*, int, int, nccl_comm);
int ncclRedOpDestroy(int, nccl_comm);
int ncclAllReduce(const void*, void*, std::size_t, int, int, nccl_comm, cu_stream);
int ncclReduce(const void*, void*, std::size_t, int, int, int, nccl_comm, cu_stream);
int ncclBroadcast(const void*, void*, std::size_t, int, int, nccl_comm, cu_stream);
int ncclAllGather(const void*, void*, std::size_t, int, nccl_comm, cu_stream);
int ncclReduceScatter(const void*, void*, std::size_t, int, int, nccl_comm, cu_stream);
int ncclSend(const void*, std::size_t, int, int, nccl_comm, cu_stream);
int ncclRecv(void*, std::size_t, int, int, nccl_comm, cu_stream);
int ncclAlltoAll(const void*, void*, std::size_t, int, nccl_comm, cu_stream);
int ncclGather(const void*, void*, std::size_t, int, int, nccl_comm, cu_stream);
int ncclScatter(const void*, void*, std::size_t, int, int, nccl_comm, cu_stream);
int ncclGroupStart();
int ncclGroupEnd();
}

namespace checks {

inline int failures = 0;

inline void expect(bool holds, const std::string& what,
                   const std::source_location where = std::source_location::current()) {
    if (!holds && ++failures <= 20) {
        std::fprintf(stderr, "%s:%u: does not hold: %s\n", where.file_name(), where.line(), what.c_str());
    }
}

inline void expect_code(int got, int wanted, const std::source_location where = std::source_location::current()) {
    expect(got == wanted, "result " + std::to_string(got) + " is " + std::to_string(wanted), where);
}

// For what later lines cannot do without.
inline void must(int result, const std::source_location where = std::source_location::current()) {
    expect_code(result, 0, where);
    if (result != 0) {
        std::exit(EXIT_FAILURE);
    }
}

inline int verdict() { return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE; }

// Makes device `index` this thread's.
inline void use_device(int index) {
    must(cuInit(0));
    cu_context context = nullptr;
    must(cuDevicePrimaryCtxRetain(&context, index));
    must(cuCtxSetCurrent(context));
}

template <class T>
struct Buffer {
    explicit Buffer(std::size_t count) : elements{count} { must(cuMemAlloc_v2(&address, count * sizeof(T))); }
    explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
        must(cuMemcpyHtoD_v2(address, values.data(), values.size() * sizeof(T)));
    }
    ~Buffer() { cuMemFree_v2(address); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    [[nodiscard]] T* data() const { return reinterpret_cast<T*>(address); }
    [[nodiscard]] std::vector<T> values() const {
        std::vector<T> found(elements);
        must(cuMemcpyDtoH_v2(found.data(), address, elements * sizeof(T)));
        return found;
    }

    std::size_t elements;
    cu_address address = 0;
};

}  // namespace checks
