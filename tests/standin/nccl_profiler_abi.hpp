// A profiler plugin's interface, versions 5 and 4, as far as it is used: nccl_profiler.h of NCCL 2.28.
#pragma once

#include <cstddef>
#include <cstdint>

namespace standin::nccl {

enum EventType : unsigned {
    group_event = 1U << 0,
    collective_event = 1U << 1,
    message_event = 1U << 2,
    // What happens below them: proxy operations and steps, kernel channels, network plugins. None of it is told.
    proxy_events = 1U << 3 | 1U << 4 | 1U << 6 | 1U << 7,
    group_api_event = 1U << 8,
    collective_api_event = 1U << 9,
    message_api_event = 1U << 10,
    kernel_launch_event = 1U << 11,
};

enum EventState : int { group_start_done = 23, group_end_begun = 24 };

struct EventV5 {
    std::uint64_t type;
    void* parent;
    int rank;
    union {
        struct {
            bool captured;
            int depth;
        } group_api;
        struct {
            const char* function;
            std::size_t count;
            const char* type;
            int root;
            void* stream;
            bool captured;
        } collective_api;
        struct {
            const char* function;
            std::size_t count;
            const char* type;
            void* stream;
            bool captured;
        } message_api;
        struct {
            void* stream;
        } kernel_launch;
        struct {
            std::uint64_t sequence;
            const char* function;
            const void* from;
            void* to;
            std::size_t count;
            int root;
            const char* type;
            std::uint8_t channels, warps;
            const char* algorithm;
            const char* protocol;
            void* group;
        } collective;
        struct {
            const char* function;
            void* buffer;
            const char* type;
            std::size_t count;
            int peer;
            std::uint8_t channels;
            void* group;
        } message;
        std::byte room[96];
    };
};

struct EventV4 {
    std::uint8_t type;
    void* parent;
    int rank;
    union {
        struct {
            std::uint64_t sequence;
            const char* function;
            const void* from;
            void* to;
            std::size_t count;
            int root;
            const char* type;
            std::uint8_t channels, warps;
            const char* algorithm;
            const char* protocol;
        } collective;
        struct {
            const char* function;
            void* buffer;
            const char* type;
            std::size_t count;
            int peer;
            std::uint8_t channels;
        } message;
        std::byte room[96];
    };
};

extern "C" using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

struct PluginV5 {
    const char* name;
    int (*init)(void** context, std::uint64_t id, int* mask, const char* communicator, int nodes, int ranks, int rank,
                Logger log);
    int (*start)(void* context, void** handle, EventV5* event);
    int (*stop)(void* handle);
    int (*record)(void* handle, int state, void* arguments);
    int (*finalize)(void* context);
};

struct PluginV4 {
    const char* name;
    int (*init)(void** context, int* mask, const char* communicator, std::uint64_t id, int nodes, int ranks, int rank,
                Logger log);
    int (*start)(void* context, void** handle, EventV4* event);
    int (*stop)(void* handle);
    int (*record)(void* handle, int state, void* arguments);
    int (*finalize)(void* context);
};

}  // namespace standin::nccl
