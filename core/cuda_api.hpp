// The part of the CUDA driver interface that busbw calls, looked up in libcuda at run time. Types and constants are the
// driver's own (CUDA Driver API reference, 12 and 13), written out so that no toolkit is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "loaded_library.hpp"

namespace busbw {

using cuda_result = int;
using cuda_device = int;
using cuda_address = std::uint64_t;  // CUdeviceptr
using cuda_context = struct cuda_context_handle*;
using cuda_stream = struct cuda_stream_handle*;
using cuda_event = struct cuda_event_handle*;
using cuda_module = struct cuda_module_handle*;
using cuda_function = struct cuda_function_handle*;
using cuda_graph = struct cuda_graph_handle*;
using cuda_graph_exec = struct cuda_graph_exec_handle*;

inline constexpr cuda_result cuda_success = 0;
inline constexpr cuda_result cuda_not_ready = 600;
inline constexpr unsigned cuda_stream_non_blocking = 1;
inline constexpr int cuda_capture_thread_local = 1;
inline constexpr unsigned cuda_event_default = 0;
enum class DeviceAttribute : int { multiprocessors = 16, l2_bytes = 38, capability_major = 75, capability_minor = 76 };

// CUDA_MEMCPY2D.
struct CudaCopy2D {
    std::size_t source_x, source_y;
    int source_type;
    const void* source_host;
    cuda_address source;
    void* source_array;
    std::size_t source_pitch;
    std::size_t target_x, target_y;
    int target_type;
    void* target_host;
    cuda_address target;
    void* target_array;
    std::size_t target_pitch;
    std::size_t width, height;
};
inline constexpr int cuda_memory_device = 2;

struct CudaApi {
    // Throws std::runtime_error when `path` is no CUDA driver, or when the driver finds no device it can use.
    explicit CudaApi(const std::string& path);

    LoadedLibrary library;
    int driver_version = 0;  // 13000 for CUDA 13.0
    int devices = 0;

    cuda_result (*init)(unsigned);
    cuda_result (*driver_get_version)(int*);
    cuda_result (*device_get_count)(int*);
    cuda_result (*device_get)(cuda_device*, int);
    cuda_result (*device_get_name)(char*, int, cuda_device);
    cuda_result (*device_get_attribute)(int*, int, cuda_device);
    cuda_result (*device_get_pci_bus_id)(char*, int, cuda_device);
    cuda_result (*device_total_mem)(std::size_t*, cuda_device);
    cuda_result (*primary_context_retain)(cuda_context*, cuda_device);
    cuda_result (*primary_context_release)(cuda_device);
    cuda_result (*context_set_current)(cuda_context);
    cuda_result (*mem_get_info)(std::size_t*, std::size_t*);
    cuda_result (*mem_alloc)(cuda_address*, std::size_t);
    cuda_result (*mem_free)(cuda_address);
    cuda_result (*mem_host_alloc)(void**, std::size_t, unsigned);
    cuda_result (*mem_free_host)(void*);
    cuda_result (*memset_d8_async)(cuda_address, unsigned char, std::size_t, cuda_stream);
    cuda_result (*copy_to_device)(cuda_address, const void*, std::size_t, cuda_stream);
    cuda_result (*copy_to_host)(void*, cuda_address, std::size_t, cuda_stream);
    cuda_result (*copy_on_device)(cuda_address, cuda_address, std::size_t, cuda_stream);
    cuda_result (*copy_2d)(const CudaCopy2D*, cuda_stream);
    cuda_result (*stream_create)(cuda_stream*, unsigned);
    cuda_result (*stream_destroy)(cuda_stream);
    cuda_result (*stream_synchronize)(cuda_stream);
    cuda_result (*stream_query)(cuda_stream);
    cuda_result (*stream_wait_event)(cuda_stream, cuda_event, unsigned);
    cuda_result (*event_create)(cuda_event*, unsigned);
    cuda_result (*event_destroy)(cuda_event);
    cuda_result (*event_record)(cuda_event, cuda_stream);
    cuda_result (*event_elapsed_time)(float*, cuda_event, cuda_event);
    cuda_result (*begin_capture)(cuda_stream, int);
    cuda_result (*end_capture)(cuda_stream, cuda_graph*);
    cuda_result (*graph_instantiate)(cuda_graph_exec*, cuda_graph, unsigned long long);
    cuda_result (*graph_upload)(cuda_graph_exec, cuda_stream);
    cuda_result (*graph_launch)(cuda_graph_exec, cuda_stream);
    cuda_result (*graph_exec_destroy)(cuda_graph_exec);
    cuda_result (*graph_destroy)(cuda_graph);
    cuda_result (*module_load_data)(cuda_module*, const void*);
    cuda_result (*module_get_function)(cuda_function*, cuda_module, const char*);
    cuda_result (*module_unload)(cuda_module);
    cuda_result (*launch_kernel)(cuda_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 cuda_stream, void**, void**);
    cuda_result (*get_error_name)(cuda_result, const char**);
    cuda_result (*get_error_string)(cuda_result, const char**);

    // Throws std::runtime_error with the call, the error's name and its text.
    void check(cuda_result result, const char* call) const;
};

}  // namespace busbw
