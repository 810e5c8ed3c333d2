// Allocating memory and copying to, from and within it.
#include "driver_memory.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "driver_stream.hpp"

namespace standin {
namespace {

constexpr std::size_t alignment = 4096;
constexpr int on_host = -1;

struct Allocation {
    std::size_t bytes;
    int device;
};

class Allocations {
   public:
    void* add(std::size_t bytes, int device) {
        require(bytes > 0, invalid_value);
        const std::scoped_lock lock{mutex_};
        const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
        if (device != on_host) {
            auto& used = used_.at(static_cast<std::size_t>(device));
            require(rounded >= bytes && rounded <= device_memory_bytes() - used, out_of_memory);
            used += rounded;
        }
        void* const start = std::aligned_alloc(alignment, rounded);
        require(start != nullptr, out_of_memory);
        allocations_.emplace(reinterpret_cast<std::uintptr_t>(start), Allocation{bytes, device});
        return start;
    }
    // The device that `start` was allocated on.
    int device_of(void* start) {
        const std::scoped_lock lock{mutex_};
        const auto found = allocations_.find(reinterpret_cast<std::uintptr_t>(start));
        require(found != allocations_.end(), invalid_value);
        return found->second.device;
    }
    void remove(void* start) {
        const std::scoped_lock lock{mutex_};
        const auto found = allocations_.find(reinterpret_cast<std::uintptr_t>(start));
        require(found != allocations_.end(), invalid_value);
        if (found->second.device != on_host) {
            used_.at(static_cast<std::size_t>(found->second.device)) -=
                (found->second.bytes + alignment - 1) / alignment * alignment;
        }
        allocations_.erase(found);
        std::free(start);
    }
    bool holds(const void* start, std::size_t bytes, bool host_counts) {
        const std::scoped_lock lock{mutex_};
        const auto address = reinterpret_cast<std::uintptr_t>(start);
        auto after = allocations_.upper_bound(address);
        if (after == allocations_.begin()) {
            return false;
        }
        const auto& [from, allocation] = *std::prev(after);
        const bool inside = address - from <= allocation.bytes && bytes <= allocation.bytes - (address - from);
        return inside && (host_counts || allocation.device != on_host);
    }
    std::size_t count() {
        const std::scoped_lock lock{mutex_};
        return allocations_.size();
    }
    std::size_t used(int device) {
        const std::scoped_lock lock{mutex_};
        return used_.at(static_cast<std::size_t>(device));
    }

   private:
    std::mutex mutex_;
    std::map<std::uintptr_t, Allocation> allocations_;
    std::array<std::size_t, 64> used_{};
};

Allocations& allocations() { return forever<Allocations>(); }

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// How many times as long as it takes a copy over the link of the current device is made to take.
constexpr int slow_link_factor = 4;

bool has_slow_link() { return environment_number("STANDIN_SLOW_LINK", -1) == current_context().device; }

void copy_over_link(void* to, const void* from, std::size_t bytes, bool is_slow) {
    const auto begin = std::chrono::steady_clock::now();
    std::memcpy(to, from, bytes);
    if (is_slow) {
        std::this_thread::sleep_for((slow_link_factor - 1) * (std::chrono::steady_clock::now() - begin));
    }
}

bool is_page_locked(const void* start, std::size_t bytes) { return allocations().holds(start, bytes, true); }

// CUDA_MEMCPY2D of cuda.h, with its order of members.
struct Copy2D {
    std::size_t source_x, source_y;
    unsigned source_kind;
    const void* source_host;
    std::uint64_t source_device;
    void* source_array;
    std::size_t source_pitch;
    std::size_t target_x, target_y;
    unsigned target_kind;
    void* target_host;
    std::uint64_t target_device;
    void* target_array;
    std::size_t target_pitch;
    std::size_t width, height;
};

enum Kind : unsigned { host = 1, device = 2, array = 3, unified = 4 };

struct Plane {
    char* start;
    std::size_t pitch;
};

Plane plane(unsigned kind, const void* on_the_host, std::uint64_t on_device, std::size_t pitch, std::size_t x,
            std::size_t y, const Copy2D& copy) {
    require(kind == host || kind == device || kind == unified, invalid_value);
    require(pitch >= x + copy.width || copy.height <= 1, invalid_value);
    char* const base =
        kind == host ? static_cast<char*>(const_cast<void*>(on_the_host)) : static_cast<char*>(pointer(on_device));
    char* const start = base + y * pitch + x;
    if (kind == device && copy.height > 0) {
        require_known(start, (copy.height - 1) * pitch + copy.width);
    }
    return {start, pitch};
}

}  // namespace

std::size_t device_memory_bytes() {
    return static_cast<std::size_t>(environment_number("STANDIN_MEMORY_BYTES", 1LL << 30));
}

bool is_known(const void* start, std::size_t bytes) { return allocations().holds(start, bytes, true); }

void require_known(const void* start, std::size_t bytes) { require(is_known(start, bytes), invalid_value); }

STANDIN_API Result cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
    return answer([&] {
        require(address != nullptr, invalid_value);
        require_no_capture();
        *address = reinterpret_cast<std::uint64_t>(allocations().add(bytes, current_context().device));
    });
}

// As the driver's, it waits for the device.
STANDIN_API Result cuMemFree_v2(std::uint64_t address) {
    return answer([&] {
        if (address == 0) {
            return;
        }
        require_no_capture();
        const int where = allocations().device_of(pointer(address));
        require(where != on_host, invalid_value);
        synchronize_device(where);
        allocations().remove(pointer(address));
    });
}

STANDIN_API long standinAllocations() { return static_cast<long>(allocations().count()); }

STANDIN_API Result cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
    return answer([&] {
        *total_bytes = device_memory_bytes();
        *free_bytes = *total_bytes - allocations().used(current_context().device);
    });
}

STANDIN_API Result cuMemHostAlloc(void** start, std::size_t bytes, unsigned) {
    return answer([&] {
        require(start != nullptr, invalid_value);
        require_no_capture();
        current_context();
        *start = allocations().add(bytes, on_host);
        std::memset(*start, 0, bytes);
    });
}

STANDIN_API Result cuMemFreeHost(void* start) {
    return answer([&] {
        require(allocations().device_of(start) == on_host, invalid_value);
        for (int each = 0; each < visible_devices(); ++each) {
            synchronize_device(each);
        }
        allocations().remove(start);
    });
}

STANDIN_API Result cuMemHostGetDevicePointer_v2(std::uint64_t* address, void* start, unsigned flags) {
    return answer([&] {
        require(address != nullptr && flags == 0 && is_page_locked(start, 1), invalid_value);
        *address = reinterpret_cast<std::uint64_t>(start);
    });
}

// From pageable memory the bytes are taken before this returns, from page-locked memory when the stream gets there.
STANDIN_API Result cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, Stream* handle) {
    return answer([&] {
        require_known(pointer(to), bytes);
        const auto stream = stream_of(handle);
        if (is_page_locked(from, bytes) || stream->capture()) {
            const bool is_slow = has_slow_link();
            stream->enqueue([=] { copy_over_link(pointer(to), from, bytes, is_slow); });
        } else {
            const auto* const start = static_cast<const char*>(from);
            stream->enqueue([to, taken = std::vector<char>(start, start + bytes)] {
                std::memcpy(pointer(to), taken.data(), taken.size());
            });
        }
    });
}

// To pageable memory this returns when the bytes are there.
STANDIN_API Result cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, Stream* handle) {
    return answer([&] {
        require_known(pointer(from), bytes);
        const auto stream = stream_of(handle);
        const bool is_slow = has_slow_link();
        stream->enqueue([=] { copy_over_link(to, pointer(from), bytes, is_slow); });
        if (!is_page_locked(to, bytes) && !stream->capture()) {
            stream->synchronize();
        }
    });
}

STANDIN_API Result cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, Stream* stream) {
    return answer([&] {
        require_known(pointer(to), bytes);
        require_known(pointer(from), bytes);
        stream_of(stream)->enqueue([=] { std::memmove(pointer(to), pointer(from), bytes); });
    });
}

STANDIN_API Result cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t bytes) {
    return answer([&] {
        require_known(pointer(to), bytes);
        require_no_capture();
        synchronize_default(current_context());
        std::memcpy(pointer(to), from, bytes);
    });
}

STANDIN_API Result cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
    return answer([&] {
        require_known(pointer(from), bytes);
        require_no_capture();
        synchronize_default(current_context());
        std::memcpy(to, pointer(from), bytes);
    });
}

STANDIN_API Result cuMemsetD8Async(std::uint64_t to, unsigned char value, std::size_t count, Stream* stream) {
    return answer([&] {
        require_known(pointer(to), count);
        stream_of(stream)->enqueue([=] { std::memset(pointer(to), value, count); });
    });
}

STANDIN_API Result cuMemsetD32Async(std::uint64_t to, std::uint32_t value, std::size_t count, Stream* stream) {
    return answer([&] {
        require(to % 4 == 0 && count <= SIZE_MAX / 4, invalid_value);
        require_known(pointer(to), 4 * count);
        stream_of(stream)->enqueue([=] { std::fill_n(static_cast<std::uint32_t*>(pointer(to)), count, value); });
    });
}

STANDIN_API Result cuMemcpy2DAsync_v2(const Copy2D* given, Stream* stream) {
    return answer([&] {
        require(given != nullptr, invalid_value);
        const Copy2D copy = *given;
        const Plane from = plane(copy.source_kind, copy.source_host, copy.source_device, copy.source_pitch,
                                 copy.source_x, copy.source_y, copy);
        const Plane to = plane(copy.target_kind, copy.target_host, copy.target_device, copy.target_pitch, copy.target_x,
                               copy.target_y, copy);
        stream_of(stream)->enqueue([=] {
            for (std::size_t row = 0; row < copy.height; ++row) {
                std::memcpy(to.start + row * to.pitch, from.start + row * from.pitch, copy.width);
            }
        });
    });
}

}  // namespace standin
