// The floating formats below 32 bits, in code that a host compiler and NVRTC both take: no standard header, no library.
// Each is rounded to nearest, ties to even.
#pragma once

#ifdef __CUDACC_RTC__
#define BUSBW_BOTH __device__
#else
#define BUSBW_BOTH
#endif

namespace busbw {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long;  // 64 bits on every 64-bit Linux, with the same name in std::uint64_t
using s64 = long;

#ifdef __CUDACC_RTC__
__device__ inline u32 bits_of(float value) { return __float_as_uint(value); }
__device__ inline float float_of(u32 bits) { return __uint_as_float(bits); }
#else
inline u32 bits_of(float value) {
    u32 bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float float_of(u32 bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
#endif

// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
struct Float16 {
    u16 bits;

    BUSBW_BOTH static Float16 round(float value) noexcept {
        const u32 all = bits_of(value);
        const auto sign = static_cast<u16>((all >> 16) & 0x8000U);
        const u32 magnitude = all & 0x7FFFFFFFU;
        if (magnitude > 0x7F800000U) {
            return {static_cast<u16>(sign | 0x7E00U)};
        }
        if (magnitude >= 0x47800000U) {  // 65536 and more, infinity
            return {static_cast<u16>(sign | 0x7C00U)};
        }
        if (magnitude < 0x38800000U) {  // below 2^-14: add a number whose last bit is 2^-24, so that hardware rounds
            const float shifted = float_of(magnitude) + 0.5F;
            return {static_cast<u16>(sign | (bits_of(shifted) - 0x3F000000U))};
        }
        const u32 rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
        return {static_cast<u16>(sign | ((rounded - 0x38000000U) >> 13))};
    }

    BUSBW_BOTH float value() const noexcept {
        const u32 sign = static_cast<u32>(bits & 0x8000U) << 16;
        const u32 exponent = (bits >> 10) & 0x1FU;
        const u32 fraction = bits & 0x3FFU;
        if (exponent == 0) {
            const float small = static_cast<float>(fraction) * 0x1p-24F;
            return float_of(bits_of(small) | sign);
        }
        const u32 wide = exponent == 31 ? 0x7F800000U : (exponent + 112U) << 23;
        return float_of(sign | wide | (fraction << 13));
    }

    BUSBW_BOTH friend bool operator==(Float16 left, Float16 right) { return left.bits == right.bits; }
};

// The upper half of a binary32: 1 sign, 8 exponent, 7 fraction bits.
struct BFloat16 {
    u16 bits;

    BUSBW_BOTH static BFloat16 round(float value) noexcept {
        const u32 all = bits_of(value);
        if ((all & 0x7FFFFFFFU) > 0x7F800000U) {
            return {static_cast<u16>((all >> 16) | 0x40U)};  // a NaN stays one
        }
        return {static_cast<u16>((all + 0x7FFFU + ((all >> 16) & 1U)) >> 16)};
    }

    BUSBW_BOTH float value() const noexcept { return float_of(static_cast<u32>(bits) << 16); }

    BUSBW_BOTH friend bool operator==(BFloat16 left, BFloat16 right) { return left.bits == right.bits; }
};

// The 8-bit formats of the Open Compute Project (OCP 8-bit Floating Point Specification 1.0, 2023): E4M3 has no
// infinities and one NaN of each sign; E5M2 is the upper half of a binary16. Conversion saturates, as CUDA's does.
struct Float8E5M2 {
    u8 bits;

    BUSBW_BOTH static Float8E5M2 round(float value) noexcept {
        const u32 half = Float16::round(value).bits;
        const u32 magnitude = half & 0x7FFFU;
        const auto sign = static_cast<u8>((half >> 8) & 0x80U);
        if (magnitude > 0x7C00U) {
            return {static_cast<u8>(sign | 0x7FU)};
        }
        const u32 rounded = (magnitude + 0x7FU + ((magnitude >> 8) & 1U)) >> 8;
        return {static_cast<u8>(sign | (rounded > 0x7BU ? 0x7BU : rounded))};
    }

    BUSBW_BOTH float value() const noexcept { return Float16{static_cast<u16>(bits << 8)}.value(); }

    BUSBW_BOTH friend bool operator==(Float8E5M2 left, Float8E5M2 right) { return left.bits == right.bits; }
};

struct Float8E4M3 {
    u8 bits;

    BUSBW_BOTH static Float8E4M3 round(float value) noexcept {
        const u32 all = bits_of(value);
        const auto sign = static_cast<u8>((all >> 24) & 0x80U);
        const u32 magnitude = all & 0x7FFFFFFFU;
        if (magnitude > 0x7F800000U) {
            return {static_cast<u8>(sign | 0x7FU)};
        }
        if (magnitude < 0x3C800000U) {                             // below 2^-6: whole multiples of 2^-9
            const float shifted = float_of(magnitude) + 16384.0F;  // its last bit is 2^-9
            return {static_cast<u8>(sign | (bits_of(shifted) - 0x46800000U))};
        }
        const u32 rounded = ((magnitude + 0x7FFFFU + ((magnitude >> 20) & 1U)) >> 20) - (120U << 3);
        return {static_cast<u8>(sign | (rounded > 0x7EU ? 0x7EU : rounded))};
    }

    BUSBW_BOTH float value() const noexcept {
        const u32 sign = static_cast<u32>(bits & 0x80U) << 24;
        const u32 exponent = (bits >> 3) & 0xFU;
        const u32 fraction = bits & 7U;
        if ((bits & 0x7FU) == 0x7FU) {
            return float_of(sign | 0x7FC00000U);
        }
        if (exponent == 0) {
            return float_of(bits_of(static_cast<float>(fraction) * 0x1p-9F) | sign);
        }
        return float_of(sign | ((exponent + 120U) << 23) | (fraction << 20));
    }

    BUSBW_BOTH friend bool operator==(Float8E4M3 left, Float8E4M3 right) { return left.bits == right.bits; }
};

}  // namespace busbw
