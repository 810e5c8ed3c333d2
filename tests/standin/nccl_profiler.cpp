// From tasks to events: which there are, what they say, and in which order NCCL tells them.
#include "nccl_profiler.hpp"

#include <strings.h>

#include <cstdlib>
#include <initializer_list>
#include <vector>

#include "nccl_plugin.hpp"

namespace standin::nccl {
namespace {

constexpr int first_version = 22304;
constexpr unsigned below_collective = collective_event | proxy_events;
constexpr unsigned below_message = message_event | proxy_events;
constexpr unsigned below_group = group_event | below_collective | below_message;
constexpr unsigned below_group_api =
    group_api_event | collective_api_event | message_api_event | kernel_launch_event | below_group;

Plugin& plugin() { return forever<Plugin>(); }

// NCCL has no name for uint8.
const char* name_of(DataType type) {
    static constexpr const char* names[] = {"ncclInt8",    "Unknown",      "ncclInt32",      "ncclUint32",
                                            "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                            "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
    return names[static_cast<std::size_t>(type)];
}

struct Choice {
    const char* algorithm;
    const char* protocol;
    std::uint8_t channels;
};

// One of `names` if the variable is exactly that, in any case.
const char* forced(const char* variable, std::initializer_list<const char*> names, const char* otherwise) {
    const char* const text = std::getenv(variable);
    for (const char* const name : names) {
        if (text != nullptr && strcasecmp(text, name) == 0) {
            return name;
        }
    }
    return otherwise;
}

// Larger messages get more channels and a protocol with more bandwidth, as on a real machine; the limits are made up.
Choice choose(Function function, std::size_t bytes) {
    const bool is_small = bytes <= 64 << 10;
    Choice choice{function == Function::all_reduce && is_small ? "TREE" : "RING", "SIMPLE", 16};
    if (is_small) {
        choice.protocol = "LL";
        choice.channels = 1;
    } else if (bytes <= 1 << 20) {
        choice.protocol = "LL128";
        choice.channels = 4;
    } else if (bytes <= 16 << 20) {
        choice.channels = 8;
    }
    choice.algorithm = forced("NCCL_ALGO", {"TREE", "RING"}, choice.algorithm);
    choice.protocol = forced("NCCL_PROTO", {"LL", "LL128", "SIMPLE"}, choice.protocol);
    return choice;
}

// What NCCL makes messages of.
bool is_made_of_messages(const Task& task) {
    return task.is_point_to_point() || task.function == Function::alltoall || task.function == Function::gather ||
           task.function == Function::scatter;
}

struct Message {
    Function way;
    std::byte* buffer;
    int peer;
};

std::vector<Message> messages_of(const Task& task, int rank, int ranks) {
    auto* const from = const_cast<std::byte*>(task.from);
    const auto block = [&](std::byte* start, int index) {
        return start + static_cast<std::size_t>(index) * task.bytes();
    };
    std::vector<Message> messages;
    switch (task.function) {
        case Function::send: return {{Function::send, from, task.root}};
        case Function::recv: return {{Function::recv, task.to, task.root}};
        case Function::alltoall:
            for (int peer = 0; peer < ranks; ++peer) {
                messages.push_back({Function::send, block(from, peer), peer});
                messages.push_back({Function::recv, block(task.to, peer), peer});
            }
            return messages;
        case Function::gather:
            messages.push_back({Function::send, from, task.root});
            for (int peer = 0; rank == task.root && peer < ranks; ++peer) {
                messages.push_back({Function::recv, block(task.to, peer), peer});
            }
            return messages;
        default:
            for (int peer = 0; rank == task.root && peer < ranks; ++peer) {
                messages.push_back({Function::send, block(from, peer), peer});
            }
            messages.push_back({Function::recv, task.to, task.root});
            return messages;
    }
}

EventV5 event_of(EventType type, void* parent, int rank) {
    EventV5 event{};
    event.type = type;
    event.parent = parent;
    event.rank = rank;
    return event;
}

EventV5 api_event(const Task& task, void* parent, Stream* stream) {
    if (is_made_of_messages(task)) {
        EventV5 event = event_of(message_api_event, parent, 0);
        event.message_api = {nccl::name_of(task.function), task.count, name_of(task.type), stream, false};
        return event;
    }
    EventV5 event = event_of(collective_api_event, parent, 0);
    event.collective_api = {nccl::name_of(task.function), task.count, name_of(task.type), task.root, stream, false};
    return event;
}

// NCCL turns elements into bytes where it only copies.
EventV5 collective(const Task& task, std::uint64_t call, int rank, void* api, void* group) {
    const bool in_bytes = task.function == Function::all_gather || task.function == Function::broadcast;
    const Choice choice = choose(task.function, task.bytes());
    EventV5 event = event_of(collective_event, api, rank);
    event.collective = {call,
                        nccl::name_of(task.function),
                        task.from,
                        task.to,
                        in_bytes ? task.bytes() : task.count,
                        task.root,
                        name_of(in_bytes ? DataType::int8 : task.type),
                        choice.channels,
                        16,
                        choice.algorithm,
                        choice.protocol,
                        group};
    return event;
}

EventV5 message(const Message& one, const Task& task, int rank, void* api, void* group) {
    EventV5 event = event_of(message_event, api, rank);
    event.message = {nccl::name_of(one.way),
                     one.buffer,
                     name_of(task.type),
                     task.count,
                     one.peer,
                     choose(one.way, task.bytes()).channels,
                     group};
    return event;
}

// Starts events that the plugin wants, now, and stops them in the order they were started.
class Told {
   public:
    Told(void* context, unsigned mask) : context_{context}, mask_{mask} {}
    ~Told() {
        for (void* const handle : handles_) {
            plugin().stop(handle);
        }
    }
    Told(const Told&) = delete;
    Told& operator=(const Told&) = delete;
    void* start(const EventV5& event, unsigned wanted_by) {
        void* const handle = (mask_ & wanted_by) != 0 ? plugin().start(context_, event) : nullptr;
        handles_.push_back(handle);
        return handle;
    }

   private:
    void* context_;
    unsigned mask_;
    std::vector<void*> handles_;
};

}  // namespace

void Profiler::start(const std::string& name, std::uint64_t id, int rank, int ranks) {
    rank_ = rank;
    ranks_ = ranks;
    active_ = version >= first_version && plugin().is_there() && plugin().init(&context_, id, name, ranks, rank);
}

void Profiler::launch(std::span<const Task> tasks, Stream* stream) {
    if (!active_ || ranks_ == 1) {
        return;
    }
    const unsigned mask = plugin().mask();
    Told apis{context_, mask};
    EventV5 whole = event_of(group_api_event, nullptr, 0);
    whole.group_api = {false, 1};
    void* const group_api = apis.start(whole, below_group_api);
    plugin().record(group_api, group_start_done);
    std::vector<void*> api_of_task;
    for (const Task& task : tasks) {
        const bool sends = is_made_of_messages(task);
        Told api{context_, mask};
        api_of_task.push_back(
            api.start(api_event(task, group_api, stream),
                      sends ? message_api_event | below_message : collective_api_event | below_collective));
    }
    plugin().record(group_api, group_end_begun);
    {
        Told kernel{context_, mask};
        EventV5 launched = event_of(kernel_launch_event, group_api, 0);
        launched.kernel_launch = {stream};
        kernel.start(launched, kernel_launch_event);
    }
    Told groups{context_, mask};
    void* const group = groups.start(event_of(group_event, nullptr, 0), below_group);
    Told calls{context_, mask};
    for (std::size_t index = 0; index < tasks.size(); ++index) {
        const Task& task = tasks[index];
        if (!is_made_of_messages(task)) {
            auto& call = calls_[static_cast<std::size_t>(task.function)];
            calls.start(collective(task, call++, rank_, api_of_task[index], group), below_collective);
            continue;
        }
        for (const Message& one : messages_of(task, rank_, ranks_)) {
            calls.start(message(one, task, rank_, api_of_task[index], group), below_message);
        }
    }
}

void Profiler::finish() {
    if (active_) {
        plugin().finalize(context_);
        active_ = false;
    }
}

}  // namespace standin::nccl
