// What NCCL prints on standard output, and the text of its errors.
#include <strings.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "nccl.hpp"

namespace standin::nccl {
namespace {

enum class Level { none, version_only, warnings, information };

Level level() {
    const char* const text = std::getenv("NCCL_DEBUG");
    if (text == nullptr) {
        return Level::none;
    }
    if (strcasecmp(text, "VERSION") == 0) {
        return Level::version_only;
    }
    if (strcasecmp(text, "WARN") == 0) {
        return Level::warnings;
    }
    const bool all = strcasecmp(text, "INFO") == 0 || strcasecmp(text, "TRACE") == 0;
    return all ? Level::information : Level::none;
}

struct LastError {
    std::mutex mutex;
    std::string text;
};

std::string version_line() {
    return "NCCL version " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100) + "+cuda13.0";
}

void print(int device, const char* kind, const std::string& text) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    std::printf("%s:%d:%d [%d] NCCL %s %s\n", host, ::getpid(), ::gettid(), device, kind, text.c_str());
    std::fflush(stdout);
}

}  // namespace

void warn(int device, const std::string& text) {
    {
        auto& last = forever<LastError>();
        const std::scoped_lock lock{last.mutex};
        last.text = text;
    }
    if (level() >= Level::warnings) {
        print(device, "WARN", text);
    }
}

void inform(int device, const std::string& text) {
    if (level() >= Level::information) {
        print(device, "INFO", text);
    }
}

void show_version(int rank, int device) {
    static std::once_flag shown;
    const bool all_ranks = level() == Level::information;
    if (!all_ranks && (level() == Level::none || rank != 0)) {
        return;
    }
    std::call_once(shown, [&] {
        if (all_ranks) {
            print(device, "INFO", version_line());
        } else {
            std::printf("%s\n", version_line().c_str());
            std::fflush(stdout);
        }
    });
}

STANDIN_API Status ncclGetVersion(int* code) {
    return reply([&] {
        expect(code != nullptr, invalid_argument, "GetVersion : version argument is NULL");
        *code = version;
    });
}

STANDIN_API const char* ncclGetErrorString(int status) {
    switch (status) {
        case ok: return "no error";
        case unhandled_cuda_error: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
        case system_error: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
        case internal_error: return "internal error - please report this issue to the NCCL developers";
        case invalid_argument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
        case invalid_usage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
        case remote_error: return "remote process exited or there was a network error";
        case in_progress: return "NCCL operation in progress";
        default: return "unknown result code";
    }
}

// As in NCCL, the text is the process's last, whatever the communicator; it holds until this thread asks again.
STANDIN_API const char* ncclGetLastError(void*) {
    thread_local std::string text;
    auto& last = forever<LastError>();
    const std::scoped_lock lock{last.mutex};
    text = last.text;
    return text.c_str();
}

}  // namespace standin::nccl
