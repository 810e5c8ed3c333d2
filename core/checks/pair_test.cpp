// Tests of a pair over messages between two threads of this process: what is measured and moved, and that neither side
// waits longer than its limit wherever the other one falls silent.
#include "pair_test.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "expect.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;
using Handle = pointer_handle;
using Test = PairSamples (PairTester<Handle>::*)(const PairTask&, const Heartbeat&);

constexpr std::size_t all_messages = std::numeric_limits<std::size_t>::max();
constexpr std::size_t message_bytes = 24;
constexpr std::size_t window = 3;
constexpr nanoseconds long_limit = 120'000'000'000;
constexpr nanoseconds short_limit = 10'000'000;

struct Message {
    int tag;
    std::vector<std::byte> content;
    bool taken = false;
};

struct Receive {
    std::span<std::byte> into;
    int tag;
    bool filled = false;
};

// Messages between two ranks. A send is over at once, or when its message is taken.
class Post {
   public:
    explicit Post(bool eager) : eager_{eager} {}

    // From now on a rank's messages get lost, but for `passed` more.
    void silence(int rank, std::size_t passed) { left_[place(rank)] = passed; }

    void* send(int from, const void* content, std::size_t size, int tag) {
        const std::scoped_lock lock{mutex_};
        const auto* bytes = static_cast<const std::byte*>(content);
        ++sent_[place(from)];
        Message& message = messages_[place(1 - from)].emplace_back(Message{tag, {bytes, bytes + size}});
        if (left_[place(from)] == 0) {
            message.tag = -1;
        } else {
            --left_[place(from)];
        }
        return &message;
    }
    void* receive(int rank, void* into, std::size_t size, int tag) {
        const std::scoped_lock lock{mutex_};
        return &receives_[place(rank)].emplace_back(Receive{{static_cast<std::byte*>(into), size}, tag});
    }
    // Whether a request of `rank` is over; messages go to receives in the order in which both came.
    bool is_over(int rank, const void* request) {
        const std::scoped_lock lock{mutex_};
        for (Receive& each : receives_[place(rank)]) {
            if (!each.filled) {
                fill(each, messages_[place(rank)]);
            }
        }
        const auto is_it = [request](const auto& each) { return &each == request; };
        if (const auto found = std::ranges::find_if(receives_[place(rank)], is_it);
            found != receives_[place(rank)].end()) {
            return found->filled;
        }
        const auto& sent = messages_[place(1 - rank)];
        return eager_ || std::ranges::find_if(sent, is_it)->taken;
    }
    [[nodiscard]] std::size_t sent(int rank) const { return sent_[place(rank)]; }

   private:
    static std::size_t place(int rank) { return static_cast<std::size_t>(rank); }
    static void fill(Receive& receive, std::deque<Message>& from) {
        const auto found = std::ranges::find_if(
            from, [&receive](const Message& each) { return !each.taken && each.tag == receive.tag; });
        if (found != from.end()) {
            expect(found->content.size() == receive.into.size(), "a message fits its receive");
            std::memcpy(receive.into.data(), found->content.data(),
                        std::min(found->content.size(), receive.into.size()));
            found->taken = receive.filled = true;
        }
    }

    bool eager_;
    std::mutex mutex_;
    // Of each rank: what comes in, what it waits for, what it sent, and how much of what it sends still arrives.
    std::array<std::deque<Message>, 2> messages_;
    std::array<std::deque<Receive>, 2> receives_;
    std::array<std::size_t, 2> sent_{};
    std::array<std::size_t, 2> left_{all_messages, all_messages};
};

// What a communicator's handle points to, and a request's.
struct Desk {
    Post* post;
    int rank;
    std::deque<std::pair<Desk*, void*>> requests;
};

int post_send(const void* from, int count, Handle, int, int tag, Handle communicator, Handle* request) {
    auto& desk = *static_cast<Desk*>(communicator);
    *request =
        &desk.requests.emplace_back(&desk, desk.post->send(desk.rank, from, static_cast<std::size_t>(count), tag));
    return 0;
}

int post_receive(void* into, int count, Handle, int, int tag, Handle communicator, Handle* request) {
    auto& desk = *static_cast<Desk*>(communicator);
    *request =
        &desk.requests.emplace_back(&desk, desk.post->receive(desk.rank, into, static_cast<std::size_t>(count), tag));
    return 0;
}

int post_test(Handle* request, int* flag, void*) {
    if (*request == nullptr) {
        *flag = 1;
        return 0;
    }
    const auto& [desk, what] = *static_cast<std::pair<Desk*, void*>*>(*request);
    *flag = desk->post->is_over(desk->rank, what) ? 1 : 0;
    if (*flag != 0) {
        *request = nullptr;
    }
    return 0;
}

// All or none, as MPI has it: requests are over for good only where all of them are.
int post_testall(int count, Handle* requests, int* flag, void*) {
    *flag = 1;
    for (int at = 0; at < count; ++at) {
        if (requests[at] != nullptr) {
            const auto& [desk, what] = *static_cast<std::pair<Desk*, void*>*>(requests[at]);
            *flag &= desk->post->is_over(desk->rank, what) ? 1 : 0;
        }
    }
    if (*flag != 0) {
        std::fill_n(requests, count, nullptr);
    }
    return 0;
}

MpiApi<Handle> post_mpi() {
    MpiApi<Handle> mpi{};
    mpi.isend = post_send;
    mpi.irecv = post_receive;
    mpi.test = post_test;
    mpi.testall = post_testall;
    return mpi;
}

// One rank with all that its test needs.
class Side {
   public:
    Side(const MpiApi<Handle>& mpi, Post& post, int rank)
        : desk_{&post, rank, {}}, tester_{mpi, &desk_, nullptr, send_, receive_, window} {
        send_.fill(static_cast<std::byte>(0xA0 + rank));
    }

    void run(Test test, const PairTask& task) {
        const nanoseconds start = wall_clock();
        samples = (tester_.*test)(task, beat_);
        took = wall_clock() - start;
    }
    [[nodiscard]] std::uint64_t word_of(Heartbeat::Word word) const { return words_[word]; }
    [[nodiscard]] bool has(int rank) const {
        const auto wanted = static_cast<std::byte>(0xA0 + rank);
        return std::ranges::all_of(receive_, [wanted](std::byte each) { return each == wanted; });
    }

    PairSamples samples;
    nanoseconds took = 0;

   private:
    std::array<std::byte, message_bytes> send_{};
    std::array<std::byte, message_bytes> receive_{};
    alignas(8) std::array<std::uint64_t, 8> words_{};
    Heartbeat beat_{std::as_writable_bytes(std::span{words_})};
    Desk desk_;
    PairTester<Handle> tester_;
};

PairTask task_of(int rank, nanoseconds limit, int tag = 7) {
    return {.peer = 1 - rank,
            .tag = tag,
            .leads = rank == 0,
            .size = message_bytes,
            .calls = window,
            .budget = 0,
            .least = 3,
            .most = 5,
            .limit = limit};
}

struct Kind {
    const char* name;
    Test test;
    // Whose receive buffer has the other one's content afterwards.
    std::array<bool, 2> receives;
};

constexpr std::array<Kind, 3> kinds{{{"ping-pong", &PairTester<Handle>::ping_pong, {true, true}},
                                     {"one way", &PairTester<Handle>::one_way, {false, true}},
                                     {"both ways", &PairTester<Handle>::both_ways, {true, true}}}};

void run_both(const Kind& kind, Side& leads, Side& follows, nanoseconds limit, int tag = 7) {
    std::thread other{[&] { follows.run(kind.test, task_of(1, limit, tag)); }};
    leads.run(kind.test, task_of(0, limit, tag));
    other.join();
}

void check_sound(const Kind& kind, bool eager) {
    const std::string text = std::string(kind.name) + (eager ? ", eager" : ", by rendezvous");
    const MpiApi<Handle> mpi = post_mpi();
    Post post{eager};
    Side leads{mpi, post, 0};
    Side follows{mpi, post, 1};
    run_both(kind, leads, follows, long_limit);
    expect(!leads.samples.gave_up && !follows.samples.gave_up, text + ": comes to its end");
    expect(leads.samples.duration.size() == 3, text + ": takes the least number of samples when it has no more time");
    expect(std::ranges::all_of(leads.samples.duration, [](nanoseconds each) { return each > 0; }),
           text + ": takes time");
    expect(leads.has(1) == kind.receives[0] && follows.has(0) == kind.receives[1], text + ": moves what is sent");
    for (const Side* side : {&leads, &follows}) {
        expect(side->word_of(Heartbeat::in_call) == 0 && side->word_of(Heartbeat::calls) == 1, text + ": beats");
    }
}

// A rank whose messages get lost from any of them on: nobody waits for ever, and somebody says so.
void check_silence(const Kind& kind, bool eager) {
    const MpiApi<Handle> mpi = post_mpi();
    Post whole{eager};
    Side one{mpi, whole, 0};
    Side other{mpi, whole, 1};
    run_both(kind, one, other, long_limit);
    for (const int silent : {0, 1}) {
        for (std::size_t passed = 0; passed < whole.sent(silent); ++passed) {
            const std::string text = std::string(kind.name) + (eager ? ", eager" : ", by rendezvous") + ", rank " +
                                     std::to_string(silent) + " silent after " + std::to_string(passed);
            Post post{eager};
            post.silence(silent, passed);
            Side leads{mpi, post, 0};
            Side follows{mpi, post, 1};
            run_both(kind, leads, follows, short_limit);
            expect(leads.samples.gave_up || follows.samples.gave_up, text + ": is noticed");
            for (const Side* side : {&leads, &follows}) {
                expect(!side->samples.gave_up || side->took >= short_limit, text + ": not before the limit");
                expect(side->word_of(Heartbeat::in_call) == 0, text + ": is out of its call");
            }
        }
    }
}

// A partner that is not there at all; then what it sends too late is not taken for a message of the next test.
void check_absence(const Kind& kind) {
    const MpiApi<Handle> mpi = post_mpi();
    Post post{true};
    Side alone{mpi, post, 0};
    Side late{mpi, post, 1};
    alone.run(kind.test, task_of(0, short_limit));
    late.run(kind.test, task_of(1, short_limit));
    expect(alone.samples.gave_up, std::string(kind.name) + ": a partner that is not there is given up");
    Side leads{mpi, post, 0};
    Side follows{mpi, post, 1};
    run_both(kind, leads, follows, long_limit, 8);
    expect(!leads.samples.gave_up && !follows.samples.gave_up, std::string(kind.name) + ": the next test is sound");
}

void check_refused() {
    const MpiApi<Handle> mpi = post_mpi();
    Post post{true};
    Desk desk{&post, 0, {}};
    std::array<std::byte, message_bytes> buffer{};
    expect_throw<std::invalid_argument>([&] { PairTester<Handle>(mpi, &desk, nullptr, buffer, buffer, 0); },
                                        "no window");
    for (const auto& [size, calls] : {std::pair{message_bytes + 1, window}, {message_bytes, 0}, {1, window + 1}}) {
        PairTask task = task_of(0, short_limit);
        task.size = size;
        task.calls = calls;
        Side side{mpi, post, 0};
        expect_throw<std::invalid_argument>([&] { side.run(&PairTester<Handle>::one_way, task); },
                                            std::to_string(size) + " bytes, " + std::to_string(calls) + " calls");
    }
}

}  // namespace

int main() {
    for (const Kind& kind : kinds) {
        for (const bool eager : {true, false}) {
            check_sound(kind, eager);
            check_silence(kind, eager);
        }
        check_absence(kind);
    }
    check_refused();
    return verdict();
}
