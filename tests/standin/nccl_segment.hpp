// The memory that all ranks of a communicator share, and how they wait for each other in it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nccl.hpp"

namespace standin::nccl {

struct UniqueId {
    std::array<char, 128> internal;
};

// What one rank tells the others while it holds no slot: as much as a split needs.
inline constexpr std::size_t post_bytes = 512;

struct Barrier {
    std::atomic<std::uint32_t> arrived;
    std::atomic<std::uint32_t> generation;
};

// A box for one piece of a message from one rank to one other.
struct Box {
    static constexpr std::size_t room = 128 << 10;
    std::atomic<std::uint32_t> full;
    std::uint32_t bytes;
    std::array<std::byte, room> piece;
};

class Segment {
   public:
    static constexpr std::size_t slot_bytes = 1 << 20;
    static constexpr int most_ranks = 64;

    // An id with a fresh segment behind it, which this process keeps open for the others.
    static UniqueId create();

    // Opens what is behind `id`, for `ranks` ranks. Throws Problem where there is nothing.
    Segment(const UniqueId& id, int ranks);
    ~Segment();
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    // Nobody attaches any more: whoever made the id may close it.
    static void release(const UniqueId& id);

    // Each waits until all ranks called it: the first for threads that call NCCL, the second for streams.
    void meet_on_host();
    void meet_on_stream();

    [[nodiscard]] std::span<std::byte, post_bytes> host_post(int rank) const;
    [[nodiscard]] std::span<std::byte, post_bytes> stream_post(int rank) const;
    [[nodiscard]] std::byte* slot(int rank) const;
    [[nodiscard]] Box& box(int from, int to) const;
    // Rung whenever a box that `rank` writes to or reads from has changed.
    [[nodiscard]] std::atomic<std::uint32_t>& doorbell(int rank) const;
    void ring(int rank) const;

    // Returns when `word` is not `value` any more. Throws Problem after abort() or when its peers are silent too long.
    void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value) const;

    void abort() { aborted_ = true; }
    [[nodiscard]] bool is_aborted() const { return aborted_; }

    const int ranks;

   private:
    void meet(Barrier& barrier) const;
    [[nodiscard]] std::byte* at(std::size_t offset) const { return start_ + offset; }

    std::byte* start_ = nullptr;
    std::size_t bytes_ = 0;
    std::atomic<bool> aborted_{false};
};

}  // namespace standin::nccl
