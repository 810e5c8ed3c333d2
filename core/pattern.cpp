#include "pattern.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace busbw {
namespace {

constexpr std::size_t chunk = 1024;

// A key for one rank's stream (the finaliser of splitmix64; public domain, S. Vigna).
std::uint64_t stream_key(std::uint64_t seed, int rank) {
    std::uint64_t key = seed + 0x9E3779B97F4A7C15ULL * (static_cast<std::uint64_t>(rank) + 1);
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ULL;
    key = (key ^ (key >> 27)) * 0x94D049BB133111EBULL;
    return key ^ (key >> 31);
}

// 32 random bits for element `index`: counter in, bits out, no state, so that compilers vectorise it.
inline std::uint32_t random_bits(std::uint64_t key, std::size_t index) {
    auto bits = static_cast<std::uint32_t>(index) * 0x9E3779B1U + static_cast<std::uint32_t>(key);
    bits ^= static_cast<std::uint32_t>(index >> 32) * 0x85EBCA6BU;
    bits = (bits ^ (bits >> 16)) * 0x7FEB352DU;
    bits = (bits ^ (bits >> 15)) * 0x846CA68BU;
    return bits ^ (bits >> 16) ^ static_cast<std::uint32_t>(key >> 32);
}

// The largest whole number up to which a 16-bit float holds every whole number.
template <class T>
constexpr std::uint32_t exact_limit() {
    return std::is_same_v<T, Float16> ? 2048 : 256;
}

// Whether results of this type can be compared exactly: integers always, extremes always, and 16-bit floats where their
// data are whole numbers so small that no sum of them is rounded. Their rounding would hide any error otherwise.
template <class T>
bool is_exact(const Pattern& pattern) {
    if (pattern.operation == Operation::min || pattern.operation == Operation::max) {
        return true;
    }
    if constexpr (is_small_float<T>) {
        return pattern.operation == Operation::prod || static_cast<std::uint32_t>(pattern.ranks) <= exact_limit<T>();
    } else {
        return !is_float<T>;
    }
}

// Integers keep sums within the type: the magnitude is the type's maximum over the number of ranks. Where that leaves
// no room (int8 over 128 ranks and more) the sum may wrap, and is then compared modulo 2^bits.
// Factors of a product are 1 or -1 but for one rank per element, which has 3. Sums of 16-bit floats are of whole
// numbers, as long as those can be added exactly. Other floats lie in [-1, 1) for sums and extremes, and in
// +-[1, 1 + 1/n) for products, so that a product over n ranks stays below e.
template <class T>
T element(const Pattern& pattern, int rank, std::uint32_t bits, std::size_t index) {
    const auto ranks = static_cast<std::uint32_t>(pattern.ranks);
    const bool product = pattern.operation == Operation::prod;
    const auto factor = [&] { return static_cast<int>(index % ranks) == rank ? 3 : 1; };
    const bool negative = (bits & 1U) != 0;
    if constexpr (is_small_float<T>) {
        if (product) {
            return from_double<T>(negative ? -factor() : factor());
        }
        if (pattern.operation == Operation::sum && is_exact<T>(pattern)) {
            const std::uint32_t range = exact_limit<T>() / ranks;
            return from_double<T>(static_cast<double>(bits % (2 * range + 1)) - range);
        }
    }
    if constexpr (is_float<T>) {
        if (product) {
            const double magnitude = 1.0 + static_cast<double>(bits >> 1) * 0x1p-31 / ranks;
            return from_double<T>(negative ? -magnitude : magnitude);
        }
        return from_double<T>(static_cast<double>(static_cast<std::int32_t>(bits)) * 0x1p-31);
    } else if (product) {
        return static_cast<T>(std::is_signed_v<T> && negative ? -factor() : factor());
    } else if (pattern.operation == Operation::sum) {
        const auto most = static_cast<std::uint64_t>(std::numeric_limits<T>::max()) / ranks;
        const std::uint64_t range = std::clamp<std::uint64_t>(most, 1, std::numeric_limits<std::int32_t>::max());
        if constexpr (std::is_signed_v<T>) {
            return static_cast<T>(static_cast<std::int64_t>(bits % (2 * range + 1)) - static_cast<std::int64_t>(range));
        } else {
            return static_cast<T>(bits % (range + 1));
        }
    } else {
        return static_cast<T>(static_cast<std::uint64_t>(bits) * 0x100000001ULL);
    }
}

template <class T>
T input_element(const Pattern& pattern, std::uint64_t key, int rank, std::size_t index) {
    return element<T>(pattern, rank, random_bits(key, index), index);
}

template <class T>
T load(const std::byte* from, std::size_t index) {
    T value;
    std::memcpy(&value, from + index * sizeof(T), sizeof(T));
    return value;
}

template <class T>
void store(std::byte* into, std::size_t index, T value) {
    std::memcpy(into + index * sizeof(T), &value, sizeof(T));
}

template <class T>
std::string text(T value) {
    if constexpr (std::is_integral_v<T>) {
        return std::to_string(value);
    } else {
        std::array<char, 64> digits{};
        std::snprintf(digits.data(), digits.size(), "%.17g", to_double(value));
        return digits.data();
    }
}

template <class T>
void note(Mismatch& mismatch, std::size_t index, T got, const std::string& expected) {
    if (mismatch.wrong++ == 0) {
        mismatch.index = index;
        mismatch.got = text(got);
        mismatch.expected = expected;
    }
}

template <class T>
void compare_copy(const Pattern& pattern, const std::byte* output, const Segment& segment, Mismatch& mismatch) {
    const std::uint64_t key = stream_key(pattern.seed, segment.source);
    for (std::size_t element_index = 0; element_index < segment.count; ++element_index) {
        const T expected = input_element<T>(pattern, key, segment.source, segment.source_at + element_index);
        const T got = load<T>(output, segment.at + element_index);
        if (!(got == expected)) {
            note(mismatch, segment.at + element_index, got, text(expected));
        }
    }
}

template <class T>
using accumulator = std::conditional_t<is_float<T>, double, std::uint64_t>;

// What an accumulator stands for: itself for floats, the type's own integer (with its sign) otherwise.
template <class T>
auto narrow(accumulator<T> value) {
    if constexpr (is_float<T>) {
        return value;
    } else {
        return static_cast<T>(value);
    }
}

// The reduction of one chunk over all ranks, in double precision or modulo 2^64, and the sum of magnitudes.
template <class T>
struct Reference {
    std::array<accumulator<T>, chunk> value;
    std::array<double, chunk> magnitude;
};

template <class T>
void reduce_chunk(const Pattern& pattern, std::size_t first, std::size_t count, Reference<T>& reference) {
    using wide = accumulator<T>;
    for (int rank = 0; rank < pattern.ranks; ++rank) {
        const std::uint64_t key = stream_key(pattern.seed, rank);
        for (std::size_t place = 0; place < count; ++place) {
            const T next = input_element<T>(pattern, key, rank, first + place);
            wide value{};
            if constexpr (is_float<T>) {
                value = to_double(next);
            } else {
                value = static_cast<wide>(next);
            }
            wide& total = reference.value[place];
            if (rank == 0) {
                total = value;
                reference.magnitude[place] = std::fabs(static_cast<double>(value));
                continue;
            }
            switch (pattern.operation) {
                case Operation::sum: total += value; break;
                case Operation::prod: total *= value; break;
                case Operation::min: total = narrow<T>(value) < narrow<T>(total) ? value : total; break;
                case Operation::max: total = narrow<T>(value) > narrow<T>(total) ? value : total; break;
            }
            reference.magnitude[place] += std::fabs(static_cast<double>(value));
        }
    }
}

template <class T>
bool agrees(const Pattern& pattern, T got, accumulator<T> expected, double magnitude) {
    if constexpr (is_float<T>) {
        const double scale = pattern.operation == Operation::sum ? magnitude : std::fabs(expected);
        const double bound = is_exact<T>(pattern) ? 0.0 : (pattern.ranks - 1) * epsilon<T>() * scale;
        return std::fabs(to_double(got) - expected) <= bound;  // false for a NaN
    } else {
        return got == narrow<T>(expected);
    }
}

template <class T>
void compare_reduction(const Pattern& pattern, const std::byte* output, const Segment& segment, Mismatch& mismatch) {
    Reference<T> reference;
    for (std::size_t done = 0; done < segment.count; done += chunk) {
        const std::size_t count = std::min(chunk, segment.count - done);
        reduce_chunk<T>(pattern, segment.source_at + done, count, reference);
        for (std::size_t place = 0; place < count; ++place) {
            const std::size_t index = segment.at + done + place;
            const T got = load<T>(output, index);
            if (!agrees<T>(pattern, got, reference.value[place], reference.magnitude[place])) {
                note(mismatch, index, got, text(narrow<T>(reference.value[place])));
            }
        }
    }
}

}  // namespace

void fill(const Pattern& pattern, int rank, std::byte* into, std::size_t count) {
    const std::uint64_t key = stream_key(pattern.seed, rank);
    with_type(pattern.type, [&]<class T>(T) {
        for (std::size_t index = 0; index < count; ++index) {
            store(into, index, input_element<T>(pattern, key, rank, index));
        }
    });
}

void fill_neutral(const Pattern& pattern, std::byte* into, std::size_t count) {
    const double neutral = pattern.operation == Operation::prod ? 1.0 : 0.0;
    with_type(pattern.type, [&]<class T>(T) {
        for (std::size_t index = 0; index < count; ++index) {
            store(into, index, from_double<T>(neutral));
        }
    });
}

Mismatch compare(const Pattern& pattern, const std::byte* output, std::span<const Segment> segments) {
    Mismatch mismatch;
    with_type(pattern.type, [&]<class T>(T) {
        for (const Segment& segment : segments) {
            if (segment.source == all_ranks) {
                compare_reduction<T>(pattern, output, segment, mismatch);
            } else {
                compare_copy<T>(pattern, output, segment, mismatch);
            }
        }
    });
    return mismatch;
}

}  // namespace busbw
