#include "schedule.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace busbw {

namespace {

// Some 300 bytes each with what they wait for.
constexpr std::size_t most_operations = 3'000'000;
constexpr std::size_t most_servers = 10'000'000;
constexpr std::uint32_t most_lag = 65'536;
constexpr std::int64_t most_rank = 1'000'000'000;
// A schedule whose operations still differ more after so many looks at their neighbours is left as it is.
constexpr int most_looks = 1024;

void check_times(std::span<const double> times, const char* what) {
    if (times.empty()) {
        throw std::invalid_argument(std::string{what} + " without a time");
    }
    for (const double each : times) {
        if (!(each >= 0.0) || !std::isfinite(each)) {
            throw std::invalid_argument(std::string{what} + " of " + std::to_string(each) + " s");
        }
    }
}

void check_range(const RankRange& ranks) {
    if (ranks.first < 0 || ranks.stride < 1 || ranks.count < 0 || ranks.first > most_rank || ranks.stride > most_rank ||
        ranks.count > most_rank) {
        throw std::invalid_argument("ranks from " + std::to_string(ranks.first) + " by " +
                                    std::to_string(ranks.stride) + ", " + std::to_string(ranks.count) + " of them");
    }
}

void check_map(const AffineMap& map) {
    if (std::abs(map.times) > most_rank || std::abs(map.plus) > most_rank || map.modulo < 0 || map.modulo > most_rank) {
        throw std::invalid_argument("a map of " + std::to_string(map.times) + " r + " + std::to_string(map.plus) +
                                    " mod " + std::to_string(map.modulo));
    }
}

std::uint64_t mixed(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15U;
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31U);
}

std::uint64_t mixed(std::uint64_t one, std::uint64_t other) { return mixed(one ^ mixed(other)); }

// Numbers keys from 0 in their order of appearance; returns how many there are.
std::size_t number(const std::vector<std::uint64_t>& keys, std::vector<std::uint32_t>& numbers) {
    std::unordered_map<std::uint64_t, std::uint32_t> seen;
    for (std::size_t at = 0; at < keys.size(); ++at) {
        numbers[at] = seen.try_emplace(keys[at], static_cast<std::uint32_t>(seen.size())).first->second;
    }
    return seen.size();
}

}  // namespace

std::int64_t AffineMap::of(std::int64_t rank) const {
    const std::int64_t value = times * rank + plus;
    return modulo == 0 ? value : (value % modulo + modulo) % modulo;
}

std::size_t Schedule::add(const RankRange& ranks, std::span<const double> seconds) {
    check_range(ranks);
    check_times(seconds, "an operation");
    const auto count = static_cast<std::size_t>(ranks.count);
    if (count > most_operations - size()) {
        throw std::invalid_argument("more than " + std::to_string(most_operations) + " operations");
    }
    blocks_.push_back({ranks, size()});
    for (std::size_t each = 0; each < count; ++each) {
        seconds_.push_back(seconds[each % seconds.size()]);
    }
    waits_.resize(size());
    passes_.resize(size());
    return blocks_.size() - 1;
}

const Schedule::Block& Schedule::at(std::size_t block) const {
    if (block >= blocks_.size()) {
        throw std::invalid_argument("no block " + std::to_string(block));
    }
    return blocks_[block];
}

std::size_t Schedule::operation(const Block& block, std::int64_t rank) {
    const std::int64_t past = rank - block.ranks.first;
    if (past < 0 || past % block.ranks.stride != 0 || past / block.ranks.stride >= block.ranks.count) {
        throw std::invalid_argument("rank " + std::to_string(rank) + " has no operation in that block");
    }
    return block.begin + static_cast<std::size_t>(past / block.ranks.stride);
}

void Schedule::wait(std::size_t block, const RankRange& ranks, std::size_t source, const AffineMap& peer,
                    std::uint32_t lag, std::span<const double> latencies_s) {
    const Block& own = at(block);
    const Block& other = at(source);
    check_range(ranks);
    check_map(peer);
    check_times(latencies_s, "a latency");
    if (lag > most_lag) {
        throw std::invalid_argument("a wait over " + std::to_string(lag) + " rounds");
    }
    for (std::int64_t each = 0; each < ranks.count; ++each) {
        const std::int64_t rank = ranks.first + each * ranks.stride;
        const auto waited = static_cast<std::uint32_t>(operation(other, peer.of(rank)));
        const double latency_s = latencies_s[static_cast<std::size_t>(each) % latencies_s.size()];
        waits_[operation(own, rank)].push_back({waited, lag, latency_s});
    }
}

void Schedule::pass(std::size_t block, const RankRange& ranks, std::int64_t first, const AffineMap& server,
                    double seconds) {
    const Block& own = at(block);
    check_range(ranks);
    check_map(server);
    check_times({&seconds, 1}, "a passage");
    for (std::int64_t each = 0; each < ranks.count; ++each) {
        const std::int64_t rank = ranks.first + each * ranks.stride;
        const std::int64_t passed = first + server.of(rank);
        if (passed < 0 || passed >= static_cast<std::int64_t>(most_servers)) {
            throw std::invalid_argument("no server " + std::to_string(passed));
        }
        passes_[operation(own, rank)].push_back({static_cast<std::uint32_t>(passed), seconds});
        servers_ = std::max(servers_, static_cast<std::size_t>(passed) + 1);
    }
}

void Schedule::slow(std::size_t block, std::int64_t rank, double times) {
    if (!(times > 0.0) || !std::isfinite(times)) {
        throw std::invalid_argument("an operation cannot take " + std::to_string(times) + " times as long");
    }
    const std::size_t which = operation(at(block), rank);
    seconds_[which] *= times;
    for (Pass& each : passes_[which]) {
        each.seconds *= times;
    }
}

Schedule Schedule::folded() const {
    std::vector<std::uint64_t> keys(size());
    std::vector<std::uint32_t> colours(size());
    for (std::size_t at = 0; at < size(); ++at) {
        keys[at] = mixed(std::bit_cast<std::uint64_t>(seconds_[at]));
    }
    std::size_t count = number(keys, colours);
    for (int look = 0;; ++look) {
        if (look == most_looks || count > size() / 2) {
            return *this;
        }
        for (std::size_t at = 0; at < size(); ++at) {
            // A sum, so that the order in which waits are listed does not count.
            std::uint64_t all = 0;
            for (const Wait& each : waits_[at]) {
                all += mixed(mixed(colours[each.source], each.lag), std::bit_cast<std::uint64_t>(each.latency_s));
            }
            keys[at] = mixed(mixed(colours[at]), all);
        }
        const std::size_t refined = number(keys, colours);
        if (refined == count) {
            break;
        }
        count = refined;
    }
    Schedule found;
    found.seconds_.resize(count);
    found.waits_.resize(count);
    found.passes_.resize(count);
    std::vector<bool> is_taken(count, false);
    for (std::size_t at = 0; at < size(); ++at) {
        const std::uint32_t colour = colours[at];
        if (is_taken[colour]) {
            continue;
        }
        is_taken[colour] = true;
        found.seconds_[colour] = seconds_[at];
        for (const Wait& each : waits_[at]) {
            found.waits_[colour].push_back({colours[each.source], each.lag, each.latency_s});
        }
    }
    return found;
}

std::vector<std::uint32_t> order_of(const Schedule& schedule) {
    const std::size_t size = schedule.size();
    std::vector<std::uint32_t> open(size, 0), order;
    std::vector<std::vector<std::uint32_t>> after(size);
    for (std::uint32_t at = 0; at < size; ++at) {
        for (const Wait& each : schedule.waits()[at]) {
            if (each.lag == 0) {
                ++open[at];
                after[each.source].push_back(at);
            }
        }
    }
    order.reserve(size);
    for (std::uint32_t at = 0; at < size; ++at) {
        if (open[at] == 0) {
            order.push_back(at);
        }
    }
    for (std::size_t next = 0; next < order.size(); ++next) {
        for (const std::uint32_t each : after[order[next]]) {
            if (--open[each] == 0) {
                order.push_back(each);
            }
        }
    }
    if (order.size() < size) {
        throw std::invalid_argument(std::to_string(size - order.size()) +
                                    " operations wait for each other within a round: a deadlock");
    }
    return order;
}

}  // namespace busbw
