// What bind.cpp adds to the module for GPUs.
#pragma once

#include <nanobind/nanobind.h>

namespace busbw {

void bind_nccl(nanobind::module_& module);

}  // namespace busbw
