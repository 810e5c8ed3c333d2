#include "schedule_steps.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace busbw {

namespace {

constexpr std::uint64_t most_updates = 50'000'000'000;
// What differs less, as a share of all time so far, differs by rounding only.
constexpr double rounding = 1e-14;
// Of the mean round: what moves faster by less does not move faster.
constexpr double same_slope = 1e-9;
constexpr std::uint64_t first_look = 64;

void check_rounds(std::uint64_t rounds, std::size_t operations) {
    if (rounds < 1 || operations < 1 || rounds > most_updates / operations) {
        throw std::invalid_argument(std::to_string(rounds) + " rounds of " + std::to_string(operations) +
                                    " operations");
    }
}

// The distance round the ring to the operation that each waits for, where each waits for one alone, of the round
// before.
std::optional<std::size_t> ring_shift(const Schedule& schedule) {
    const std::size_t size = schedule.size();
    std::optional<std::size_t> shift;
    for (std::size_t at = 0; at < size; ++at) {
        const std::vector<Wait>& waits = schedule.waits()[at];
        if (waits.size() != 1 || waits[0].lag != 1) {
            return std::nullopt;
        }
        const std::size_t own = (at + size - waits[0].source) % size;
        if (shift.value_or(own) != own) {
            return std::nullopt;
        }
        shift = own;
    }
    return shift;
}

using Round = void(const double* from, const double* peers, const double* own, const double* passed, double* to,
                   std::size_t count);

[[gnu::always_inline]] inline void one_round(const double* from, const double* peers, const double* own,
                                             const double* passed, double* to, std::size_t count) {
    for (std::size_t at = 0; at < count; ++at) {
        const double mine = from[at] + own[at];
        const double theirs = peers[at] + passed[at];
        to[at] = mine < theirs ? theirs : mine;
    }
}

void narrow_round(const double* from, const double* peers, const double* own, const double* passed, double* to,
                  std::size_t count) {
    one_round(from, peers, own, passed, to, count);
}

#if defined(__x86_64__)
// The same sums and maxima, four at a time instead of two.
[[gnu::target("avx2")]] void wide_round(const double* from, const double* peers, const double* own,
                                        const double* passed, double* to, std::size_t count) {
    one_round(from, peers, own, passed, to, count);
}

Round* round_here() { return __builtin_cpu_supports("avx2") != 0 ? wide_round : narrow_round; }
#else
Round* round_here() { return narrow_round; }
#endif

// Each operation waits for the one `shift` before it, of the round before.
class Ring {
   public:
    Ring(const Schedule& schedule, std::size_t shift)
        : size_{schedule.size()},
          shift_{shift},
          own_(size_ + deep),
          passed_(size_ + deep),
          ends_(size_ + deep),
          next_(size_ + deep) {
        for (std::size_t at = 0; at < size_ + deep; ++at) {
            const std::size_t each = (at + deep * size_ - deep) % size_;
            own_[at] = schedule.seconds()[each];
            passed_[at] = schedule.waits()[each][0].latency_s + own_[at];
        }
        // The first round waits for nothing.
        ends_ = own_;
    }

    void run(std::uint64_t rounds) {
        while (rounds > 0) {
            const bool tiled = shift_ == 1 && rounds >= deep && size_ > 2 * wide;
            if (tiled) {
                for (std::size_t begin = 0; begin < size_; begin += wide) {
                    tile(begin, std::min(wide, size_ - begin));
                }
            } else {
                const std::size_t turned = size_ - shift_;
                part(deep, deep + turned, shift_);
                part(deep + shift_, deep, turned);
            }
            std::swap(ends_, next_);
            std::copy_n(ends_.end() - deep, size_ >= deep ? deep : 0, ends_.begin());
            rounds -= tiled ? deep : 1;
        }
    }
    [[nodiscard]] double end() const { return *std::max_element(ends_.begin() + deep, ends_.end()); }

   private:
    // A tile is brought so many rounds on while it is in the nearest cache, from as many more of its predecessors. The
    // last so many stand before the first in each column.
    static constexpr std::size_t deep = 16, wide = 512;

    void part(std::size_t at, std::size_t peer, std::size_t count) {
        round_(&ends_[at], &ends_[peer], &own_[at], &passed_[at], &next_[at], count);
    }

    void tile(std::size_t begin, std::size_t count) {
        std::array<std::array<double, deep + wide>, 2> turns;
        const std::size_t whole = deep + count;
        std::copy_n(&ends_[begin], whole, turns[0].begin());
        for (std::size_t round = 1; round <= deep; ++round) {
            const double* from = turns[(round - 1) % 2].data();
            round_(from + round, from + round - 1, &own_[begin + round], &passed_[begin + round],
                   turns[round % 2].data() + round, whole - round);
        }
        std::copy_n(turns[deep % 2].begin() + deep, count, &next_[begin + deep]);
    }

    Round* round_ = round_here();
    std::size_t size_;
    std::size_t shift_;
    std::vector<double> own_;
    std::vector<double> passed_;
    std::vector<double> ends_;
    std::vector<double> next_;
};

// Any schedule: the ends of as many rounds are kept as anything waits for.
class Recurrence {
   public:
    explicit Recurrence(const Schedule& schedule) : size_{schedule.size()} {
        const std::vector<std::uint32_t> order = order_of(schedule);
        std::vector<std::uint32_t> places(size_);
        for (std::uint32_t at = 0; at < size_; ++at) {
            places[order[at]] = at;
        }
        std::uint32_t most = 1;
        begins_.push_back(0);
        for (const std::uint32_t each : order) {
            own_.push_back(schedule.seconds()[each]);
            for (const Wait& wait : schedule.waits()[each]) {
                waits_.push_back({places[wait.source], wait.lag, wait.latency_s});
                most = std::max(most, wait.lag);
            }
            begins_.push_back(waits_.size());
        }
        if (size_ > most_kept / (most + 1U)) {
            throw std::invalid_argument("waits over " + std::to_string(most) + " rounds of " + std::to_string(size_) +
                                        " operations");
        }
        kept_.resize(most + 1U, std::vector<double>(size_, 0.0));
    }

    void step() {
        std::vector<double>& now = row(round_);
        const std::vector<double>& last = row(round_ + kept_.size() - 1);
        for (std::size_t at = 0; at < size_; ++at) {
            double end = round_ > 0 ? last[at] : 0.0;
            for (const Wait& each : waits_of(at)) {
                if (each.lag <= round_) {
                    end = std::max(end, row(round_ + kept_.size() - each.lag)[each.source] + each.latency_s);
                }
            }
            now[at] = end + own_[at];
        }
        ++round_;
    }
    [[nodiscard]] double end() const { return *std::ranges::max_element(row(round_ + kept_.size() - 1)); }
    [[nodiscard]] std::uint64_t rounds() const { return round_; }
    [[nodiscard]] std::size_t kept() const { return kept_.size(); }

    // How much later each operation ends with each round, where that has not changed over the rounds that are kept and
    // will not: the latest of what it waits for is also the one that moves fastest. Else nothing.
    [[nodiscard]] std::optional<std::vector<double>> slopes() const {
        if (round_ <= kept_.size()) {
            return std::nullopt;
        }
        const std::vector<double>& last = row(round_ + kept_.size() - 1);
        std::vector<double> slopes(size_);
        const std::vector<double>& before = row(round_ + kept_.size() - 2);
        for (std::size_t at = 0; at < size_; ++at) {
            slopes[at] = last[at] - before[at];
        }
        for (std::size_t back = 1; back + 1 < kept_.size(); ++back) {
            const std::vector<double>& one = row(round_ + kept_.size() - 1 - back);
            const std::vector<double>& other = row(round_ + kept_.size() - 2 - back);
            for (std::size_t at = 0; at < size_; ++at) {
                if (std::abs(one[at] - other[at] - slopes[at]) > rounding * last[at]) {
                    return std::nullopt;
                }
            }
        }
        for (std::size_t at = 0; at < size_; ++at) {
            if (!holds(at, slopes, last)) {
                return std::nullopt;
            }
        }
        return slopes;
    }
    // The latest end `more` rounds on.
    [[nodiscard]] double end_after(double more, std::span<const double> slopes) const {
        const std::vector<double>& last = row(round_ + kept_.size() - 1);
        double end = 0.0;
        for (std::size_t at = 0; at < size_; ++at) {
            end = std::max(end, last[at] + more * slopes[at]);
        }
        return end;
    }

   private:
    static constexpr std::size_t most_kept = 100'000'000;

    [[nodiscard]] std::vector<double>& row(std::uint64_t round) { return kept_[round % kept_.size()]; }
    [[nodiscard]] const std::vector<double>& row(std::uint64_t round) const { return kept_[round % kept_.size()]; }
    [[nodiscard]] std::span<const Wait> waits_of(std::size_t at) const {
        return std::span(waits_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
    }

    // Nothing that an operation waits for moves faster than the operation itself: a later crossing cannot be.
    [[nodiscard]] bool holds(std::size_t at, std::span<const double> slopes, std::span<const double> last) const {
        const double least = slopes[at] + same_slope * last[at] / static_cast<double>(round_);
        return std::ranges::all_of(waits_of(at), [&](const Wait& each) { return slopes[each.source] <= least; });
    }

    std::size_t size_;
    std::vector<double> own_;
    std::vector<Wait> waits_;
    std::vector<std::size_t> begins_;
    std::vector<std::vector<double>> kept_;
    std::uint64_t round_ = 0;
};

}  // namespace

StepsResult time_steps(const Schedule& schedule, std::uint64_t rounds, bool skips) {
    check_rounds(rounds, schedule.size());
    if (const std::optional<std::size_t> shift = ring_shift(schedule); shift.has_value()) {
        Ring ring{schedule, *shift};
        ring.run(rounds - 1);
        return {ring.end(), rounds, schedule.size()};
    }
    Recurrence all{schedule};
    std::uint64_t look = std::max<std::uint64_t>(first_look, 2 * all.kept());
    while (all.rounds() < rounds) {
        all.step();
        if (skips && all.rounds() == look && look < rounds) {
            if (const auto slopes = all.slopes(); slopes.has_value()) {
                return {all.end_after(static_cast<double>(rounds - all.rounds()), *slopes), all.rounds(),
                        schedule.size()};
            }
            look *= 2;
        }
    }
    return {all.end(), rounds, schedule.size()};
}

}  // namespace busbw
