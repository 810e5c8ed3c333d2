#include "mpi_api.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace busbw {
namespace {

struct CloseLibrary {
    void operator()(void* library) const noexcept { dlclose(library); }
};
using library_handle = std::unique_ptr<void, CloseLibrary>;

library_handle open_loaded(const std::string& module) {
    library_handle library{dlopen(module.c_str(), RTLD_NOW | RTLD_NOLOAD)};
    if (!library) {
        throw std::runtime_error("not loaded in this process: " + module);
    }
    return library;
}

std::string file_of(const void* symbol) {
    Dl_info info{};
    return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_preloaded(std::string_view file) {
    const char* preload = std::getenv("LD_PRELOAD");
    if (preload == nullptr || file.empty()) {
        return false;
    }
    const std::string_view list{preload};
    for (std::size_t begin = 0; begin < list.size();) {
        const std::size_t end = std::min(list.find_first_of(": ", begin), list.size());
        if (base_name(list.substr(begin, end - begin)) == base_name(file)) {
            return true;
        }
        begin = end + 1;
    }
    return false;
}

class Lookup {
   public:
    explicit Lookup(const std::string& module) : library_{open_loaded(module)} {}

    template <class Function>
    void find(Function*& function, const char* name) {
        void* symbol = dlsym(library_.get(), name);
        if (symbol == nullptr) {
            throw std::runtime_error(std::string("the MPI library has no function ") + name);
        }
        void* first = dlsym(RTLD_DEFAULT, name);
        if (first != nullptr && first != symbol && is_preloaded(file_of(first))) {
            interposed.push_back(std::string(name) + " from " + file_of(first));
            symbol = first;
        } else if (library.empty()) {
            library = file_of(symbol);
        }
        function = reinterpret_cast<Function*>(symbol);
    }

    std::string library;
    std::vector<std::string> interposed;

   private:
    library_handle library_;
};

}  // namespace

template <class Handle>
MpiApi<Handle> find_mpi(const std::string& module) {
    Lookup lookup{module};
    MpiApi<Handle> mpi{};
    lookup.find(mpi.allreduce, "MPI_Allreduce");
    lookup.find(mpi.reduce, "MPI_Reduce");
    lookup.find(mpi.reduce_scatter_block, "MPI_Reduce_scatter_block");
    lookup.find(mpi.allgather, "MPI_Allgather");
    lookup.find(mpi.bcast, "MPI_Bcast");
    lookup.find(mpi.alltoall, "MPI_Alltoall");
    lookup.find(mpi.gather, "MPI_Gather");
    lookup.find(mpi.scatter, "MPI_Scatter");
    lookup.find(mpi.sendrecv, "MPI_Sendrecv");
    lookup.find(mpi.sendrecv_replace, "MPI_Sendrecv_replace");
    lookup.find(mpi.send, "MPI_Send");
    lookup.find(mpi.recv, "MPI_Recv");
    lookup.find(mpi.isend, "MPI_Isend");
    lookup.find(mpi.irecv, "MPI_Irecv");
    lookup.find(mpi.iallreduce, "MPI_Iallreduce");
    lookup.find(mpi.iallgather, "MPI_Iallgather");
    lookup.find(mpi.ireduce_scatter_block, "MPI_Ireduce_scatter_block");
    lookup.find(mpi.ialltoall, "MPI_Ialltoall");
    lookup.find(mpi.test, "MPI_Test");
    lookup.find(mpi.testall, "MPI_Testall");
    lookup.find(mpi.waitall, "MPI_Waitall");
    lookup.find(mpi.barrier, "MPI_Barrier");
    lookup.find(mpi.op_create, "MPI_Op_create");
    lookup.find(mpi.error_string, "MPI_Error_string");
    lookup.find(mpi.comm_rank, "MPI_Comm_rank");
    lookup.find(mpi.comm_size, "MPI_Comm_size");
    mpi.library = lookup.library;
    mpi.interposed = lookup.interposed;
    return mpi;
}

template <class Handle>
void throw_mpi_error(const MpiApi<Handle>& mpi, int code, std::string_view function) {
    std::array<char, 4096> text{};
    int length = 0;
    if (mpi.error_string(code, text.data(), &length) != 0) {
        length = 0;
    }
    throw std::runtime_error(std::string(function) + " failed with code " + std::to_string(code) + ": " +
                             std::string(text.data(), static_cast<std::size_t>(length)));
}

template MpiApi<pointer_handle> find_mpi(const std::string&);
template MpiApi<integer_handle> find_mpi(const std::string&);
template void throw_mpi_error(const MpiApi<pointer_handle>&, int, std::string_view);
template void throw_mpi_error(const MpiApi<integer_handle>&, int, std::string_view);

}  // namespace busbw
