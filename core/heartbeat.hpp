// Where a rank is, written where the launching process can read it while the rank hangs: eight 64-bit words in a
// mapped file, stored without locks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace busbw {

class Heartbeat {
   public:
    // The words, in the order they stand in the file.
    enum Word : std::size_t { process_id, state, point, samples, calls, in_call, stop_asked, turns };
    static constexpr std::size_t bytes = 8 * sizeof(std::uint64_t);

    // Uses `memory`, which must be 64 bytes, aligned to 8, and live longer than this. Throws std::invalid_argument.
    explicit Heartbeat(std::span<std::byte> memory) : words_{reinterpret_cast<std::uint64_t*>(memory.data())} {
        if (memory.size() < bytes || reinterpret_cast<std::uintptr_t>(memory.data()) % sizeof(std::uint64_t) != 0) {
            throw std::invalid_argument("a heartbeat needs 64 aligned bytes");
        }
    }

    // 0 outside of a call, 1 inside, 2 when all it can do is wait for a GPU.
    void enter_call() const noexcept { word(in_call).store(1, std::memory_order_relaxed); }
    void wait_in_call() const noexcept { word(in_call).store(2, std::memory_order_relaxed); }
    void leave_call(std::uint64_t done) const noexcept {
        word(in_call).store(0, std::memory_order_relaxed);
        word(calls).fetch_add(done, std::memory_order_relaxed);
    }
    void count_sample() const noexcept { word(samples).fetch_add(1, std::memory_order_relaxed); }

   private:
    [[nodiscard]] std::atomic_ref<std::uint64_t> word(Word which) const noexcept {
        return std::atomic_ref<std::uint64_t>{words_[which]};
    }
    std::uint64_t* words_;
};

}  // namespace busbw
