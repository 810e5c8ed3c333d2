#include "leaf_terms.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace busbw {

namespace {

// With two leaves every test that crosses is of both.
constexpr std::size_t least_leaves = 3;
// Tests of a pair of leaves that its scatter is told from, at most: a full matrix has hundreds.
constexpr std::size_t most_of_a_cell = 16;
constexpr int reweighted = 25;

struct Mean {
    double total = 0.0;
    double weight = 1e-9;
};

}  // namespace

Leaves::Leaves(std::vector<Cell> cells, Groups members, std::size_t leaves, std::size_t kinds, bool twoway)
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

bool Leaves::fitted() const { return static_cast<std::size_t>(std::ranges::count(used_, true)) >= least_leaves; }

void Leaves::take(Polish& polish, double noise) {
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

std::vector<double> Leaves::told(const std::vector<double>& terms) const {
    std::vector<double> found(terms.size(), nothing);
    for (std::size_t leaf = 0; leaf < terms.size() && fitted(); ++leaf) {
        if (used_[leaf]) {
            found[leaf] = terms[leaf];
        }
    }
    return found;
}

double Leaves::scatter(const Polish& polish, const Terms& terms) const {
    std::vector<double> off;
    for (std::size_t at = 0; at < cells_.size(); ++at) {
        const std::span<const Position> members = members_.members(at);
        for (const Position each : members.first(std::min(members.size(), most_of_a_cell))) {
            off.push_back(std::abs(left_of(terms, cells_[at], polish.left()[each] + of(cells_[at]))));
        }
    }
    return scatter_of(off, (twoway_ ? 1U : 2U) * static_cast<std::size_t>(std::ranges::count(used_, true)));
}

std::vector<double> Leaves::large(const std::vector<double>& terms, double noise) const {
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

double Leaves::left_of(const Terms& terms, const Cell& cell, double value) const {
    const double down = twoway_ ? terms.up[cell.to] : terms.down[cell.to];
    return value - terms.up[cell.from] - down - terms.level[cell.kind];
}

template <class KeyOf>
void Leaves::improve(const Terms& terms, std::vector<double>& those, const std::vector<double>& values,
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

void Leaves::improve_up(Terms& terms, const std::vector<double>& values, const std::vector<double>& weights) const {
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

Leaves::Terms Leaves::fit(const std::vector<double>& values, double noise) const {
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

}  // namespace busbw
