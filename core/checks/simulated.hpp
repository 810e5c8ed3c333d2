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
    return with_type(type, []<class T>(T) { return Traits<T>::is_float; });
}

// One combination in the type's own precision; integers wrap.
template <class T>
T combined(Operation operation, T left, T right) {
    if constexpr (Traits<T>::is_small) {
        return T::round(combined(operation, left.value(), right.value()));
    } else {
        switch (operation) {
            case Operation::sum:
            case Operation::avg:
            case Operation::mulsum:
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

// Applies `change` to each element.
template <class Change>
void change_each(const Pattern& pattern, std::byte* elements, std::size_t count, Change&& change) {
    with_type(pattern.type, [&]<class T>(T) {
        for (std::size_t index = 0; index < count; ++index) {
            T value{};
            std::memcpy(&value, elements + index * sizeof(T), sizeof(T));
            const T changed = change(value);
            std::memcpy(elements + index * sizeof(T), &changed, sizeof(T));
        }
    });
}

// What happens to an input before it is combined: scaled sums double it, averages of floats multiply it with 1/n.
inline void prepare(const Pattern& pattern, std::byte* input, std::size_t count) {
    change_each(pattern, input, count, [&]<class T>(T value) {
        if (pattern.operation == Operation::mulsum) {
            return combined(Operation::sum, value, value);
        }
        if constexpr (Traits<T>::is_float) {
            if (pattern.operation == Operation::avg) {
                return from_double<T>(to_double(value) * (1.0 / pattern.ranks));
            }
        }
        return value;
    });
}

// What happens to the result: averages of integers divide last.
inline void finish(const Pattern& pattern, std::byte* total, std::size_t count) {
    change_each(pattern, total, count, [&]<class T>(T value) {
        if constexpr (!Traits<T>::is_float) {
            if (pattern.operation == Operation::avg) {
                using wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
                return static_cast<T>(static_cast<wide>(value) / static_cast<wide>(pattern.ranks));
            }
        }
        return value;
    });
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
