// What the parts of NCCL's stand-in share: results, types and operations by NCCL's numbers, and what it prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "driver_stream.hpp"

#ifndef VERSION
#define VERSION 22809
#endif

namespace standin::nccl {

inline constexpr int version = VERSION;

enum Status : int {
    ok = 0,
    unhandled_cuda_error = 1,
    system_error = 2,
    internal_error = 3,
    invalid_argument = 4,
    invalid_usage = 5,
    remote_error = 6,
    in_progress = 7,
};

// What a function throws inside to return `status` outside, with the text for ncclGetLastError.
struct Problem {
    Status status;
    std::string text;
};

enum class DataType : int {
    int8 = 0,
    uint8 = 1,
    int32 = 2,
    uint32 = 3,
    int64 = 4,
    uint64 = 5,
    float16 = 6,
    float32 = 7,
    float64 = 8,
    bfloat16 = 9,
    float8e4m3 = 10,
    float8e5m2 = 11,
};
inline constexpr int data_types = version >= 22400 ? 12 : 10;

std::size_t bytes_of(DataType type);

// What NCCL makes of a failed call of CUDA.
inline Problem problem_of(const Failure& failure) {
    return {unhandled_cuda_error, "Cuda failure " + std::to_string(failure.code)};
}

// Prints a warning if NCCL_DEBUG asks for one and keeps `text` for ncclGetLastError.
void warn(int device, const std::string& text);
// Prints a line if NCCL_DEBUG asks for information.
void inform(int device, const std::string& text);
// Prints the line with the version, once, where NCCL would.
void show_version(int rank, int device);

// Counts a call; throws Problem where STANDIN_REFUSE wants it to fail. Of ncclGroupEnd, the end itself throws it.
void admit(const char* function);

// Runs `action` and gives the status that an exported function returns. `function`: its name.
template <class Action>
Status reply(Action&& action, const char* function = __builtin_FUNCTION()) noexcept {
    try {
        admit(function);
        action();
        return ok;
    } catch (const Problem& problem) {
        if (problem.status != in_progress) {
            warn(-1, problem.text);
        }
        return problem.status;
    } catch (const Failure& failure) {
        warn(-1, problem_of(failure).text);
        return unhandled_cuda_error;
    } catch (const std::exception& error) {
        warn(-1, error.what());
        return internal_error;
    }
}

inline void expect(bool holds, Status otherwise, const char* text) {
    if (!holds) {
        throw Problem{otherwise, text};
    }
}

}  // namespace standin::nccl
