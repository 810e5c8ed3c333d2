// Loading a profiler plugin by the rules of NCCL, and turning events into those of an older interface.
#include "nccl_plugin.hpp"

#include <dlfcn.h>
#include <strings.h>

#include <atomic>
#include <cstdarg>
#include <cstdlib>

#include "nccl.hpp"

namespace standin::nccl {
namespace {

constexpr int log_level_warn = 2;

extern "C" void log_for_plugin(int level, unsigned long, const char*, int, const char* format, ...) {
    char text[512];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (level == log_level_warn) {
        warn(-1, text);
    } else if (level > log_level_warn) {
        inform(-1, text);
    }
}

// A path or a library's name, or what stands between "libnccl-profiler-" and ".so".
void* open_library(const std::string& name) {
    void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr || name.find('/') != std::string::npos) {
        return library;
    }
    return ::dlopen(("libnccl-profiler-" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
}

// What version 4 knows nothing of has no type in it.
EventV4 as_v4(const EventV5& event) {
    EventV4 older{};
    older.type = static_cast<std::uint8_t>(event.type);
    older.rank = event.rank;
    if (event.type == collective_event) {
        const auto& from = event.collective;
        older.parent = from.group;
        older.collective = {from.sequence, from.function, from.from,  from.to,        from.count,   from.root,
                            from.type,     from.channels, from.warps, from.algorithm, from.protocol};
    } else if (event.type == message_event) {
        const auto& from = event.message;
        older.parent = from.group;
        older.message = {from.function, from.buffer, from.type, from.count, from.peer, from.channels};
    }
    return older;
}

}  // namespace

Plugin::Plugin() {
    const char* const name = std::getenv("NCCL_PROFILER_PLUGIN");
    if (name == nullptr || *name == '\0' || strcasecmp(name, "none") == 0) {
        return;
    }
    inform(-1, std::string{"NCCL_PROFILER_PLUGIN set by environment to "} + name);
    void* const library = open_library(name);
    if (library == nullptr) {
        inform(-1, std::string{"PROFILER/Plugin: Could not find: "} + name);
        return;
    }
    v5_ = static_cast<const PluginV5*>(::dlsym(library, "ncclProfiler_v5"));
    if (v5_ == nullptr) {
        v4_ = static_cast<const PluginV4*>(::dlsym(library, "ncclProfiler_v4"));
    }
    if (is_there()) {
        const std::string own = v5_ != nullptr ? std::string{v5_->name} + " (v5)" : std::string{v4_->name} + " (v4)";
        inform(-1, "PROFILER/Plugin: Loaded " + own);
    } else {
        inform(-1, std::string{"External profiler plugin "} + name + " is unsupported");
    }
}

bool Plugin::init(void** context, std::uint64_t id, const std::string& name, int ranks, int rank) {
    const char* const text = name.empty() ? nullptr : name.c_str();
    const int result = v5_ != nullptr ? v5_->init(context, id, &mask_, text, 1, ranks, rank, log_for_plugin)
                                      : v4_->init(context, &mask_, text, id, 1, ranks, rank, log_for_plugin);
    if (result != 0) {
        inform(-1, "Profiler init failed with error '" + std::to_string(result) + "'. Continue without profiler.");
    }
    return result == 0;
}

void* Plugin::start(void* context, const EventV5& event) {
    void* handle = nullptr;
    if (v5_ != nullptr) {
        EventV5 own = event;
        v5_->start(context, &handle, &own);
    } else if (event.type <= message_event) {
        EventV4 older = as_v4(event);
        v4_->start(context, &handle, &older);
    }
    return handle;
}

void Plugin::stop(void* handle) {
    if (handle != nullptr) {
        v5_ != nullptr ? v5_->stop(handle) : v4_->stop(handle);
    }
}

void Plugin::record(void* handle, EventState state) {
    if (handle != nullptr && v5_ != nullptr) {
        v5_->record(handle, state, nullptr);
    }
}

void Plugin::finalize(void* context) { v5_ != nullptr ? v5_->finalize(context) : v4_->finalize(context); }

unsigned Plugin::mask() const { return static_cast<unsigned>(std::atomic_ref<int>{const_cast<int&>(mask_)}.load()); }

}  // namespace standin::nccl
