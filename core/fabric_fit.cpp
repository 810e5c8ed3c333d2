#include "fabric_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "leaf_terms.hpp"
#include "median_polish.hpp"

namespace busbw {

namespace {

constexpr int most_sweeps = 4;
// What moves no term by more than this ends the sweeps: a fiftieth of what is told at all, 5 %.
constexpr double settled = 1e-3;
// A term of a rail or a round needs so many tests.
constexpr std::size_t least_of_a_group = 6;
// Of so few endpoints each is in a quarter of all tests or more.
constexpr std::size_t few_endpoints = 8;

std::size_t count_of(std::span<const std::int32_t> numbers) {
    return numbers.empty() ? 0 : static_cast<std::size_t>(std::max(std::ranges::max(numbers), -1)) + 1;
}

void check(bool holds, const std::string& what) {
    if (!holds) {
        throw std::invalid_argument(what);
    }
}

void check_columns(const PairColumns& tests, const Standing& standing, std::span<const double> residuals) {
    const std::size_t count = tests.logs.size();
    check(count <= std::numeric_limits<Position>::max(), std::to_string(count) + " tests are more than 4294967295");
    check(tests.senders.size() == count && tests.receivers.size() == count && tests.rounds.size() == count &&
              tests.kinds.size() == count && residuals.size() == count,
          "the columns of " + std::to_string(count) + " tests differ in length");
    check(standing.leaves.size() == standing.rails.size(), "leaves and rails differ in length");
    const auto endpoints = static_cast<std::int32_t>(standing.leaves.size());
    const auto bad = [&](std::int32_t end) { return end < 0 || end >= endpoints; };
    check(std::ranges::none_of(tests.senders, bad) && std::ranges::none_of(tests.receivers, bad),
          "a test names an endpoint beyond the " + std::to_string(endpoints) + " there are");
    const auto negative = [](std::int32_t number) { return number < 0; };
    check(std::ranges::none_of(tests.rounds, negative) && std::ranges::none_of(tests.kinds, negative) &&
              std::ranges::none_of(standing.rails, negative),
          "rounds, hop classes and rails are numbers from 0");
}

// The tests with a value, and their columns.
struct Kept {
    std::vector<Position> numbers;
    std::vector<double> values;
};

Kept kept_of(std::span<const double> logs) {
    Kept found;
    found.numbers.reserve(logs.size());
    found.values.reserve(logs.size());
    for (std::size_t at = 0; at < logs.size(); ++at) {
        if (std::isfinite(logs[at])) {
            found.numbers.push_back(static_cast<Position>(at));
            found.values.push_back(logs[at]);
        }
    }
    check(!found.values.empty(), "no test has a value");
    return found;
}

// Groups of the kept tests, by a key of each.
template <class KeyOf>
Groups grouped(const Kept& kept, std::size_t count, KeyOf key_of) {
    std::vector<std::int32_t> keys(kept.numbers.size());
    std::vector<Position> at(kept.numbers.size());
    for (std::size_t entry = 0; entry < keys.size(); ++entry) {
        keys[entry] = key_of(kept.numbers[entry]);
        at[entry] = static_cast<Position>(entry);
    }
    return Groups{keys, at, count};
}

// Groups by endpoint of tests without a direction: each test is of both of its ends.
Groups of_both_ends(const PairColumns& tests, const Kept& kept, std::size_t endpoints) {
    std::vector<std::int32_t> keys;
    std::vector<Position> at;
    keys.reserve(2 * kept.numbers.size());
    at.reserve(2 * kept.numbers.size());
    for (std::size_t entry = 0; entry < kept.numbers.size(); ++entry) {
        for (const std::int32_t end : {tests.senders[kept.numbers[entry]], tests.receivers[kept.numbers[entry]]}) {
            keys.push_back(end);
            at.push_back(static_cast<Position>(entry));
        }
    }
    return Groups{keys, at, endpoints};
}

Leaves leaves_of(const PairColumns& tests, std::span<const std::int32_t> leaf_of, const Kept& kept, std::size_t kinds,
                 bool twoway) {
    const std::size_t leaves = count_of(leaf_of);
    std::vector<Leaves::Cell> cells;
    std::unordered_map<std::size_t, std::int32_t> numbers;
    std::vector<std::int32_t> keys;
    std::vector<Position> at;
    std::size_t last = std::numeric_limits<std::size_t>::max();
    for (std::size_t entry = 0; entry < kept.numbers.size(); ++entry) {
        const Position test = kept.numbers[entry];
        const std::int32_t from = leaf_of[static_cast<std::size_t>(tests.senders[test])];
        const std::int32_t to = leaf_of[static_cast<std::size_t>(tests.receivers[test])];
        if (from < 0 || to < 0 || from == to) {
            continue;
        }
        const Leaves::Cell cell{static_cast<std::size_t>(from), static_cast<std::size_t>(to),
                                static_cast<std::size_t>(tests.kinds[test])};
        const std::size_t key = (cell.from * leaves + cell.to) * kinds + cell.kind;
        // Neighbours in a table are mostly of one cell.
        if (key != last) {
            const auto [found, added] = numbers.try_emplace(key, static_cast<std::int32_t>(cells.size()));
            if (added) {
                cells.push_back(cell);
            }
            last = key;
            keys.push_back(found->second);
        } else {
            keys.push_back(keys.back());
        }
        at.push_back(static_cast<Position>(entry));
    }
    Groups members{keys, at, cells.size()};
    return Leaves{std::move(cells), std::move(members), leaves, kinds, twoway};
}

// Begins the terms of few endpoints with those that fit all of them together, each a leaf of its own: one of four is in
// half of the tests between them, where medians taken in turn stop before the right answer.
void begin_together(Polish& polish, const PairColumns& tests, const Kept& kept, std::size_t kinds, Groups& senders,
                    Groups* receivers) {
    std::vector<std::int32_t> own(senders.size());
    std::iota(own.begin(), own.end(), 0);
    Leaves ends = leaves_of(tests, own, kept, kinds, receivers == nullptr);
    ends.take(polish, polish.noise(0));
    const std::vector<double> up = ends.up();
    const std::vector<double> down = ends.down();
    for (std::size_t end = 0; end < up.size(); ++end) {
        if (std::isfinite(up[end])) {
            senders.set(end, up[end]);
        }
        if (receivers != nullptr && std::isfinite(down[end])) {
            receivers->set(end, down[end]);
        }
    }
}

// Leaves to rounds only what differs between rounds of one hop class: some rounds are of one class alone.
void centre_rounds(Polish& polish, Groups& rounds, std::size_t kinds) {
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        std::vector<double> those;
        for (std::size_t key = kind; key < rounds.size(); key += kinds) {
            if (rounds.members(key).size() >= least_of_a_group) {
                those.push_back(rounds.term(key));
            }
        }
        if (those.empty()) {
            continue;
        }
        const double middle = median_in_place(those);
        for (std::size_t key = kind; key < rounds.size(); key += kinds) {
            if (middle != 0.0 && rounds.members(key).size() >= least_of_a_group) {
                polish.set(rounds, key, rounds.term(key) - middle);
            }
        }
    }
}

std::vector<std::int64_t> sizes_of(const Groups& groups) {
    std::vector<std::int64_t> found(groups.size());
    for (std::size_t key = 0; key < groups.size(); ++key) {
        found[key] = static_cast<std::int64_t>(groups.members(key).size());
    }
    return found;
}

}  // namespace

FabricTerms fit_fabric(const PairColumns& tests, const Standing& standing, bool twoway, std::span<double> residuals) {
    check_columns(tests, standing, residuals);
    const std::size_t endpoints = standing.leaves.size();
    const std::size_t kinds = count_of(tests.kinds);
    check(count_of(tests.rounds) * kinds <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
          "rounds times hop classes are more than 2147483647");
    Kept kept = kept_of(tests.logs);
    const std::size_t count = kept.values.size();
    Polish polish{std::move(kept.values)};
    Groups hops = grouped(kept, kinds, [&](Position test) { return tests.kinds[test]; });
    Groups rails = grouped(kept, count_of(standing.rails), [&](Position test) {
        return standing.rails[static_cast<std::size_t>(tests.senders[test])];
    });
    Groups rounds = grouped(kept, count_of(tests.rounds) * kinds, [&](Position test) {
        return static_cast<std::int32_t>(static_cast<std::size_t>(tests.rounds[test]) * kinds) + tests.kinds[test];
    });
    Groups senders = twoway ? of_both_ends(tests, kept, endpoints)
                            : grouped(kept, endpoints, [&](Position test) { return tests.senders[test]; });
    std::optional<Groups> receivers;
    if (!twoway) {
        receivers = grouped(kept, endpoints, [&](Position test) { return tests.receivers[test]; });
    }
    Leaves leaves = leaves_of(tests, standing.leaves, kept, kinds, twoway);
    // What there is one of only is in the overall term, or in that of its hop class.
    const bool has_rails = rails.used() > 1;
    const bool has_rounds = rounds.used() > hops.used();
    const std::size_t spent = senders.used() + (receivers ? receivers->used() : 0);
    FabricTerms found;
    if (endpoints <= few_endpoints && !leaves.fitted()) {
        found.overall += polish.centre();
        begin_together(polish, tests, kept, kinds, senders, receivers ? &*receivers : nullptr);
    }
    for (int sweep = 0; sweep < most_sweeps; ++sweep) {
        found.overall += polish.centre();
        polish.take(hops, 1, 0.0, 0.0);
        const double noise = polish.noise(sweep == 0 ? 0 : spent);
        const double times = significance * median_scatter * noise;
        if (has_rails) {
            polish.take(rails, least_of_a_group, least_wide, times);
        }
        leaves.take(polish, noise);
        // Where a leaf of three is bad most tests that cross are slow: their hops are known once its terms are.
        polish.take(hops, 1, 0.0, 0.0);
        if (has_rounds) {
            polish.take(rounds, least_of_a_group, 0.0, times);
            centre_rounds(polish, rounds, kinds);
        }
        polish.take(senders, 1, 0.0, 0.0);
        found.overall += senders.centre() * (twoway ? 2.0 : 1.0);
        if (receivers) {
            polish.take(*receivers, 1, 0.0, 0.0);
            found.overall += receivers->centre();
        }
        if (polish.moved() < settled) {
            break;
        }
    }
    found.noise = polish.noise(spent);
    found.hops = hops.told(1);
    found.rails = rails.told(least_of_a_group);
    found.up = leaves.up();
    found.down = leaves.down();
    for (std::size_t key = 0; key < rounds.size(); ++key) {
        if (rounds.members(key).size() >= least_of_a_group) {
            found.rounds.push_back(
                {static_cast<std::int32_t>(key / kinds), static_cast<std::int32_t>(key % kinds), rounds.term(key)});
        }
    }
    const Groups& second = receivers ? *receivers : senders;
    for (std::size_t end = 0; end < endpoints; ++end) {
        found.senders.push_back(senders.term(end));
        found.receivers.push_back(second.term(end));
    }
    found.sent = sizes_of(senders);
    found.received = sizes_of(second);
    std::ranges::fill(residuals, nothing);
    for (std::size_t entry = 0; entry < count; ++entry) {
        residuals[kept.numbers[entry]] = polish.left()[entry];
    }
    return found;
}

}  // namespace busbw
