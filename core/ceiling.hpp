// What the machine could do at best: memory copies and TCP streams, as fast as plain loops make them.
// Units: bytes, nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "clock.hpp"

namespace busbw {

// Bytes moved between two instants of this host's clock. Bytes of a copy count once (read and written: one byte).
struct Movement {
    std::uint64_t bytes;
    nanoseconds start;
    nanoseconds end;
};

// STREAM's Copy (McCalpin, 1995): one pass over two buffers of equal size.
Movement copy_with_loop(std::span<const std::byte> from, std::span<std::byte> into);

// The same with the C library's memcpy, which most MPI libraries use.
Movement copy_with_memcpy(std::span<const std::byte> from, std::span<std::byte> into);

// Sends into one connected socket and receives from another at once, without blocking in either, until `duration` has
// passed; -1 leaves a side out. Counts what was received, or what was sent where nothing is received. After `duration`
// the sending side is shut down and the receiving side drained. Throws std::system_error, and std::runtime_error when
// the peer stays silent for five seconds.
Movement stream_sockets(int send_socket, int receive_socket, nanoseconds duration);

}  // namespace busbw
