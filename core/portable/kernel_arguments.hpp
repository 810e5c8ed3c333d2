// What each kernel is given: one struct, the same for the host that fills it and the GPU that reads it.
#pragma once

#include "small_floats.hpp"

namespace busbw {

// A kernel takes one struct, even where it needs nothing.
struct NothingArguments {
    int unused;
};

// Elements first..first+count-1 of the input of `rank`.
struct FillArguments {
    void* into;
    u64 first, count, seed;
    int rank, ranks, operation;
};

struct NeutralArguments {
    void* into;
    u64 count;
    int operation;
};

// A stretch of an output, as `Segment` in pattern.hpp says.
struct CompareArguments {
    const void* output;
    u64 at, count, source_at, seed;
    int source, ranks, operation;
    // Elements that differ, and the place of the first: two words that begin as 0 and all ones.
    unsigned long long* wrong;
    unsigned long long* place;
};

// Slices of `slice` bytes, a matrix of `rows` x `columns`: slice (r, c) is copied to (c, r).
struct TransposeArguments {
    const void* from;
    void* into;
    u64 slice, rows, columns;
};

// C = A x B of `n` x `n` floats; n is a multiple of 4.
struct ProductArguments {
    const float* left;
    const float* right;
    float* product;
    u64 n;
};

}  // namespace busbw
