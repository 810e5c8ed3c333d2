// A step between two exchanges of one rank, over an MPI whose calls take as long as they are told.
#include "../step_replay.hpp"

#include <array>
#include <thread>

#include "expect.hpp"

using namespace busbw;
using busbw::checks::expect;

namespace {

constexpr nanoseconds call_time = 2'000'000;
nanoseconds due = 0;

void wait_for_clock(nanoseconds until) {
    while (wall_clock() < until) {
        std::this_thread::yield();
    }
}

int alltoall(const void*, int, pointer_handle, void*, int, pointer_handle, pointer_handle) {
    wait_for_clock(wall_clock() + call_time);
    return 0;
}
int ialltoall(const void*, int, pointer_handle, void*, int, pointer_handle, pointer_handle, pointer_handle*) {
    due = wall_clock() + call_time;
    return 0;
}
int test(pointer_handle*, int* flag, void*) {
    *flag = wall_clock() >= due ? 1 : 0;
    return 0;
}
int barrier(pointer_handle) { return 0; }

bool refuses(std::vector<StepMove> moves) {
    try {
        check_moves(moves, 1);
    } catch (const std::invalid_argument&) {
        return true;
    }
    return false;
}

void orders_are_checked() {
    expect(!refuses({{StepAct::begin, 0, 0}, {StepAct::finish, 0, 0}, {StepAct::call, 0, 0}}), "a right order");
    expect(refuses({{StepAct::call, 1, 0}}), "an exchange that is not there");
    expect(refuses({{StepAct::begin, 0, 0}, {StepAct::call, 0, 0}}), "a call of what is under way");
    expect(refuses({{StepAct::finish, 0, 0}}), "the end of what has not begun");
    expect(refuses({{StepAct::begin, 0, 0}}), "what is never finished");
}

void what_is_hidden_is_not_exposed() {
    MpiApi<pointer_handle> mpi{};
    mpi.alltoall = alltoall;
    mpi.ialltoall = ialltoall;
    mpi.test = test;
    mpi.barrier = barrier;
    Exchange<pointer_handle> exchange{};
    exchange.mpi = &mpi;
    exchange.kind = Kind::alltoall;
    exchange.seat = {0, 1, 0};
    exchange.requests.resize(2);
    exchange.statuses.resize(2);
    alignas(8) std::array<std::byte, Heartbeat::bytes> words{};
    const Heartbeat beat{words};
    const std::array<const Exchange<pointer_handle>*, 1> exchanges{&exchange};
    const auto one = [&](std::vector<StepMove> moves) {
        return replay<pointer_handle>(exchanges, moves, beat, nullptr, 1, true).at(0);
    };
    const StepTimes waited = one({{StepAct::compute, 0, call_time}, {StepAct::call, 0, 0}});
    expect(waited.exposed[0] >= call_time, "a call that is waited for is exposed");
    expect(waited.compute >= call_time && waited.step >= 2 * call_time, "computing takes its time");
    const StepTimes hidden =
        one({{StepAct::begin, 0, 0}, {StepAct::compute, 0, 4 * call_time}, {StepAct::finish, 0, 0}});
    expect(hidden.busy[0] >= call_time, "what is hidden takes its time");
    expect(hidden.exposed[0] < call_time / 2, "what ends before the computing is hidden");
    const StepTimes half = one({{StepAct::begin, 0, 0}, {StepAct::compute, 0, call_time / 2}, {StepAct::finish, 0, 0}});
    expect(half.busy[0] >= call_time && half.step >= call_time, "what is not done by then is waited for");
    expect(half.exposed[0] + half.compute >= call_time - call_time / 10, "and is exposed as far as that");
}

}  // namespace

int main() {
    orders_are_checked();
    what_is_hidden_is_not_exposed();
    return busbw::checks::verdict();
}
