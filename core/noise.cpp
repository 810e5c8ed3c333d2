#include "noise.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <exception>
#include <latch>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace busbw {

namespace {

// One multiplication that waits for the one before: neither memory nor the width of the processor matters.
std::uint64_t work(std::uint64_t rounds, std::uint64_t value) noexcept {
    for (std::uint64_t round = 0; round < rounds; ++round) {
        value = value * 6364136223846793005U + 1442695040888963407U;
    }
    return value;
}

// The compiler must believe that somebody reads what was computed.
void keep(std::uint64_t value) noexcept {
    static std::atomic<std::uint64_t> kept;
    kept.store(value, std::memory_order_relaxed);
}

constexpr nanoseconds bin = 250'000;
// Periods from half a millisecond to a tenth of a second: the kernel's tick, and what services do often.
constexpr std::size_t least_lag = 2;
constexpr std::size_t most_lag = 400;
constexpr double least_regularity = 0.1;
constexpr std::uint64_t least_detours = 20;

struct Rhythm {
    nanoseconds period;
    double regularity;
};

// Correlates a row of marks with itself, shifted.
double shifted(std::span<const double> marks, std::size_t lag) {
    return std::inner_product(marks.begin(), marks.end() - static_cast<std::ptrdiff_t>(lag),
                              marks.begin() + static_cast<std::ptrdiff_t>(lag), 0.0);
}

Rhythm rhythm_of(std::span<const std::uint32_t> took, nanoseconds total, nanoseconds limit) {
    std::vector<double> marks(static_cast<std::size_t>(total / bin) + 1, 0.0);
    nanoseconds now = 0;
    for (const std::uint32_t each : took) {
        now += each;
        if (each > limit) {
            marks[static_cast<std::size_t>(now / bin)] = 1.0;
        }
    }
    const double mean = std::reduce(marks.begin(), marks.end()) / static_cast<double>(marks.size());
    for (double& mark : marks) {
        mark -= mean;
    }
    const double whole = shifted(marks, 0);
    const std::size_t last = std::min(most_lag, marks.size() / 4);
    std::vector<double> regularity(last + 2, 0.0);
    for (std::size_t lag = least_lag; lag <= last && whole > 0; ++lag) {
        regularity[lag] = shifted(marks, lag) / whole;
    }
    const double best = *std::ranges::max_element(regularity);
    if (best < least_regularity) {
        return {0, 0.0};
    }
    // Multiples of a period are as regular as the period: the first peak near the highest is meant.
    for (std::size_t lag = least_lag; lag <= last; ++lag) {
        const double here = regularity[lag];
        if (here >= 0.8 * best && here >= regularity[lag - 1] && here >= regularity[lag + 1]) {
            return {static_cast<nanoseconds>(lag) * bin, std::min(here, 1.0)};
        }
    }
    return {0, 0.0};
}

void bind_to(int cpu) {
    cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(cpu) + 1);
    if (set == nullptr) {
        throw std::bad_alloc();
    }
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpu) + 1);
    CPU_ZERO_S(size, set);
    CPU_SET_S(static_cast<std::size_t>(cpu), size, set);
    const int refused = sched_setaffinity(0, size, set);
    const int because = errno;
    CPU_FREE(set);
    if (refused != 0) {
        throw std::system_error(because, std::generic_category(), "cannot work on CPU " + std::to_string(cpu));
    }
}

std::uint64_t preemptions() {
    rusage used{};
    getrusage(RUSAGE_THREAD, &used);
    return static_cast<std::uint64_t>(used.ru_nivcsw);
}

}  // namespace

std::uint64_t rounds_for(nanoseconds quantum) {
    constexpr std::uint64_t tried = 100'000;
    nanoseconds least = std::numeric_limits<nanoseconds>::max();
    for (int attempt = 0; attempt < 50; ++attempt) {
        const nanoseconds before = wall_clock();
        keep(work(tried, static_cast<std::uint64_t>(before)));
        least = std::min(least, wall_clock() - before);
    }
    const double each = static_cast<double>(std::max<nanoseconds>(least, 1)) / static_cast<double>(tried);
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(quantum) / each));
}

std::size_t repeat_work(std::uint64_t rounds, nanoseconds duration, std::span<std::uint32_t> took) noexcept {
    constexpr nanoseconds longest = std::numeric_limits<std::uint32_t>::max();
    std::size_t repeats = 0;
    std::uint64_t value = 1;
    nanoseconds before = wall_clock();
    const nanoseconds end = before + duration;
    while (repeats < took.size() && before < end) {
        value = work(rounds, value);
        const nanoseconds now = wall_clock();
        took[repeats++] = static_cast<std::uint32_t>(std::min(now - before, longest));
        before = now;
    }
    keep(value);
    return repeats;
}

NoiseOfProcessor summary_of(int cpu, std::span<const std::uint32_t> took, std::uint64_t preempted) {
    if (took.empty()) {
        throw std::invalid_argument("CPU " + std::to_string(cpu) + " did nothing");
    }
    std::vector<std::uint32_t> sorted(took.begin(), took.end());
    std::ranges::sort(sorted);
    const auto at = [&](double share) {
        const auto place = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
        return static_cast<nanoseconds>(sorted[std::clamp<std::size_t>(place, 1, sorted.size()) - 1]);
    };
    NoiseOfProcessor found{.cpu = cpu,
                           .repeats = took.size(),
                           .total = std::accumulate(took.begin(), took.end(), nanoseconds{0}),
                           .least = sorted.front(),
                           .median = at(0.5),
                           .p99 = at(0.99),
                           .p999 = at(0.999),
                           .most = sorted.back(),
                           .limit = 0,
                           .detours = 0,
                           .detoured = 0,
                           .period = 0,
                           .regularity = 0.0,
                           .preempted = preempted,
                           .excess = std::vector<std::uint64_t>(33, 0)};
    // Beyond the scatter of the middle half, and beyond what the clock's own steps make.
    found.limit = found.median + std::max<nanoseconds>(1'000, 4 * (at(0.75) - at(0.25)));
    for (const std::uint32_t each : took) {
        ++found.excess[static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(each - sorted.front())))];
        if (each > found.limit) {
            ++found.detours;
            found.detoured += each - found.median;
        }
    }
    if (found.detours >= least_detours) {
        const Rhythm rhythm = rhythm_of(took, found.total, found.limit);
        found.period = rhythm.period;
        found.regularity = rhythm.regularity;
    }
    return found;
}

std::vector<NoiseOfProcessor> noise_on(const std::vector<int>& cpus, nanoseconds quantum, nanoseconds duration) {
    if (cpus.empty() || quantum <= 0 || duration <= 0) {
        throw std::invalid_argument("no processor, or no time to work");
    }
    const std::uint64_t rounds = rounds_for(quantum);
    const auto room = static_cast<std::size_t>(2 * (duration / quantum) + 16);
    std::vector<NoiseOfProcessor> found(cpus.size());
    std::vector<std::exception_ptr> failed(cpus.size());
    std::atomic<bool> is_given_up = false;
    {
        std::vector<std::jthread> threads;
        threads.reserve(cpus.size());
        std::latch start(1);
        const auto on_one = [&](std::size_t place) {
            try {
                bind_to(cpus[place]);
                std::vector<std::uint32_t> took(room);
                start.wait();
                if (is_given_up.load()) {
                    return;
                }
                const std::uint64_t before = preemptions();
                const std::size_t repeats = repeat_work(rounds, duration, took);
                const std::uint64_t preempted = preemptions() - before;
                found[place] = summary_of(cpus[place], std::span(took).first(repeats), preempted);
            } catch (...) {
                failed[place] = std::current_exception();
            }
        };
        try {
            for (std::size_t place = 0; place < cpus.size(); ++place) {
                threads.emplace_back(on_one, place);
            }
        } catch (...) {
            is_given_up.store(true);
            start.count_down();
            throw;
        }
        start.count_down();
    }
    for (const std::exception_ptr& each : failed) {
        if (each) {
            std::rethrow_exception(each);
        }
    }
    return found;
}

}  // namespace busbw
