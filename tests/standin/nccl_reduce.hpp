// Reductions as a ring does them: rank after rank, rounded to the data type at every step.
#pragma once

#include <array>
#include <span>

#include "nccl.hpp"

namespace standin::nccl {

// By NCCL's numbers; the last is what ncclRedOpCreatePreMulSum makes.
enum class Operator : int { sum = 0, prod = 1, max = 2, min = 3, avg = 4, scaled_sum = 5 };

struct Reduction {
    Operator kind = Operator::sum;
    // Of scaled_sum, in the data type: where on the device it is, or if that is null its bytes.
    const void* scalar_address = nullptr;
    std::array<std::byte, 8> scalar{};
};

// Writes to `target` the reduction of `count` elements from each source. `target` may be none of the sources.
void reduce(DataType type, const Reduction& reduction, std::span<const std::byte* const> sources, void* target,
            std::size_t count);

}  // namespace standin::nccl
