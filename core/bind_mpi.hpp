// MPI of either handle type, as Python holds it.
#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>

#include "mpi_api.hpp"

namespace busbw {

using AnyMpi = std::variant<MpiApi<pointer_handle>, MpiApi<integer_handle>>;
using handle_value = std::uint64_t;  // a handle as mpi4py's _handleof gives it

template <class Handle>
Handle to_handle(handle_value value) {
    if constexpr (std::is_pointer_v<Handle>) {
        return reinterpret_cast<Handle>(value);
    } else {
        return static_cast<Handle>(static_cast<std::uint32_t>(value));
    }
}

template <class Handle>
handle_value from_handle(Handle handle) {
    if constexpr (std::is_pointer_v<Handle>) {
        return reinterpret_cast<handle_value>(handle);
    } else {
        return static_cast<std::uint32_t>(handle);
    }
}

}  // namespace busbw
