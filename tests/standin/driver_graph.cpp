// Graphs: what a stream was given while it captured, done again and again.
#include <thread>
#include <utility>

#include "driver_stream.hpp"

namespace standin {
namespace {

struct Executable {
    std::shared_ptr<const Graph> graph;
};

// The one that began it, and where it was begun.
struct Origin {
    const Stream* stream;
    CaptureMode mode;
    std::thread::id thread;
    std::shared_ptr<Capture> capture;
};

struct Captures {
    std::mutex mutex;
    std::vector<Origin> origins;
};

void leave_capture(const std::shared_ptr<Capture>& capture) {
    for (const auto& stream : handles<Stream>().all()) {
        if (stream->capture() == capture) {
            stream->end_capture();
        }
    }
}

// Where it is to fail, it does so as after an error while capturing: the stream captures no more.
Result end_capture(Stream* handle, Graph** graph, bool fails) {
    return answer([&] {
        require(graph != nullptr, invalid_value);
        *graph = nullptr;
        const auto capture = stream_of(handle)->capture();
        require(capture != nullptr, illegal_state);
        {
            auto& captures = forever<Captures>();
            const std::scoped_lock lock{captures.mutex};
            require(std::erase_if(captures.origins, [&](const Origin& each) { return each.stream == handle; }) == 1,
                    capture_unmatched);
        }
        leave_capture(capture);
        capture->invalidated = capture->invalidated || fails;
        capture->ended = true;
        require(!capture->invalidated, capture_invalidated);
        *graph = handles<Graph>().add(capture->graph);
    });
}

}  // namespace

void require_no_capture() {
    auto& captures = forever<Captures>();
    const std::scoped_lock lock{captures.mutex};
    for (const auto& origin : captures.origins) {
        const bool mine = origin.thread == std::this_thread::get_id();
        if (origin.mode == CaptureMode::global || (origin.mode == CaptureMode::thread_local_only && mine)) {
            origin.capture->invalidated = true;
            throw Failure{capture_unsupported};
        }
    }
}

STANDIN_API Result cuStreamBeginCapture_v2(Stream* handle, CaptureMode mode) {
    return answer([&] {
        const auto stream = stream_of(handle);
        const auto capture = std::make_shared<Capture>();
        stream->begin_capture(capture);
        auto& captures = forever<Captures>();
        const std::scoped_lock lock{captures.mutex};
        captures.origins.push_back({handle, mode, std::this_thread::get_id(), capture});
    });
}

STANDIN_API Result cuStreamEndCapture(Stream* handle, Graph** graph) {
    return end_capture(handle, graph, is_refused("cuStreamEndCapture"));
}

STANDIN_API Result cuStreamIsCapturing(Stream* handle, int* status) {
    return answer([&] {
        const auto capture = stream_of(handle)->capture();
        *status = capture == nullptr ? 0 : capture->invalidated ? 2 : 1;
    });
}

STANDIN_API Result cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
    thread_local CaptureMode current = CaptureMode::global;
    std::swap(*mode, current);
    return success;
}

STANDIN_API Result cuGraphInstantiateWithFlags(Executable** executable, Graph* graph, unsigned long long) {
    return answer([&] {
        require(executable != nullptr, invalid_value);
        require_no_capture();
        *executable = handles<Executable>().add(
            std::make_shared<Executable>(Executable{std::make_shared<Graph>(*handles<Graph>().get(graph))}));
    });
}

STANDIN_API Result cuGraphUpload(Executable* executable, Stream* stream) {
    return answer([&] {
        handles<Executable>().get(executable);
        stream_of(stream)->enqueue([] {});
    });
}

STANDIN_API Result cuGraphLaunch(Executable* executable, Stream* stream) {
    return answer([&] {
        const auto graph = handles<Executable>().get(executable)->graph;
        stream_of(stream)->enqueue([graph] {
            for (const auto& work : graph->work) {
                work();
            }
        });
    });
}

STANDIN_API Result cuGraphExecDestroy(Executable* executable) {
    return answer([&] { handles<Executable>().remove(executable); });
}

// Graphs, ready ones too.
STANDIN_API long standinGraphs() { return static_cast<long>(handles<Graph>().count() + handles<Executable>().count()); }

STANDIN_API Result cuGraphDestroy(Graph* graph) {
    return answer([&] { handles<Graph>().remove(graph); });
}

}  // namespace standin
