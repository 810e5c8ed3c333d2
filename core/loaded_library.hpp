// A shared library opened by path at run time, and its functions by name.
#pragma once

#include <memory>
#include <string>

namespace busbw {

class LoadedLibrary {
   public:
    // Opens `path` (a name without '/' is searched as the dynamic loader does). Throws std::runtime_error with the
    // loader's own words.
    explicit LoadedLibrary(const std::string& path);

    // Sets `function` to the library's `name`. Throws std::runtime_error when it has none.
    template <class Function>
    void find(Function*& function, const char* name) const {
        function = reinterpret_cast<Function*>(required(name));
    }

    // The same, and null when the library has none: it is older or newer than the function.
    template <class Function>
    void find_if_there(Function*& function, const char* name) const {
        function = reinterpret_cast<Function*>(optional(name));
    }

    // The file it was loaded from, as the loader resolved it.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

   private:
    [[nodiscard]] void* required(const char* name) const;
    [[nodiscard]] void* optional(const char* name) const noexcept;

    struct Close {
        void operator()(void* library) const noexcept;
    };
    std::unique_ptr<void, Close> library_;
    std::string path_;
};

}  // namespace busbw
