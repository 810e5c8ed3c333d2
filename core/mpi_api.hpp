// The MPI functions the loops call, looked up at run time in the library that mpi4py has loaded.
// No MPI header: a handle is a pointer (Open MPI, the MPI 5 standard ABI) or a 32-bit integer (MPICH's family),
// so everything is a template over the handle type and built for both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace busbw {

using pointer_handle = void*;
using integer_handle = std::int32_t;

// Larger than MPI_Status of any implementation (Open MPI 24, MPICH 20, the standard ABI 32 bytes).
inline constexpr std::size_t status_bytes = 64;
using status_space = std::array<std::byte, status_bytes>;

// A reduction operation as MPI calls it; the data type argument is a pointer to a handle we never read.
extern "C" using reduction = void(void* in, void* inout, int* length, void* datatype);

template <class Handle>
struct MpiApi {
    int (*allreduce)(const void*, void*, int, Handle, Handle, Handle);
    int (*reduce)(const void*, void*, int, Handle, Handle, int, Handle);
    int (*reduce_scatter_block)(const void*, void*, int, Handle, Handle, Handle);
    int (*allgather)(const void*, int, Handle, void*, int, Handle, Handle);
    int (*bcast)(void*, int, Handle, int, Handle);
    int (*alltoall)(const void*, int, Handle, void*, int, Handle, Handle);
    int (*gather)(const void*, int, Handle, void*, int, Handle, int, Handle);
    int (*scatter)(const void*, int, Handle, void*, int, Handle, int, Handle);
    int (*sendrecv)(const void*, int, Handle, int, int, void*, int, Handle, int, int, Handle, void*);
    int (*sendrecv_replace)(void*, int, Handle, int, int, int, int, Handle, void*);
    int (*send)(const void*, int, Handle, int, int, Handle);
    int (*recv)(void*, int, Handle, int, int, Handle, void*);
    int (*isend)(const void*, int, Handle, int, int, Handle, Handle*);
    int (*irecv)(void*, int, Handle, int, int, Handle, Handle*);
    int (*iallreduce)(const void*, void*, int, Handle, Handle, Handle, Handle*);
    int (*iallgather)(const void*, int, Handle, void*, int, Handle, Handle, Handle*);
    int (*ireduce_scatter_block)(const void*, void*, int, Handle, Handle, Handle, Handle*);
    int (*ialltoall)(const void*, int, Handle, void*, int, Handle, Handle, Handle*);
    int (*test)(Handle*, int*, void*);
    int (*testall)(int, Handle*, int*, void*);
    int (*waitall)(int, Handle*, void*);
    int (*barrier)(Handle);
    int (*op_create)(reduction*, int, Handle*);
    int (*error_string)(int, char*, int*);
    int (*comm_rank)(Handle, int*);
    int (*comm_size)(Handle, int*);

    std::string library;                  // file that MPI_Send was found in
    std::vector<std::string> interposed;  // preloaded files that stand before it, with the functions they took
};

// Looks up every function, first in preloaded libraries (a profiler the user asked for), then in the dependencies
// of the shared object `module` (mpi4py's extension). Throws std::runtime_error naming what is missing.
template <class Handle>
MpiApi<Handle> find_mpi(const std::string& module);

// Throws std::runtime_error with MPI's own text unless `code` is MPI_SUCCESS.
template <class Handle>
[[noreturn]] void throw_mpi_error(const MpiApi<Handle>& mpi, int code, std::string_view function);

template <class Handle>
inline void check(const MpiApi<Handle>& mpi, int code, std::string_view function) {
    if (code != 0) [[unlikely]] {
        throw_mpi_error(mpi, code, function);
    }
}

}  // namespace busbw
