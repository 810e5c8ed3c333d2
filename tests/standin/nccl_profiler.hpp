// What one communicator tells the profiler plugin about its launches. Versions before 2.23 have no profiler.
#pragma once

#include <array>
#include <span>
#include <string>

#include "nccl_task.hpp"

namespace standin::nccl {

class Profiler {
   public:
    // Loads the plugin if it is not, and tells it about a communicator.
    void start(const std::string& name, std::uint64_t id, int rank, int ranks);
    // Tells it about a group that is launched now. As in NCCL, events end when the launch does, not when the data is
    // there, and what a graph captures is not told.
    void launch(std::span<const Task> tasks, Stream* stream);
    void finish();

   private:
    int rank_ = 0;
    int ranks_ = 0;
    bool active_ = false;
    void* context_ = nullptr;
    std::array<std::uint64_t, 16> calls_{};
};

}  // namespace standin::nccl
