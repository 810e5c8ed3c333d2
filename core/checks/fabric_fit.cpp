// The fit finds the terms that tests were made of, whatever a few of the tests say, and refuses columns that are none.
#include "fabric_fit.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "expect.hpp"
#include "median_polish.hpp"

using namespace busbw;
using namespace busbw::checks;

namespace {

constexpr std::int32_t leaf_size = 8;

// All pairs of a fabric, one in a hundred far off.
struct Made {
    std::vector<std::int32_t> senders, receivers, rounds, kinds, leaves, rails;
    std::vector<double> logs, residuals;

    explicit Made(std::int32_t endpoints) : leaves(), rails(static_cast<std::size_t>(endpoints), 0) {
        std::mt19937 draw(11);
        std::normal_distribution<double> scatter(0.0, 0.01);
        for (std::int32_t end = 0; end < endpoints; ++end) {
            leaves.push_back(end / leaf_size);
        }
        for (std::int32_t one = 0; one < endpoints; ++one) {
            for (std::int32_t other = 0; other < endpoints; ++other) {
                if (one != other) {
                    senders.push_back(one);
                    receivers.push_back(other);
                    rounds.push_back(0);
                    const bool near = one / leaf_size == other / leaf_size;
                    kinds.push_back(near ? 0 : 2);
                    logs.push_back(3.0 + (near ? 0.0 : 0.2) + scatter(draw) + (draw() % 100 == 0 ? 0.5 : 0.0));
                }
            }
        }
        residuals.resize(logs.size());
    }

    template <class Which>
    void slow(double by, Which which) {
        for (std::size_t at = 0; at < logs.size(); ++at) {
            logs[at] += which(senders[at], receivers[at]) ? by : 0.0;
        }
    }
    FabricTerms fit(bool twoway = false) {
        return fit_fabric({senders, receivers, rounds, kinds, logs}, {leaves, rails}, twoway, residuals);
    }
};

bool near(double value, double wanted) { return std::abs(value - wanted) < 0.008; }

void a_sender_and_a_receiver_are_found() {
    Made made(32);
    made.slow(0.1, [](int one, int) { return one == 5; });
    made.slow(0.2, [](int, int other) { return other == 9; });
    const FabricTerms found = made.fit();
    expect(near(found.senders[5], 0.1) && near(found.receivers[5], 0.0), "what sends slowly");
    expect(near(found.receivers[9], 0.2) && near(found.senders[9], 0.0), "what receives slowly");
    expect(near(found.hops[2] - found.hops[0], 0.2) && std::isnan(found.hops[1]), "the hops, and those of no test");
    expect(found.sent[5] == 31 && found.received[9] == 31, "the tests behind them");
    expect(found.noise > 0.008 && found.noise < 0.013, "the scatter, without the tests that are far off");
}

void a_leaf_of_four_is_found_and_its_endpoints_are_not() {
    Made made(32);
    made.slow(0.1, [](int one, int other) { return one / leaf_size == 2 && other / leaf_size != 2; });
    const FabricTerms found = made.fit();
    expect(near(found.up[2], 0.1) && near(found.down[2], 0.0), "the way up of the leaf");
    expect(near(found.up[1], 0.0) && near(found.senders[17], 0.0), "no other leaf, and no endpoint below it");
}

void tests_without_a_direction_have_one_term_an_endpoint() {
    Made made(32);
    made.slow(0.1, [](int one, int other) { return one == 7 || other == 7; });
    const FabricTerms found = made.fit(true);
    expect(near(found.senders[7], 0.1) && found.senders == found.receivers, "the same term in both columns");
    expect(found.sent[7] == 62, "each test is of both its ends");
}

// One of four is in three of the six tests between them.
void one_of_four_is_found_without_a_direction() {
    for (std::int32_t bad = 0; bad < 4; ++bad) {
        Made made(4);
        made.slow(1.0, [&](int one, int other) { return one == bad || other == bad; });
        const FabricTerms found = made.fit(true);
        for (std::int32_t end = 0; end < 4; ++end) {
            const double term = found.senders[static_cast<std::size_t>(end)];
            expect(std::abs(term - (end == bad ? 1.0 : 0.0)) < 0.03, "the term of the bad one, and none of the others");
        }
        expect(found.noise < 0.03, "no more scatter than there is");
    }
}

void what_has_no_value_is_passed_over() {
    Made made(16);
    made.logs[3] = std::numeric_limits<double>::quiet_NaN();
    made.leaves.assign(16, -1);
    made.fit();
    expect(std::isnan(made.residuals[3]) && std::isfinite(made.residuals[4]), "no residual without a value");
}

void columns_that_are_none_are_refused() {
    Made short_column(16);
    short_column.kinds.pop_back();
    expect_throw<std::invalid_argument>([&] { short_column.fit(); }, "columns that differ");
    Made beyond(16);
    beyond.receivers[0] = 16;
    expect_throw<std::invalid_argument>([&] { beyond.fit(); }, "an endpoint that is not there");
    Made below(16);
    below.rounds[0] = -1;
    expect_throw<std::invalid_argument>([&] { below.fit(); }, "a round below 0");
    Made empty(16);
    empty.logs.assign(empty.logs.size(), std::numeric_limits<double>::quiet_NaN());
    expect_throw<std::invalid_argument>([&] { empty.fit(); }, "no value at all");
}

void medians() {
    std::vector<double> odd{3.0, 1.0, 2.0};
    std::vector<double> even{4.0, 1.0, 3.0, 2.0};
    expect(median_in_place(odd) == 2.0 && median_in_place(even) == 2.5, "of an odd and an even number");
}

}  // namespace

int main() {
    a_sender_and_a_receiver_are_found();
    a_leaf_of_four_is_found_and_its_endpoints_are_not();
    tests_without_a_direction_have_one_term_an_endpoint();
    one_of_four_is_found_without_a_direction();
    what_has_no_value_is_passed_over();
    columns_that_are_none_are_refused();
    medians();
    return verdict();
}
