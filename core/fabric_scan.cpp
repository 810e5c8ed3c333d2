#include "fabric_scan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "median_polish.hpp"

namespace busbw {

namespace {

constexpr std::size_t most_ends = 8;

void check_lengths(const PairColumns& tests, std::size_t residuals) {
    if (tests.senders.size() != residuals || tests.receivers.size() != residuals) {
        throw std::invalid_argument("the columns of tests differ in length");
    }
}

// The entry of an endpoint; throws std::out_of_range where there is none.
template <class Value>
Value of(std::span<const Value> values, std::int32_t end) {
    const auto at = static_cast<std::size_t>(end);
    if (end < 0 || at >= values.size()) {
        throw std::out_of_range("endpoint " + std::to_string(end) + " of " + std::to_string(values.size()));
    }
    return values[at];
}

bool leaves_explained(std::span<const std::int32_t> leaves, std::span<const std::uint8_t> explained, std::int32_t one,
                      std::int32_t other) {
    const std::int32_t from = of(leaves, one);
    const std::int32_t to = of(leaves, other);
    return from >= 0 && to >= 0 && from != to && (of(explained, from) != 0 || of(explained, to) != 0);
}

// The least and the most of the tests of an endpoint in a round.
struct Range {
    double least = std::numeric_limits<double>::infinity();
    double most = -std::numeric_limits<double>::infinity();

    void add(double value) {
        least = std::min(least, value);
        most = std::max(most, value);
    }
};

using Rounds = std::unordered_map<std::int32_t, Range>;

// The rounds of those endpoints that have a test slower than `large`: the others cannot be unsteady.
template <class Visit>
std::unordered_map<std::int32_t, Rounds> candidates(std::size_t endpoints, double large, Visit visit) {
    std::vector<std::uint8_t> slow(endpoints, 0);
    visit([&](std::int32_t end, std::int32_t, double value) {
        slow[static_cast<std::size_t>(end)] |= value > large ? 1U : 0U;
    });
    std::unordered_map<std::int32_t, Rounds> found;
    visit([&](std::int32_t end, std::int32_t round, double value) {
        if (slow[static_cast<std::size_t>(end)] != 0) {
            found[end][round].add(value);
        }
    });
    return found;
}

}  // namespace

void log_slowness(std::span<const double> values, bool inverse, std::span<double> logs) {
    if (values.size() != logs.size()) {
        throw std::invalid_argument("values and logarithms differ in length");
    }
    for (std::size_t at = 0; at < values.size(); ++at) {
        const double found = std::log(values[at]);
        logs[at] = inverse ? -found : found;
    }
}

void hop_kinds(const PairColumns& tests, std::span<const std::int32_t> leaves, std::span<const std::int32_t> groups,
               std::span<std::int32_t> kinds) {
    check_lengths(tests, kinds.size());
    for (std::size_t at = 0; at < kinds.size(); ++at) {
        const std::int32_t from = of(leaves, tests.senders[at]);
        const std::int32_t to = of(leaves, tests.receivers[at]);
        if (from < 0 || to < 0) {
            kinds[at] = 3;
        } else if (from == to) {
            kinds[at] = 0;
        } else {
            kinds[at] = of(groups, from) == of(groups, to) ? 1 : 2;
        }
    }
}

std::vector<Unsteady> unsteady(const PairColumns& tests, std::span<const double> residuals, const EndTerms& terms,
                               std::span<const std::int32_t> leaves, std::span<const std::uint8_t> explained,
                               double large, double sound, std::size_t fewest) {
    check_lengths(tests, residuals.size());
    check_lengths(tests, tests.rounds.size());
    const auto visit = [&](auto&& add) {
        for (std::size_t at = 0; at < residuals.size(); ++at) {
            const std::int32_t from = tests.senders[at];
            const std::int32_t to = tests.receivers[at];
            if (!std::isfinite(residuals[at]) || leaves_explained(leaves, explained, from, to)) {
                continue;
            }
            add(from, tests.rounds[at], residuals[at] + of(terms.senders, from));
            add(to, tests.rounds[at], residuals[at] + of(terms.receivers, to));
        }
    };
    std::vector<Unsteady> found;
    for (const auto& [end, rounds] : candidates(leaves.size(), large, visit)) {
        std::vector<double> slow;
        bool any_sound = false;
        for (const auto& [round, range] : rounds) {
            // In a bad round both directions are slow, in a good one none is.
            if (range.least > large) {
                slow.push_back(range.least);
            }
            any_sound = any_sound || range.most < sound;
        }
        if (slow.size() >= fewest && any_sound) {
            found.push_back({end, median_in_place(slow)});
        }
    }
    std::ranges::sort(found, {}, &Unsteady::endpoint);
    return found;
}

std::vector<RegionCell> region_cells(const PairColumns& tests, std::span<const double> residuals,
                                     std::span<const std::int32_t> regions) {
    check_lengths(tests, residuals.size());
    struct Cell {
        std::vector<double> values;
        std::array<std::int32_t, most_ends> ends{};
        std::size_t known = 0;

        void meet(std::int32_t end) {
            const auto last = ends.begin() + static_cast<std::ptrdiff_t>(known);
            if (known < most_ends && std::find(ends.begin(), last, end) == last) {
                ends[known++] = end;
            }
        }
    };
    std::unordered_map<std::uint64_t, Cell> cells;
    for (std::size_t at = 0; at < residuals.size(); ++at) {
        const std::int32_t one = of(regions, tests.senders[at]);
        const std::int32_t other = of(regions, tests.receivers[at]);
        if (!std::isfinite(residuals[at]) || one < 0 || other < 0 || one == other) {
            continue;
        }
        const auto [low, high] = std::minmax(one, other);
        Cell& cell = cells[(static_cast<std::uint64_t>(low) << 32U) | static_cast<std::uint32_t>(high)];
        cell.values.push_back(residuals[at]);
        cell.meet(tests.senders[at]);
        cell.meet(tests.receivers[at]);
    }
    std::vector<RegionCell> found;
    for (auto& [key, cell] : cells) {
        found.push_back({static_cast<std::int32_t>(key >> 32U), static_cast<std::int32_t>(key & 0xFFFFFFFFU),
                         static_cast<std::int64_t>(cell.values.size()), static_cast<std::int32_t>(cell.known),
                         median_in_place(cell.values), std::ranges::min(cell.values)});
    }
    std::ranges::sort(found, {}, [](const RegionCell& cell) { return std::pair{cell.one, cell.other}; });
    return found;
}

Crossings crossings(const PairColumns& tests, std::span<const double> residuals, std::span<const std::int32_t> leaves,
                    double least) {
    check_lengths(tests, residuals.size());
    Crossings found;
    found.by_leaf.resize(leaves.empty() ? 0 : static_cast<std::size_t>(std::max(std::ranges::max(leaves), -1)) + 1);
    for (std::size_t at = 0; at < residuals.size(); ++at) {
        const std::int32_t from = of(leaves, tests.senders[at]);
        const std::int32_t to = of(leaves, tests.receivers[at]);
        if (!std::isfinite(residuals[at]) || from < 0 || to < 0 || from == to) {
            continue;
        }
        ++found.by_leaf[static_cast<std::size_t>(from)];
        ++found.by_leaf[static_cast<std::size_t>(to)];
        if (residuals[at] > least) {
            found.slow.push_back(static_cast<std::uint32_t>(at));
        }
    }
    return found;
}

std::vector<std::uint32_t> tests_of(const PairColumns& tests, std::span<const std::uint8_t> marked) {
    check_lengths(tests, tests.senders.size());
    std::vector<std::uint32_t> found;
    for (std::size_t at = 0; at < tests.senders.size(); ++at) {
        if (of(marked, tests.senders[at]) != 0 || of(marked, tests.receivers[at]) != 0) {
            found.push_back(static_cast<std::uint32_t>(at));
        }
    }
    return found;
}

}  // namespace busbw
