// Reading which calls shall fail, and counting them.
#include "driver_refusals.hpp"

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "driver.hpp"

namespace standin {
namespace {

using CallsLeft = std::map<std::string, int, std::less<>>;

CallsLeft read(std::string_view text) {
    CallsLeft left;
    while (!text.empty()) {
        const std::string_view one = text.substr(0, text.find(';'));
        text.remove_prefix(std::min(one.size() + 1, text.size()));
        const std::size_t sign = std::min(one.find('='), one.size());
        const std::string_view number = one.substr(std::min(sign + 1, one.size()));
        int call = 0;
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), call);
        if (error != std::errc{} || end != number.data() + number.size() || call < 1) {
            std::fprintf(stderr, "STANDIN_REFUSE: cannot read \"%.*s\"\n", static_cast<int>(one.size()), one.data());
            std::abort();
        }
        left.emplace(one.substr(0, sign), call);
    }
    return left;
}

struct Refusals {
    Refusals() {
        const char* const text = std::getenv("STANDIN_REFUSE");
        set(text == nullptr ? "" : text);
    }
    void set(std::string_view text) {
        const std::scoped_lock lock{mutex};
        left = read(text);
        any = !left.empty();
    }

    std::mutex mutex;
    CallsLeft left;
    // Read before the lock is taken: calls are many, and hardly ever is one to fail.
    std::atomic<bool> any = false;
};

}  // namespace

bool is_refused(const char* function) {
    auto& refusals = forever<Refusals>();
    if (!refusals.any) {
        return false;
    }
    const std::scoped_lock lock{refusals.mutex};
    const auto found = refusals.left.find(function);
    return found != refusals.left.end() && --found->second == 0;
}

// Replaces what STANDIN_REFUSE said; calls are counted from now on.
STANDIN_API void standinRefuse(const char* text) { forever<Refusals>().set(text); }

}  // namespace standin
