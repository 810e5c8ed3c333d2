// A profiler plugin of version 5 (or 4 with -DOLDER) that wants collectives and messages, and prints what it is told.
#include <cstdint>
#include <cstdio>

#include "../../nccl_profiler_abi.hpp"

using namespace standin::nccl;

#ifdef OLDER
using Event = EventV4;
using Plugin = PluginV4;
#else
using Event = EventV5;
using Plugin = PluginV5;
#endif

namespace {

std::intptr_t started = 0;

int take(void** context, int* mask, int ranks, int rank) {
    std::printf("init rank %d of %d\n", rank, ranks);
    *context = &started;
    *mask = collective_event | message_event;
    return 0;
}

#ifdef OLDER
int init(void** context, int* mask, const char*, std::uint64_t, int, int ranks, int rank, Logger) {
    return take(context, mask, ranks, rank);
}
#else
int init(void** context, std::uint64_t, int* mask, const char*, int, int ranks, int rank, Logger) {
    return take(context, mask, ranks, rank);
}
#endif

int start(void*, void** handle, Event* event) {
    *handle = reinterpret_cast<void*>(++started);
    if (event->type == collective_event) {
        const auto& call = event->collective;
        std::printf("rank %d %s %zu %s %s %s %d\n", event->rank, call.function, call.count, call.type, call.algorithm,
                    call.protocol, call.channels);
    } else if (event->type == message_event) {
        std::printf("rank %d %s %d\n", event->rank, event->message.function, event->message.peer);
    } else {
        std::printf("event %d\n", static_cast<int>(event->type));
    }
    return 0;
}

int stop(void* handle) {
    std::printf("stop %d\n", static_cast<int>(reinterpret_cast<std::intptr_t>(handle)));
    return 0;
}

int record(void*, int, void*) { return 0; }
int finalize(void*) { return std::puts("finalize") < 0 ? 1 : 0; }

}  // namespace

#ifdef OLDER
extern "C" __attribute__((visibility("default"))) const Plugin ncclProfiler_v4;
extern "C" const Plugin ncclProfiler_v4{"recorder", init, start, stop, record, finalize};
#else
extern "C" __attribute__((visibility("default"))) const Plugin ncclProfiler_v5;
extern "C" const Plugin ncclProfiler_v5{"recorder", init, start, stop, record, finalize};
#endif
