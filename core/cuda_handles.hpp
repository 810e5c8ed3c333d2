// What the driver gives out, each with an owner that gives it back. An owner says nothing of an error in doing so: it
// goes where something else has failed already, or where nobody is left to be told.
#pragma once

#include <memory>

#include "cuda_api.hpp"

namespace busbw {

// Gives a handle back with the function of the driver that `Function` names.
template <auto Function>
struct GivesBack {
    const CudaApi* cuda = nullptr;
    template <class Handle>
    void operator()(Handle* handle) const noexcept {
        (cuda->*Function)(handle);
    }
};

using UniqueStream = std::unique_ptr<cuda_stream_handle, GivesBack<&CudaApi::stream_destroy>>;
using UniqueEvent = std::unique_ptr<cuda_event_handle, GivesBack<&CudaApi::event_destroy>>;
using UniqueModule = std::unique_ptr<cuda_module_handle, GivesBack<&CudaApi::module_unload>>;
using UniqueGraph = std::unique_ptr<cuda_graph_handle, GivesBack<&CudaApi::graph_destroy>>;
using UniqueGraphExec = std::unique_ptr<cuda_graph_exec_handle, GivesBack<&CudaApi::graph_exec_destroy>>;

// In the context that is current. They throw std::runtime_error.
UniqueStream make_stream(const CudaApi& cuda);
UniqueEvent make_event(const CudaApi& cuda);
UniqueModule load_module(const CudaApi& cuda, const void* code);
UniqueGraphExec instantiate(const CudaApi& cuda, const UniqueGraph& graph);

// A device's primary context, retained.
class PrimaryContext {
   public:
    // Throws std::runtime_error. It is not current yet.
    PrimaryContext(const CudaApi& cuda, int ordinal);
    PrimaryContext(const PrimaryContext&) = delete;
    PrimaryContext& operator=(const PrimaryContext&) = delete;
    ~PrimaryContext();
    [[nodiscard]] cuda_context get() const noexcept { return context_; }

   private:
    const CudaApi* cuda_;
    cuda_device device_ = 0;
    cuda_context context_ = nullptr;
};

}  // namespace busbw
