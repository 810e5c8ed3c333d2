// The data types' arithmetic, written without a GPU's or the compiler's own small floats.
#include "nccl_reduce.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace standin::nccl {
namespace {

// A float of 1 + Exponent + Fraction bits. Rounds to the nearest, to even on a tie. `Saturates` as the 8-bit floats do,
// to the largest finite number; only E4M3 has none but one pattern (all ones) that is not finite.
template <class Bits, int Exponent, int Fraction, bool Saturates>
struct Small {
    static constexpr int bias = (1 << (Exponent - 1)) - 1;
    static constexpr bool has_infinity = Exponent != 4;
    static constexpr std::uint32_t sign_bit = 1U << (Exponent + Fraction);
    static constexpr std::uint32_t infinity = ((1U << Exponent) - 1) << Fraction;
    static constexpr std::uint32_t not_a_number = has_infinity ? infinity | (1U << (Fraction - 1)) : sign_bit - 1;
    static constexpr std::uint32_t largest = has_infinity ? infinity - 1 : sign_bit - 2;
    static constexpr float smallest_normal = std::bit_cast<float>(static_cast<std::uint32_t>(128 - bias) << 23);

    Bits bits;

    explicit operator float() const {
        const std::uint32_t magnitude = bits & (sign_bit - 1U);
        float value;
        if (has_infinity ? magnitude >= infinity : magnitude == not_a_number) {
            value = std::bit_cast<float>(0x7F800000U | (magnitude << (23 - Fraction) & 0x7FFFFFU));
        } else if (magnitude < (1U << Fraction)) {
            value = static_cast<float>(magnitude) * smallest_normal / static_cast<float>(1U << Fraction);
        } else {
            value =
                std::bit_cast<float>((magnitude << (23 - Fraction)) + (static_cast<std::uint32_t>(127 - bias) << 23));
        }
        return (bits & sign_bit) != 0 ? -value : value;
    }

    explicit Small(float value) {
        const auto word = std::bit_cast<std::uint32_t>(value);
        const std::uint32_t sign = (word >> 31) << (Exponent + Fraction);
        bits = static_cast<Bits>(sign | rounded(word & 0x7FFFFFFFU));
    }

   private:
    static std::uint32_t rounded(std::uint32_t magnitude) {
        constexpr int dropped = 23 - Fraction;
        if (magnitude > 0x7F800000U) {
            return not_a_number;
        }
        const float value = std::bit_cast<float>(magnitude);
        std::uint32_t result = 0;
        if (value < smallest_normal) {
            // Beside this number a float's last bit is worth as much as the small type's.
            constexpr float beside = smallest_normal * static_cast<float>(1U << dropped);
            result = std::bit_cast<std::uint32_t>(value + beside) - std::bit_cast<std::uint32_t>(beside);
        } else {
            const std::uint32_t carried = magnitude + (1U << (dropped - 1)) - 1 + (magnitude >> dropped & 1U);
            result = (carried >> dropped) - (static_cast<std::uint32_t>(127 - bias) << Fraction);
        }
        return std::min(result, Saturates ? largest : infinity);
    }
};

using Float16 = Small<std::uint16_t, 5, 10, false>;
using BFloat16 = Small<std::uint16_t, 8, 7, false>;
using Float8E4M3 = Small<std::uint8_t, 4, 3, true>;
using Float8E5M2 = Small<std::uint8_t, 5, 2, true>;

template <class T>
constexpr bool is_number = std::is_arithmetic_v<T>;
template <class T>
constexpr bool is_real = !std::is_integral_v<T>;

// What T computes in: floats of less than 32 bits in a float, integers without overflow being undefined.
template <class T>
auto wide(T value) {
    if constexpr (!is_number<T>) {
        return static_cast<float>(value);
    } else if constexpr (std::is_integral_v<T>) {
        return static_cast<std::make_unsigned_t<T>>(value);
    } else {
        return value;
    }
}

template <class T>
T add(T left, T right) {
    return static_cast<T>(wide(left) + wide(right));
}
template <class T>
T multiply(T left, T right) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<std::uint64_t>(left) * static_cast<std::uint64_t>(right));
    } else {
        return static_cast<T>(wide(left) * wide(right));
    }
}
template <class T>
bool less(T left, T right) {
    if constexpr (is_number<T>) {
        return left < right;
    } else {
        return wide(left) < wide(right);
    }
}

template <class T, class Combine, class Prepare, class Finish>
void fold(std::span<const std::byte* const> sources, void* target, std::size_t count, Combine combine, Prepare prepare,
          Finish finish) {
    auto* const results = static_cast<T*>(target);
    for (std::size_t index = 0; index < count; ++index) {
        T value = prepare(reinterpret_cast<const T*>(sources.front())[index]);
        for (const std::byte* const source : sources.subspan(1)) {
            value = combine(value, prepare(reinterpret_cast<const T*>(source)[index]));
        }
        results[index] = finish(value);
    }
}

template <class T>
T scalar_of(const Reduction& reduction) {
    std::array<std::byte, sizeof(T)> bytes;
    const void* const from =
        reduction.scalar_address != nullptr ? reduction.scalar_address : static_cast<const void*>(&reduction.scalar);
    std::memcpy(bytes.data(), from, sizeof(T));
    return std::bit_cast<T>(bytes);
}

template <class T>
void reduce_as(const Reduction& reduction, std::span<const std::byte* const> sources, void* target, std::size_t count) {
    const auto as_is = [](T value) { return value; };
    const auto scaled_by = [](T factor) { return [factor](T value) { return multiply(factor, value); }; };
    switch (reduction.kind) {
        case Operator::sum: return fold<T>(sources, target, count, add<T>, as_is, as_is);
        case Operator::prod: return fold<T>(sources, target, count, multiply<T>, as_is, as_is);
        case Operator::max:
            return fold<T>(sources, target, count, [](T a, T b) { return less(a, b) ? b : a; }, as_is, as_is);
        case Operator::min:
            return fold<T>(sources, target, count, [](T a, T b) { return less(b, a) ? b : a; }, as_is, as_is);
        case Operator::scaled_sum:
            return fold<T>(sources, target, count, add<T>, scaled_by(scalar_of<T>(reduction)), as_is);
        case Operator::avg:
            // Floats are scaled before they are summed, integers are divided after.
            if constexpr (is_real<T>) {
                const auto share = static_cast<T>(1.0F / static_cast<float>(sources.size()));
                const auto exact = static_cast<double>(1.0) / static_cast<double>(sources.size());
                if constexpr (std::is_same_v<T, double>) {
                    return fold<T>(sources, target, count, add<T>, scaled_by(exact), as_is);
                }
                return fold<T>(sources, target, count, add<T>, scaled_by(share), as_is);
            } else {
                const auto ranks = static_cast<T>(sources.size());
                return fold<T>(sources, target, count, add<T>, as_is,
                               [ranks](T value) { return static_cast<T>(value / ranks); });
            }
    }
}

}  // namespace

std::size_t bytes_of(DataType type) {
    switch (type) {
        case DataType::int8:
        case DataType::uint8:
        case DataType::float8e4m3:
        case DataType::float8e5m2: return 1;
        case DataType::float16:
        case DataType::bfloat16: return 2;
        case DataType::int32:
        case DataType::uint32:
        case DataType::float32: return 4;
        default: return 8;
    }
}

void reduce(DataType type, const Reduction& reduction, std::span<const std::byte* const> sources, void* target,
            std::size_t count) {
    switch (type) {
        case DataType::int8: return reduce_as<std::int8_t>(reduction, sources, target, count);
        case DataType::uint8: return reduce_as<std::uint8_t>(reduction, sources, target, count);
        case DataType::int32: return reduce_as<std::int32_t>(reduction, sources, target, count);
        case DataType::uint32: return reduce_as<std::uint32_t>(reduction, sources, target, count);
        case DataType::int64: return reduce_as<std::int64_t>(reduction, sources, target, count);
        case DataType::uint64: return reduce_as<std::uint64_t>(reduction, sources, target, count);
        case DataType::float16: return reduce_as<Float16>(reduction, sources, target, count);
        case DataType::float32: return reduce_as<float>(reduction, sources, target, count);
        case DataType::float64: return reduce_as<double>(reduction, sources, target, count);
        case DataType::bfloat16: return reduce_as<BFloat16>(reduction, sources, target, count);
        case DataType::float8e4m3: return reduce_as<Float8E4M3>(reduction, sources, target, count);
        case DataType::float8e5m2: return reduce_as<Float8E5M2>(reduction, sources, target, count);
    }
}

}  // namespace standin::nccl
