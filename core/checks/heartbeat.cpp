// A heartbeat is written by one thread while another reads it; the reader never sees a counter go back.
#include "heartbeat.hpp"

#include <array>
#include <thread>

#include "expect.hpp"

int main() {
    using namespace busbw;
    using namespace busbw::checks;
    alignas(8) std::array<std::byte, Heartbeat::bytes + 8> memory{};
    const std::span<std::byte> bytes{memory};
    expect_throw<std::invalid_argument>([&] { Heartbeat{bytes.first(63)}; }, "63 bytes are too few");
    expect_throw<std::invalid_argument>([&] { Heartbeat{bytes.subspan(4)}; }, "4 bytes off is not aligned");

    const Heartbeat beat{bytes.first(Heartbeat::bytes)};
    auto* words = reinterpret_cast<std::uint64_t*>(memory.data());
    const auto read = [&](Heartbeat::Word which) {
        return std::atomic_ref<std::uint64_t>{words[which]}.load(std::memory_order_relaxed);
    };
    constexpr std::uint64_t rounds = 200'000;
    std::thread writer{[&] {
        for (std::uint64_t round = 0; round < rounds; ++round) {
            beat.enter_call();
            beat.leave_call(3);
            beat.count_sample();
        }
    }};
    std::uint64_t samples = 0;
    std::uint64_t calls = 0;
    while (samples < rounds) {
        const std::uint64_t samples_now = read(Heartbeat::samples);
        const std::uint64_t calls_now = read(Heartbeat::calls);
        expect(samples_now >= samples && calls_now >= calls, "counters only grow");
        expect(read(Heartbeat::in_call) <= 1, "a rank is in a call or not");
        samples = samples_now;
        calls = calls_now;
    }
    writer.join();
    expect(read(Heartbeat::calls) == 3 * rounds && read(Heartbeat::samples) == rounds, "every call and sample counts");
    for (const auto untouched : {Heartbeat::process_id, Heartbeat::state, Heartbeat::point, Heartbeat::stop_asked}) {
        expect(read(untouched) == 0, "the loops leave the other words alone");
    }
    return verdict();
}
