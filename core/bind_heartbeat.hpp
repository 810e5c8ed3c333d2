// A heartbeat on memory of Python's.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <span>

#include "heartbeat.hpp"

namespace busbw {

// A heartbeat with the memory under it, which its owner can neither close nor resize while this lives. Made and ended
// with the interpreter's lock held.
class HeldHeartbeat {
   public:
    // Throws nanobind::python_error where `memory` is not writable, std::invalid_argument where it is no heartbeat.
    explicit HeldHeartbeat(nanobind::handle memory) : view_{view_of(memory)}, beat_{bytes_of(*view_)} {}
    [[nodiscard]] const Heartbeat& beat() const noexcept { return beat_; }

   private:
    struct Release {
        void operator()(Py_buffer* view) const noexcept {
            PyBuffer_Release(view);
            delete view;
        }
    };
    using View = std::unique_ptr<Py_buffer, Release>;

    static View view_of(nanobind::handle memory) {
        auto view = std::make_unique<Py_buffer>();
        if (PyObject_GetBuffer(memory.ptr(), view.get(), PyBUF_WRITABLE) != 0) {
            throw nanobind::python_error();
        }
        return View{view.release()};
    }
    static std::span<std::byte> bytes_of(const Py_buffer& view) {
        return {static_cast<std::byte*>(view.buf), static_cast<std::size_t>(view.len)};
    }

    View view_;
    Heartbeat beat_;
};

}  // namespace busbw
