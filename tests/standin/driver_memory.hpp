// Device memory, which is memory of the process, and which addresses belong to it.
#pragma once

#include <cstddef>

namespace standin {

std::size_t device_memory_bytes();

// Whether all `bytes` from `start` lie in one allocation of device memory or of page-locked host memory.
__attribute__((visibility("default"))) bool is_known(const void* start, std::size_t bytes);

// Throws invalid_value where is_known does not hold.
void require_known(const void* start, std::size_t bytes);

}  // namespace standin
