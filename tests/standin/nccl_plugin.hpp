// The plugin of this process: loaded with the first communicator, and spoken to in its own version.
#pragma once

#include <string>

#include "nccl_profiler_abi.hpp"

namespace standin::nccl {

class Plugin {
   public:
    // Loads what NCCL_PROFILER_PLUGIN names; without it, or when it cannot be used, the plugin is absent.
    Plugin();
    [[nodiscard]] bool is_there() const { return v5_ != nullptr || v4_ != nullptr; }

    // Returns whether the plugin took the communicator.
    bool init(void** context, std::uint64_t id, const std::string& name, int ranks, int rank);
    void* start(void* context, const EventV5& event);
    void stop(void* handle);
    void record(void* handle, EventState state);
    void finalize(void* context);

    // Which events it wants at the moment.
    [[nodiscard]] unsigned mask() const;

   private:
    const PluginV5* v5_ = nullptr;
    const PluginV4* v4_ = nullptr;
    int mask_ = 0;
};

}  // namespace standin::nccl
