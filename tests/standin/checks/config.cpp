// Opens the NCCL that the first argument names and makes a communicator of one rank with a configuration for each
// further argument, SIZE:VERSION:BLOCKING, and prints NCCL's answers.
#include <dlfcn.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "client.hpp"

using namespace checks;

namespace {

template <class Function>
Function* find(void* library, const char* name) {
    auto* const found = reinterpret_cast<Function*>(::dlsym(library, name));
    expect(found != nullptr, name);
    return found;
}

struct Config {
    std::size_t size;
    unsigned magic, version;
    int blocking;
    int undefined[40];
};

}  // namespace

int main(int count, char** arguments) {
    void* const library = ::dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    must(library == nullptr ? 1 : 0);
    const auto get_id = find<decltype(ncclGetUniqueId)>(library, "ncclGetUniqueId");
    const auto init = find<decltype(ncclCommInitRankConfig)>(library, "ncclCommInitRankConfig");
    const auto get_error = find<decltype(ncclCommGetAsyncError)>(library, "ncclCommGetAsyncError");
    const auto destroy = find<decltype(ncclCommDestroy)>(library, "ncclCommDestroy");
    use_device(0);
    for (int index = 2; index < count; ++index) {
        Config config{};
        config.magic = 0xcafebeef;
        std::fill(std::begin(config.undefined), std::end(config.undefined), INT_MIN);
        must(std::sscanf(arguments[index], "%zu:%u:%d", &config.size, &config.version, &config.blocking) == 3 ? 0 : 1);
        std::memset(reinterpret_cast<char*>(&config) + 32, 0, 8);  // netName
        std::memset(reinterpret_cast<char*>(&config) + 48, 0, 8);  // commName
        nccl_id id{};
        must(get_id(&id));
        nccl_comm comm = nullptr;
        const int answer = init(&comm, 1, id, 0, &config);
        int state = answer;
        while (state == 7) {
            must(get_error(comm, &state));
        }
        std::printf("%d then %d\n", answer, state);
        if (state == 0) {
            must(destroy(comm));
        }
    }
    return verdict();
}
