// What bind.cpp takes from bind_known_lines.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace busbw {

void bind_known_lines(nanobind::module_& module);

}  // namespace busbw
