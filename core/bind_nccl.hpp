// What bind.cpp adds to the module for GPUs.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "heartbeat.hpp"

namespace busbw {

Heartbeat heartbeat_on(nanobind::handle memory);
void bind_nccl(nanobind::module_& module);

}  // namespace busbw
