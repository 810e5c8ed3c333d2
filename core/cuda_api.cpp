#include "cuda_api.hpp"

#include <stdexcept>

namespace busbw {

CudaApi::CudaApi(const std::string& path) : library{path} {
    library.find(init, "cuInit");
    library.find(driver_get_version, "cuDriverGetVersion");
    library.find(device_get_count, "cuDeviceGetCount");
    library.find(device_get, "cuDeviceGet");
    library.find(device_get_name, "cuDeviceGetName");
    library.find(device_get_attribute, "cuDeviceGetAttribute");
    library.find(device_get_pci_bus_id, "cuDeviceGetPCIBusId");
    library.find(device_total_mem, "cuDeviceTotalMem_v2");
    library.find(primary_context_retain, "cuDevicePrimaryCtxRetain");
    library.find(primary_context_release, "cuDevicePrimaryCtxRelease_v2");
    library.find(context_set_current, "cuCtxSetCurrent");
    library.find(mem_get_info, "cuMemGetInfo_v2");
    library.find(mem_alloc, "cuMemAlloc_v2");
    library.find(mem_free, "cuMemFree_v2");
    library.find(mem_host_alloc, "cuMemHostAlloc");
    library.find(mem_free_host, "cuMemFreeHost");
    library.find(memset_d8_async, "cuMemsetD8Async");
    library.find(copy_to_device, "cuMemcpyHtoDAsync_v2");
    library.find(copy_to_host, "cuMemcpyDtoHAsync_v2");
    library.find(copy_on_device, "cuMemcpyDtoDAsync_v2");
    library.find(copy_2d, "cuMemcpy2DAsync_v2");
    library.find(stream_create, "cuStreamCreate");
    library.find(stream_destroy, "cuStreamDestroy_v2");
    library.find(stream_synchronize, "cuStreamSynchronize");
    library.find(stream_query, "cuStreamQuery");
    library.find(stream_wait_event, "cuStreamWaitEvent");
    library.find(event_create, "cuEventCreate");
    library.find(event_destroy, "cuEventDestroy_v2");
    library.find(event_record, "cuEventRecord");
    library.find(event_elapsed_time, "cuEventElapsedTime");
    library.find(begin_capture, "cuStreamBeginCapture_v2");
    library.find(end_capture, "cuStreamEndCapture");
    library.find(graph_instantiate, "cuGraphInstantiateWithFlags");
    library.find(graph_upload, "cuGraphUpload");
    library.find(graph_launch, "cuGraphLaunch");
    library.find(graph_exec_destroy, "cuGraphExecDestroy");
    library.find(graph_destroy, "cuGraphDestroy");
    library.find(module_load_data, "cuModuleLoadData");
    library.find(module_get_function, "cuModuleGetFunction");
    library.find(module_unload, "cuModuleUnload");
    library.find(launch_kernel, "cuLaunchKernel");
    library.find(get_error_name, "cuGetErrorName");
    library.find(get_error_string, "cuGetErrorString");
    check(init(0), "cuInit");
    check(driver_get_version(&driver_version), "cuDriverGetVersion");
    check(device_get_count(&devices), "cuDeviceGetCount");
}

void CudaApi::check(cuda_result result, const char* call) const {
    if (result == cuda_success) {
        return;
    }
    const char* name = nullptr;
    const char* words = nullptr;
    get_error_name(result, &name);
    get_error_string(result, &words);
    throw std::runtime_error(std::string(call) + ": " + (name != nullptr ? name : std::to_string(result)) +
                             (words != nullptr ? std::string(", ") + words : std::string()));
}

}  // namespace busbw
