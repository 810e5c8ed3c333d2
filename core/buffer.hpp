// Page-aligned memory for messages, touched at once, with a guard behind the last byte of private memory.
// Units: bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace busbw {

class Buffer {
   public:
    // Maps and touches `size` bytes, in pages as the system gives them to any program: asking for huge ones would make
    // messages faster than an application sees them. Throws std::bad_alloc when the system refuses.
    explicit Buffer(std::size_t size);

    // Maps `size` bytes of a memory file that other processes map too, and touches them. The caller keeps the file.
    // Throws std::bad_alloc when the system refuses.
    Buffer(int file, std::size_t size);

    [[nodiscard]] std::byte* data() const noexcept { return memory_.get(); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {memory_.get(), size_}; }

    // Sets every byte to 0xFF: a NaN in each floating type, -1 in each integer type.
    void poison() const noexcept;

    // Writes the first `count` bytes, so that they lie in this core's caches and in no other's.
    void touch(std::size_t count) const noexcept;

    // Whether something wrote behind the last byte since the buffer was made.
    [[nodiscard]] bool overrun() const noexcept;

   private:
    struct Unmap {
        std::size_t size;
        void operator()(std::byte* memory) const noexcept;
    };
    std::size_t size_;
    std::unique_ptr<std::byte, Unmap> memory_;
};

}  // namespace busbw
