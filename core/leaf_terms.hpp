// The terms of leaves, up and down, fitted together to the medians of pairs of leaves. One leaf of four is in half of
// the tests that cross: medians taken in turn stop before the right answer there, so the sum of absolute deviations is
// made least by weighted means (iteratively reweighted least squares).
#pragma once

#include <cstddef>
#include <vector>

#include "median_polish.hpp"

namespace busbw {

// Terms of leaves, and of rails and rounds, count from so many of their scatters on.
constexpr double significance = 3.0;
// Scatter of a median over that of a single value, for normal values: sqrt(pi / 2).
constexpr double median_scatter = 1.2533141373155003;
// What a rail or a leaf does counts from here on; below it its endpoints carry it. Half of the least effect of 5 %.
constexpr double least_wide = 0.025;

class Leaves {
   public:
    // Tests from one leaf to another, of one hop class.
    struct Cell {
        std::size_t from;
        std::size_t to;
        std::size_t kind;
    };

    // `members`: the tests of each cell. `twoway`: tests have no direction.
    Leaves(std::vector<Cell> cells, Groups members, std::size_t leaves, std::size_t kinds, bool twoway);

    // Whether there are leaves enough: with two every test that crosses is of both.
    [[nodiscard]] bool fitted() const;
    // Moves what leaves do into their terms, where it is large. `noise`: the scatter of all tests.
    void take(Polish& polish, double noise);
    // By leaf; NaN where there is no test of it.
    [[nodiscard]] std::vector<double> up() const { return told(up_); }
    [[nodiscard]] std::vector<double> down() const { return told(down_); }

   private:
    struct Terms {
        std::vector<double> up;
        std::vector<double> down;
        std::vector<double> level;
    };

    [[nodiscard]] double of(const Cell& cell) const { return up_[cell.from] + down_[cell.to]; }
    [[nodiscard]] std::vector<double> told(const std::vector<double>& terms) const;
    // The scatter of the tests that cross about the terms of their leaves.
    [[nodiscard]] double scatter(const Polish& polish, const Terms& terms) const;
    // Holds terms against their median and leaves what is small to the endpoints.
    [[nodiscard]] std::vector<double> large(const std::vector<double>& terms, double noise) const;
    [[nodiscard]] double left_of(const Terms& terms, const Cell& cell, double value) const;
    [[nodiscard]] Terms fit(const std::vector<double>& values, double noise) const;
    template <class KeyOf>
    void improve(const Terms& terms, std::vector<double>& those, const std::vector<double>& values,
                 const std::vector<double>& weights, KeyOf key_of) const;
    void improve_up(Terms& terms, const std::vector<double>& values, const std::vector<double>& weights) const;

    std::vector<Cell> cells_;
    Groups members_;
    std::vector<std::size_t> counts_;
    std::vector<bool> used_;
    std::vector<double> up_;
    std::vector<double> down_;
    std::size_t kinds_;
    bool twoway_;
};

}  // namespace busbw
