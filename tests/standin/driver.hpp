// What the parts of the driver's stand-in share: CUDA's result codes, how a function gives one, and handles.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "driver_refusals.hpp"

#define STANDIN_API extern "C" __attribute__((visibility("default")))

namespace standin {

enum Result : int {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    no_device = 100,
    invalid_device = 101,
    invalid_image = 200,
    invalid_context = 201,
    invalid_handle = 400,
    illegal_state = 401,
    not_found = 500,
    not_ready = 600,
    not_supported = 801,
    capture_unsupported = 900,
    capture_invalidated = 901,
    capture_unmatched = 903,
    unknown = 999,
};

// What a function throws inside to return `code` outside.
struct Failure {
    Result code;
};

inline void require(bool holds, Result otherwise) {
    if (!holds) {
        throw Failure{otherwise};
    }
}

// The result that an exported function returns for `action`. `function`: its name.
template <class Action>
Result answer(Action&& action, const char* function = __builtin_FUNCTION()) noexcept {
    try {
        require(!is_refused(function), unknown);
        action();
        return success;
    } catch (const Failure& failure) {
        return failure.code;
    } catch (const std::bad_alloc&) {
        return out_of_memory;
    } catch (...) {
        return unknown;
    }
}

// The one T of this library. It outlives every thread: it is built at first use and never destroyed.
template <class T>
T& forever() {
    alignas(T) static std::byte room[sizeof(T)];
    static T& value = *new (room) T;
    return value;
}

// The objects of one kind that callers hold pointers to. A pointer that is not (or no longer) one of them is refused.
template <class T>
class Handles {
   public:
    T* add(std::shared_ptr<T> object) {
        const std::scoped_lock lock{mutex_};
        T* const handle = object.get();
        objects_.emplace(handle, std::move(object));
        return handle;
    }
    std::shared_ptr<T> get(const T* handle) {
        const std::scoped_lock lock{mutex_};
        const auto found = objects_.find(handle);
        require(found != objects_.end(), invalid_handle);
        return found->second;
    }
    std::shared_ptr<T> remove(const T* handle) {
        const std::scoped_lock lock{mutex_};
        const auto found = objects_.find(handle);
        require(found != objects_.end(), invalid_handle);
        auto object = std::move(found->second);
        objects_.erase(found);
        return object;
    }
    std::size_t count() {
        const std::scoped_lock lock{mutex_};
        return objects_.size();
    }
    std::vector<std::shared_ptr<T>> all() {
        const std::scoped_lock lock{mutex_};
        std::vector<std::shared_ptr<T>> found;
        for (const auto& [handle, object] : objects_) {
            found.push_back(object);
        }
        return found;
    }

   private:
    std::mutex mutex_;
    std::unordered_map<const T*, std::shared_ptr<T>> objects_;
};

template <class T>
Handles<T>& handles() {
    return forever<Handles<T>>();
}

}  // namespace standin
