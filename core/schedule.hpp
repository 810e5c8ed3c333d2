// A schedule that can be timed: operations, each done once in every round by the same place, and what each waits for.
// Blocks of alike operations stand one after another; what an operation of a block waits for, and which shared servers
// it passes, is an affine map of its rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace busbw {

// (times * rank + plus) mod modulo, from 0 on; a modulo of 0 takes none.
struct AffineMap {
    std::int64_t times;
    std::int64_t plus;
    std::int64_t modulo;
    [[nodiscard]] std::int64_t of(std::int64_t rank) const;
};

// Ranks first, first + stride, ...: count of them.
struct RankRange {
    std::int64_t first;
    std::int64_t stride;
    std::int64_t count;
};

// An operation starts its round k no sooner than `source` has ended round k - lag, and `latency_s` later.
struct Wait {
    std::uint32_t source;
    std::uint32_t lag;
    double latency_s;
};

// An operation occupies `server` for `seconds` each round.
struct Pass {
    std::uint32_t server;
    double seconds;
};

// Operations with their waits and passes; entry i of each column is of operation i.
class Schedule {
   public:
    // Adds a block of operations, one a rank; returns its number. `seconds` are those of the first ranks and repeat.
    // Throws std::invalid_argument for what is no range, or no time, and for more operations than can be held.
    std::size_t add(const RankRange& ranks, std::span<const double> seconds);
    // The operations of `block` at `ranks` wait for those of `source` at the mapped rank; `latencies_s` repeat. Throws
    // std::invalid_argument where a rank has no operation there.
    void wait(std::size_t block, const RankRange& ranks, std::size_t source, const AffineMap& peer, std::uint32_t lag,
              std::span<const double> latencies_s);
    // The operations of `block` at `ranks` pass the server first + mapped rank, `seconds` each, after those that they
    // pass already.
    void pass(std::size_t block, const RankRange& ranks, std::int64_t first, const AffineMap& server, double seconds);
    // The operation of `rank` in `block` takes `times` as long, also on the servers that it passes.
    void slow(std::size_t block, std::int64_t rank, double times);

    [[nodiscard]] std::size_t size() const { return seconds_.size(); }
    [[nodiscard]] std::size_t servers() const { return servers_; }
    [[nodiscard]] const std::vector<double>& seconds() const { return seconds_; }
    [[nodiscard]] const std::vector<std::vector<Wait>>& waits() const { return waits_; }
    [[nodiscard]] const std::vector<std::vector<Pass>>& passes() const { return passes_; }

    // The same schedule with one operation for all that cannot differ: alike in time and in all that they wait for.
    // Servers are not kept.
    [[nodiscard]] Schedule folded() const;

   private:
    struct Block {
        RankRange ranks;
        std::size_t begin;
    };
    [[nodiscard]] const Block& at(std::size_t block) const;
    [[nodiscard]] static std::size_t operation(const Block& block, std::int64_t rank);

    std::vector<Block> blocks_;
    std::vector<double> seconds_;
    std::vector<std::vector<Wait>> waits_;
    std::vector<std::vector<Pass>> passes_;
    std::size_t servers_ = 0;
};

// Operations in an order in which each stands after all that it waits for within a round. Throws std::invalid_argument
// where there is none: the schedule would wait for itself for ever.
std::vector<std::uint32_t> order_of(const Schedule& schedule);

}  // namespace busbw
