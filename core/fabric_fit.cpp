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

namespace busbw {

namespace {

constexpr int most_sweeps = 4;
// What moves no term by more than this ends the sweeps: a fiftieth of what is told at all, 5 %.
constexpr double settled = 1e-3;
// The share of normal values within one scatter, and from where on they are taken for disturbed ones.
constexpr double within_sigma = 0.6827;
constexpr double far_off = 2.5;
// Numerical dust: values of a noiseless table are equal to this.
constexpr double least_noise = 1e-4;
// Scatter of a median over that of a single value, for normal values: sqrt(pi / 2).
constexpr double median_scatter = 1.2533141373155003;
// Terms of rounds, rails and leaves count from so many of their scatters on.
constexpr double significance = 3.0;
// What a rail or a leaf does counts from here on; below it its endpoints carry it. Half of the least effect of 5 %.
constexpr double least_wide = 0.025;
// A term of a rail or a round needs so many tests.
constexpr std::size_t least_of_a_group = 6;
// Of so few endpoints each is in a quarter of all tests or more.
constexpr std::size_t few_endpoints = 8;
// With two leaves every test that crosses is of both.
constexpr std::size_t least_leaves = 3;
// Tests of a pair of leaves that its scatter is told from, at most: a full matrix has hundreds.
constexpr std::size_t most_of_a_cell = 16;
constexpr int reweighted = 25;
constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

using Position = std::uint32_t;

// The scatter of values whose distances from the fit are `off`, which are put in another order: their root mean square,
// none counted for more than 2.5 times what two of three lie within. Their median would not do: terms that are medians
// of few tests leave a fifth of the tests at exactly nothing.
double scatter_of(std::span<double> off, std::size_t spent) {
    const auto count = static_cast<double>(off.size());
    const auto rank = std::min(off.size() - 1, static_cast<std::size_t>(within_sigma * count));
    std::ranges::nth_element(off, off.begin() + static_cast<std::ptrdiff_t>(rank));
    const double most = far_off * off[rank];
    double total = 0.0;
    for (const double each : off) {
        const double counted = std::min(each, most);
        total += counted * counted;
    }
    const double freedom = std::max({count - static_cast<double>(spent), count / 4, 1.0});
    return std::max(std::sqrt(total / freedom), least_noise);
}

// Which positions of the tests with a value belong to each key, the keys ascending.
class Groups {
   public:
    // `keys`: of each entry; `at`: the position that the entry stands for.
    Groups(std::span<const std::int32_t> keys, std::span<const Position> at, std::size_t count)
        : begins_(count + 1, 0), members_(keys.size()), terms_(count, 0.0) {
        for (const std::int32_t key : keys) {
            ++begins_[static_cast<std::size_t>(key) + 1];
        }
        for (std::size_t key = 0; key < count; ++key) {
            begins_[key + 1] += begins_[key];
        }
        std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
        for (std::size_t entry = 0; entry < keys.size(); ++entry) {
            members_[next[static_cast<std::size_t>(keys[entry])]++] = at[entry];
        }
    }

    [[nodiscard]] std::size_t size() const { return terms_.size(); }
    [[nodiscard]] std::span<const Position> members(std::size_t key) const {
        return std::span(members_).subspan(begins_[key], begins_[key + 1] - begins_[key]);
    }
    [[nodiscard]] std::size_t used() const {
        std::size_t found = 0;
        for (std::size_t key = 0; key < size(); ++key) {
            found += members(key).empty() ? 0U : 1U;
        }
        return found;
    }
    [[nodiscard]] double term(std::size_t key) const { return terms_[key]; }
    void set(std::size_t key, double value) { terms_[key] = value; }
    // The terms of groups of `least` tests or more; NaN for others.
    [[nodiscard]] std::vector<double> told(std::size_t least) const {
        std::vector<double> found(size(), nothing);
        for (std::size_t key = 0; key < size(); ++key) {
            if (members(key).size() >= least) {
                found[key] = terms_[key];
            }
        }
        return found;
    }

   private:
    std::vector<std::size_t> begins_;
    std::vector<Position> members_;
    std::vector<double> terms_;
};

// What is left of the values while terms are taken out of them.
class Polish {
   public:
    explicit Polish(std::vector<double> values) : left_{std::move(values)}, space_(left_.size()) {}

    [[nodiscard]] const std::vector<double>& left() const { return left_; }
    // The furthest that a term moved since it was asked last.
    [[nodiscard]] double moved() { return std::exchange(moved_, 0.0); }

    [[nodiscard]] double median_of(std::span<const Position> members) {
        for (std::size_t at = 0; at < members.size(); ++at) {
            space_[at] = left_[members[at]];
        }
        return median_in_place(std::span(space_).first(members.size()));
    }

    double centre() {
        std::ranges::copy(left_, space_.begin());
        const double middle = median_in_place(space_);
        for (double& each : left_) {
            each -= middle;
        }
        moved_ = std::max(moved_, std::abs(middle));
        return middle;
    }

    // The scatter of what is left, for which `spent` terms were fitted.
    [[nodiscard]] double noise(std::size_t spent) {
        for (std::size_t at = 0; at < left_.size(); ++at) {
            space_[at] = std::abs(left_[at]);
        }
        return scatter_of(space_, spent);
    }

    void shift(std::span<const Position> members, double change) {
        moved_ = std::max(moved_, std::abs(change));
        if (change != 0.0) {
            for (const Position at : members) {
                left_[at] -= change;
            }
        }
    }

    void set(Groups& groups, std::size_t key, double value) {
        shift(groups.members(key), value - groups.term(key));
        groups.set(key, value);
    }

    // Takes what most groups have in common out of their terms and returns it; what is left stays as it is.
    static double centre(Groups& groups) {
        std::vector<double> used;
        for (std::size_t key = 0; key < groups.size(); ++key) {
            if (!groups.members(key).empty()) {
                used.push_back(groups.term(key));
            }
        }
        const double middle = median_in_place(used);
        for (std::size_t key = 0; key < groups.size(); ++key) {
            if (!groups.members(key).empty()) {
                groups.set(key, groups.term(key) - middle);
            }
        }
        return middle;
    }

    // Moves the median of each group of `fewest` tests or more into its term, where the whole term is above `least`
    // and `times` its scatter.
    void take(Groups& groups, std::size_t fewest, double least, double times) {
        for (std::size_t key = 0; key < groups.size(); ++key) {
            const std::span<const Position> members = groups.members(key);
            if (members.size() < fewest || members.empty()) {
                continue;
            }
            const double total = groups.term(key) + median_of(members);
            const double bound = std::max(least, times / std::sqrt(static_cast<double>(members.size())));
            set(groups, key, std::abs(total) > bound ? total : 0.0);
        }
    }

   private:
    std::vector<double> left_;
    std::vector<double> space_;
    double moved_ = 0.0;
};

// The terms of leaves, up and down, fitted together to the medians of pairs of leaves. One leaf of four is in half of
// the tests that cross: medians taken in turn stop before the right answer there, so the sum of absolute deviations is
// made least by weighted means (iteratively reweighted least squares).
class Leaves {
   public:
    struct Cell {
        std::size_t from;
        std::size_t to;
        std::size_t kind;
    };

    Leaves(std::vector<Cell> cells, Groups members, std::size_t leaves, std::size_t kinds, bool twoway)
        : cells_{std::move(cells)},
          members_{std::move(members)},
          counts_(leaves, 0),
          used_(leaves, false),
          up_(leaves, 0.0),
          down_(leaves, 0.0),
          kinds_{kinds},
          twoway_{twoway} {
        for (std::size_t at = 0; at < cells_.size(); ++at) {
            const std::size_t count = members_.members(at).size();
            counts_[cells_[at].from] += count;
            counts_[cells_[at].to] += twoway ? count : 0;
            used_[cells_[at].from] = used_[cells_[at].to] = true;
        }
    }

    [[nodiscard]] bool fitted() const {
        return static_cast<std::size_t>(std::ranges::count(used_, true)) >= least_leaves;
    }

    void take(Polish& polish, double noise) {
        if (!fitted()) {
            return;
        }
        std::vector<double> values(cells_.size());
        for (std::size_t at = 0; at < cells_.size(); ++at) {
            values[at] = polish.median_of(members_.members(at)) + of(cells_[at]);
        }
        Terms found = fit(values, noise);
        // As long as the terms are not found, the noise of all tests holds what leaves do, and few leaves hide in it.
        if (const double own = scatter(polish, found); own < noise) {
            noise = own;
            found = fit(values, noise);
        }
        const std::vector<double> up = large(found.up, noise);
        const std::vector<double> down = twoway_ ? up : large(found.down, noise);
        for (std::size_t at = 0; at < cells_.size(); ++at) {
            polish.shift(members_.members(at), up[cells_[at].from] + down[cells_[at].to] - of(cells_[at]));
        }
        up_ = up;
        down_ = down;
    }

    [[nodiscard]] std::vector<double> up() const { return told(up_); }
    [[nodiscard]] std::vector<double> down() const { return told(down_); }

   private:
    struct Terms {
        std::vector<double> up;
        std::vector<double> down;
        std::vector<double> level;
    };
    struct Mean {
        double total = 0.0;
        double weight = 1e-9;
    };

    [[nodiscard]] double of(const Cell& cell) const { return up_[cell.from] + down_[cell.to]; }

    [[nodiscard]] std::vector<double> told(const std::vector<double>& terms) const {
        std::vector<double> found(terms.size(), nothing);
        for (std::size_t leaf = 0; leaf < terms.size() && fitted(); ++leaf) {
            if (used_[leaf]) {
                found[leaf] = terms[leaf];
            }
        }
        return found;
    }

    // The scatter of the tests that cross about the terms of their leaves.
    [[nodiscard]] double scatter(const Polish& polish, const Terms& terms) const {
        std::vector<double> off;
        for (std::size_t at = 0; at < cells_.size(); ++at) {
            const std::span<const Position> members = members_.members(at);
            for (const Position each : members.first(std::min(members.size(), most_of_a_cell))) {
                off.push_back(std::abs(left_of(terms, cells_[at], polish.left()[each] + of(cells_[at]))));
            }
        }
        return scatter_of(off, (twoway_ ? 1U : 2U) * static_cast<std::size_t>(std::ranges::count(used_, true)));
    }

    // Holds terms against their median and leaves what is small to the endpoints.
    [[nodiscard]] std::vector<double> large(const std::vector<double>& terms, double noise) const {
        std::vector<double> those;
        for (std::size_t leaf = 0; leaf < terms.size(); ++leaf) {
            if (used_[leaf]) {
                those.push_back(terms[leaf]);
            }
        }
        const double middle = median_in_place(those);
        std::vector<double> kept(terms.size(), 0.0);
        for (std::size_t leaf = 0; leaf < terms.size(); ++leaf) {
            const double count = static_cast<double>(std::max<std::size_t>(counts_[leaf], 1));
            const double least = std::max(significance * median_scatter * noise / std::sqrt(count), least_wide);
            if (used_[leaf] && std::abs(terms[leaf] - middle) > least) {
                kept[leaf] = terms[leaf] - middle;
            }
        }
        return kept;
    }

    [[nodiscard]] double left_of(const Terms& terms, const Cell& cell, double value) const {
        const double down = twoway_ ? terms.up[cell.to] : terms.down[cell.to];
        return value - terms.up[cell.from] - down - terms.level[cell.kind];
    }

    [[nodiscard]] Terms fit(const std::vector<double>& values, double noise) const {
        Terms terms{std::vector<double>(up_.size(), 0.0), std::vector<double>(up_.size(), 0.0),
                    std::vector<double>(kinds_, 0.0)};
        std::vector<double> weights(cells_.size());
        for (int step = 0; step < reweighted; ++step) {
            for (std::size_t at = 0; at < cells_.size(); ++at) {
                const double count = static_cast<double>(members_.members(at).size());
                weights[at] = count / std::max(std::abs(left_of(terms, cells_[at], values[at])), noise / 4);
            }
            for (int twice = 0; twice < 2; ++twice) {
                improve_up(terms, values, weights);
                if (!twoway_) {
                    improve(terms, terms.down, values, weights, [](const Cell& cell) { return cell.to; });
                }
                improve(terms, terms.level, values, weights, [](const Cell& cell) { return cell.kind; });
            }
        }
        return terms;
    }

    template <class KeyOf>
    void improve(const Terms& terms, std::vector<double>& those, const std::vector<double>& values,
                 const std::vector<double>& weights, KeyOf key_of) const {
        std::vector<Mean> means(those.size());
        for (std::size_t at = 0; at < cells_.size(); ++at) {
            Mean& mean = means[key_of(cells_[at])];
            mean.total += weights[at] * left_of(terms, cells_[at], values[at]);
            mean.weight += weights[at];
        }
        for (std::size_t key = 0; key < those.size(); ++key) {
            those[key] += means[key].total / means[key].weight;
        }
    }

    void improve_up(Terms& terms, const std::vector<double>& values, const std::vector<double>& weights) const {
        if (!twoway_) {
            improve(terms, terms.up, values, weights, [](const Cell& cell) { return cell.from; });
            return;
        }
        std::vector<Mean> means(terms.up.size());
        for (std::size_t at = 0; at < cells_.size(); ++at) {
            const double left = left_of(terms, cells_[at], values[at]);
            for (const std::size_t leaf : {cells_[at].from, cells_[at].to}) {
                means[leaf].total += weights[at] * left;
                means[leaf].weight += weights[at];
            }
        }
        // A term that is at both ends of a test moves by half.
        for (std::size_t leaf = 0; leaf < means.size(); ++leaf) {
            terms.up[leaf] += 0.5 * means[leaf].total / means[leaf].weight;
        }
    }

    std::vector<Cell> cells_;
    Groups members_;
    std::vector<std::size_t> counts_;
    std::vector<bool> used_;
    std::vector<double> up_;
    std::vector<double> down_;
    std::size_t kinds_;
    bool twoway_;
};

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

double median_in_place(std::span<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    if (values.size() % 2 == 1) {
        return *middle;
    }
    return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

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
        found.overall += Polish::centre(senders) * (twoway ? 2.0 : 1.0);
        if (receivers) {
            polish.take(*receivers, 1, 0.0, 0.0);
            found.overall += Polish::centre(*receivers);
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
