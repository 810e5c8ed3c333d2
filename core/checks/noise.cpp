// What repeats took is summed up as it was; a rhythm that is planted is found, and none where there is none.
#include "noise.hpp"

#include <sched.h>

#include <numeric>
#include <random>
#include <stdexcept>

#include "expect.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;

// 100 us a repeat, for `count` repeats; every repeat in which `period` has passed again takes 5 us more.
std::vector<std::uint32_t> with_ticks(std::size_t count, nanoseconds period) {
    std::vector<std::uint32_t> took;
    nanoseconds now = 0;
    nanoseconds next = period;
    for (std::size_t repeat = 0; repeat < count; ++repeat) {
        std::uint32_t each = 100'000;
        if (period > 0 && now + each >= next) {
            each += 5'000;
            next += period;
        }
        took.push_back(each);
        now += each;
    }
    return took;
}

void rhythms_are_found() {
    for (const nanoseconds period : {1'000'000, 4'000'000, 10'000'000}) {
        const NoiseOfProcessor found = summary_of(0, with_ticks(50'000, period), 0);
        const double off = static_cast<double>(std::abs(found.period - period)) / static_cast<double>(period);
        expect(off <= 0.15, "a tick every " + std::to_string(period) + " ns is one of " + std::to_string(found.period));
        expect(found.regularity > 0.1 && found.regularity <= 1.0, "it is regular");
    }
    std::mt19937 draw(7);
    std::bernoulli_distribution strikes(0.02);
    std::vector<std::uint32_t> random(50'000, 100'000);
    for (std::uint32_t& each : random) {
        each += strikes(draw) ? 5'000U : 0U;
    }
    const NoiseOfProcessor found = summary_of(0, random, 0);
    expect(found.detours > 500 && found.period == 0, "what strikes at random has no period");
    expect(summary_of(0, with_ticks(50'000, 0), 0).detours == 0, "work that is never disturbed has no detours");
}

void numbers_are_those_of_the_repeats() {
    std::vector<std::uint32_t> took(1000, 100);
    took[10] = 50;
    took[500] = 5'000;
    const NoiseOfProcessor found = summary_of(3, took, 2);
    expect(found.cpu == 3 && found.repeats == 1000 && found.preempted == 2, "who it was");
    expect(found.least == 50 && found.median == 100 && found.most == 5'000, "least, median, most");
    expect(found.p99 == 100 && found.p999 == 100, "two of a thousand are beyond");
    expect(found.total == 998 * 100 + 5'050, "the whole time");
    expect(found.detours == 1 && found.detoured == 4'900, "one detour");
    expect(std::accumulate(found.excess.begin(), found.excess.end(), 0ULL) == 1000, "every repeat is in the histogram");
    expect_throw<std::invalid_argument>([] { summary_of(0, {}, 0); }, "nothing is no summary");
    expect(summary_of(0, std::vector<std::uint32_t>{7}, 0).most == 7, "one repeat is one");
}

void work_is_timed_without_gaps() {
    std::vector<std::uint32_t> took(1000);
    const nanoseconds before = wall_clock();
    const std::size_t repeats = repeat_work(rounds_for(100'000), 20'000'000, took);
    const nanoseconds passed = wall_clock() - before;
    const nanoseconds told = std::accumulate(took.begin(), took.begin() + static_cast<std::ptrdiff_t>(repeats), 0LL);
    expect(repeats > 0 && told >= 20'000'000 && told <= passed, "the repeats fill the time");
    expect(repeat_work(1, 1'000'000'000, std::span(took).first(5)) == 5, "it ends where there is no room");
}

void every_processor_works_at_once() {
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE && cpus.size() < 4; ++cpu) {
        if (CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) {
            cpus.push_back(cpu);
        }
    }
    const std::vector<NoiseOfProcessor> found = noise_on(cpus, 100'000, 50'000'000);
    expect(found.size() == cpus.size() && found.front().cpu == cpus.front(), "each has its summary");
    expect_throw<std::exception>([] { noise_on({1'000'000}, 100'000, 1'000'000); }, "a processor that is not there");
    expect_throw<std::invalid_argument>([] { noise_on({}, 100'000, 1'000'000); }, "no processor");
}

}  // namespace

int main() {
    rhythms_are_found();
    numbers_are_those_of_the_repeats();
    work_is_timed_without_gaps();
    every_processor_works_at_once();
    return verdict();
}
