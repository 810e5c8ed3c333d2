// The data types a message is made of, and the two 16-bit floats that C++20 does not have.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

namespace busbw {

// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
struct Float16 {
    std::uint16_t bits;
    static Float16 round(float value) noexcept;
    [[nodiscard]] float value() const noexcept;
    friend bool operator==(Float16, Float16) = default;
};

// The upper half of a binary32: 1 sign, 8 exponent, 7 fraction bits.
struct BFloat16 {
    std::uint16_t bits;
    static BFloat16 round(float value) noexcept;
    [[nodiscard]] float value() const noexcept;
    friend bool operator==(BFloat16, BFloat16) = default;
};

template <class T>
inline constexpr bool is_small_float = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T> || is_small_float<T>;

// Distance from 1 to the next larger number.
template <class T>
constexpr double epsilon() {
    if constexpr (std::is_same_v<T, Float16>) {
        return 0x1p-10;
    } else if constexpr (std::is_same_v<T, BFloat16>) {
        return 0x1p-7;
    } else {
        return static_cast<double>(std::numeric_limits<T>::epsilon());
    }
}

template <class T>
double to_double(T element) noexcept {
    if constexpr (is_small_float<T>) {
        return static_cast<double>(element.value());
    } else {
        return static_cast<double>(element);
    }
}

template <class T>
T from_double(double value) noexcept {
    if constexpr (is_small_float<T>) {
        return T::round(static_cast<float>(value));
    } else {
        return static_cast<T>(value);
    }
}

inline BFloat16 BFloat16::round(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
        return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};  // a NaN stays one
    }
    return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
}

inline float BFloat16::value() const noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

inline Float16 Float16::round(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) {
        return {static_cast<std::uint16_t>(sign | 0x7E00U)};
    }
    if (magnitude >= 0x47800000U) {  // 65536 and more, infinity
        return {static_cast<std::uint16_t>(sign | 0x7C00U)};
    }
    if (magnitude < 0x38800000U) {  // below 2^-14: add a number whose last bit is 2^-24, so that hardware rounds
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U))};
    }
    const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
    return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13))};
}

inline float Float16::value() const noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1FU;
    const std::uint32_t fraction = bits & 0x3FFU;
    if (exponent == 0) {
        const float small = static_cast<float>(fraction) * 0x1p-24F;
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(small) | sign);
    }
    const std::uint32_t wide = exponent == 31 ? 0x7F800000U : (exponent + 112U) << 23;
    return std::bit_cast<float>(sign | wide | (fraction << 13));
}

enum class DataType { int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32, float64 };
enum class Operation { sum, prod, min, max };

// Each name beside its value, once; the order is that of the enumerations.
inline constexpr std::string_view data_type_names[] = {"int8",  "uint8",  "int16",   "uint16",   "int32",   "uint32",
                                                       "int64", "uint64", "float16", "bfloat16", "float32", "float64"};
inline constexpr std::string_view operation_names[] = {"sum", "prod", "min", "max"};

template <class Enumeration, std::size_t Count>
Enumeration by_name(const std::string_view (&names)[Count], std::string_view name) {
    for (std::size_t index = 0; index < Count; ++index) {
        if (names[index] == name) {
            return static_cast<Enumeration>(index);
        }
    }
    throw std::invalid_argument("unknown name: " + std::string(name));
}

// Calls `visit` with a value of the C++ type that `type` names.
template <class Visitor>
auto with_type(DataType type, Visitor&& visit) {
    switch (type) {
        case DataType::int8: return visit(std::int8_t{});
        case DataType::uint8: return visit(std::uint8_t{});
        case DataType::int16: return visit(std::int16_t{});
        case DataType::uint16: return visit(std::uint16_t{});
        case DataType::int32: return visit(std::int32_t{});
        case DataType::uint32: return visit(std::uint32_t{});
        case DataType::int64: return visit(std::int64_t{});
        case DataType::uint64: return visit(std::uint64_t{});
        case DataType::float16: return visit(Float16{});
        case DataType::bfloat16: return visit(BFloat16{});
        case DataType::float32: return visit(float{});
        case DataType::float64: return visit(double{});
    }
    throw std::invalid_argument("unknown data type");
}

}  // namespace busbw
