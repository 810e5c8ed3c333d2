// Streams and the memory operations that they can do by themselves.
#include "driver_stream.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "driver_memory.hpp"

namespace standin {

Stream::Stream(Context& of, bool waits) : context{of}, waits_for_default{waits} {
    std::thread([queue = queue_] { drain(queue); }).detach();
}

Stream::~Stream() {
    const std::scoped_lock lock{queue_->mutex};
    queue_->closing = true;
    queue_->changed.notify_all();
}

void Stream::drain(const std::shared_ptr<Queue>& queue) {
    std::unique_lock lock{queue->mutex};
    while (true) {
        queue->changed.wait(lock, [&] { return queue->closing || !queue->work.empty(); });
        if (queue->work.empty()) {
            return;
        }
        const Work work = std::move(queue->work.front());
        queue->work.pop_front();
        lock.unlock();
        work();
        lock.lock();
        ++queue->done;
        queue->changed.notify_all();
    }
}

void Stream::enqueue(Work work) {
    const std::scoped_lock lock{queue_->mutex};
    if (capture_) {
        require(!capture_->invalidated, capture_invalidated);
        capture_->graph->work.push_back(std::move(work));
        return;
    }
    queue_->work.push_back(std::move(work));
    ++queue_->added;
    queue_->changed.notify_all();
}

void Stream::synchronize() {
    std::unique_lock lock{queue_->mutex};
    if (capture_) {
        capture_->invalidated = true;
        throw Failure{capture_unsupported};
    }
    const auto last = queue_->added;
    queue_->changed.wait(lock, [&] { return queue_->done >= last; });
}

bool Stream::idle() {
    const std::scoped_lock lock{queue_->mutex};
    if (capture_) {
        capture_->invalidated = true;
        throw Failure{capture_unsupported};
    }
    return queue_->done == queue_->added;
}

void Stream::begin_capture(std::shared_ptr<Capture> capture) {
    const std::scoped_lock lock{queue_->mutex};
    require(!capture_, illegal_state);
    capture_ = std::move(capture);
}

std::shared_ptr<Capture> Stream::end_capture() {
    const std::scoped_lock lock{queue_->mutex};
    require(capture_ != nullptr, illegal_state);
    return std::move(capture_);
}

std::shared_ptr<Capture> Stream::capture() {
    const std::scoped_lock lock{queue_->mutex};
    return capture_;
}

std::shared_ptr<Stream> stream_of(const Stream* handle) { return handles<Stream>().get(handle); }

void take_time_to_launch() {
    static const std::chrono::microseconds takes{environment_number("STANDIN_LAUNCH_US", 0)};
    if (takes.count() > 0) {
        std::this_thread::sleep_for(takes);
    }
}

void synchronize_default(const Context& context) {
    for (const auto& stream : handles<Stream>().all()) {
        if (&stream->context == &context && stream->waits_for_default) {
            stream->synchronize();
        }
    }
}

void synchronize_device(int device) {
    for (const auto& stream : handles<Stream>().all()) {
        if (stream->context.device == device && !stream->capture()) {
            stream->synchronize();
        }
    }
}

namespace {

constexpr unsigned non_blocking = 1;

enum Comparison : unsigned { greater_or_equal = 0, equal = 1, any_bit = 2, any_zero_bit = 3 };

bool compares(std::uint32_t found, std::uint32_t wanted, unsigned comparison) {
    switch (comparison) {
        case greater_or_equal: return static_cast<std::int32_t>(found - wanted) >= 0;
        case equal: return found == wanted;
        case any_bit: return (found & wanted) != 0;
        default: return ~(found | wanted) != 0;
    }
}

std::atomic_ref<std::uint32_t> word_at(std::uint64_t address) {
    return std::atomic_ref<std::uint32_t>{*reinterpret_cast<std::uint32_t*>(address)};
}

void wait_for(std::uint64_t address, std::uint32_t wanted, unsigned comparison) {
    for (int tries = 0; !compares(word_at(address).load(), wanted, comparison); ++tries) {
        if (tries < 100) {
            std::this_thread::yield();
        } else {
            ::usleep(20);  // whoever writes the word may need this core
        }
    }
}

}  // namespace

STANDIN_API Result cuStreamCreate(Stream** stream, unsigned flags) {
    return answer([&] {
        require(stream != nullptr && flags <= non_blocking, invalid_value);
        *stream = handles<Stream>().add(std::make_shared<Stream>(current_context(), (flags & non_blocking) == 0));
    });
}

STANDIN_API Result cuStreamCreateWithPriority(Stream** stream, unsigned flags, int) {
    return cuStreamCreate(stream, flags);
}

STANDIN_API Result cuStreamDestroy_v2(Stream* stream) {
    return answer([&] { handles<Stream>().remove(stream); });
}

STANDIN_API long standinStreams() { return static_cast<long>(handles<Stream>().count()); }

STANDIN_API long standinCapturingStreams() {
    const auto streams = handles<Stream>().all();
    return std::ranges::count_if(streams, [](const auto& stream) { return stream->capture() != nullptr; });
}

STANDIN_API Result cuStreamSynchronize(Stream* stream) {
    return answer([&] { stream_of(stream)->synchronize(); });
}

STANDIN_API Result cuStreamQuery(Stream* stream) {
    return answer([&] { require(stream_of(stream)->idle(), not_ready); });
}

STANDIN_API Result cuCtxSynchronize() {
    return answer([&] { synchronize_device(current_context().device); });
}

STANDIN_API Result cuStreamWaitValue32_v2(Stream* stream, std::uint64_t address, std::uint32_t value, unsigned flags) {
    return answer([&] {
        require(flags <= any_zero_bit && address % 4 == 0, invalid_value);
        require_known(reinterpret_cast<void*>(address), 4);
        stream_of(stream)->enqueue([=] { wait_for(address, value, flags); });
    });
}

STANDIN_API Result cuStreamWriteValue32_v2(Stream* stream, std::uint64_t address, std::uint32_t value, unsigned flags) {
    return answer([&] {
        require(flags <= 1 && address % 4 == 0, invalid_value);
        require_known(reinterpret_cast<void*>(address), 4);
        stream_of(stream)->enqueue([=] { word_at(address).store(value); });
    });
}

STANDIN_API Result cuLaunchHostFunc(Stream* stream, void (*function)(void*), void* argument) {
    return answer([&] {
        require(function != nullptr, invalid_value);
        stream_of(stream)->enqueue([=] { function(argument); });
    });
}

}  // namespace standin
