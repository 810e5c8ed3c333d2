// Reductions of 16-bit floats, which MPI does not have or may have without operations: each element is widened to
// binary32, combined, and rounded to nearest.
#pragma once

#include "element.hpp"
#include "mpi_api.hpp"

namespace busbw {

// Returns the function for MPI_Op_create. Throws std::invalid_argument for a type MPI reduces by itself.
reduction* reduction_for(DataType type, Operation operation);

}  // namespace busbw
