// What bind.cpp takes from bind_fabric.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace busbw {

void bind_fabric(nanobind::module_& module);

}  // namespace busbw
