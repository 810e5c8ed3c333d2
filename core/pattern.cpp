#include "pattern.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace busbw {
namespace {

constexpr std::size_t chunk = 1024;

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

template <class T, class Expected>
void note(Mismatch& mismatch, std::size_t index, T got, Expected expected) {
    if (mismatch.wrong++ == 0) {
        mismatch.index = index;
        mismatch.got = text(got);
        mismatch.expected = text(expected);
    }
}

template <class T, Operation Op>
void compare_copy(const Pattern& pattern, const std::byte* output, const Segment& segment, Mismatch& mismatch) {
    const std::uint64_t key = stream_key(pattern.seed, segment.source);
    for (std::size_t index = 0; index < segment.count; ++index) {
        const T expected = input_element<T, Op>(key, segment.source, pattern.ranks, segment.source_at + index);
        const T got = load<T>(output, segment.at + index);
        if (!(got == expected)) {
            note(mismatch, segment.at + index, got, expected);
        }
    }
}

// The reduction of one chunk over all ranks and the sum of magnitudes.
template <class T>
struct Reference {
    std::array<typename Accumulator<T>::type, chunk> value;
    std::array<double, chunk> magnitude;
};

template <class T, Operation Op>
void reduce_chunk(const Pattern& pattern, std::size_t first, std::size_t count, Reference<T>& reference) {
    for (int rank = 0; rank < pattern.ranks; ++rank) {
        const std::uint64_t key = stream_key(pattern.seed, rank);
        for (std::size_t place = 0; place < count; ++place) {
            const T next = input_element<T, Op>(key, rank, pattern.ranks, first + place);
            combine<T, Op>(reference.value[place], reference.magnitude[place], next, rank == 0);
        }
    }
    for (std::size_t place = 0; place < count; ++place) {
        conclude<T, Op>(reference.value[place], reference.magnitude[place], pattern.ranks);
    }
}

template <class T, Operation Op>
void compare_reduction(const Pattern& pattern, const std::byte* output, const Segment& segment, Mismatch& mismatch) {
    Reference<T> reference;
    for (std::size_t done = 0; done < segment.count; done += chunk) {
        const std::size_t count = std::min(chunk, segment.count - done);
        reduce_chunk<T, Op>(pattern, segment.source_at + done, count, reference);
        for (std::size_t place = 0; place < count; ++place) {
            const std::size_t index = segment.at + done + place;
            const T got = load<T>(output, index);
            if (!agrees<T, Op>(pattern.ranks, got, reference.value[place], reference.magnitude[place])) {
                note(mismatch, index, got, Accumulator<T>::narrow(reference.value[place]));
            }
        }
    }
}

// Calls `visit` with the pattern's type and operation as constants.
template <class Visitor>
void with_pattern(const Pattern& pattern, Visitor&& visit) {
    with_type(pattern.type, [&]<class T>(T) {
        with_operation(pattern.operation, [&]<Operation Op>(Chosen<Op>) { visit.template operator()<T, Op>(); });
    });
}

}  // namespace

void fill(const Pattern& pattern, int rank, std::size_t first, std::byte* into, std::size_t count) {
    const std::uint64_t key = stream_key(pattern.seed, rank);
    with_pattern(pattern, [&]<class T, Operation Op>() {
        for (std::size_t index = 0; index < count; ++index) {
            store(into, index, input_element<T, Op>(key, rank, pattern.ranks, first + index));
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
    with_pattern(pattern, [&]<class T, Operation Op>() {
        for (const Segment& segment : segments) {
            if (segment.source == all_ranks) {
                compare_reduction<T, Op>(pattern, output, segment, mismatch);
            } else {
                compare_copy<T, Op>(pattern, output, segment, mismatch);
            }
        }
    });
    return mismatch;
}

}  // namespace busbw
