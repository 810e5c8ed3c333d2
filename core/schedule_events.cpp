#include "schedule_events.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>
#include <stdexcept>
#include <string>
#include <vector>

namespace busbw {

namespace {

constexpr std::uint64_t most_events = 5'000'000'000;
constexpr std::uint64_t first_rounds = 64;
// Periods that differ by less are the same, and one this near to the use of the busiest server is that use.
constexpr double same = 5e-3;

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
    std::vector<std::vector<Following>> after;
    std::vector<std::vector<Pass>> passes;
    // The waits of each operation by lag, for the first rounds, in which some are for nothing.
    std::vector<std::vector<std::uint32_t>> lags;
    std::size_t servers = 0;
};

Graph graph_of(const Schedule& schedule) {
    Graph found;
    const std::size_t size = schedule.size();
    found.after.resize(size);
    found.lags.resize(size);
    found.passes = schedule.passes();
    found.servers = schedule.servers();
    for (std::uint32_t at = 0; at < size; ++at) {
        for (const Wait& each : schedule.waits()[at]) {
            found.after[each.source].push_back({at, each.lag, each.latency_s});
            found.lags[at].push_back(each.lag);
        }
        if (found.passes[at].empty()) {
            found.passes[at].push_back({static_cast<std::uint32_t>(found.servers++), schedule.seconds()[at]});
        }
    }
    return found;
}

class Run {
   public:
    Run(const Graph& graph, std::uint64_t rounds, Queueing queueing)
        : graph_{graph},
          rounds_{rounds},
          queueing_{queueing},
          free_(graph.servers, 0.0),
          operations_(graph.after.size()) {}

    // Returns when all rounds of all operations have ended.
    double end() {
        for (std::uint32_t at = 0; at < operations_.size(); ++at) {
            release(at);
        }
        while (!queue_.empty()) {
            const Event event = queue_.top();
            queue_.pop();
            if (++events_ > most_events) {
                throw std::invalid_argument("more than " + std::to_string(most_events) + " events");
            }
            if (event.stage == graph_.passes[event.operation].size()) {
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
    struct Round {
        std::uint32_t open;
        double ready_s;
    };
    struct Operation {
        // Rounds from `next` on that something is known of.
        std::deque<Round> ahead;
        std::uint64_t next = 0;
        std::uint64_t ended = 0;
        // In turns: whether a round of it stands at its first server.
        bool is_at_door = false;
        double door_s = 0.0;
    };

    void tell(double time_s, std::uint32_t operation, std::uint32_t stage, double tail_s) {
        queue_.push({time_s, told_++, operation, stage, tail_s});
    }

    Round& ahead(std::uint32_t which, std::uint64_t round) {
        Operation& own = operations_[which];
        while (own.next + own.ahead.size() <= round) {
            const std::uint64_t made = own.next + own.ahead.size();
            const auto open = std::ranges::count_if(graph_.lags[which], [&](auto lag) { return lag <= made; });
            own.ahead.push_back({static_cast<std::uint32_t>(open), 0.0});
        }
        return own.ahead[round - own.next];
    }

    // Sends on what waits for nothing any more. What never waits comes to its server one round at a time.
    void release(std::uint32_t which) {
        Operation& own = operations_[which];
        const bool in_turns = queueing_ == Queueing::in_turns || graph_.lags[which].empty();
        while (own.next < rounds_ && !(in_turns && own.is_at_door)) {
            const Round first = ahead(which, own.next);
            if (first.open > 0) {
                return;
            }
            own.ahead.pop_front();
            ++own.next;
            own.is_at_door = true;
            const double at_s = std::max(first.ready_s, own.door_s);
            tell(at_s, which, 0, 0.0);
        }
    }

    void serve(const Event& event) {
        const Pass& pass = graph_.passes[event.operation][event.stage];
        const double start_s = std::max(event.time_s, free_[pass.server]);
        free_[pass.server] = start_s + pass.seconds;
        const double tail_s = std::max(free_[pass.server], event.tail_s);
        const bool is_last = event.stage + 1 == graph_.passes[event.operation].size();
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
        for (const Following& each : graph_.after[event.operation]) {
            if (each.lag < rounds_ - round) {
                Round& waiting = ahead(each.operation, round + each.lag);
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
    std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
    std::uint64_t told_ = 0;
    std::uint64_t events_ = 0;
    double end_s_ = 0.0;
};

// How long the busiest server is in use in a round.
double busiest_s(const Graph& graph) {
    std::vector<double> used_s(graph.servers, 0.0);
    for (const std::vector<Pass>& passes : graph.passes) {
        for (const Pass& each : passes) {
            used_s[each.server] += each.seconds;
        }
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
    const auto end_of = [&](std::uint64_t which) {
        Run run{graph, which, queueing};
        const double end_s = run.end();
        events += run.events();
        return end_s;
    };
    // Three runs of some rounds, twice and three times as many, cost less than all rounds.
    for (std::uint64_t some = first_rounds; skips && some * 6 < rounds; some *= 2) {
        const auto each = static_cast<double>(some);
        const double first_s = end_of(some), second_s = end_of(2 * some), third_s = end_of(3 * some);
        const double before_s = (second_s - first_s) / each, after_s = (third_s - second_s) / each;
        const double mean_s = (third_s - first_s) / (2 * each);
        const double left = static_cast<double>(rounds - 3 * some);
        // Where a server is always in use its use is the period; a chunk more or less at the end blurs what is seen.
        if (std::abs(mean_s - used_s) <= same * used_s && std::abs(after_s - before_s) <= 4 * same * used_s) {
            return {third_s + left * used_s, events, 3 * some, used_s, 1.0};
        }
        if (std::abs(after_s - before_s) <= same * after_s && mean_s > used_s) {
            return {third_s + left * mean_s, events, 3 * some, mean_s, used_s / mean_s};
        }
    }
    const double end_s = end_of(rounds);
    return {end_s, events, rounds, 0.0, end_s > 0.0 ? used_s * static_cast<double>(rounds) / end_s : 0.0};
}

}  // namespace busbw
