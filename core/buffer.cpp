#include "buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace busbw {
namespace {

constexpr std::size_t guard_bytes = 4096;
constexpr int guard_value = 0x5A;

}  // namespace

Buffer::Buffer(std::size_t size) : size_{size}, memory_{nullptr, Unmap{0}} {
    const std::size_t mapped = size + guard_bytes;
    void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    memory_ = decltype(memory_){static_cast<std::byte*>(memory), Unmap{mapped}};
    poison();
    std::memset(memory_.get() + size_, guard_value, guard_bytes);
}

Buffer::Buffer(int file, std::size_t size) : size_{size}, memory_{nullptr, Unmap{0}} {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    memory_ = decltype(memory_){static_cast<std::byte*>(memory), Unmap{size}};
}

void Buffer::Unmap::operator()(std::byte* memory) const noexcept { munmap(memory, size); }

void Buffer::poison() const noexcept { std::memset(memory_.get(), 0xFF, size_); }

void Buffer::touch(std::size_t count) const noexcept { std::memset(memory_.get(), 0x3C, std::min(count, size_)); }

bool Buffer::overrun() const noexcept {
    if (memory_.get_deleter().size == size_) {
        return false;  // shared memory has no guard
    }
    const std::span<const std::byte> guard{memory_.get() + size_, guard_bytes};
    return !std::ranges::all_of(guard, [](std::byte value) { return value == std::byte{guard_value}; });
}

}  // namespace busbw
