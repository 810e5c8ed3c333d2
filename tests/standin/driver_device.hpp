// The devices a process sees and the context that its threads work in.
#pragma once

#include "driver.hpp"

namespace standin {

// A device's primary context; there is no other kind here.
struct Context {
    int device;
};

// How many devices CUDA_VISIBLE_DEVICES leaves of STANDIN_GPUS.
int visible_devices();

// The context that is current in this thread; throws invalid_context where there is none.
Context& current_context();

// The number in the environment variable `name`, or `otherwise` where it is unset. Aborts on anything else.
__attribute__((visibility("default"))) long long environment_number(const char* name, long long otherwise);

}  // namespace standin
