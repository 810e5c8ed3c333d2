// Reductions in plain C++, in the order of the ranks, to hold the core's own checking against.
#pragma once

#include <algorithm>
#include <cstring>

#include "element.hpp"
#include "pattern.hpp"

namespace busbw::checks {

inline std::size_t element_bytes(DataType type) {
    return with_type(type, [](auto element) { return sizeof element; });
}

inline bool is_floating(DataType type) {
    return with_type(type, []<class T>(T) { return is_float<T>; });
}

// One combination in the type's own precision; integers wrap.
template <class T>
T combined(Operation operation, T left, T right) {
    if constexpr (is_small_float<T>) {
        return T::round(combined(operation, left.value(), right.value()));
    } else {
        switch (operation) {
            case Operation::sum:
                if constexpr (std::is_integral_v<T>) {
                    return static_cast<T>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
                } else {
                    return left + right;
                }
            case Operation::prod:
                if constexpr (std::is_integral_v<T>) {
                    return static_cast<T>(static_cast<std::uint64_t>(left) * static_cast<std::uint64_t>(right));
                } else {
                    return left * right;
                }
            case Operation::min: return std::min(left, right);
            case Operation::max: return std::max(left, right);
        }
        throw std::invalid_argument("unknown operation");
    }
}

// Combines `count` elements of `next` into `total`.
inline void combine(const Pattern& pattern, const std::byte* next, std::byte* total, std::size_t count) {
    with_type(pattern.type, [&]<class T>(T) {
        for (std::size_t index = 0; index < count; ++index) {
            T left{};
            T right{};
            std::memcpy(&left, total + index * sizeof(T), sizeof(T));
            std::memcpy(&right, next + index * sizeof(T), sizeof(T));
            const T result = combined(pattern.operation, left, right);
            std::memcpy(total + index * sizeof(T), &result, sizeof(T));
        }
    });
}

}  // namespace busbw::checks
