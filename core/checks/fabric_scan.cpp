// Each scan over the tests of a fabric returns what is there, and nothing where a test has no value.
#include "fabric_scan.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "expect.hpp"

using namespace busbw;
using namespace busbw::checks;

namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

// Four endpoints below two leaves, three rounds, both directions of each pair.
const std::vector<std::int32_t> senders{0, 1, 2, 3, 0, 2, 1, 3, 0, 3, 1, 2};
const std::vector<std::int32_t> receivers{1, 0, 3, 2, 2, 0, 3, 1, 3, 0, 2, 1};
const std::vector<std::int32_t> rounds{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
const std::vector<std::int32_t> leaves{0, 0, 1, 1};
const PairColumns tests{senders, receivers, rounds, {}, {}};

void values_and_hops_are_written() {
    std::vector<double> logs(2);
    log_slowness(std::vector<double>{std::exp(1.0), none}, true, logs);
    expect(std::abs(logs[0] + 1.0) < 1e-12 && std::isnan(logs[1]), "one over a value, and none");
    std::vector<std::int32_t> kinds(12);
    hop_kinds(tests, leaves, std::vector<std::int32_t>{0, 1}, kinds);
    expect(kinds[0] == 0 && kinds[4] == 2, "within a leaf and beyond a group");
    hop_kinds(tests, std::vector<std::int32_t>{0, 0, 1, -1}, std::vector<std::int32_t>{0, 0}, kinds);
    expect(kinds[4] == 1 && kinds[2] == 3, "within a group, and where a leaf is not known");
    std::vector<std::int32_t> few(3);
    expect_throw<std::invalid_argument>([&] { hop_kinds(tests, leaves, leaves, few); }, "columns that differ");
}

void what_comes_and_goes_is_found() {
    // Endpoint 0 is slow in rounds 0 and 1, and sound in round 2.
    std::vector<double> residuals(12, 0.0);
    residuals[0] = residuals[1] = 0.5;
    residuals[4] = residuals[5] = 0.7;
    const std::vector<double> terms(4, 0.0);
    const std::vector<std::uint8_t> nowhere(2, 0);
    const auto found = unsteady(tests, residuals, {terms, terms}, leaves, nowhere, 0.2, 0.1, 2);
    expect(found.size() == 1 && found[0].endpoint == 0 && std::abs(found[0].effect - 0.6) < 1e-12, "endpoint 0 alone");
    expect(unsteady(tests, residuals, {terms, terms}, leaves, std::vector<std::uint8_t>{1, 0}, 0.2, 0.1, 2).empty(),
           "tests that leave an explained leaf do not count");
    residuals[5] = none;
    residuals[4] = none;
    expect(unsteady(tests, residuals, {terms, terms}, leaves, nowhere, 0.2, 0.1, 2).empty(),
           "one slow round is not two");
    const std::vector<double> short_terms(2, 0.0);
    expect_throw<std::out_of_range>(
        [&] { unsteady(tests, residuals, {short_terms, short_terms}, leaves, nowhere, 0.2, 0.1, 2); }, "too few terms");
}

void cells_and_crossings_are_counted() {
    std::vector<double> residuals(12, 0.0);
    residuals[4] = 0.3;
    residuals[5] = none;
    const auto cells = region_cells(tests, residuals, leaves);
    expect(cells.size() == 1 && cells[0].tests == 7 && cells[0].ends == 4 && cells[0].median == 0.0, "both directions");
    const Crossings crossed = crossings(tests, residuals, leaves, 0.2);
    expect(crossed.by_leaf == std::vector<std::int64_t>{7, 7}, "each crossing is of both leaves");
    expect(crossed.slow == std::vector<std::uint32_t>{4}, "the slow one");
    expect(region_cells(tests, residuals, std::vector<std::int32_t>(4, -1)).empty(), "no region known");
}

void tests_of_an_endpoint_are_found() {
    const std::vector<std::uint8_t> marked{0, 0, 1, 0};
    expect(tests_of(tests, marked) == std::vector<std::uint32_t>{2, 3, 4, 5, 10, 11}, "as sender and as receiver");
    expect_throw<std::out_of_range>([&] { tests_of(tests, std::vector<std::uint8_t>{1}); }, "too few marks");
}

}  // namespace

int main() {
    values_and_hops_are_written();
    what_comes_and_goes_is_found();
    cells_and_crossings_are_counted();
    tests_of_an_endpoint_are_found();
    return verdict();
}
