#include "ceiling.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace busbw {
namespace {

template <class Copy>
Movement timed(std::span<const std::byte> from, std::span<std::byte> into, Copy copy) {
    const std::size_t size = std::min(from.size(), into.size());
    Movement moved{size, wall_clock(), 0};
    copy(from.data(), into.data(), size);
    asm volatile("" : : "r"(into.data()) : "memory");  // keep a copy whose result nobody reads
    moved.end = wall_clock();
    return moved;
}

[[noreturn]] void throw_system_error(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

constexpr std::size_t socket_chunk = 256U << 10;
constexpr int silence_ms = 5000;

// One attempt to send or receive. Returns the bytes moved, 0 when the socket is not ready, -1 at the stream's end.
std::int64_t attempt_send(int socket, std::span<std::byte> chunk) {
    const ssize_t sent = ::send(socket, chunk.data(), chunk.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        throw_system_error("send");
    }
    return std::max<ssize_t>(sent, 0);
}

std::int64_t attempt_receive(int socket, std::span<std::byte> chunk) {
    const ssize_t received = ::recv(socket, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (received < 0 && errno != EAGAIN && errno != EINTR) {
        throw_system_error("recv");
    }
    return received == 0 ? -1 : std::max<ssize_t>(received, 0);
}

void wait_until_ready(int send_socket, int receive_socket) {
    std::array<pollfd, 2> sockets{{{send_socket, POLLOUT, 0}, {receive_socket, POLLIN, 0}}};
    const int ready = ::poll(sockets.data(), sockets.size(), silence_ms);
    if (ready == 0) {
        throw std::runtime_error("no traffic on the loopback connection for 5 s");
    }
    if (ready < 0 && errno != EINTR) {
        throw_system_error("poll");
    }
}

}  // namespace

Movement copy_with_loop(std::span<const std::byte> from, std::span<std::byte> into) {
    return timed(from, into, [](const std::byte* source, std::byte* target, std::size_t size) {
        const auto* words = reinterpret_cast<const std::uint64_t*>(source);
        auto* copies = reinterpret_cast<std::uint64_t*>(target);
        const std::size_t count = size / sizeof(std::uint64_t);
#pragma GCC ivdep
        for (std::size_t word = 0; word < count; ++word) {
            copies[word] = words[word];
        }
        std::memcpy(target + count * sizeof(std::uint64_t), source + count * sizeof(std::uint64_t),
                    size % sizeof(std::uint64_t));
    });
}

Movement copy_with_memcpy(std::span<const std::byte> from, std::span<std::byte> into) {
    return timed(from, into, [](const std::byte* source, std::byte* target, std::size_t size) {
        std::memcpy(target, source, size);
    });
}

Movement stream_sockets(int send_socket, int receive_socket, nanoseconds duration) {
    std::vector<std::byte> outgoing(socket_chunk);
    std::vector<std::byte> incoming(socket_chunk);
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    Movement moved{0, wall_clock(), 0};
    while (send_socket >= 0 || receive_socket >= 0) {
        std::int64_t progress = 0;
        if (send_socket >= 0) {
            const std::int64_t bytes = attempt_send(send_socket, outgoing);
            sent += static_cast<std::uint64_t>(bytes);
            progress += bytes;
            if (wall_clock() - moved.start >= duration) {
                ::shutdown(send_socket, SHUT_WR);
                send_socket = -1;
            }
        }
        if (receive_socket >= 0) {
            const std::int64_t bytes = attempt_receive(receive_socket, incoming);
            if (bytes < 0) {
                receive_socket = -1;
            } else {
                received += static_cast<std::uint64_t>(bytes);
                progress += bytes;
            }
        }
        moved.end = wall_clock();
        if (progress == 0 && (send_socket >= 0 || receive_socket >= 0)) {
            wait_until_ready(send_socket, receive_socket);
        }
    }
    moved.bytes = received > 0 ? received : sent;
    return moved;
}

}  // namespace busbw
