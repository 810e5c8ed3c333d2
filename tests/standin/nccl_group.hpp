// Groups: calls between ncclGroupStart and ncclGroupEnd happen together at the end, and any other call is a group of
// one.
#pragma once

#include <functional>

#include "nccl_world.hpp"

namespace standin::nccl {

// Work of the calling thread that has to wait for other ranks, such as making a communicator.
struct Job {
    std::shared_ptr<Communicator> communicator;
    std::function<void()> action;
};

void start_group();
// Does what the outermost group holds; throws the first Problem.
void end_group();

// Adds to the group that is open.
void add_job(Job job);
void add_task(const std::shared_ptr<Communicator>& communicator, const Task& task, Stream* stream);

// Runs `action`, which adds to the open group, or makes a group of it. A Problem is also that of the group.
void in_group(const std::function<void()>& action);

}  // namespace standin::nccl
