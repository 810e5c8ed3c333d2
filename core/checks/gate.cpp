// Ranks that meet over sockets: nobody leaves before all have come, all are told one instant, and who is gone is told.
#include "gate.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "expect.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;

constexpr nanoseconds patience = 20'000'000'000;

// The first rank's end and the other's.
class Connection {
   public:
    Connection() { socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() {
        close(ends_[0]);
        close(ends_[1]);
    }
    [[nodiscard]] int first() const { return ends_[0]; }
    [[nodiscard]] int other() const { return ends_[1]; }

   private:
    std::array<int, 2> ends_{};
};

void check_meetings(int others) {
    constexpr int meetings = 200;
    const std::vector<Connection> connections(static_cast<std::size_t>(others));
    std::vector<int> to_others;
    for (const Connection& one : connections) {
        to_others.push_back(one.first());
    }
    std::atomic<int> come = 0;
    std::vector<std::vector<nanoseconds>> instants(static_cast<std::size_t>(others) + 1);
    const auto attend = [&](const Gate& gate, std::vector<nanoseconds>& heard) {
        for (int meeting = 1; meeting <= meetings; ++meeting) {
            ++come;
            heard.push_back(gate.meet(1000));
            expect(come >= meeting * (others + 1), "nobody leaves before all have come");
            gate.meet(0);
        }
    };
    std::vector<std::jthread> ranks;
    for (std::size_t rank = 0; rank < connections.size(); ++rank) {
        ranks.emplace_back(
            [&, rank] { attend(SocketGate{{connections[rank].other()}, false, patience}, instants[rank + 1]); });
    }
    attend(SocketGate{to_others, true, patience}, instants[0]);
    ranks.clear();
    for (const auto& heard : instants) {
        expect(heard == instants[0], std::to_string(others + 1) + " ranks are told one instant");
    }
}

void check_absence() {
    const Connection silent;
    const SocketGate first{{silent.first()}, true, 5'000'000};
    const nanoseconds before = wall_clock();
    expect_throw<std::runtime_error>([&] { first.meet(0); }, "a rank that does not come");
    expect(wall_clock() - before >= 5'000'000, "it was waited for");

    const Connection broken;
    shutdown(broken.first(), SHUT_RDWR);
    const SocketGate other{{broken.other()}, false, patience};
    expect_throw<std::runtime_error>([&] { other.meet(0); }, "a rank that is gone");
}

}  // namespace

int main() {
    for (const int others : {1, 2, 4}) {
        check_meetings(others);
    }
    check_absence();
    const nanoseconds before = wall_clock();
    expect(NoGate{}.meet(500) >= before + 500, "alone one is at once where all are");
    return verdict();
}
