#include "gate.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace busbw {
namespace {

constexpr nanoseconds per_ms = 1'000'000;

// Polls busily for a while: a sleeping process wakes up tens of microseconds late. From `alone` on it offers its core
// to the rank it waits for, in case that has none.
constexpr nanoseconds alone = per_ms / 20;
constexpr nanoseconds busy_wait = 2 * per_ms;

[[noreturn]] void fail(const char* what) { throw std::runtime_error(std::string("a rank is gone: ") + what); }

void receive_all(int socket, void* into, std::size_t size, nanoseconds timeout) {
    auto* at = static_cast<std::byte*>(into);
    const nanoseconds began = wall_clock();
    while (size > 0) {
        const ssize_t got = recv(socket, at, size, MSG_DONTWAIT);
        if (got > 0) {
            at += got;
            size -= static_cast<std::size_t>(got);
            continue;
        }
        if (got == 0) {
            fail("its connection was closed");
        }
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            fail(std::strerror(errno));
        }
        const nanoseconds waited = wall_clock() - began;
        if (waited > timeout) {
            fail("it did not come in time");
        }
        if (waited > busy_wait) {
            pollfd readable{socket, POLLIN, 0};
            poll(&readable, 1, 1);
        } else if (waited > alone) {
            sched_yield();
        }
    }
}

void send_all(int socket, const void* from, std::size_t size) {
    const auto* at = static_cast<const std::byte*>(from);
    while (size > 0) {
        const ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR) {
                continue;
            }
            fail(std::strerror(errno));
        }
        at += sent;
        size -= static_cast<std::size_t>(sent);
    }
}

}  // namespace

SocketGate::SocketGate(std::vector<int> sockets, bool is_first, nanoseconds timeout)
    : sockets_{std::move(sockets)}, is_first_{is_first}, timeout_{timeout} {}

nanoseconds SocketGate::meet(nanoseconds lead) const {
    std::int64_t instant = 0;
    if (is_first_) {
        for (const int socket : sockets_) {
            std::byte here{};
            receive_all(socket, &here, sizeof here, timeout_);
        }
        instant = wall_clock() + lead;
        for (const int socket : sockets_) {
            send_all(socket, &instant, sizeof instant);
        }
        return instant;
    }
    const std::byte here{1};
    send_all(sockets_.front(), &here, sizeof here);
    receive_all(sockets_.front(), &instant, sizeof instant, timeout_);
    return instant;
}

}  // namespace busbw
