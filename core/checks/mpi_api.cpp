// What is said when there is no MPI to be found.
#include "mpi_api.hpp"

#include <dlfcn.h>

#include <stdexcept>

#include "expect.hpp"

int main() {
    using namespace busbw;
    using namespace busbw::checks;
    expect_throw<std::runtime_error>([] { find_mpi<pointer_handle>("/nowhere/libmpi.so"); }, "a missing file is named");
    // A library that is loaded and is not an MPI: the C library itself.
    Dl_info info{};
    expect(dladdr(reinterpret_cast<const void*>(&std::fprintf), &info) != 0, "the C library is found");
    try {
        find_mpi<integer_handle>(info.dli_fname);
        expect(false, "the C library is no MPI");
    } catch (const std::runtime_error& error) {
        expect(std::string(error.what()).find("MPI_Allreduce") != std::string::npos, error.what());
    }
    return verdict();
}
