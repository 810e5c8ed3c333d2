#include "schedule_events.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <future>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace busbw {

namespace {

constexpr std::uint64_t most_events = 5'000'000'000;
constexpr std::uint64_t first_rounds = 64;
// Rounds of operations: some hundredths of a second.
constexpr std::uint64_t worth_a_thread = 65'536;
// Periods that differ by less are the same, and one this near to the use of the busiest server is that use.
constexpr double same_period = 5e-3;

struct Event {
    double time_s;
    // Of events at one time the one that was told first comes first.
    std::uint64_t told;
    std::uint32_t operation;
    // The server of its passes that it comes to; as many as there are: it ends.
    std::uint32_t stage;
    // When its tail has left the servers that it passed so far.
    double tail_s;
    bool operator>(const Event& other) const {
        return time_s != other.time_s ? time_s > other.time_s : told > other.told;
    }
};

struct Following {
    std::uint32_t operation;
    std::uint32_t lag;
    double latency_s;
};

struct Graph {
    // Where an operation's part of the columns begins; it ends where the next one's begins.
    struct Place {
        std::uint32_t after;
        std::uint32_t passes;
        std::uint32_t lags;
        std::uint32_t most_lag;
    };
    [[nodiscard]] std::size_t size() const { return places.size() - 1; }
    [[nodiscard]] std::span<const Following> after_of(std::uint32_t which) const {
        return std::span(after).subspan(places[which].after, places[which + 1].after - places[which].after);
    }
    [[nodiscard]] std::uint32_t stages(std::uint32_t which) const {
        return places[which + 1].passes - places[which].passes;
    }
    // How many of its waits are for something in this round: in the first ones some are for nothing.
    [[nodiscard]] std::uint32_t open(std::uint32_t which, std::uint64_t round) const {
        const std::uint32_t all = places[which + 1].lags - places[which].lags;
        if (round >= places[which].most_lag) {
            return all;
        }
        const auto own = std::span(lags).subspan(places[which].lags, all);
        return static_cast<std::uint32_t>(std::ranges::count_if(own, [&](auto lag) { return lag <= round; }));
    }

    std::vector<Place> places;
    std::vector<Following> after;
    std::vector<Pass> passes;
    std::vector<std::uint32_t> lags;
    std::size_t servers = 0;
};

Graph graph_of(const Schedule& schedule) {
    Graph found;
    const std::size_t size = schedule.size();
    found.places.resize(size + 1);
    found.servers = schedule.servers();
    std::vector<std::uint32_t> counts(size, 0);
    for (std::uint32_t at = 0; at < size; ++at) {
        Graph::Place& place = found.places[at];
        place.passes = static_cast<std::uint32_t>(found.passes.size());
        place.lags = static_cast<std::uint32_t>(found.lags.size());
        for (const Wait& each : schedule.waits()[at]) {
            ++counts[each.source];
            found.lags.push_back(each.lag);
            place.most_lag = std::max(place.most_lag, each.lag);
        }
        const std::vector<Pass>& passes = schedule.passes()[at];
        found.passes.insert(found.passes.end(), passes.begin(), passes.end());
        if (passes.empty()) {
            found.passes.push_back({static_cast<std::uint32_t>(found.servers++), schedule.seconds()[at]});
        }
    }
    std::uint32_t all = 0;
    for (std::uint32_t at = 0; at < size; ++at) {
        found.places[at].after = all;
        all += counts[at];
        counts[at] = found.places[at].after;
    }
    found.places[size] = {all, static_cast<std::uint32_t>(found.passes.size()),
                          static_cast<std::uint32_t>(found.lags.size()), 0};
    found.after.resize(all);
    for (std::uint32_t at = 0; at < size; ++at) {
        for (const Wait& each : schedule.waits()[at]) {
            found.after[counts[each.source]++] = {at, each.lag, each.latency_s};
        }
    }
    return found;
}

// Events by their time, and at one time as they were told. Only those of the bin of time that is open are sorted; what
// is told for it later stands in a heap, and what lies beyond the last bin in no order.
class Agenda {
   public:
    // Some `events` take `seconds`.
    Agenda(std::uint64_t events, double seconds)
        : per_s_{seconds > 0.0 ? static_cast<double>(events) / seconds / in_a_bin : 0.0}, bins_(bins) {}

    [[nodiscard]] bool empty() const { return size_ == 0; }

    void push(const Event& event) {
        ++size_;
        const std::uint64_t bin = bin_of(event.time_s);
        if (bin <= open_) {
            late_.push_back(event);
            std::ranges::push_heap(late_, std::greater<>{});
        } else {
            store(event, bin);
        }
    }

    Event pop() {
        if (sorted_.empty() && late_.empty()) {
            open_next();
        }
        --size_;
        if (late_.empty() || (!sorted_.empty() && late_.front() > sorted_.back())) {
            const Event event = sorted_.back();
            sorted_.pop_back();
            return event;
        }
        std::ranges::pop_heap(late_, std::greater<>{});
        const Event event = late_.back();
        late_.pop_back();
        return event;
    }

   private:
    static constexpr std::size_t bins = 4096, word = 64;
    static constexpr double in_a_bin = 16.0, last_bin = 1e18;

    // A later bin only for what is later.
    [[nodiscard]] std::uint64_t bin_of(double time_s) const {
        return static_cast<std::uint64_t>(std::min(time_s * per_s_, last_bin));
    }

    void store(const Event& event, std::uint64_t bin) {
        if (bin - open_ >= bins) {
            far_.push_back(event);
            nearest_far_ = std::min(nearest_far_, bin);
            return;
        }
        bins_[bin % bins].push_back(event);
        used_[bin % bins / word] |= std::uint64_t{1} << (bin % word);
    }

    // The next bin with an event; all bins and the open one are empty: the nearest beyond them.
    [[nodiscard]] std::uint64_t next_bin() const {
        const std::size_t begin = (open_ + 1) % bins;
        std::uint64_t left = used_[begin / word] & (~std::uint64_t{0} << (begin % word));
        for (std::size_t words = 0; words <= bins / word; ++words) {
            const std::size_t at = (begin / word + words) % (bins / word);
            left = words == 0 ? left : used_[at];
            if (left != 0) {
                const std::size_t found = at * word + static_cast<std::size_t>(std::countr_zero(left));
                return open_ + 1 + (found + bins - begin) % bins;
            }
        }
        return nearest_far_;
    }

    void open_next() {
        open_ = std::min(next_bin(), nearest_far_);
        if (nearest_far_ - open_ < bins) {
            std::vector<Event> far;
            far.swap(far_);
            nearest_far_ = none;
            for (const Event& each : far) {
                store(each, bin_of(each.time_s));
            }
        }
        sorted_.swap(bins_[open_ % bins]);
        used_[open_ % bins / word] &= ~(std::uint64_t{1} << (open_ % word));
        std::ranges::sort(sorted_, std::greater<>{});
    }

    static constexpr std::uint64_t none = ~std::uint64_t{0};

    double per_s_;
    std::size_t size_ = 0;
    std::uint64_t open_ = 0;
    std::uint64_t nearest_far_ = none;
    // The earliest last.
    std::vector<Event> sorted_;
    std::vector<Event> late_;
    std::vector<std::vector<Event>> bins_;
    // A bit a bin: whether anything is in it.
    std::array<std::uint64_t, bins / word> used_{};
    std::vector<Event> far_;
};

// What is known of the rounds of an operation that have not begun.
class Rounds {
   public:
    struct Round {
        std::uint32_t open;
        double ready_s;
    };

    [[nodiscard]] std::size_t size() const { return size_; }
    Round& operator[](std::size_t at) { return kept_[(first_ + at) & (kept_.size() - 1)]; }
    void push(const Round& round) {
        if (size_ == kept_.size()) {
            grow();
        }
        ++size_;
        (*this)[size_ - 1] = round;
    }
    void pop() {
        first_ = (first_ + 1) & static_cast<std::uint32_t>(kept_.size() - 1);
        --size_;
    }

   private:
    void grow() {
        std::vector<Round> grown(std::max<std::size_t>(4, 2 * std::size_t{size_}));
        for (std::size_t at = 0; at < size_; ++at) {
            grown[at] = (*this)[at];
        }
        kept_.swap(grown);
        first_ = 0;
    }

    // As many as a power of two.
    std::vector<Round> kept_;
    std::uint32_t first_ = 0;
    std::uint32_t size_ = 0;
};

class Run {
   public:
    Run(const Graph& graph, std::uint64_t rounds, Queueing queueing, double busiest_s)
        : graph_{graph},
          rounds_{rounds},
          queueing_{queueing},
          free_(graph.servers, 0.0),
          operations_(graph.size()),
          agenda_{graph.passes.size() + graph.size(), busiest_s} {}

    // Returns when all rounds of all operations have ended.
    double end() {
        for (std::uint32_t at = 0; at < operations_.size(); ++at) {
            release(at);
        }
        while (!agenda_.empty()) {
            const Event event = agenda_.pop();
            if (++events_ > most_events) {
                throw std::invalid_argument("more than " + std::to_string(most_events) + " events");
            }
            if (event.stage == graph_.stages(event.operation)) {
                finish(event);
            } else {
                serve(event);
            }
        }
        for (const Operation& each : operations_) {
            if (each.ended < rounds_) {
                throw std::invalid_argument("operations wait for each other: a deadlock");
            }
        }
        return end_s_;
    }
    [[nodiscard]] std::uint64_t events() const { return events_; }

   private:
    struct Operation {
        // Rounds from `next` on that something is known of.
        Rounds ahead;
        std::uint64_t next = 0;
        std::uint64_t ended = 0;
        // In turns: whether a round of it stands at its first server.
        bool is_at_door = false;
        double door_s = 0.0;
    };

    void tell(double time_s, std::uint32_t operation, std::uint32_t stage, double tail_s) {
        agenda_.push({time_s, told_++, operation, stage, tail_s});
    }

    Rounds::Round& ahead(std::uint32_t which, std::uint64_t round) {
        Operation& own = operations_[which];
        while (own.next + own.ahead.size() <= round) {
            own.ahead.push({graph_.open(which, own.next + own.ahead.size()), 0.0});
        }
        return own.ahead[round - own.next];
    }

    // Sends on what waits for nothing any more. What never waits comes to its server one round at a time.
    void release(std::uint32_t which) {
        Operation& own = operations_[which];
        const bool in_turns =
            queueing_ == Queueing::in_turns || graph_.places[which].lags == graph_.places[which + 1].lags;
        while (own.next < rounds_ && !(in_turns && own.is_at_door)) {
            const Rounds::Round first = ahead(which, own.next);
            if (first.open > 0) {
                return;
            }
            own.ahead.pop();
            ++own.next;
            own.is_at_door = true;
            const double at_s = std::max(first.ready_s, own.door_s);
            tell(at_s, which, 0, 0.0);
        }
    }

    void serve(const Event& event) {
        const Pass& pass = graph_.passes[graph_.places[event.operation].passes + event.stage];
        const double start_s = std::max(event.time_s, free_[pass.server]);
        free_[pass.server] = start_s + pass.seconds;
        const double tail_s = std::max(free_[pass.server], event.tail_s);
        const bool is_last = event.stage + 1 == graph_.stages(event.operation);
        tell(is_last ? tail_s : start_s, event.operation, event.stage + 1, tail_s);
        if (event.stage == 0) {
            Operation& own = operations_[event.operation];
            own.is_at_door = false;
            own.door_s = start_s;
            release(event.operation);
        }
    }

    void finish(const Event& event) {
        Operation& own = operations_[event.operation];
        const std::uint64_t round = own.ended++;
        end_s_ = std::max(end_s_, event.time_s);
        for (const Following& each : graph_.after_of(event.operation)) {
            if (each.lag < rounds_ - round) {
                Rounds::Round& waiting = ahead(each.operation, round + each.lag);
                --waiting.open;
                waiting.ready_s = std::max(waiting.ready_s, event.time_s + each.latency_s);
                release(each.operation);
            }
        }
    }

    const Graph& graph_;
    std::uint64_t rounds_;
    Queueing queueing_;
    std::vector<double> free_;
    std::vector<Operation> operations_;
    Agenda agenda_;
    std::uint64_t told_ = 0;
    std::uint64_t events_ = 0;
    double end_s_ = 0.0;
};

struct Ended {
    double seconds;
    std::uint64_t events;
};

// How long the busiest server is in use in a round.
double busiest_s(const Graph& graph) {
    std::vector<double> used_s(graph.servers, 0.0);
    for (const Pass& each : graph.passes) {
        used_s[each.server] += each.seconds;
    }
    return used_s.empty() ? 0.0 : *std::ranges::max_element(used_s);
}

}  // namespace

EventsResult time_events(const Schedule& schedule, std::uint64_t rounds, Queueing queueing, bool skips) {
    if (rounds < 1 || schedule.size() < 1 || rounds > most_events / schedule.size()) {
        throw std::invalid_argument(std::to_string(rounds) + " rounds of " + std::to_string(schedule.size()) +
                                    " operations");
    }
    order_of(schedule);
    const Graph graph = graph_of(schedule);
    const double used_s = busiest_s(graph);
    std::uint64_t events = 0;
    const auto note = [&](const Ended& ended) {
        events += ended.events;
        return ended.seconds;
    };
    const auto end_of = [&](std::uint64_t which) {
        Run run{graph, which, queueing, used_s};
        const double end_s = run.end();
        return Ended{end_s, run.events()};
    };
    // Three runs of some rounds, twice and three times as many, cost less than all rounds. The longest takes as long as
    // the two others, which are gone through beside it. The second is the first of the next three.
    std::optional<double> known_s;
    for (std::uint64_t some = first_rounds; skips && some * 6 < rounds; some *= 2) {
        const auto policy = some * schedule.size() < worth_a_thread ? std::launch::deferred : std::launch::async;
        std::future<Ended> third = std::async(policy, end_of, 3 * some);
        const double first_s = known_s.has_value() ? *known_s : note(end_of(some));
        const double second_s = note(end_of(2 * some)), third_s = note(third.get());
        known_s = second_s;
        const auto each = static_cast<double>(some);
        const double before_s = (second_s - first_s) / each, after_s = (third_s - second_s) / each;
        const double mean_s = (third_s - first_s) / (2 * each);
        const double left = static_cast<double>(rounds - 3 * some);
        // Where a server is always in use its use is the period; a chunk more or less at the end blurs what is seen.
        if (std::abs(mean_s - used_s) <= same_period * used_s &&
            std::abs(after_s - before_s) <= 4 * same_period * used_s) {
            return {third_s + left * used_s, events, 3 * some, used_s, 1.0};
        }
        if (std::abs(after_s - before_s) <= same_period * after_s && mean_s > used_s) {
            return {third_s + left * mean_s, events, 3 * some, mean_s, used_s / mean_s};
        }
    }
    const double end_s = note(end_of(rounds));
    return {end_s, events, rounds, 0.0, end_s > 0.0 ? used_s * static_cast<double>(rounds) / end_s : 0.0};
}

}  // namespace busbw
