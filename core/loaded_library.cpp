#include "loaded_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <stdexcept>

namespace busbw {

void LoadedLibrary::Close::operator()(void* library) const noexcept { dlclose(library); }

LoadedLibrary::LoadedLibrary(const std::string& path) : library_{dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)} {
    if (!library_) {
        const char* words = dlerror();
        throw std::runtime_error(words != nullptr ? words : path + " cannot be opened");
    }
    link_map* map = nullptr;
    if (dlinfo(library_.get(), RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr) {
        path_ = map->l_name;
    }
}

void* LoadedLibrary::optional(const char* name) const noexcept { return dlsym(library_.get(), name); }

void* LoadedLibrary::required(const char* name) const {
    void* symbol = optional(name);
    if (symbol == nullptr) {
        throw std::runtime_error(path_ + " has no function " + name);
    }
    return symbol;
}

}  // namespace busbw
