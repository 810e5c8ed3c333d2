// The stride copy, against its definition byte by byte, for every shape and for slices that no word size divides.
#include "slices.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "expect.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;

struct Shape {
    std::size_t slice_bytes;
    std::size_t rows;
    std::size_t columns;
    [[nodiscard]] std::size_t bytes() const { return slice_bytes * rows * columns; }
    [[nodiscard]] std::string text() const {
        return std::to_string(rows) + " x " + std::to_string(columns) + " of " + std::to_string(slice_bytes) + " bytes";
    }
};

// No two neighbouring bytes, rows or columns are alike.
std::byte byte_at(std::size_t position) {
    return static_cast<std::byte>((static_cast<std::uint64_t>(position + 1) * 0x9E3779B97F4A7C15U) >> 56U);
}

std::vector<std::byte> input_of(const Shape& shape) {
    std::vector<std::byte> input;
    for (std::size_t position = 0; position < shape.bytes(); ++position) {
        input.push_back(byte_at(position));
    }
    return input;
}

void check_definition(const Shape& shape) {
    const std::vector<std::byte> input = input_of(shape);
    const std::vector<std::byte> before = input;
    const Buffer output{shape.bytes()};
    stride_copy(input, output.bytes(), shape.slice_bytes, shape.rows, shape.columns);
    std::size_t wrong = 0;
    for (std::size_t row = 0; row < shape.rows; ++row) {
        for (std::size_t column = 0; column < shape.columns; ++column) {
            for (std::size_t byte = 0; byte < shape.slice_bytes; ++byte) {
                const std::size_t to = (shape.rows * column + row) * shape.slice_bytes + byte;
                const std::size_t from = (shape.columns * row + column) * shape.slice_bytes + byte;
                wrong += output.data()[to] != byte_at(from) ? 1 : 0;
            }
        }
    }
    expect(wrong == 0, shape.text() + ": " + std::to_string(wrong) + " bytes are not where they belong");
    expect(input == before, shape.text() + ": the input stays");
    expect(!output.overrun(), shape.text() + ": stays in its output");
}

// Turned over twice, with rows and columns exchanged, everything is back.
void check_return(const Shape& shape) {
    const std::vector<std::byte> input = input_of(shape);
    std::vector<std::byte> turned(shape.bytes());
    std::vector<std::byte> back(shape.bytes());
    stride_copy(input, turned, shape.slice_bytes, shape.rows, shape.columns);
    stride_copy(turned, back, shape.slice_bytes, shape.columns, shape.rows);
    expect(back == input, shape.text() + ": comes back");
    const bool moves = shape.rows > 1 && shape.columns > 1;
    expect((turned != input) == moves, shape.text() + ": moves slices unless there is one row or one column");
}

void check_refusals() {
    std::vector<std::byte> right(24);
    std::vector<std::byte> wrong(23);
    expect_throw<std::invalid_argument>([&] { stride_copy(wrong, right, 2, 3, 4); }, "an input that is too small");
    expect_throw<std::invalid_argument>([&] { stride_copy(right, wrong, 2, 3, 4); }, "an output that is too small");
    stride_copy({}, {}, 0, 3, 4);
    stride_copy({}, {}, 5, 0, 4);
}

}  // namespace

int main() {
    for (std::size_t rows = 1; rows <= 12; ++rows) {
        for (std::size_t columns = 1; columns <= 12; ++columns) {
            for (std::size_t slice_bytes = 1; slice_bytes <= 40; ++slice_bytes) {
                check_definition({slice_bytes, rows, columns});
                check_return({slice_bytes, rows, columns});
            }
            check_definition({4097, rows, columns});
        }
    }
    check_refusals();
    return verdict();
}
