// Groups, and what happens at their end: jobs in a thread each, then all tasks of a communicator as one launch.
#include "nccl_group.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace standin::nccl {
namespace {

struct Launch {
    std::shared_ptr<Communicator> communicator;
    Stream* stream;
    std::vector<Task> tasks;
};

struct Group {
    int depth = 0;
    std::vector<Job> jobs;
    std::vector<Launch> launches;
    std::optional<Problem> problem;
};

thread_local Group group;

std::optional<Problem> attempt(const Job& job) {
    try {
        job.action();
        job.communicator->state = ok;
        return std::nullopt;
    } catch (const Problem& problem) {
        job.communicator->state = problem.status;
        return problem;
    }
}

// Of communicators that shall not block, the jobs go on by themselves and the caller hears that they are in progress.
void run(const std::vector<Job>& jobs) {
    std::vector<std::optional<Problem>> problems(jobs.size());
    std::vector<std::thread> threads;
    bool goes_on = false;
    for (std::size_t index = 0; index < jobs.size(); ++index) {
        const Job& job = jobs[index];
        if (!job.communicator->config.blocking) {
            job.communicator->state = in_progress;
            std::thread([job] {
                if (const auto problem = attempt(job)) {
                    warn(job.communicator->device, problem->text);
                }
            }).detach();
            goes_on = true;
        } else if (jobs.size() == 1) {
            problems[index] = attempt(job);
        } else {
            threads.emplace_back([&job, &problem = problems[index]] { problem = attempt(job); });
        }
    }
    std::for_each(threads.begin(), threads.end(), [](std::thread& each) { each.join(); });
    for (const auto& problem : problems) {
        if (problem) {
            throw *problem;
        }
    }
    if (goes_on) {
        throw Problem{in_progress, ""};
    }
}

void run_on_stream(Communicator& communicator, const std::vector<Task>& tasks) {
    const std::scoped_lock turn{communicator.on_stream};
    try {
        execute(*communicator.segment, communicator.rank, tasks);
    } catch (const Problem& problem) {
        communicator.state = problem.status;
        warn(communicator.device, problem.text);
    }
}

void launch(const Launch& launch) {
    const auto& communicator = launch.communicator;
    const auto stream = stream_of(launch.stream);
    take_time_to_launch();
    if (stream->capture()) {
        stream->enqueue([communicator, tasks = launch.tasks] { run_on_stream(*communicator, tasks); });
        return;
    }
    communicator->profiler.launch(launch.tasks, launch.stream);
    communicator->begin_work();
    stream->enqueue([communicator, tasks = launch.tasks] {
        run_on_stream(*communicator, tasks);
        communicator->end_work();
    });
}

}  // namespace

void admit(const char* function) {
    if (!is_refused(function)) {
        return;
    }
    const Problem problem{internal_error, std::string{function} + " was told to fail"};
    if (group.depth > 0 && !group.problem) {
        group.problem = problem;
    }
    // Even an end that fails closes its group.
    if (std::string_view{function} != "ncclGroupEnd") {
        throw problem;
    }
}

void start_group() { ++group.depth; }

void end_group() {
    expect(group.depth > 0, invalid_usage, "ncclGroupEnd: not in a group call.");
    if (--group.depth > 0) {
        return;
    }
    const Group whole = std::exchange(group, Group{});
    if (whole.problem) {
        throw *whole.problem;
    }
    run(whole.jobs);
    std::for_each(whole.launches.begin(), whole.launches.end(), launch);
}

void add_job(Job job) { group.jobs.push_back(std::move(job)); }

void add_task(const std::shared_ptr<Communicator>& communicator, const Task& task, Stream* stream) {
    const auto found = std::find_if(group.launches.begin(), group.launches.end(), [&](const Launch& each) {
        return each.communicator == communicator && each.stream == stream;
    });
    if (found != group.launches.end()) {
        found->tasks.push_back(task);
    } else {
        group.launches.push_back({communicator, stream, {task}});
    }
}

void in_group(const std::function<void()>& action) {
    start_group();
    std::optional<Problem> problem;
    try {
        action();
    } catch (const Problem& thrown) {
        problem = thrown;
    } catch (const Failure& failure) {
        problem = problem_of(failure);
    }
    if (problem && !group.problem) {
        group.problem = problem;
    }
    if (problem && group.depth > 1) {
        --group.depth;
        throw *problem;
    }
    end_group();
}

STANDIN_API Status ncclGroupStart() { return reply(start_group); }
STANDIN_API Status ncclGroupEnd() { return reply(end_group); }

// How many groups this thread has open, one in the other.
STANDIN_API long standinOpenGroups() { return group.depth; }

}  // namespace standin::nccl
