#include "median_polish.hpp"

#include <algorithm>
#include <cmath>

namespace busbw {

namespace {

// The share of normal values within one scatter, and from where on they are taken for disturbed ones.
constexpr double within_sigma = 0.6827;
constexpr double far_off = 2.5;
// Numerical dust: values of a noiseless table are equal to this.
constexpr double least_noise = 1e-4;

}  // namespace

double median_in_place(std::span<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    if (values.size() % 2 == 1) {
        return *middle;
    }
    return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

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

Groups::Groups(std::span<const std::int32_t> keys, std::span<const Position> at, std::size_t count)
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

std::size_t Groups::used() const {
    std::size_t found = 0;
    for (std::size_t key = 0; key < size(); ++key) {
        found += members(key).empty() ? 0U : 1U;
    }
    return found;
}

double Groups::centre() {
    std::vector<double> used;
    for (std::size_t key = 0; key < size(); ++key) {
        if (!members(key).empty()) {
            used.push_back(terms_[key]);
        }
    }
    const double middle = median_in_place(used);
    for (std::size_t key = 0; key < size(); ++key) {
        if (!members(key).empty()) {
            terms_[key] -= middle;
        }
    }
    return middle;
}

std::vector<double> Groups::told(std::size_t least) const {
    std::vector<double> found(size(), nothing);
    for (std::size_t key = 0; key < size(); ++key) {
        if (members(key).size() >= least) {
            found[key] = terms_[key];
        }
    }
    return found;
}

double Polish::median_of(std::span<const Position> members) {
    for (std::size_t at = 0; at < members.size(); ++at) {
        space_[at] = left_[members[at]];
    }
    return median_in_place(std::span(space_).first(members.size()));
}

double Polish::noise(std::size_t spent) {
    for (std::size_t at = 0; at < left_.size(); ++at) {
        space_[at] = std::abs(left_[at]);
    }
    return scatter_of(space_, spent);
}

double Polish::centre() {
    std::ranges::copy(left_, space_.begin());
    const double middle = median_in_place(space_);
    for (double& each : left_) {
        each -= middle;
    }
    moved_ = std::max(moved_, std::abs(middle));
    return middle;
}

void Polish::shift(std::span<const Position> members, double change) {
    moved_ = std::max(moved_, std::abs(change));
    if (change != 0.0) {
        for (const Position at : members) {
            left_[at] -= change;
        }
    }
}

void Polish::set(Groups& groups, std::size_t key, double value) {
    shift(groups.members(key), value - groups.term(key));
    groups.set(key, value);
}

void Polish::take(Groups& groups, std::size_t fewest, double least, double times) {
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

}  // namespace busbw
