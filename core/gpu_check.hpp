// Random inputs and the check of every element in GPU memory: by kernels, or by the host where there are none.
#pragma once

#include <span>

#include "gpu.hpp"
#include "pattern.hpp"

namespace busbw {

// Writes elements first..first+count-1 of the input of `rank`.
void fill_on(const Gpu& gpu, const Pattern& pattern, int rank, std::size_t first, std::byte* into, std::size_t count);

// Writes the operation's neutral element.
void fill_neutral_on(const Gpu& gpu, const Pattern& pattern, std::byte* into, std::size_t count);

// Sets `size` bytes to 0xFF: a NaN in each floating type, -1 in each integer type.
void poison_on(const Gpu& gpu, std::byte* memory, std::size_t size);

// Compares every element, as pattern.hpp says.
Mismatch compare_on(const Gpu& gpu, const Pattern& pattern, const std::byte* output, std::span<const Segment> segments);

}  // namespace busbw
