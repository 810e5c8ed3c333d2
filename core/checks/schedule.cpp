// Schedules fold to what they are, both ways to time them agree where nothing is shared, and a deadlock is refused.
#include "schedule.hpp"

#include <array>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "expect.hpp"
#include "schedule_events.hpp"
#include "schedule_steps.hpp"

using namespace busbw;
using namespace busbw::checks;

namespace {

// A ring of which every eighth operation takes longer, and one is `slower`.
Schedule ring(std::int64_t size, double slower = 1.0) {
    const std::array<double, 8> seconds{1, 1, 1, 1, 1, 1, 1, 2};
    const std::array<double, 8> latencies{0.5, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
    Schedule made;
    made.add({0, 1, size}, seconds);
    made.wait(0, {0, 1, size}, 0, {1, -1, size}, 1, latencies);
    if (slower != 1.0) {
        made.slow(0, size / 2, slower);
    }
    return made;
}

// A chain whose operations give their slots back.
Schedule chain(std::int64_t size, std::uint32_t slots, double seconds) {
    const std::array<double, 1> each{seconds}, latency{0.25};
    Schedule made;
    made.add({0, 1, size}, each);
    made.wait(0, {1, 1, size - 1}, 0, {1, -1, 0}, 0, latency);
    made.wait(0, {0, 1, size - 1}, 0, {1, 1, 0}, slots, latency);
    return made;
}

bool near(double one, double other) { return std::abs(one - other) <= 1e-9 * std::abs(other); }

void a_folded_ring_ends_when_the_whole_one_does() {
    const Schedule whole = ring(4096), one_node = ring(8);
    const double end = time_steps(whole, 700, false).seconds;
    expect(end == time_steps(one_node, 700, false).seconds, "a period of a ring");
    const Schedule folded = whole.folded();
    expect(folded.size() == 8 && time_steps(folded, 700, false).seconds == end, "a ring whose nodes are alike");
}

void a_ring_in_tiles_is_the_ring() {
    // One operation more waits for nothing: it takes the ring out of tiles, not out of the recurrence.
    Schedule apart = ring(2048, 3.0);
    apart.add({0, 1, 1}, std::array<double, 1>{0.0});
    expect(near(time_steps(ring(2048, 3.0), 333, false).seconds, time_steps(apart, 333, false).seconds), "by tiles");
}

void what_differs_stays() {
    const Schedule slow = ring(64, 5.0);
    expect(slow.folded().size() == 64, "no operation of a ring with a slow one is like another");
    expect(time_steps(slow, 100, true).seconds > time_steps(ring(64), 100, true).seconds, "and it ends later");
}

void events_agree_with_steps_where_nothing_is_shared() {
    for (const std::uint64_t rounds : {1U, 2U, 37U, 200U}) {
        const Schedule made = ring(24, 2.0), row = chain(9, 8, 1.5);
        for (const Queueing queueing : {Queueing::first_come, Queueing::in_turns}) {
            expect(near(time_events(made, rounds, queueing, false).seconds, time_steps(made, rounds, false).seconds),
                   "a ring");
            expect(near(time_events(row, rounds, queueing, false).seconds, time_steps(row, rounds, false).seconds),
                   "a chain");
        }
    }
}

void times_of_all_lengths_keep_their_order() {
    // What is told next lies from within the work of a server to a million times as far ahead.
    Schedule made;
    made.add({0, 1, 5}, std::array<double, 5>{1e-6, 1e-3, 3.0, 0.0, 1e-9});
    made.wait(0, {0, 1, 4}, 0, {1, 1, 0}, 2, std::array<double, 4>{1.0, 1e-6, 0.0, 50.0});
    made.wait(0, {1, 1, 4}, 0, {1, -1, 0}, 0, std::array<double, 1>{1e-7});
    for (const Queueing queueing : {Queueing::first_come, Queueing::in_turns}) {
        expect(near(time_events(made, 90, queueing, false).seconds, time_steps(made, 90, false).seconds), "by order");
    }
    // The one whose turn it is goes first, whatever bin of time it was told for.
    Schedule shared;
    shared.add({0, 1, 3}, std::array<double, 1>{0.0});
    shared.pass(0, {0, 1, 3}, 0, {0, 0, 0}, 1e-3);
    shared.wait(0, {2, 1, 1}, 0, {0, 0, 0}, 1, std::array<double, 1>{1000.0});
    const double end = time_events(shared, 40, Queueing::first_come, false).seconds;
    expect(end > 1000.0 && end < 1001.0, "39 rounds wait side by side for the first");
}

void rounds_that_are_gone_through_side_by_side_end_as_one_after_another() {
    const Schedule many = chain(2048, 8, 1.0);
    const double whole = time_events(many, 500, Queueing::in_turns, false).seconds;
    const EventsResult told = time_events(many, 500, Queueing::in_turns, true);
    expect(std::abs(told.seconds / whole - 1) < 6e-3, "told");
    const EventsResult again = time_events(many, 500, Queueing::in_turns, true);
    expect(told.seconds == again.seconds && told.events == again.events, "and the same again");
}

void rounds_that_are_skipped_are_told_right() {
    const Schedule row = chain(12, 8, 1.0);
    const StepsResult all = time_steps(row, 100'000, false), some = time_steps(row, 100'000, true);
    expect(near(some.seconds, all.seconds) && some.rounds < 1000, "steps");
    const EventsResult told = time_events(row, 10'000, Queueing::in_turns, true);
    const double whole = time_events(row, 10'000, Queueing::in_turns, false).seconds;
    expect(std::abs(told.seconds / whole - 1) < 6e-3 && told.rounds < 1000, "events");
}

void a_crossing_to_come_is_not_skipped() {
    // A fast one that begins late, and a slow one that overtakes it after 10,000 rounds.
    Schedule made;
    const std::array<double, 1> fast{1.0}, slow{1.01}, none{0.0};
    made.add({0, 1, 1}, fast);
    made.add({0, 1, 1}, slow);
    made.add({0, 1, 1}, none);
    made.wait(2, {0, 1, 1}, 0, {1, 0, 0}, 0, std::array<double, 1>{100.0});
    made.wait(2, {0, 1, 1}, 1, {1, 0, 0}, 0, none);
    expect(near(time_steps(made, 50'000, true).seconds, time_steps(made, 50'000, false).seconds), "a later crossing");
}

void a_server_that_two_share_takes_as_long_as_both() {
    Schedule made;
    made.add({0, 1, 2}, std::array<double, 1>{0.0});
    made.pass(0, {0, 1, 2}, 0, {0, 0, 0}, 1.0);
    made.pass(0, {0, 1, 2}, 1, {1, 0, 0}, 0.5);
    const EventsResult found = time_events(made, 100, Queueing::in_turns, false);
    expect(near(found.seconds, 200.0) && near(found.busiest, 1.0), "two of 100 rounds each");
}

// Each of `nodes` sends, all sends meet in one operation, and each takes back what it says; eight may be under way.
Schedule meeting(std::int64_t nodes, double slower = 1.0) {
    const std::array<double, 1> each{1.0}, none{0.0}, latency{0.25};
    Schedule made;
    made.add({0, 1, nodes}, each);
    made.add({0, 1, 1}, none);
    made.add({0, 1, nodes}, each);
    for (std::int64_t node = 0; node < nodes; ++node) {
        made.wait(1, {0, 1, 1}, 0, {0, node, 0}, 0, latency);
    }
    made.wait(2, {0, 1, nodes}, 1, {0, 0, 0}, 0, none);
    made.wait(0, {0, 1, nodes}, 2, {1, 0, 0}, 8, none);
    // Out of a link, and into another one.
    made.pass(0, {0, 1, nodes}, 0, {1, 0, 0}, 1.0);
    made.pass(2, {0, 1, nodes}, nodes, {1, 0, 0}, 1.0);
    if (slower != 1.0) {
        made.slow(0, nodes - 1, slower);
        made.slow(2, nodes - 1, slower);
    }
    return made;
}

void where_all_meet_the_slowest_counts_and_the_number_does_not() {
    for (const std::uint64_t rounds : {1U, 9U, 500U}) {
        const double end = time_steps(meeting(3), rounds, false).seconds;
        expect(near(end, static_cast<double>(rounds) + 1.25), "a chunk after another, and the last one's way");
        const Schedule many = meeting(1024), folded = many.folded();
        expect(folded.size() == 3, "all that send are alike, and all that take back");
        expect(time_steps(many, rounds, false).seconds == end && time_steps(folded, rounds, false).seconds == end,
               "of 1,024 as of 3");
        expect(near(time_events(many, rounds, Queueing::in_turns, false).seconds, end), "and by events");
        const Schedule late = meeting(64, 2.0), late_folded = late.folded();
        const double later = time_steps(late, rounds, false).seconds;
        expect(near(later, 2.0 * static_cast<double>(rounds) + 2.25), "all wait for the slow one");
        expect(late_folded.size() == 5 && time_steps(late_folded, rounds, false).seconds == later, "which stays apart");
        expect(near(time_events(late, rounds, Queueing::first_come, false).seconds, later), "by events too");
    }
}

void what_waits_for_itself_is_refused() {
    Schedule made;
    const std::array<double, 1> one{1.0};
    made.add({0, 1, 2}, one);
    made.wait(0, {0, 1, 2}, 0, {1, 1, 2}, 0, one);
    expect_throw<std::invalid_argument>([&] { time_steps(made, 1, true); }, "a deadlock, by steps");
    expect_throw<std::invalid_argument>([&] { time_events(made, 1, Queueing::in_turns, true); }, "and by events");
}

void what_cannot_be_is_refused() {
    const std::array<double, 1> one{1.0}, below{-1.0};
    Schedule made;
    made.add({0, 1, 4}, one);
    expect_throw<std::invalid_argument>([&] { made.add({0, 0, 4}, one); }, "a stride of 0");
    expect_throw<std::invalid_argument>([&] { made.add({0, 1, 4'000'000}, one); }, "too many operations");
    expect_throw<std::invalid_argument>([&] { made.add({0, 1, 4}, below); }, "a time below 0");
    expect_throw<std::invalid_argument>([&] { made.wait(0, {0, 1, 4}, 0, {1, 1, 0}, 0, one); }, "a peer beyond");
    expect_throw<std::invalid_argument>([&] { made.wait(0, {0, 1, 4}, 1, {1, 0, 0}, 0, one); }, "no such block");
    expect_throw<std::invalid_argument>([&] { made.pass(0, {0, 1, 4}, -2, {1, 0, 0}, 1.0); }, "a server below 0");
    expect_throw<std::invalid_argument>([&] { made.slow(0, 4, 2.0); }, "a rank beyond");
    expect_throw<std::invalid_argument>([&] { time_steps(made, 0, true); }, "no rounds");
}

}  // namespace

int main() {
    a_folded_ring_ends_when_the_whole_one_does();
    a_ring_in_tiles_is_the_ring();
    what_differs_stays();
    events_agree_with_steps_where_nothing_is_shared();
    times_of_all_lengths_keep_their_order();
    rounds_that_are_gone_through_side_by_side_end_as_one_after_another();
    rounds_that_are_skipped_are_told_right();
    a_crossing_to_come_is_not_skipped();
    a_server_that_two_share_takes_as_long_as_both();
    where_all_meet_the_slowest_counts_and_the_number_does_not();
    what_waits_for_itself_is_refused();
    what_cannot_be_is_refused();
    return verdict();
}
