// The loop of isolated mode over a step that is played: what it does in which order, what it writes down, and that
// after a call which throws nothing says that it was left.
#include "loops.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "expect.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;

constexpr nanoseconds lead = 2'000'000;
constexpr nanoseconds offset = 5'000'000'000;

// Agrees on an instant `ahead` from now on a clock that is `offset` ahead of this rank's; throws in call `throws_in`.
struct PlayedStep {
    nanoseconds ahead;
    std::size_t throws_in;
    std::string order;
    std::vector<AlignedCall> calls;
    std::vector<nanoseconds> agreed;

    nanoseconds meet(const Window& window) {
        order += 'm';
        agreed.push_back(wall_clock() + ahead);
        return agreed.back() + window.offset;
    }
    void enter() { order += 'e'; }
    void leave() { order += 'l'; }
    nanoseconds run(std::size_t sample) {
        order += 'r';
        if (sample == throws_in) {
            throw std::runtime_error("a call that fails");
        }
        return wall_clock();
    }
    void keep(std::size_t sample, const AlignedCall& call) {
        order += 'k';
        expect(sample == calls.size(), "samples come in their order");
        calls.push_back(call);
    }
};

void check_order(bool yields) {
    PlayedStep step{lead, 3, {}, {}, {}};
    measure_isolated(step, 3, {offset, lead, yields});
    expect(step.order == "merlkmerlkmerlk", "ranks meet, enter, call, leave, and the sample is kept: " + step.order);
    for (std::size_t sample = 0; sample < step.calls.size(); ++sample) {
        const AlignedCall& call = step.calls[sample];
        expect(call.common_start == step.agreed[sample], "the common start is on this rank's clock");
        expect(call.missed || call.start >= call.common_start, "no call begins before the common start");
    }
}

void check_missed() {
    PlayedStep step{-lead, 1, {}, {}, {}};
    measure_isolated(step, 1, {offset, lead, false});
    expect(step.calls.at(0).missed, "a start that had passed is missed");
    expect(step.calls[0].start - step.calls[0].common_start >= lead, "and the call is late by as much");
}

void check_throwing() {
    PlayedStep step{0, 1, {}, {}, {}};
    expect_throw<std::runtime_error>([&] { measure_isolated(step, 3, {offset, 0, false}); },
                                     "what a call throws is told");
    expect(step.order == "merlkmer", "it is still in its call, and nothing comes after: " + step.order);
}

}  // namespace

int main() {
    check_order(false);
    check_order(true);
    check_missed();
    check_throwing();
    return verdict();
}
