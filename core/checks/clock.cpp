// The clock moves forward, costs something, and the processor's clock does not run while the thread sleeps.
#include "clock.hpp"

#include <chrono>
#include <thread>

#include "expect.hpp"

int main() {
    using namespace busbw;
    using namespace busbw::checks;
    const ClockQuality quality = clock_quality(100'000);
    expect(quality.cost_ns > 0 && quality.cost_ns < 100'000,
           "reading the clock costs " + std::to_string(quality.cost_ns));
    expect(quality.step_ns > 0 && quality.step_ns < 10'000'000, "its step is " + std::to_string(quality.step_ns));
    const nanoseconds wall = wall_clock();
    const nanoseconds processor = processor_clock();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const nanoseconds slept = wall_clock() - wall;
    expect(slept >= 50'000'000, "50 ms of sleep last " + std::to_string(slept));
    expect(processor_clock() - processor < slept / 2, "sleep is no time on a processor");
    return verdict();
}
