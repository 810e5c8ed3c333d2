// What bind.cpp takes from bind_pairs.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace busbw {

void bind_pairs(nanobind::module_& module);

}  // namespace busbw
