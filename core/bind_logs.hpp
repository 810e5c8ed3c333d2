// What bind.cpp takes from bind_logs.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace busbw {

void bind_logs(nanobind::module_& module);

}  // namespace busbw
