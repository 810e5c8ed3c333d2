// Random data that every rank can compute for every other rank: element i of rank r is a function of (seed, r, i),
// so a result is checked without a second copy of the message. And the check itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "element.hpp"

namespace busbw {

// What one stretch of an output must hold: `count` elements from `at`, equal to elements `source_at`... of the input
// of rank `source`; or, with source == all_ranks, to the reduction over the inputs of every rank.
struct Segment {
    std::size_t at;
    std::size_t count;
    int source;
    std::size_t source_at;
};
inline constexpr int all_ranks = -1;

struct Pattern {
    std::uint64_t seed;
    int ranks;
    DataType type;
    Operation operation;
};

// Elements that differ from what they must be; `index`, `got` and `expected` describe the first of them.
struct Mismatch {
    std::size_t wrong = 0;
    std::size_t index = 0;
    std::string got;
    std::string expected;
};

// Writes elements first..first+count-1 of the input of `rank`.
void fill(const Pattern& pattern, int rank, std::size_t first, std::byte* into, std::size_t count);

// Writes the operation's neutral element, so that a reduction repeated in place stays finite.
void fill_neutral(const Pattern& pattern, std::byte* into, std::size_t count);

// Compares every element. Integers, minima and maxima must be equal, and so must 16-bit floats over up to 256 ranks
// (bfloat16) or 2048 (float16), whose data are whole numbers that add exactly. A floating sum over n ranks may differ
// from the sum in double precision by (n-1) * epsilon * sum |x|, a product by (n-1) * epsilon * |product|: the bound
// for any order of n-1 rounded operations (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 4.2).
Mismatch compare(const Pattern& pattern, const std::byte* output, std::span<const Segment> segments);

}  // namespace busbw
