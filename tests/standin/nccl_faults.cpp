// Faults: reading them from the environment, counting calls, and failing.
#include "nccl_faults.hpp"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace standin::nccl {
namespace {

struct Fault {
    std::string kind;
    std::map<std::string, long long, std::less<>> numbers;

    [[nodiscard]] long long number(std::string_view name, long long otherwise) const {
        const auto found = numbers.find(name);
        return found == numbers.end() ? otherwise : found->second;
    }
    [[nodiscard]] bool concerns(int rank, long long call) const {
        const long long every = number("every", 0);
        return number("rank", rank) == rank && number("call", call) == call && (every == 0 || call % every == 0);
    }
};

std::vector<std::string_view> split(std::string_view text, char by) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(by), text.size());
        parts.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

[[noreturn]] void refuse(std::string_view text) {
    std::fprintf(stderr, "STANDIN_FAULT: cannot read \"%.*s\"\n", static_cast<int>(text.size()), text.data());
    std::abort();
}

Fault parse_fault(std::string_view text) {
    static constexpr std::string_view kinds[] = {"sleep", "hang",     "exit",    "signal",
                                                 "error", "gpusleep", "gpuhang", "wrong"};
    static constexpr std::string_view names[] = {"rank", "call", "every", "us", "element", "code", "signal"};
    Fault fault;
    for (const std::string_view part : split(text, ',')) {
        const std::size_t sign = std::min(part.find('='), part.size());
        const std::string_view name = part.substr(0, sign);
        const std::string_view value = part.substr(std::min(sign + 1, part.size()));
        if (name == "kind") {
            fault.kind = value;
            continue;
        }
        long long number = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        const bool is_number = error == std::errc{} && end == value.data() + value.size() && number >= 0;
        if (!is_number || std::find(std::begin(names), std::end(names), name) == std::end(names)) {
            refuse(part);
        }
        fault.numbers.emplace(name, number);
    }
    if (std::find(std::begin(kinds), std::end(kinds), fault.kind) == std::end(kinds)) {
        refuse(text);
    }
    return fault;
}

std::vector<Fault> faults_from_environment() {
    std::vector<Fault> faults;
    const char* const text = std::getenv("STANDIN_FAULT");
    for (const std::string_view part : split(text == nullptr ? "" : text, ';')) {
        faults.push_back(parse_fault(part));
    }
    return faults;
}

struct Calls {
    std::mutex mutex;
    std::map<int, long long> of_rank;
    const std::vector<Fault> faults = faults_from_environment();
};

void strike(const Fault& fault, StreamFault& on_stream) {
    if (fault.kind == "sleep") {
        std::this_thread::sleep_for(std::chrono::microseconds{fault.number("us", 0)});
    } else if (fault.kind == "hang") {
        while (true) {
            ::pause();
        }
    } else if (fault.kind == "exit") {
        std::_Exit(static_cast<int>(fault.number("code", 1)));
    } else if (fault.kind == "signal") {
        std::raise(static_cast<int>(fault.number("signal", SIGSEGV)));
    } else if (fault.kind == "error") {
        throw Problem{system_error, "Call to recv from 192.0.2.1<1> failed : Connection reset by peer"};
    } else if (fault.kind == "gpusleep") {
        on_stream.sleep_us += fault.number("us", 0);
    } else if (fault.kind == "gpuhang") {
        on_stream.hangs = true;
    } else {
        on_stream.wrong_element = static_cast<std::size_t>(fault.number("element", 0));
    }
}

}  // namespace

StreamFault count_call(int world_rank) {
    auto& calls = forever<Calls>();
    long long call = 0;
    {
        const std::scoped_lock lock{calls.mutex};
        call = ++calls.of_rank[world_rank];
    }
    StreamFault on_stream;
    for (const Fault& fault : calls.faults) {
        if (fault.concerns(world_rank, call)) {
            strike(fault, on_stream);
        }
    }
    return on_stream;
}

}  // namespace standin::nccl
