// What busbw does on the GPU beside NCCL: writing inputs, checking outputs, copying slices, and a load to run beside.
// Compiled at run time behind the other files of this folder. Every kernel takes one struct and strides over its
// work, so any grid is right.
#ifndef KERNEL
#define KERNEL(name, Arguments) extern "C" __global__ void name(const Arguments a)
#endif

namespace busbw {

__device__ inline u64 first_index() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline u64 index_step() { return static_cast<u64>(gridDim.x) * blockDim.x; }

template <class T>
__device__ void fill_elements(const FillArguments& a) {
    T* const into = static_cast<T*>(a.into);
    const u64 key = stream_key(a.seed, a.rank);
    with_operation(static_cast<Operation>(a.operation), [&](auto chosen) {
        for (u64 index = first_index(); index < a.count; index += index_step()) {
            into[index] = input_element<T, decltype(chosen)::operation>(key, a.rank, a.ranks, a.first + index);
        }
    });
}

template <class T>
__device__ void fill_neutral(const NeutralArguments& a) {
    const bool product = static_cast<Operation>(a.operation) == Operation::prod;
    const T neutral = from_double<T>(product ? 1.0 : 0.0);
    for (u64 index = first_index(); index < a.count; index += index_step()) {
        static_cast<T*>(a.into)[index] = neutral;
    }
}

template <class T, Operation Op>
__device__ bool is_right(const CompareArguments& a, T got, u64 index) {
    if (a.source >= 0) {
        return got == input_element<T, Op>(stream_key(a.seed, a.source), a.source, a.ranks, index);
    }
    typename Accumulator<T>::type total{};
    double magnitude = 0;
    for (int rank = 0; rank < a.ranks; ++rank) {
        const T next = input_element<T, Op>(stream_key(a.seed, rank), rank, a.ranks, index);
        combine<T, Op>(total, magnitude, next, rank == 0);
    }
    conclude<T, Op>(total, magnitude, a.ranks);
    return agrees<T, Op>(a.ranks, got, total, magnitude);
}

template <class T>
__device__ void compare_elements(const CompareArguments& a) {
    const T* const output = static_cast<const T*>(a.output);
    with_operation(static_cast<Operation>(a.operation), [&](auto chosen) {
        for (u64 index = first_index(); index < a.count; index += index_step()) {
            if (!is_right<T, decltype(chosen)::operation>(a, output[a.at + index], a.source_at + index)) {
                atomicAdd(a.wrong, 1ULL);
                atomicMin(a.place, static_cast<unsigned long long>(a.at + index));
            }
        }
    });
}

// Slices need not be multiples of a word: each is copied as words where both ends are aligned, byte by byte elsewhere.
template <class Word>
__device__ void transpose_slices(const TransposeArguments& a) {
    const u64 words = a.slice / sizeof(Word);
    const Word* const from = static_cast<const Word*>(a.from);
    Word* const into = static_cast<Word*>(a.into);
    for (u64 index = first_index(); index < a.rows * a.columns * words; index += index_step()) {
        const u64 slice = index / words;
        const u64 row = slice / a.columns;
        const u64 column = slice % a.columns;
        into[(column * a.rows + row) * words + index % words] = from[index];
    }
}

}  // namespace busbw

// What a launch costs by itself.
KERNEL(nothing, busbw::NothingArguments) {}

KERNEL(transpose_bytes, busbw::TransposeArguments) { busbw::transpose_slices<busbw::u8>(a); }
KERNEL(transpose_words, busbw::TransposeArguments) { busbw::transpose_slices<busbw::u64>(a); }

// Four rows to a thread: work for the multiprocessors and their caches.
KERNEL(product, busbw::ProductArguments) {
    using busbw::u64;
    const u64 tiles = a.n / 4 * a.n;
    for (u64 tile = busbw::first_index(); tile < tiles; tile += busbw::index_step()) {
        const u64 column = tile % a.n;
        const u64 row = tile / a.n * 4;
        float sums[4] = {0, 0, 0, 0};
        for (u64 k = 0; k < a.n; ++k) {
            const float factor = a.right[k * a.n + column];
            for (int part = 0; part < 4; ++part) {
                sums[part] += a.left[(row + part) * a.n + k] * factor;
            }
        }
        for (int part = 0; part < 4; ++part) {
            a.product[(row + part) * a.n + column] = sums[part];
        }
    }
}

#define FOR_TYPE(name, Type)                                                          \
    KERNEL(fill_##name, busbw::FillArguments) { busbw::fill_elements<Type>(a); }      \
    KERNEL(neutral_##name, busbw::NeutralArguments) { busbw::fill_neutral<Type>(a); } \
    KERNEL(compare_##name, busbw::CompareArguments) { busbw::compare_elements<Type>(a); }
FOR_TYPE(int8, signed char)
FOR_TYPE(uint8, unsigned char)
FOR_TYPE(int32, int)
FOR_TYPE(uint32, unsigned int)
FOR_TYPE(int64, long)
FOR_TYPE(uint64, unsigned long)
FOR_TYPE(float8e4m3, busbw::Float8E4M3)
FOR_TYPE(float8e5m2, busbw::Float8E5M2)
FOR_TYPE(float16, busbw::Float16)
FOR_TYPE(bfloat16, busbw::BFloat16)
FOR_TYPE(float32, float)
FOR_TYPE(float64, double)
