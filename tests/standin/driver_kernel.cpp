// Modules and kernels: a "cubin" of the NVRTC stand-in names a library for this host, whose functions stand for
// kernels.
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "driver_stream.hpp"
#include "kernel_abi.hpp"

namespace standin {
namespace {

constexpr std::uint64_t most_threads_per_block = 1024;
constexpr std::uint64_t largest_grid_yz = 65535;
// What a kernel waits for its turn on a GPU that works for others too.
constexpr std::chrono::microseconds turn{200};

bool is_busy(int device) {
    static const long long busy = environment_number("STANDIN_BUSY_GPU", INT32_MAX);
    return device == busy;
}

struct Kernel;

class Module {
   public:
    Module(Context& of, const std::string& path)
        : context{of}, library_{::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)} {
        require(library_ != nullptr, invalid_image);
    }
    ~Module() { ::dlclose(library_); }
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    template <class Function>
    [[nodiscard]] Function* find(std::string_view name, std::string_view suffix = {}) const {
        const std::string symbol = std::string{name} + std::string{suffix};
        auto* const found = reinterpret_cast<Function*>(::dlsym(library_, symbol.c_str()));
        require(found != nullptr, not_found);
        return found;
    }

    Context& context;
    // Those asked for so far, by name: asking again gives the same.
    std::map<std::string, Kernel*> kernels;
    std::mutex mutex;

   private:
    void* library_;
};

struct Kernel {
    std::shared_ptr<Module> module;
    HostKernel* body;
    RunGrid* run_grid;
};

}  // namespace

STANDIN_API Result cuModuleLoadData(Module** module, const void* image) {
    return answer([&] {
        require(module != nullptr && image != nullptr, invalid_value);
        const auto* const text = static_cast<const char*>(image);
        require(std::strncmp(text, image_magic.data(), image_magic.size()) == 0, invalid_image);
        *module = handles<Module>().add(std::make_shared<Module>(current_context(), text + image_magic.size()));
    });
}

STANDIN_API Result cuModuleUnload(Module* handle) {
    return answer([&] {
        const auto module = handles<Module>().remove(handle);
        const std::scoped_lock lock{module->mutex};
        for (const auto& [name, kernel] : module->kernels) {
            handles<Kernel>().remove(kernel);
        }
    });
}

STANDIN_API long standinModules() { return static_cast<long>(handles<Module>().count()); }

STANDIN_API Result cuModuleGetFunction(Kernel** function, Module* handle, const char* name) {
    return answer([&] {
        require(function != nullptr && name != nullptr, invalid_value);
        const auto module = handles<Module>().get(handle);
        const std::scoped_lock lock{module->mutex};
        if (const auto known = module->kernels.find(name); known != module->kernels.end()) {
            *function = known->second;
            return;
        }
        *function = handles<Kernel>().add(std::make_shared<Kernel>(module, module->find<HostKernel>(name, host_suffix),
                                                                   module->find<RunGrid>(run_grid_name)));
        module->kernels.emplace(name, *function);
    });
}

STANDIN_API Result cuFuncGetAttribute(int* value, int, Kernel* function) {
    return answer([&] {
        handles<Kernel>().get(function);
        *value = 0;
    });
}

// The one argument is copied before this returns, as the driver does.
STANDIN_API Result cuLaunchKernel(Kernel* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                  unsigned block_y, unsigned block_z, unsigned, Stream* stream_handle, void** arguments,
                                  void** extra) {
    return answer([&] {
        take_time_to_launch();
        const auto kernel = handles<Kernel>().get(function);
        const auto stream = stream_of(stream_handle);
        const Shape grid{grid_x, grid_y, grid_z};
        const Shape block{block_x, block_y, block_z};
        require(grid_x > 0 && grid_y > 0 && grid_z > 0 && block_x > 0 && block_y > 0 && block_z > 0, invalid_value);
        require(std::uint64_t{block_x} * block_y * block_z <= most_threads_per_block, invalid_value);
        require(grid_x <= INT32_MAX && grid_y <= largest_grid_yz && grid_z <= largest_grid_yz, invalid_value);
        require(arguments != nullptr && arguments[0] != nullptr && extra == nullptr, invalid_value);
        require(&kernel->module->context == &stream->context, invalid_handle);
        const auto bytes = kernel->body(nullptr);
        const auto* const first = static_cast<const char*>(arguments[0]);
        const bool waits = is_busy(stream->context.device);
        stream->enqueue([kernel, grid, block, waits, taken = std::vector<char>(first, first + bytes)] {
            if (waits) {
                std::this_thread::sleep_for(turn);
            }
            kernel->run_grid(kernel->body, grid, block, taken.data());
        });
    });
}

}  // namespace standin
