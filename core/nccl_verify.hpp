// One exchange over NCCL on fresh random data, every element of the result checked.
#pragma once

#include <vector>

#include "nccl_exchange.hpp"
#include "nccl_loops.hpp"

namespace busbw {

// Bytes behind each output that must stay as they are. Every receive buffer has as many more than it needs.
inline constexpr std::size_t guard_bytes = 4096;

// Poisons outputs, writes inputs, exchanges once and compares. One entry for each GPU of this process; an output that
// was written beyond its end is reported as a wrong element there. Uses the first slot.
std::vector<Mismatch> verify(const NcclExchange& exchange, const NcclBench& bench, const Pattern& pattern);

// Leaves inputs in every slot that stay finite however often the exchange is repeated in place.
void settle(const NcclExchange& exchange, const Pattern& pattern);

}  // namespace busbw
