#include "slices.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

namespace busbw {

void stride_copy(std::span<const std::byte> from, std::span<std::byte> into, std::size_t slice_bytes, std::size_t rows,
                 std::size_t columns) {
    const std::size_t needed = rows * columns * slice_bytes;
    if (from.size() != needed || into.size() != needed) {
        throw std::invalid_argument(std::to_string(rows) + " x " + std::to_string(columns) + " slices of " +
                                    std::to_string(slice_bytes) + " bytes are neither " + std::to_string(from.size()) +
                                    " nor " + std::to_string(into.size()) + " bytes");
    }
    if (needed == 0) {
        return;
    }
    std::byte* target = into.data();
    for (std::size_t column = 0; column < columns; ++column) {
        for (std::size_t row = 0; row < rows; ++row) {
            std::memcpy(target, from.data() + (columns * row + column) * slice_bytes, slice_bytes);
            target += slice_bytes;
        }
    }
}

}  // namespace busbw
