// ncclConfig_t as each version has it.
#pragma once

#include <string>

#include "nccl.hpp"

namespace standin::nccl {

struct Config {
    bool blocking = true;
    std::string name;
};

// Reads what `given` points to, which may be null. Throws Problem where NCCL refuses it, and where its size is not that
// of the version it names, or is larger than this version's: NCCL would take what it can get and say nothing.
Config read_config(const void* given);

}  // namespace standin::nccl
