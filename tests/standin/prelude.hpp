// Put before every source that the NVRTC stand-in compiles: enough of CUDA C++ for kernels that need neither shared
// memory nor barriers, run thread after thread. Like NVRTC it includes nothing.
#pragma once

#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};
using size_t = decltype(sizeof 0);

static thread_local uint3 threadIdx;
static thread_local uint3 blockIdx;
static thread_local dim3 blockDim;
static thread_local dim3 gridDim;

#define KERNEL(name, Arguments)                                             \
    static void name##_in_one_thread(const Arguments& a);                   \
    extern "C" size_t name##_on_host(const void* argument) {                \
        if (argument != nullptr) {                                          \
            name##_in_one_thread(*static_cast<const Arguments*>(argument)); \
        }                                                                   \
        return sizeof(Arguments);                                           \
    }                                                                       \
    static void name##_in_one_thread([[maybe_unused]] const Arguments& a)

extern "C" {
double fabs(double);
double sqrt(double);
double floor(double);
double ceil(double);
double rint(double);
double ldexp(double, int);
double fma(double, double, double);
double fmin(double, double);
double fmax(double, double);
float fabsf(float);
float sqrtf(float);
float floorf(float);
float rintf(float);
float ldexpf(float, int);
float fmaf(float, float, float);
float fminf(float, float);
float fmaxf(float, float);
}
inline float fabs(float value) { return fabsf(value); }
inline float sqrt(float value) { return sqrtf(value); }
inline float floor(float value) { return floorf(value); }
inline float rint(float value) { return rintf(value); }
inline float fma(float left, float right, float add) { return fmaf(left, right, add); }
template <class T>
inline T min(T left, T right) {
    return right < left ? right : left;
}
template <class T>
inline T max(T left, T right) {
    return left < right ? right : left;
}

extern "C" void standin_run_grid(size_t (*body)(const void*), dim3 grid, dim3 block, const void* argument) {
    gridDim = grid;
    blockDim = block;
    for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z) {
        for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
            for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
                for (threadIdx.z = 0; threadIdx.z < block.z; ++threadIdx.z) {
                    for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y) {
                        for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) {
                            body(argument);
                        }
                    }
                }
            }
        }
    }
}

template <class T>
inline T atomicAdd(T* at, T value) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicOr(T* at, T value) {
    return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicExch(T* at, T value) {
    return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicCAS(T* at, T expected, T value) {
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
template <class T>
inline T atomicMin(T* at, T value) {
    T found = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (value < found &&
           !__atomic_compare_exchange_n(at, &found, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return found;
}
template <class T>
inline T atomicMax(T* at, T value) {
    T found = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (found < value &&
           !__atomic_compare_exchange_n(at, &found, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return found;
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline float __double2float_rn(double value) { return static_cast<float>(value); }
inline unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
inline float __uint_as_float(unsigned value) { return __builtin_bit_cast(float, value); }
inline int __float_as_int(float value) { return __builtin_bit_cast(int, value); }
inline float __int_as_float(int value) { return __builtin_bit_cast(float, value); }
inline unsigned long long __umul64hi(unsigned long long left, unsigned long long right) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<unsigned long long>((static_cast<Wide>(left) * right) >> 64);
}
