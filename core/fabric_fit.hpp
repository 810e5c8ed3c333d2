// The model of a fabric, fitted robustly to tests of pairs of endpoints by medians taken in turn (Tukey's median
// polish): log slowness = overall + hops + rail + leaf up + leaf down + round + sender + receiver + rest. Where there
// are few endpoints or few leaves their terms are fitted together first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace busbw {

// Tests by columns: entry i of each is of test i. Endpoints, rounds and hop classes are numbers from 0.
struct PairColumns {
    std::span<const std::int32_t> senders;
    std::span<const std::int32_t> receivers;
    std::span<const std::int32_t> rounds;
    std::span<const std::int32_t> kinds;
    // Logarithms of slowness; NaN: no value.
    std::span<const double> logs;
};

// Where endpoints stand: entry i of each is of endpoint i. A leaf that is not known is -1.
struct Standing {
    std::span<const std::int32_t> leaves;
    std::span<const std::int32_t> rails;
};

struct RoundTerm {
    std::int32_t round;
    std::int32_t kind;
    double value;
};

// All terms are logarithms of slowness. NaN: too few tests of it, or none.
struct FabricTerms {
    double overall = 0.0;
    // Scatter of a single test.
    double noise = 0.0;
    // By hop class, rail and leaf.
    std::vector<double> hops;
    std::vector<double> rails;
    std::vector<double> up;
    std::vector<double> down;
    std::vector<RoundTerm> rounds;
    // By endpoint; with tests that have no direction both are the same.
    std::vector<double> senders;
    std::vector<double> receivers;
    std::vector<std::int64_t> sent;
    std::vector<std::int64_t> received;
};

// Fits the terms and leaves what they do not explain in `residuals`, NaN where there is no value. `twoway`: tests have
// no direction. Throws std::invalid_argument where columns differ in length, a number is out of range, or no test has a
// value.
FabricTerms fit_fabric(const PairColumns& tests, const Standing& standing, bool twoway, std::span<double> residuals);

}  // namespace busbw
