// The data types a message is made of, and what can be done with them, by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "portable/random_data.hpp"

namespace busbw {

enum class DataType {
    int8,
    uint8,
    int16,
    uint16,
    int32,
    uint32,
    int64,
    uint64,
    float8e4m3,
    float8e5m2,
    float16,
    bfloat16,
    float32,
    float64
};

// Each name beside its value, once; the order is that of the enumerations.
inline constexpr std::string_view data_type_names[] = {"int8",    "uint8",    "int16",   "uint16",     "int32",
                                                       "uint32",  "int64",    "uint64",  "float8e4m3", "float8e5m2",
                                                       "float16", "bfloat16", "float32", "float64"};
inline constexpr std::string_view operation_names[] = {"sum", "prod", "min", "max", "avg", "mulsum"};

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
        case DataType::float8e4m3: return visit(Float8E4M3{});
        case DataType::float8e5m2: return visit(Float8E5M2{});
        case DataType::float16: return visit(Float16{});
        case DataType::bfloat16: return visit(BFloat16{});
        case DataType::float32: return visit(float{});
        case DataType::float64: return visit(double{});
    }
    throw std::invalid_argument("unknown data type");
}

}  // namespace busbw
