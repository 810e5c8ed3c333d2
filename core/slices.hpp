// The stride copy between the steps of a two-level alltoall: a table of slices, turned over.
// Units: bytes.
#pragma once

#include <cstddef>
#include <span>

namespace busbw {

// Writes the `rows` x `columns` slices of `from`, row by row, into `into` column by column: slice rows * c + r of the
// result is slice columns * r + c of `from`. Slices have any size; the two must not overlap. Throws
// std::invalid_argument unless both hold rows * columns * slice_bytes.
void stride_copy(std::span<const std::byte> from, std::span<std::byte> into, std::size_t slice_bytes, std::size_t rows,
                 std::size_t columns);

}  // namespace busbw
