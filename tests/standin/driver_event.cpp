// Events: points in a stream that others wait for, with the time when the stream came by.
#include <chrono>
#include <condition_variable>
#include <optional>

#include "driver_stream.hpp"

namespace standin {
namespace {

constexpr unsigned disable_timing = 2;
using Clock = std::chrono::steady_clock;

// One recording of an event. What waits for it keeps it when the event is recorded again.
struct Recording {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Clock::time_point> reached;
    std::shared_ptr<Capture>
        capture;  // set when it was made in a stream that captures: then it is an edge, never a time

    void reach() {
        const std::scoped_lock lock{mutex};
        reached = Clock::now();
        changed.notify_all();
    }
    void wait() {
        std::unique_lock lock{mutex};
        changed.wait(lock, [&] { return reached.has_value(); });
    }
    [[nodiscard]] std::optional<Clock::time_point> time() {
        const std::scoped_lock lock{mutex};
        return reached;
    }
};

struct Event {
    Context& context;
    const bool has_time;
    std::mutex mutex;
    std::shared_ptr<Recording> last;

    [[nodiscard]] std::shared_ptr<Recording> recording() {
        const std::scoped_lock lock{mutex};
        return last;
    }
};

std::shared_ptr<Event> event_of(const Event* handle) { return handles<Event>().get(handle); }

std::shared_ptr<Recording> timed_recording(const Event* handle) {
    const auto event = event_of(handle);
    const auto recording = event->recording();
    require(event->has_time && recording != nullptr, invalid_handle);
    require(recording->capture == nullptr, capture_unsupported);
    return recording;
}

}  // namespace

STANDIN_API Result cuEventCreate(Event** event, unsigned flags) {
    return answer([&] {
        require(event != nullptr, invalid_value);
        *event = handles<Event>().add(std::make_shared<Event>(current_context(), (flags & disable_timing) == 0));
    });
}

STANDIN_API Result cuEventDestroy_v2(Event* event) {
    return answer([&] { handles<Event>().remove(event); });
}

STANDIN_API long standinEvents() { return static_cast<long>(handles<Event>().count()); }

STANDIN_API Result cuEventRecord(Event* handle, Stream* stream_handle) {
    return answer([&] {
        const auto event = event_of(handle);
        const auto stream = stream_of(stream_handle);
        require(&event->context == &stream->context, invalid_handle);
        const auto recording = std::make_shared<Recording>();
        recording->capture = stream->capture();
        if (!recording->capture) {
            stream->enqueue([recording] { recording->reach(); });
        }
        const std::scoped_lock lock{event->mutex};
        event->last = recording;
    });
}

STANDIN_API Result cuStreamWaitEvent(Stream* stream_handle, Event* handle, unsigned) {
    return answer([&] {
        const auto stream = stream_of(stream_handle);
        const auto recording = event_of(handle)->recording();
        if (!recording) {
            return;
        }
        if (!recording->capture) {
            require(!stream->capture(), capture_unsupported);
            stream->enqueue([recording] { recording->wait(); });
        } else if (stream->capture() != recording->capture) {
            require(!recording->capture->ended, invalid_value);
            stream->begin_capture(recording->capture);  // the waiting stream joins: its work goes into the same graph
        }
    });
}

STANDIN_API Result cuEventSynchronize(Event* handle) {
    return answer([&] {
        const auto recording = event_of(handle)->recording();
        if (recording) {
            require(!recording->capture, capture_unsupported);
            recording->wait();
        }
    });
}

STANDIN_API Result cuEventQuery(Event* handle) {
    return answer([&] {
        const auto recording = event_of(handle)->recording();
        if (recording) {
            require(!recording->capture, capture_unsupported);
            require(recording->time().has_value(), not_ready);
        }
    });
}

STANDIN_API Result cuEventElapsedTime(float* time_ms, Event* from, Event* to) {
    return answer([&] {
        const auto start = timed_recording(from)->time();
        const auto end = timed_recording(to)->time();
        require(start.has_value() && end.has_value(), not_ready);
        *time_ms = std::chrono::duration<float, std::milli>(*end - *start).count();
    });
}

STANDIN_API Result cuEventElapsedTime_v2(float* time_ms, Event* from, Event* to) {
    return cuEventElapsedTime(time_ms, from, to);
}

}  // namespace standin
