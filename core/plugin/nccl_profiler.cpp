// A profiler plug-in for NCCL that remembers which algorithm, protocol and channels NCCL chose for the calls it is
// shown. NCCL loads it by NCCL_PROFILER_PLUGIN; busbw loads the same file and asks. It looks only while asked to, so
// that calls are timed without it. Versions 1 to 5 of the interface, for NCCL 2.23 and later: the layouts below are
// those of src/include/plugin/profiler/profiler_v*.h in NCCL 2.28, cut where this reads no further.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

namespace {

constexpr int of_collective = 1 << 1;
constexpr int of_message = 1 << 2;
constexpr int success = 0;

std::mutex guard;
std::set<int*> masks;        // one for each communicator, or one for all: NCCL reads them before every call
std::set<std::string> seen;  // "function algorithm protocol channels", "-" for what is not told
bool watching = false;

void remember(const char* function, const char* algorithm, const char* protocol, int channels) {
    const auto told = [](const char* word) { return word != nullptr && *word != '\0' ? word : "-"; };
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%s %s %s %d", told(function), told(algorithm), told(protocol), channels);
    const std::lock_guard lock{guard};
    if (watching) {
        seen.insert(line.data());
    }
}

int join(int* mask) {
    const std::lock_guard lock{guard};
    masks.insert(mask);
    *mask = watching ? of_collective | of_message : 0;
    return success;
}

int start_1(void** context, int* mask) {
    *context = &guard;
    return join(mask);
}
int start_4(void** context, int* mask, const char*, std::uint64_t, int, int, int, void*) {
    return start_1(context, mask);
}
int start_5(void** context, std::uint64_t, int* mask, const char*, int, int, int, void*) {
    return start_1(context, mask);
}

struct Event1 {
    std::uint8_t type;
    void* parent;
    int rank;
    union {
        struct {
            const char* name;
            std::uint64_t comm_hash, number;
            std::uint8_t function;
            const void* send;
            void* receive;
            std::size_t count;
            int root;
            std::uint8_t data_type;
            std::uint32_t operation;
            std::size_t bytes;
            std::uint8_t channels, warps, algorithm, protocol;
        } collective;
        struct {
            const char* name;
            std::uint64_t comm_hash;
            std::uint8_t function;
        } message;
    };
};

template <bool HasBytes>
struct Event2;
template <>
struct Event2<true> {
    std::uint8_t type;
    void* parent;
    int rank;
    union {
        struct {
            const char* name;
            std::uint64_t comm_hash, number;
            const char* function;
            const void* send;
            void* receive;
            std::size_t count;
            int root;
            const char* data_type;
            std::size_t bytes;
            std::uint8_t channels, warps;
            const char* algorithm;
            const char* protocol;
        } collective;
        struct {
            const char* name;
            std::uint64_t comm_hash;
            const char* function;
        } message;
    };
};
template <>
struct Event2<false> {
    std::uint8_t type;
    void* parent;
    int rank;
    union {
        struct {
            const char* name;
            std::uint64_t comm_hash, number;
            const char* function;
            const void* send;
            void* receive;
            std::size_t count;
            int root;
            const char* data_type;
            std::uint8_t channels, warps;
            const char* algorithm;
            const char* protocol;
        } collective;
        struct {
            const char* name;
            std::uint64_t comm_hash;
            const char* function;
        } message;
    };
};

template <class Type>
struct Event4 {
    Type type;
    void* parent;
    int rank;
    union {
        struct {
            std::uint64_t number;
            const char* function;
            const void* send;
            void* receive;
            std::size_t count;
            int root;
            const char* data_type;
            std::uint8_t channels, warps;
            const char* algorithm;
            const char* protocol;
        } collective;
        struct {
            const char* function;
            void* buffer;
            const char* data_type;
            std::size_t count;
            int peer;
            std::uint8_t channels;
        } message;
    };
};

// The order of the enumerations in src/include/nccl_common.h, which version 1 passes as numbers.
constexpr std::array functions{"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                               "AllReduce", "SendRecv", "Send",      "Recv"};
constexpr std::array algorithms{"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
constexpr std::array protocols{"LL", "LL128", "SIMPLE"};

template <std::size_t Count>
const char* named(const std::array<const char*, Count>& names, std::uint8_t number) {
    return number < Count ? names[number] : nullptr;
}

int event_1(void*, void** handle, Event1* event) {
    *handle = nullptr;
    if (event->type == of_collective) {
        remember(named(functions, event->collective.function), named(algorithms, event->collective.algorithm),
                 named(protocols, event->collective.protocol), -1);
    } else if (event->type == of_message) {
        remember(named(functions, event->message.function), nullptr, nullptr, -1);
    }
    return success;
}

// `channels` of a message: versions before 5 do not fill it.
template <class Event>
int event_2(void*, void** handle, Event* event) {
    *handle = nullptr;
    if (event->type == of_collective) {
        const auto& one = event->collective;
        remember(one.function, one.algorithm, one.protocol, one.channels);
    } else if (event->type == of_message) {
        remember(event->message.function, nullptr, nullptr, -1);
    }
    return success;
}

int event_5(void*, void** handle, Event4<std::uint64_t>* event) {
    if (event->type == of_message) {
        *handle = nullptr;
        remember(event->message.function, nullptr, nullptr, event->message.channels);
        return success;
    }
    return event_2(nullptr, handle, event);
}

int stop(void*) { return success; }
int record(void*, int, void*) { return success; }
int end(void*) { return success; }

template <class Start, class Event>
struct Plugin {
    const char* name;
    Start* start;
    Event* event;
    int (*stop)(void*);
    int (*record)(void*, int, void*);
    int (*end)(void*);
};

constexpr const char* plugin_name = "busbw";

}  // namespace

extern "C" {

extern const Plugin<int(void**, int*), int(void*, void**, Event1*)> ncclProfiler_v1;
extern const Plugin<int(void**, int*), int(void*, void**, Event2<true>*)> ncclProfiler_v2;
extern const Plugin<int(void**, int*), int(void*, void**, Event2<false>*)> ncclProfiler_v3;
extern const Plugin<decltype(start_4), int(void*, void**, Event4<std::uint8_t>*)> ncclProfiler_v4;
extern const Plugin<decltype(start_5), decltype(event_5)> ncclProfiler_v5;
void busbw_watch(int on);
int busbw_seen(char* into, int size);

const Plugin<int(void**, int*), int(void*, void**, Event1*)> ncclProfiler_v1{plugin_name, start_1, event_1,
                                                                             stop,        record,  end};
const Plugin<int(void**, int*), int(void*, void**, Event2<true>*)> ncclProfiler_v2{
    plugin_name, start_1, event_2<Event2<true>>, stop, record, end};
const Plugin<int(void**, int*), int(void*, void**, Event2<false>*)> ncclProfiler_v3{
    plugin_name, start_1, event_2<Event2<false>>, stop, record, end};
const Plugin<decltype(start_4), int(void*, void**, Event4<std::uint8_t>*)> ncclProfiler_v4{
    plugin_name, start_4, event_2<Event4<std::uint8_t>>, stop, record, end};
const Plugin<decltype(start_5), decltype(event_5)> ncclProfiler_v5{plugin_name, start_5, event_5, stop, record, end};

// Begins to look (and forgets what was seen), or ends.
void busbw_watch(int on) {
    const std::lock_guard lock{guard};
    watching = on != 0;
    if (watching) {
        seen.clear();
    }
    for (int* mask : masks) {
        *mask = watching ? of_collective | of_message : 0;
    }
}

// Writes what was seen, a line each, and a zero; returns the bytes that takes, also when `size` is too small for it.
int busbw_seen(char* into, int size) {
    std::string all;
    {
        const std::lock_guard lock{guard};
        for (const std::string& line : seen) {
            all += line + '\n';
        }
    }
    const auto needed = static_cast<int>(all.size()) + 1;
    if (needed <= size) {
        std::memcpy(into, all.c_str(), all.size() + 1);
    }
    return needed;
}
}
