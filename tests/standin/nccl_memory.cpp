// Memory that NCCL allocates, and buffers that are registered with it. Nothing gets faster; wrong use is refused.
#include "driver_memory.hpp"
#include "nccl_group.hpp"

extern "C" {
int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes);
int cuMemFree_v2(std::uint64_t address);
}

namespace standin::nccl {

#if VERSION >= 21903
namespace {

struct Registration {
    std::shared_ptr<Communicator> communicator;
};

std::shared_ptr<Communicator> checked(const Communicator* handle, const void* start, std::size_t bytes) {
    auto communicator = ready_communicator(handle);
    expect(is_known(start, bytes), invalid_argument, "the buffer is not a device's memory");
    return communicator;
}

Registration* register_with(const std::shared_ptr<Communicator>& communicator) {
    return handles<Registration>().add(std::make_shared<Registration>(communicator));
}

void deregister(const Communicator* handle, const Registration* registration) {
    const auto communicator = communicator_of(handle);
    expect(handles<Registration>().get(registration)->communicator == communicator, invalid_argument,
           "the buffer was registered with another communicator");
    handles<Registration>().remove(registration);
}

}  // namespace

STANDIN_API Status ncclMemAlloc(void** start, std::size_t bytes) {
    return reply([&] {
        std::uint64_t address = 0;
        const int result = cuMemAlloc_v2(&address, bytes);
        require(result == 0, static_cast<Result>(result));
        *start = reinterpret_cast<void*>(address);
    });
}

STANDIN_API Status ncclMemFree(void* start) {
    return reply([&] {
        const int result = cuMemFree_v2(reinterpret_cast<std::uint64_t>(start));
        require(result == 0, static_cast<Result>(result));
    });
}

STANDIN_API Status ncclCommRegister(Communicator* communicator, void* start, std::size_t bytes, void** handle) {
    return reply([&] { *handle = register_with(checked(communicator, start, bytes)); });
}

// Buffers and windows.
STANDIN_API long standinRegistrations() { return static_cast<long>(handles<Registration>().count()); }

STANDIN_API Status ncclCommDeregister(Communicator* communicator, void* handle) {
    return reply([&] { deregister(communicator, static_cast<Registration*>(handle)); });
}
#endif

#if VERSION >= 22703
// Every rank has to call it, at once.
STANDIN_API Status ncclCommWindowRegister(Communicator* handle, void* start, std::size_t bytes, Registration** window,
                                          int) {
    return reply([&] {
        in_group([&] {
            constexpr std::uintptr_t alignment = 4096;
            expect(reinterpret_cast<std::uintptr_t>(start) % alignment == 0, invalid_argument,
                   "the window is not aligned to NCCL_WIN_REQUIRED_ALIGNMENT");
            const auto communicator = checked(handle, start, bytes);
            add_job({communicator, [communicator, window] {
                         communicator->segment->meet_on_host();
                         *window = register_with(communicator);
                     }});
        });
    });
}

STANDIN_API Status ncclCommWindowDeregister(Communicator* communicator, Registration* window) {
    return reply([&] { deregister(communicator, window); });
}
#endif

}  // namespace standin::nccl
