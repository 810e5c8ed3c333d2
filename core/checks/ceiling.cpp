// Memory copies and socket streams count what they move, last as long as asked, and end when the peer does not answer.
#include "ceiling.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "expect.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;

constexpr nanoseconds duration = 50'000'000;

class Socket {
   public:
    explicit Socket(int descriptor) : descriptor_{descriptor} {
        if (descriptor < 0) {
            throw std::system_error(errno, std::generic_category(), "socket");
        }
    }
    Socket(Socket&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}
    Socket& operator=(Socket&& other) = delete;
    ~Socket() {
        if (descriptor_ >= 0) {
            close(descriptor_);
        }
    }
    [[nodiscard]] int number() const noexcept { return descriptor_; }

   private:
    int descriptor_;
};

// Both ends of a connection.
using Connection = std::pair<Socket, Socket>;

Connection over_tcp() {
    const Socket listener{socket(AF_INET, SOCK_STREAM, 0)};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* name = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener.number(), name, length) != 0 || listen(listener.number(), 1) != 0 ||
        getsockname(listener.number(), name, &length) != 0) {
        throw std::system_error(errno, std::generic_category(), "listen");
    }
    Socket client{socket(AF_INET, SOCK_STREAM, 0)};
    if (connect(client.number(), name, length) != 0) {
        throw std::system_error(errno, std::generic_category(), "connect");
    }
    return {std::move(client), Socket{accept(listener.number(), nullptr, nullptr)}};
}

Connection in_the_kernel() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) {
        throw std::system_error(errno, std::generic_category(), "socketpair");
    }
    return {Socket{ends[0]}, Socket{ends[1]}};
}

void check_one_way(const Connection& link) {
    Movement sent{};
    std::thread sender{[&] { sent = stream_sockets(link.first.number(), -1, duration); }};
    const Movement received = stream_sockets(-1, link.second.number(), duration);
    sender.join();
    expect(sent.bytes > 0 && sent.bytes == received.bytes, "what is sent is received");
    expect(sent.end - sent.start >= duration, "sending lasts as long as asked");
    expect(received.end > received.start, "receiving takes time");
}

void check_ring(const Connection& there, const Connection& back) {
    Movement left{};
    std::thread other{[&] { left = stream_sockets(there.first.number(), back.second.number(), duration); }};
    const Movement right = stream_sockets(back.first.number(), there.second.number(), duration);
    other.join();
    expect(left.bytes > 0 && right.bytes > 0, "both directions move");
    expect(left.end - left.start >= duration && right.end - right.start >= duration, "both last as long as asked");
}

void check_failures() {
    {
        Connection link = over_tcp();
        {
            const Socket gone = std::move(link.second);
        }
        expect_throw<std::system_error>([&] { stream_sockets(link.first.number(), -1, duration); }, "the peer is gone");
    }
    {
        const Connection link = over_tcp();
        expect_throw<std::runtime_error>([&] { stream_sockets(-1, link.first.number(), duration); }, "a silent peer");
    }
    expect_throw<std::system_error>([] { stream_sockets(-1, 1 << 20, duration); }, "not a socket");
}

template <class Copy>
void check_copy(Copy copy, const std::string& name) {
    for (const std::size_t size : {8UL, 4096UL, 1UL << 20}) {
        std::vector<std::uint64_t> from(size / 8);
        std::vector<std::uint64_t> into(size / 8);
        std::iota(from.begin(), from.end(), 1);
        const Movement moved = copy(std::as_bytes(std::span{from}), std::as_writable_bytes(std::span{into}));
        const std::string text = name + " of " + std::to_string(size) + " bytes";
        expect(from == into, text + " copies");
        expect(moved.bytes == size, text + " counts its bytes");
        expect(moved.end >= moved.start, text + " ends after its start");
    }
}

}  // namespace

int main() {
    check_copy(copy_with_loop, "the loop");
    check_copy(copy_with_memcpy, "memcpy");
    check_one_way(over_tcp());
    check_one_way(in_the_kernel());
    check_ring(over_tcp(), over_tcp());
    check_failures();
    return verdict();
}
