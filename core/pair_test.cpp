#include "pair_test.hpp"

#include <sched.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace busbw {
namespace {

// A wait looks at the clock after so many questions for each message that it is about, and gives the processor away
// from then on: nothing that is timed in single messages takes so long, and more ranks than cores would wait for each
// other.
constexpr std::uint64_t patient_questions = 512;
constexpr std::uint64_t questions_a_look = 16;

}  // namespace

// The calls of one test: begins messages and waits for them, until its time is over.
template <class Handle>
class PairTester<Handle>::Turn {
   public:
    Turn(PairTester& tester, const PairTask& task, const Heartbeat& beat, bool windows)
        : tester_{&tester}, mpi_{tester.mpi_}, task_{&task}, beat_{&beat}, ends_{wall_clock() + task.limit} {
        if (task.size > tester.send_.size() || task.size > tester.receive_.size() || task.calls == 0 ||
            (windows && 2 * task.calls + 2 > tester.requests_.size())) {
            throw std::invalid_argument("the buffers of a pair are too small for this test, or it has no calls");
        }
        samples_.duration.reserve(task.most);
        beat.enter_call();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { beat_->leave_call(1); }

    void send(Handle& request) { begin_send(tester_->send_.data(), task_->size, request); }
    void receive(Handle& request) { begin_receive(tester_->receive_.data(), task_->size, request); }
    void say(std::uint64_t word, Handle& request) {
        tester_->said_ = word;
        begin_send(&tester_->said_, sizeof tester_->said_, request);
    }
    void hear(Handle& request) { begin_receive(&tester_->heard_, sizeof tester_->heard_, request); }
    [[nodiscard]] std::uint64_t heard() const { return tester_->heard_; }

    // Whether it is done; false: its time is over.
    bool done(Handle& request) { return done(request, 1); }
    // The last of so many messages.
    bool done(Handle& request, std::size_t messages) {
        return answered(messages,
                        [&](int& flag) { check(*mpi_, mpi_->test(&request, &flag, status_.data()), "MPI_Test"); });
    }
    // The same of two requests or more. The last is mostly the last to be done: it is asked alone, and then all of them
    // in one call, as a question for each message takes as long as the message.
    bool done(std::span<Handle> requests) { return done(requests.back(), requests.size()) && all_done(requests); }
    // The same in one call for all of them, each time: of a few.
    bool all_done(std::span<Handle> requests) {
        const int count = static_cast<int>(requests.size());
        return answered(requests.size(), [&](int& flag) {
            check(*mpi_, mpi_->testall(count, requests.data(), &flag, tester_->statuses_.data()), "MPI_Testall");
        });
    }

    // Round trips of the rank that begins, over a request to send and one to receive. What can be done while a message
    // is under way is done then: the next receive, and the end of the send. Returns whether all came back in time.
    bool call(std::uint64_t trips, std::span<Handle> both) {
        bool whole = true;
        for (std::uint64_t trip = 0; whole && trip < trips; ++trip) {
            send(both[0]);
            receive(both[1]);
            whole = all_done(both);
        }
        return whole;
    }
    // The same of the other rank.
    bool answer(std::uint64_t trips, std::span<Handle> both) {
        receive(both[1]);
        bool whole = done(both[1]);
        for (std::uint64_t trip = 1; whole && trip < trips; ++trip) {
            send(both[0]);
            receive(both[1]);
            whole = all_done(both);
        }
        if (whole) {
            send(both[0]);
            whole = done(both[0]);
        }
        return whole;
    }

    // Notes a sample, but for the first. Returns whether another is wanted.
    bool keep(nanoseconds start, nanoseconds end) {
        if (is_warm_) {
            samples_.duration.push_back(end - start);
            beat_->count_sample();
        } else {
            is_warm_ = true;
            warm_ = end;
        }
        const std::size_t taken = samples_.duration.size();
        return taken < task_->most && (taken < task_->least || end - warm_ < task_->budget);
    }
    [[nodiscard]] PairSamples taken() && { return std::move(samples_); }

   private:
    // Asks until the answer is yes; false: the time is over.
    template <class Ask>
    bool answered(std::size_t messages, Ask&& ask) {
        for (std::uint64_t asked = 0;; ++asked) {
            int flag = 0;
            ask(flag);
            if (flag != 0) [[likely]] {
                return true;
            }
            if (asked >= patient_questions * messages) {
                if (asked % questions_a_look == 0 && wall_clock() > ends_) {
                    samples_.gave_up = true;
                    return false;
                }
                sched_yield();
            }
        }
    }
    void begin_send(const void* from, std::size_t size, Handle& request) {
        check(*mpi_,
              mpi_->isend(from, static_cast<int>(size), tester_->byte_, task_->peer, task_->tag, tester_->communicator_,
                          &request),
              "MPI_Isend");
    }
    void begin_receive(void* into, std::size_t size, Handle& request) {
        check(*mpi_,
              mpi_->irecv(into, static_cast<int>(size), tester_->byte_, task_->peer, task_->tag, tester_->communicator_,
                          &request),
              "MPI_Irecv");
    }

    PairTester* tester_;
    const MpiApi<Handle>* mpi_;
    const PairTask* task_;
    const Heartbeat* beat_;
    nanoseconds ends_;
    nanoseconds warm_ = 0;
    bool is_warm_ = false;
    status_space status_{};
    PairSamples samples_;
};

template <class Handle>
PairTester<Handle>::PairTester(const MpiApi<Handle>& mpi, Handle communicator, Handle byte, std::span<std::byte> send,
                               std::span<std::byte> receive, std::size_t window)
    : mpi_{&mpi},
      communicator_{communicator},
      byte_{byte},
      send_{send},
      receive_{receive},
      requests_(2 * window + 2),
      statuses_(requests_.size()) {
    if (window == 0) {
        throw std::invalid_argument("a pair needs a message at a time");
    }
}

template <class Handle>
PairSamples PairTester<Handle>::ping_pong(const PairTask& task, const Heartbeat& beat) {
    Turn turn{*this, task, beat, false};
    const std::span<Handle> both{requests_.data(), 2};
    Handle& out = both[0];
    Handle& in = both[1];
    std::uint64_t trips = task.calls;
    while (true) {
        // How many round trips follow; none: the end.
        if (task.leads) {
            turn.say(trips, out);
            if (!turn.done(out) || trips == 0) {
                break;
            }
        } else {
            turn.hear(in);
            if (!turn.done(in) || (trips = turn.heard()) == 0) {
                break;
            }
        }
        const nanoseconds start = wall_clock();
        const bool whole = task.leads ? turn.call(trips, both) : turn.answer(trips, both);
        const nanoseconds end = wall_clock();
        if (!whole) {
            break;
        }
        if (task.leads && !turn.keep(start, end)) {
            trips = 0;
        }
    }
    return std::move(turn).taken();
}

template <class Handle>
PairSamples PairTester<Handle>::one_way(const PairTask& task, const Heartbeat& beat) {
    Turn turn{*this, task, beat, true};
    const std::span<Handle> window{requests_.data(), task.calls};
    const std::span<Handle> window_and_word{requests_.data(), task.calls + 1};
    Handle& word = window_and_word.back();
    const auto receive_all = [&] { std::ranges::for_each(window, [&](Handle& each) { turn.receive(each); }); };
    if (task.leads) {
        // The first word says that the partner is there, each other one whether it wants another window.
        turn.hear(word);
        bool goes_on = turn.done(word);
        while (goes_on) {
            const nanoseconds start = wall_clock();
            turn.hear(word);
            std::ranges::for_each(window, [&](Handle& each) { turn.send(each); });
            // While the messages are under way, the sends are asked for.
            goes_on = turn.all_done(window) && turn.done(word, window.size());
            if (goes_on) {
                turn.keep(start, wall_clock());
                goes_on = turn.heard() != 0;
            }
        }
        return std::move(turn).taken();
    }
    // Who receives decides, and posts its receives while its word is under way: before a message can come back.
    turn.say(1, word);
    receive_all();
    nanoseconds start = wall_clock();
    while (turn.done(window.back(), window.size()) && turn.all_done(window_and_word)) {
        const nanoseconds end = wall_clock();
        const bool goes_on = turn.keep(start, end);
        start = end;
        turn.say(goes_on ? 1 : 0, word);
        if (!goes_on) {
            turn.done(word);
            break;
        }
        receive_all();
    }
    return std::move(turn).taken();
}

template <class Handle>
PairSamples PairTester<Handle>::both_ways(const PairTask& task, const Heartbeat& beat) {
    Turn turn{*this, task, beat, true};
    const std::span<Handle> out{requests_.data(), task.calls};
    const std::span<Handle> in{requests_.data() + task.calls, task.calls};
    const std::span<Handle> out_and_in{requests_.data(), 2 * task.calls};
    Handle& said = requests_[2 * task.calls];
    Handle& heard = requests_[2 * task.calls + 1];
    const auto receive_all = [&] { std::ranges::for_each(in, [&](Handle& each) { turn.receive(each); }); };
    bool goes_on = true;
    while (true) {
        // Each posts its receives before it says so; the word of the rank that leads says whether there are any.
        turn.hear(heard);
        if (task.leads) {
            if (goes_on) {
                receive_all();
            }
            turn.say(goes_on ? 1 : 0, said);
            if (!turn.done(said) || !turn.done(heard) || !goes_on) {
                break;
            }
        } else {
            if (!turn.done(heard)) {
                break;
            }
            goes_on = turn.heard() != 0;
            if (goes_on) {
                receive_all();
            }
            turn.say(1, said);
            if (!turn.done(said) || !goes_on) {
                break;
            }
        }
        const nanoseconds start = wall_clock();
        std::ranges::for_each(out, [&](Handle& each) { turn.send(each); });
        if (!turn.done(out_and_in)) {
            break;
        }
        const bool more = turn.keep(start, wall_clock());
        goes_on = more || !task.leads;
    }
    return std::move(turn).taken();
}

template class PairTester<pointer_handle>;
template class PairTester<integer_handle>;

}  // namespace busbw
