// Streams: queues of work, each emptied in order by its own thread, or written down for a graph while they capture.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "driver_device.hpp"

namespace standin {

using Work = std::function<void()>;

// Work in an order in which it may be done; more than one stream may have added to it.
struct Graph {
    std::vector<Work> work;
};

enum class CaptureMode : int { global = 0, thread_local_only = 1, relaxed = 2 };

struct Capture {
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
    std::atomic<bool> invalidated = false;
    std::atomic<bool> ended = false;
};

class __attribute__((visibility("default"))) Stream {
   public:
    // `waits_for_default` as of streams made without CU_STREAM_NON_BLOCKING: the default stream's copies wait for them.
    Stream(Context& context, bool waits_for_default);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Adds `work` to the queue, or to the graph that is being captured.
    void enqueue(Work work);
    // Returns when all that was added so far is done.
    void synchronize();
    [[nodiscard]] bool idle();

    void begin_capture(std::shared_ptr<Capture> capture);
    std::shared_ptr<Capture> end_capture();
    [[nodiscard]] std::shared_ptr<Capture> capture();

    Context& context;
    const bool waits_for_default;

   private:
    struct Queue {
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<Work> work;
        std::uint64_t added = 0;
        std::uint64_t done = 0;
        bool closing = false;
    };
    static void drain(const std::shared_ptr<Queue>& queue);

    // The thread shares it: a destroyed stream does what it was given.
    std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
    std::shared_ptr<Capture> capture_;
};

// The stream behind a handle; throws invalid_handle, also for the default stream, which does not exist here.
__attribute__((visibility("default"))) std::shared_ptr<Stream> stream_of(const Stream* handle);

// What launching a kernel costs the calling thread.
__attribute__((visibility("default"))) void take_time_to_launch();

// Throws capture_unsupported while a stream captures in a mode that forbids this thread what cannot be captured.
void require_no_capture();

// Waits for the streams of `context` that the default stream waits for.
void synchronize_default(const Context& context);

// Waits for all streams of device `device`.
void synchronize_device(int device);

}  // namespace standin
