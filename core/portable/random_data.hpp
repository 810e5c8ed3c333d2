// Element i of the input of rank r as a function of (seed, r, i), and what a reduction over all ranks must give: the
// same code on the host and in the kernels that NVRTC compiles.
#pragma once

#include "small_floats.hpp"

namespace busbw {

enum class Operation { sum, prod, min, max, avg, mulsum };
// What `mulsum` multiplies every input with before it adds.
inline constexpr double mulsum_factor = 2.0;

// Calls `visit` with the operation as a constant, so that what depends on it is decided outside of loops.
template <Operation Op>
struct Chosen {
    static constexpr Operation operation = Op;
};
template <class Visitor>
BUSBW_BOTH auto with_operation(Operation operation, Visitor&& visit) {
    switch (operation) {
        case Operation::sum: return visit(Chosen<Operation::sum>{});
        case Operation::prod: return visit(Chosen<Operation::prod>{});
        case Operation::min: return visit(Chosen<Operation::min>{});
        case Operation::max: return visit(Chosen<Operation::max>{});
        case Operation::avg: return visit(Chosen<Operation::avg>{});
        case Operation::mulsum: break;
    }
    return visit(Chosen<Operation::mulsum>{});
}

// What the code below must know of a type; NVRTC has no <limits>.
template <class T>
struct Traits;
template <class T, bool Signed, u64 Largest>
struct IntegerTraits {
    static constexpr bool is_float = false;
    static constexpr bool is_small = false;
    static constexpr bool is_signed = Signed;
    static constexpr u64 largest = Largest;
};
// `exact`: up to this whole number the format holds every whole number. `epsilon`: from 1 to the next larger number.
template <bool Small, u32 Exact>
struct FloatTraits {
    static constexpr bool is_float = true;
    static constexpr bool is_small = Small;
    static constexpr u32 exact = Exact;
};
template <>
struct Traits<signed char> : IntegerTraits<signed char, true, 0x7F> {};
template <>
struct Traits<unsigned char> : IntegerTraits<unsigned char, false, 0xFF> {};
template <>
struct Traits<short> : IntegerTraits<short, true, 0x7FFF> {};
template <>
struct Traits<unsigned short> : IntegerTraits<unsigned short, false, 0xFFFF> {};
template <>
struct Traits<int> : IntegerTraits<int, true, 0x7FFFFFFF> {};
template <>
struct Traits<unsigned int> : IntegerTraits<unsigned int, false, 0xFFFFFFFF> {};
template <>
struct Traits<long> : IntegerTraits<long, true, 0x7FFFFFFFFFFFFFFF> {};
template <>
struct Traits<unsigned long> : IntegerTraits<unsigned long, false, 0xFFFFFFFFFFFFFFFF> {};
template <>
struct Traits<Float8E4M3> : FloatTraits<true, 16> {
    static constexpr double epsilon = 0x1p-3;
};
template <>
struct Traits<Float8E5M2> : FloatTraits<true, 8> {
    static constexpr double epsilon = 0x1p-2;
};
template <>
struct Traits<Float16> : FloatTraits<true, 2048> {
    static constexpr double epsilon = 0x1p-10;
};
template <>
struct Traits<BFloat16> : FloatTraits<true, 256> {
    static constexpr double epsilon = 0x1p-7;
};
template <>
struct Traits<float> : FloatTraits<false, 0> {
    static constexpr double epsilon = 0x1p-23;
};
template <>
struct Traits<double> : FloatTraits<false, 0> {
    static constexpr double epsilon = 0x1p-52;
};

template <class T>
BUSBW_BOTH double to_double(T element) noexcept {
    if constexpr (Traits<T>::is_small) {
        return static_cast<double>(element.value());
    } else {
        return static_cast<double>(element);
    }
}

template <class T>
BUSBW_BOTH T from_double(double value) noexcept {
    if constexpr (Traits<T>::is_small) {
        return T::round(static_cast<float>(value));
    } else {
        return static_cast<T>(value);
    }
}

// A key for one rank's stream (the finaliser of splitmix64; public domain, S. Vigna).
BUSBW_BOTH inline u64 stream_key(u64 seed, int rank) {
    u64 key = seed + 0x9E3779B97F4A7C15UL * (static_cast<u64>(rank) + 1);
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9UL;
    key = (key ^ (key >> 27)) * 0x94D049BB133111EBUL;
    return key ^ (key >> 31);
}

// 32 random bits for element `index`: counter in, bits out, no state, so that compilers vectorise it.
BUSBW_BOTH inline u32 random_bits(u64 key, u64 index) {
    auto bits = static_cast<u32>(index) * 0x9E3779B1U + static_cast<u32>(key);
    bits ^= static_cast<u32>(index >> 32) * 0x85EBCA6BU;
    bits = (bits ^ (bits >> 16)) * 0x7FEB352DU;
    bits = (bits ^ (bits >> 15)) * 0x846CA68BU;
    return bits ^ (bits >> 16) ^ static_cast<u32>(key >> 32);
}

BUSBW_BOTH constexpr bool is_power_of_two(u32 number) { return (number & (number - 1)) == 0; }

// Whether results of this type can be compared exactly: integers always, extremes always, and small floats where their
// data are whole numbers so small that no sum of them is rounded. Their rounding would hide any error otherwise.
template <class T, Operation Op>
BUSBW_BOTH constexpr bool is_exact(int ranks) {
    if (Op == Operation::min || Op == Operation::max) {
        return true;
    }
    if constexpr (Traits<T>::is_small) {
        // An average multiplies by 1/n first, exactly for powers of two.
        return Op != Operation::avg || is_power_of_two(static_cast<u32>(ranks));
    } else {
        return !Traits<T>::is_float;
    }
}

// Integers keep sums within the type: the magnitude is the type's maximum over the number of ranks. Where that leaves
// no room (int8 over 128 ranks and more) the sum may wrap, and is then compared modulo 2^bits.
// Factors of a product are 1 or -1 but for one rank per element, which has 3. Sums of small floats are of whole numbers
// that add exactly; where there are more ranks than the format can count, each rank is 0 for some of the elements.
// Other floats lie in [-1, 1) for sums and extremes, and in +-[1, 1 + 1/n) for products, so that a product over n ranks
// stays below e.
template <class T, Operation Op>
BUSBW_BOTH T element(int rank, int rank_count, u32 bits, u64 index) {
    const auto ranks = static_cast<u32>(rank_count);
    constexpr bool product = Op == Operation::prod;
    constexpr bool extreme = Op == Operation::min || Op == Operation::max;
    const int factor = static_cast<int>(index % ranks) == rank ? 3 : 1;
    const bool negative = (bits & 1U) != 0;
    if constexpr (Traits<T>::is_small) {
        if (product) {
            return from_double<T>(negative ? -factor : factor);
        }
        if (!extreme && is_exact<T, Op>(rank_count)) {
            const u32 room = Op == Operation::mulsum ? Traits<T>::exact / 2 : Traits<T>::exact;
            const u32 stride = (ranks + room - 1) / room;
            if (stride > 1 && (index + static_cast<u64>(rank)) % stride != 0) {
                return from_double<T>(0.0);
            }
            const u32 range = stride > 1 ? 1 : room / ranks;
            return from_double<T>(static_cast<double>(bits % (2 * range + 1)) - range);
        }
    }
    if constexpr (Traits<T>::is_float) {
        if (product) {
            const double magnitude = 1.0 + static_cast<double>(bits >> 1) * 0x1p-31 / ranks;
            return from_double<T>(negative ? -magnitude : magnitude);
        }
        return from_double<T>(static_cast<double>(static_cast<int>(bits)) * 0x1p-31);
    } else if (product) {
        return static_cast<T>(Traits<T>::is_signed && negative ? -factor : factor);
    } else if (!extreme) {
        const u64 most = Traits<T>::largest / ranks;
        const u64 range = most < 1 ? 1 : most > 0x7FFFFFFFU ? 0x7FFFFFFFU : most;
        if constexpr (Traits<T>::is_signed) {
            return static_cast<T>(static_cast<s64>(bits % (2 * range + 1)) - static_cast<s64>(range));
        } else {
            return static_cast<T>(bits % (range + 1));
        }
    } else {
        return static_cast<T>(static_cast<u64>(bits) * 0x100000001UL);
    }
}

template <class T, bool Float = Traits<T>::is_float>
struct Accumulator {
    using type = double;
    BUSBW_BOTH static double narrow(double value) { return value; }
    BUSBW_BOTH static double widen(T value) { return to_double(value); }
};
// Integers are added modulo 2^64 and then cut to their own width, sign included.
template <class T>
struct Accumulator<T, false> {
    using type = u64;
    BUSBW_BOTH static T narrow(u64 value) { return static_cast<T>(value); }
    BUSBW_BOTH static u64 widen(T value) { return static_cast<u64>(value); }
};

template <class T>
BUSBW_BOTH double absolute(T value) {
#ifdef __CUDACC_RTC__
    return fabs(static_cast<double>(value));
#else
    return __builtin_fabs(static_cast<double>(value));  // one instruction; a comparison keeps loops from being wide
#endif
}

// Takes one more rank's element into a reduction: its value, in double precision or modulo 2^64, and the sum of
// magnitudes.
template <class T, Operation Op>
BUSBW_BOTH void combine(typename Accumulator<T>::type& total, double& magnitude, T next, bool first) {
    using Wide = Accumulator<T>;
    auto value = Wide::widen(next);
    if constexpr (Op == Operation::mulsum) {
        value *= static_cast<typename Wide::type>(mulsum_factor);
    }
    const double size = absolute(Wide::narrow(value));
    if (first) {
        total = value;
        magnitude = size;
        return;
    }
    if constexpr (Op == Operation::prod) {
        total *= value;
    } else if constexpr (Op == Operation::min) {
        total = Wide::narrow(value) < Wide::narrow(total) ? value : total;
    } else if constexpr (Op == Operation::max) {
        total = Wide::narrow(value) > Wide::narrow(total) ? value : total;
    } else {
        total += value;
    }
    magnitude += size;
}

// An average divides last: floats in double precision, integers towards zero, as NCCL does.
template <class T, Operation Op>
BUSBW_BOTH void conclude(typename Accumulator<T>::type& total, double& magnitude, int ranks) {
    if constexpr (Op == Operation::avg) {
        if constexpr (Traits<T>::is_float) {
            total /= ranks;
            magnitude /= ranks;
        } else if constexpr (Traits<T>::is_signed) {
            total = static_cast<u64>(static_cast<s64>(Accumulator<T>::narrow(total)) / ranks);
        } else {
            total = static_cast<u64>(Accumulator<T>::narrow(total)) / static_cast<u64>(ranks);
        }
    }
}

// Whether a result is what it must be; see pattern.hpp for the bound and its source.
template <class T, Operation Op>
BUSBW_BOTH bool agrees(int ranks, T got, typename Accumulator<T>::type expected, double magnitude) {
    if constexpr (Traits<T>::is_float) {
        const double scale = Op == Operation::prod ? absolute(expected) : magnitude;
        // An average rounds each product with 1/n too.
        const int roundings = Op == Operation::avg ? ranks + 1 : ranks - 1;
        const double bound = is_exact<T, Op>(ranks) ? 0.0 : roundings * Traits<T>::epsilon * scale;
        return absolute(to_double(got) - expected) <= bound;  // false for a NaN
    } else {
        return got == Accumulator<T>::narrow(expected);
    }
}

template <class T, Operation Op>
BUSBW_BOTH T input_element(u64 key, int rank, int ranks, u64 index) {
    return element<T, Op>(rank, ranks, random_bits(key, index), index);
}

}  // namespace busbw
