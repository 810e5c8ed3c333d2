// What bind.cpp takes from bind_schedule.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace busbw {

void bind_schedule(nanobind::module_& module);

}  // namespace busbw
