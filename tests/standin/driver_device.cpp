// Devices: how many there are, what they can do, and their primary contexts.
#include "driver_device.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "driver_memory.hpp"

namespace standin {
namespace {

constexpr int most_devices = 64;
std::atomic<bool> initialized{false};
std::array<Context, most_devices> contexts;
std::array<std::atomic<int>, most_devices> retained;
thread_local Context* current = nullptr;

// As CUDA reads the list: it ends at the first entry that names no device.
std::vector<int> find_devices() {
    const int present = static_cast<int>(environment_number("STANDIN_GPUS", 4));
    std::vector<int> found;
    const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
    if (list == nullptr) {
        for (int device = 0; device < present; ++device) {
            found.push_back(device);
        }
        return found;
    }
    for (const char* at = list; *at != '\0';) {
        char* end = nullptr;
        const long index = std::strtol(at, &end, 10);
        if (end == at || index < 0 || index >= present) {
            break;
        }
        found.push_back(static_cast<int>(index));
        at = *end == ',' ? end + 1 : end;
        if (at == end && *end != '\0') {
            break;
        }
    }
    return found;
}

struct Devices {
    const std::vector<int> physical = find_devices();
};

int physical(int device) {
    require(initialized, not_initialized);
    require(device >= 0 && device < visible_devices(), invalid_device);
    return forever<Devices>().physical[static_cast<std::size_t>(device)];
}

enum Attribute : int {
    max_threads_per_block = 1,
    warp_size = 10,
    multiprocessor_count = 16,
    unified_addressing = 41,
    l2_bytes = 38,
    max_threads_per_multiprocessor = 39,
    capability_major = 75,
    capability_minor = 76,
    stream_memory_operations = 93,
};

int attribute_value(int attribute) {
    switch (attribute) {
        case max_threads_per_block: return 1024;
        case warp_size: return 32;
        case multiprocessor_count: return 4;
        case l2_bytes: return static_cast<int>(environment_number("STANDIN_L2_BYTES", 4 << 20));
        case max_threads_per_multiprocessor: return 2048;
        case unified_addressing: return 1;
        case capability_major: return 9;
        case capability_minor: return 0;
        case stream_memory_operations: return 1;
        default: return 0;
    }
}

void copy_text(const std::string& text, char* to, int bytes) {
    require(to != nullptr && bytes > 0, invalid_value);
    std::snprintf(to, static_cast<std::size_t>(bytes), "%s", text.c_str());
}

struct ResultText {
    Result code;
    const char* name;
    const char* meaning;
};

constexpr ResultText result_texts[] = {
    {success, "CUDA_SUCCESS", "no error"},
    {invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {no_device, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {invalid_image, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {illegal_state, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {not_found, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {not_ready, "CUDA_ERROR_NOT_READY", "device not ready"},
    {not_supported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {capture_invalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {capture_unmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not initiated in this stream"},
    {unknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ResultText& text_of(int code) {
    for (const auto& each : result_texts) {
        if (each.code == code) {
            return each;
        }
    }
    throw Failure{invalid_value};
}

}  // namespace

long long environment_number(const char* name, long long otherwise) {
    const char* const text = std::getenv(name);
    if (text == nullptr || *text == '\0') {
        return otherwise;
    }
    char* end = nullptr;
    const long long value = std::strtoll(text, &end, 10);
    if (*end != '\0' || value < 0) {
        std::fprintf(stderr, "the stand-in for CUDA wants a whole number in %s, not \"%s\"\n", name, text);
        std::abort();
    }
    return value;
}

int visible_devices() { return static_cast<int>(forever<Devices>().physical.size()); }

Context& current_context() {
    require(initialized, not_initialized);
    require(current != nullptr, invalid_context);
    return *current;
}

STANDIN_API Result cuInit(unsigned flags) {
    return answer([&] {
        require(flags == 0, invalid_value);
        require(visible_devices() > 0, no_device);
        require(visible_devices() <= most_devices, invalid_value);
        for (int device = 0; device < most_devices; ++device) {
            contexts[static_cast<std::size_t>(device)].device = device;
        }
        initialized = true;
    });
}

// NVIDIA's own NVRTC asks whatever driver its process has for private tables, and calls null where this is missing.
STANDIN_API Result cuGetExportTable(const void** table, const void* identity) {
    return answer([&] {
        require(table != nullptr && identity != nullptr, invalid_value);
        *table = nullptr;
        throw Failure{not_found};
    });
}

STANDIN_API Result cuDriverGetVersion(int* version) {
    return answer([&] {
        require(version != nullptr, invalid_value);
        *version = 13000;
    });
}

STANDIN_API Result cuDeviceGetCount(int* count) {
    return answer([&] {
        require(initialized, not_initialized);
        require(count != nullptr, invalid_value);
        *count = visible_devices();
    });
}

STANDIN_API Result cuDeviceGet(int* device, int ordinal) {
    return answer([&] {
        physical(ordinal);
        *device = ordinal;
    });
}

STANDIN_API Result cuDeviceGetName(char* name, int bytes, int device) {
    return answer([&] {
        physical(device);
        copy_text("Stand-in GPU", name, bytes);
    });
}

STANDIN_API Result cuDeviceGetAttribute(int* value, int attribute, int device) {
    return answer([&] {
        physical(device);
        require(value != nullptr && attribute > 0, invalid_value);
        *value = attribute_value(attribute);
    });
}

STANDIN_API Result cuDeviceGetPCIBusId(char* bus_id, int bytes, int device) {
    return answer([&] {
        char text[32];
        std::snprintf(text, sizeof text, "0000:%02X:00.0", static_cast<unsigned>(0x10 + physical(device)) & 0xFFU);
        copy_text(text, bus_id, bytes);
    });
}

STANDIN_API Result cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
    return answer([&] {
        const int index = physical(device);
        require(uuid != nullptr, invalid_value);
        constexpr std::string_view start{"stand-in-gpu-no", 15};
        std::memcpy(uuid, start.data(), start.size());
        uuid[15] = static_cast<unsigned char>(index);
    });
}

STANDIN_API Result cuDeviceGetUuid(unsigned char* uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }

STANDIN_API Result cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
    return answer([&] {
        physical(device);
        require(bytes != nullptr, invalid_value);
        *bytes = device_memory_bytes();
    });
}

STANDIN_API Result cuDevicePrimaryCtxRetain(Context** context, int device) {
    return answer([&] {
        physical(device);
        require(context != nullptr, invalid_value);
        ++retained[static_cast<std::size_t>(device)];
        *context = &contexts[static_cast<std::size_t>(device)];
    });
}

STANDIN_API Result cuDevicePrimaryCtxRelease_v2(int device) {
    return answer([&] {
        physical(device);
        auto& count = retained[static_cast<std::size_t>(device)];
        require(count.fetch_sub(1) > 0, invalid_context);
    });
}

// How often any context was retained and not released.
STANDIN_API long standinContexts() {
    return std::accumulate(retained.begin(), retained.end(), 0L,
                           [](long sum, const std::atomic<int>& one) { return sum + one; });
}

STANDIN_API Result cuCtxSetCurrent(Context* context) {
    return answer([&] {
        require(initialized, not_initialized);
        if (context != nullptr) {
            const bool known = context >= contexts.data() && context < contexts.data() + most_devices;
            require(known && retained[static_cast<std::size_t>(context->device)] > 0, invalid_context);
        }
        current = context;
    });
}

STANDIN_API Result cuCtxGetCurrent(Context** context) {
    return answer([&] {
        require(initialized, not_initialized);
        require(context != nullptr, invalid_value);
        *context = current;
    });
}

STANDIN_API Result cuCtxGetDevice(int* device) {
    return answer([&] { *device = current_context().device; });
}

STANDIN_API Result cuGetErrorName(int code, const char** name) {
    return answer([&] { *name = text_of(code).name; });
}

STANDIN_API Result cuGetErrorString(int code, const char** meaning) {
    return answer([&] { *meaning = text_of(code).meaning; });
}

}  // namespace standin
