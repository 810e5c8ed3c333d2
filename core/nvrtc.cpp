#include "nvrtc.hpp"

#include <array>
#include <memory>
#include <stdexcept>

namespace busbw {

Nvrtc::Nvrtc(const std::string& path) : library{path} {
    library.find(version_, "nvrtcVersion");
    library.find(create_, "nvrtcCreateProgram");
    library.find(compile_, "nvrtcCompileProgram");
    library.find(log_size_, "nvrtcGetProgramLogSize");
    library.find(log_, "nvrtcGetProgramLog");
    library.find(code_size_, "nvrtcGetCUBINSize");
    library.find(code_, "nvrtcGetCUBIN");
    library.find(destroy_, "nvrtcDestroyProgram");
    library.find(error_, "nvrtcGetErrorString");
    check(version_(&major, &minor), "nvrtcVersion");
    // NVRTC opens this by name when it first compiles, and some wheels do not say where it lies: beside NVRTC.
    const std::string folder = library.path().substr(0, library.path().rfind('/') + 1);
    try {
        builtins_ = std::make_unique<LoadedLibrary>(folder + "libnvrtc-builtins.so." + std::to_string(major) + "." +
                                                    std::to_string(minor));
    } catch (const std::runtime_error&) {
        builtins_.reset();  // the system's own, found by name
    }
}

void Nvrtc::check(result code, const char* call) const {
    if (code != 0) {
        throw std::runtime_error(std::string(call) + ": " + error_(code));
    }
}

std::vector<char> Nvrtc::compile(const std::string& source, int capability) const {
    program made = nullptr;
    check(create_(&made, source.c_str(), "busbw_kernels.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
    const auto destroy = [this](program one) { destroy_(&one); };
    const std::unique_ptr<nvrtc_program, decltype(destroy)> held{made, destroy};
    const std::string target = "--gpu-architecture=sm_" + std::to_string(capability);
    // Before 13.1 a generic lambda is taken for a host function unless the device is the default.
    const std::array<const char*, 3> options{target.c_str(), "--std=c++17", "--device-as-default-execution-space"};
    if (const result code = compile_(made, options.size(), options.data()); code != 0) {
        std::size_t size = 0;
        check(log_size_(made, &size), "nvrtcGetProgramLogSize");
        std::string log(size, '\0');
        check(log_(made, log.data()), "nvrtcGetProgramLog");
        throw std::runtime_error(std::string("nvrtcCompileProgram: ") + error_(code) + "\n" + log.c_str());
    }
    std::size_t size = 0;
    check(code_size_(made, &size), "nvrtcGetCUBINSize");
    std::vector<char> code(size);
    check(code_(made, code.data()), "nvrtcGetCUBIN");
    return code;
}

}  // namespace busbw
