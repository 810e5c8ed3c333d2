// What the driver's stand-in and the libraries that the NVRTC stand-in compiles know of each other.
#pragma once

#include <cstddef>
#include <string_view>

namespace standin {

// A "cubin" is these bytes, the path of a library, and a zero.
inline constexpr std::string_view image_magic = "STANDIN-KERNELS\n";

// The library's function for kernel NAME is NAME_on_host. It does what the kernel does for one thread, and returns how
// many bytes its argument has; without an argument it only returns that.
inline constexpr std::string_view host_suffix = "_on_host";
using HostKernel = std::size_t(const void* argument);

struct Shape {
    unsigned x, y, z;
};

// Calls the body for every thread of every block in turn.
inline constexpr const char* run_grid_name = "standin_run_grid";
using RunGrid = void(HostKernel* body, Shape grid, Shape block, const void* argument);

}  // namespace standin
