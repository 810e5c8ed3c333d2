// What stands out of a fitted fabric, looked for over all tests: the loops of a full matrix. Columns, endpoints and
// leaves are those of fabric_fit.hpp; a test whose residual is NaN is passed over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric_fit.hpp"

namespace busbw {

// Writes the logarithm of slowness of each value: of the value itself, or of one over it where `inverse`; NaN for NaN.
void log_slowness(std::span<const double> values, bool inverse, std::span<double> logs);

// Writes the hop class of each test: 0 within a leaf, 1 within a group of leaves, 2 beyond, 3 where a leaf is not
// known. `groups`: of each leaf.
void hop_kinds(const PairColumns& tests, std::span<const std::int32_t> leaves, std::span<const std::int32_t> groups,
               std::span<std::int32_t> kinds);

struct Unsteady {
    std::int32_t endpoint;
    double effect;
};

// The terms of endpoints, as fit_fabric has them.
struct EndTerms {
    std::span<const double> senders;
    std::span<const double> receivers;
};

// Returns endpoints of which `fewest` rounds or more are slower than `large` in all their tests, and one or more is
// faster than `sound` in all of them; with the median of the slow rounds. `explained`: by leaf, whether tests that
// leave it are passed over.
std::vector<Unsteady> unsteady(const PairColumns& tests, std::span<const double> residuals, const EndTerms& terms,
                               std::span<const std::int32_t> leaves, std::span<const std::uint8_t> explained,
                               double large, double sound, std::size_t fewest);

// Tests between two regions, in either direction: their median and the least of them, and how many different endpoints
// are in them, of which no more than 8 are counted.
struct RegionCell {
    std::int32_t one;
    std::int32_t other;
    std::int64_t tests;
    std::int32_t ends;
    double median;
    double least;
};
std::vector<RegionCell> region_cells(const PairColumns& tests, std::span<const double> residuals,
                                     std::span<const std::int32_t> regions);

// How many tests leave or enter each leaf, and the numbers of those that are slower than `least`.
struct Crossings {
    std::vector<std::int64_t> by_leaf;
    std::vector<std::uint32_t> slow;
};
Crossings crossings(const PairColumns& tests, std::span<const double> residuals, std::span<const std::int32_t> leaves,
                    double least);

// The numbers of tests of which an end is marked.
std::vector<std::uint32_t> tests_of(const PairColumns& tests, std::span<const std::uint8_t> marked);

}  // namespace busbw
