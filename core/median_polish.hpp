// Median polish (Tukey, Exploratory Data Analysis, 1977): terms of groups are taken out of values in turn, each the
// median of what is left of its members, so that single values do not move them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace busbw {

// The number of a value.
using Position = std::uint32_t;

// A term that nothing tells.
constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

// The median of `values`, which are put in another order. There is one at least.
double median_in_place(std::span<double> values);

// The scatter of values whose distances from the fit are `off`, which are put in another order: their root mean square,
// none counted for more than 2.5 times what two of three lie within, for `spent` terms that were fitted. Their median
// would not do: terms that are medians of few tests leave a fifth of the tests at exactly nothing.
double scatter_of(std::span<double> off, std::size_t spent);

// Which positions belong to each key, the keys ascending, and the term of each.
class Groups {
   public:
    // `keys`: of each entry; `at`: the position that the entry stands for.
    Groups(std::span<const std::int32_t> keys, std::span<const Position> at, std::size_t count);

    [[nodiscard]] std::size_t size() const { return terms_.size(); }
    [[nodiscard]] std::span<const Position> members(std::size_t key) const {
        return std::span(members_).subspan(begins_[key], begins_[key + 1] - begins_[key]);
    }
    // How many keys have members.
    [[nodiscard]] std::size_t used() const;
    [[nodiscard]] double term(std::size_t key) const { return terms_[key]; }
    void set(std::size_t key, double value) { terms_[key] = value; }
    // Takes what most groups have in common out of their terms and returns it.
    double centre();
    // The terms of groups of `least` members or more; NaN for others.
    [[nodiscard]] std::vector<double> told(std::size_t least) const;

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
    [[nodiscard]] double median_of(std::span<const Position> members);
    // The scatter of what is left, for which `spent` terms were fitted.
    [[nodiscard]] double noise(std::size_t spent);

    // Takes the median of all out and returns it.
    double centre();
    void shift(std::span<const Position> members, double change);
    void set(Groups& groups, std::size_t key, double value);
    // Moves the median of each group of `fewest` members or more into its term, where the whole term is above `least`
    // and `times` its scatter.
    void take(Groups& groups, std::size_t fewest, double least, double times);

   private:
    std::vector<double> left_;
    std::vector<double> space_;
    double moved_ = 0.0;
};

}  // namespace busbw
