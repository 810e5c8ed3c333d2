#include "cuda_handles.hpp"

namespace busbw {

UniqueStream make_stream(const CudaApi& cuda) {
    cuda_stream stream = nullptr;
    cuda.check(cuda.stream_create(&stream, cuda_stream_non_blocking), "cuStreamCreate");
    return UniqueStream{stream, {&cuda}};
}

UniqueEvent make_event(const CudaApi& cuda) {
    cuda_event event = nullptr;
    cuda.check(cuda.event_create(&event, cuda_event_default), "cuEventCreate");
    return UniqueEvent{event, {&cuda}};
}

UniqueModule load_module(const CudaApi& cuda, const void* code) {
    cuda_module module = nullptr;
    cuda.check(cuda.module_load_data(&module, code), "cuModuleLoadData");
    return UniqueModule{module, {&cuda}};
}

UniqueGraphExec instantiate(const CudaApi& cuda, const UniqueGraph& graph) {
    cuda_graph_exec ready = nullptr;
    cuda.check(cuda.graph_instantiate(&ready, graph.get(), 0), "cuGraphInstantiate");
    return UniqueGraphExec{ready, {&cuda}};
}

PrimaryContext::PrimaryContext(const CudaApi& cuda, int ordinal) : cuda_{&cuda} {
    cuda.check(cuda.device_get(&device_, ordinal), "cuDeviceGet");
    cuda.check(cuda.primary_context_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
}

PrimaryContext::~PrimaryContext() {
    // Else this thread's next calls, and those of NCCL, would be for a context that is gone.
    cuda_->context_set_current(nullptr);
    cuda_->primary_context_release(device_);
}

}  // namespace busbw
