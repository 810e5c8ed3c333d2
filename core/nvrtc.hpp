// NVRTC, opened at run time: CUDA C++ in, machine code for one kind of GPU out.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "loaded_library.hpp"

namespace busbw {

struct Nvrtc {
    // Throws std::runtime_error when `path` is no NVRTC.
    explicit Nvrtc(const std::string& path);

    LoadedLibrary library;
    int major = 0;
    int minor = 0;

    // Machine code of `source` for compute capability `capability` (90 for 9.0). Throws std::runtime_error with the
    // compiler's words.
    [[nodiscard]] std::vector<char> compile(const std::string& source, int capability) const;

   private:
    std::unique_ptr<LoadedLibrary> builtins_;
    using program = struct nvrtc_program*;
    using result = int;
    result (*version_)(int*, int*);
    result (*create_)(program*, const char*, const char*, int, const char* const*, const char* const*);
    result (*compile_)(program, int, const char* const*);
    result (*log_size_)(program, std::size_t*);
    result (*log_)(program, char*);
    result (*code_size_)(program, std::size_t*);
    result (*code_)(program, char*);
    result (*destroy_)(program*);
    const char* (*error_)(result);
    void check(result code, const char* call) const;
};

}  // namespace busbw
