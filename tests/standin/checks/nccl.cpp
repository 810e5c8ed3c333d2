// What NCCL's stand-in promises: right results for every collective, as ranks that are threads' devices ("devices") or
// processes of their own ("processes"), what its faults do ("faults"), and how long it takes ("pace").
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>

#include "client.hpp"

using namespace checks;

namespace {

constexpr int ranks = 4;
enum Type {
    int8 = 0,
    uint8 = 1,
    int32 = 2,
    int64 = 4,
    float16 = 6,
    float32 = 7,
    bfloat16 = 9,
    float8e4m3 = 10,
    float8e5m2 = 11
};
enum Op { sum = 0, prod = 1, max = 2, min = 3, avg = 4 };

// One rank as this process has it.
struct Rank {
    int rank = 0;
    int device = 0;
    nccl_comm comm = nullptr;
    cu_stream stream = nullptr;
};
using Ranks = std::vector<Rank>;

// Calls `action` for each rank that this process has, as one group, and waits for the streams.
void together(const Ranks& mine, const std::function<int(const Rank&, std::size_t)>& action) {
    must(ncclGroupStart());
    for (std::size_t index = 0; index < mine.size(); ++index) {
        expect_code(action(mine[index], index), 0);
    }
    must(ncclGroupEnd());
    for (const Rank& each : mine) {
        must(cuStreamSynchronize(each.stream));
    }
}

template <class T>
struct Memory {
    using Buffers = std::vector<std::unique_ptr<Buffer<T>>>;
    // `value` of (rank, index).
    Memory(const Ranks& mine, std::size_t count, const std::function<T(int, std::size_t)>& value) {
        for (const Rank& each : mine) {
            use_device(each.device);
            std::vector<T> values(count);
            for (std::size_t index = 0; index < count; ++index) {
                values[index] = value(each.rank, index);
            }
            buffers.push_back(std::make_unique<Buffer<T>>(values));
        }
    }
    T* operator[](std::size_t index) const { return buffers[index]->data(); }

    // Expects `value` of (rank, index) in every buffer.
    void expect_values(const Ranks& mine, const std::function<T(int, std::size_t)>& value,
                       const std::source_location where = std::source_location::current()) const {
        for (std::size_t each = 0; each < mine.size(); ++each) {
            use_device(mine[each].device);
            const auto found = buffers[each]->values();
            std::size_t wrong = 0;
            for (std::size_t index = 0; index < found.size(); ++index) {
                wrong += found[index] == value(mine[each].rank, index) ? 0 : 1;
            }
            expect(wrong == 0, "rank " + std::to_string(mine[each].rank) + ": " + std::to_string(wrong) + " wrong",
                   where);
        }
    }
    Buffers buffers;
};

int input(int rank, std::size_t index) { return static_cast<int>(index % 1000) * 10 + rank; }
int at_all(std::size_t index) { return static_cast<int>(index % 1000) * 40 + 6; }
int untouched(int, std::size_t) { return -1; }

void reductions_are_right(const Ranks& mine, std::size_t count) {
    const Memory<int> from(mine, count, input);
    const Memory<int> to(mine, count, untouched);
    together(mine, [&](const Rank& me, std::size_t each) {
        return ncclAllReduce(from[each], to[each], count, int32, sum, me.comm, me.stream);
    });
    to.expect_values(mine, [](int, std::size_t index) { return at_all(index); });
    together(mine, [&](const Rank& me, std::size_t each) {
        return ncclAllReduce(to[each], to[each], count, int32, max, me.comm, me.stream);
    });
    to.expect_values(mine, [](int, std::size_t index) { return at_all(index); });
    together(mine, [&](const Rank& me, std::size_t each) {
        return ncclReduce(from[each], to[each], count, int32, avg, 2, me.comm, me.stream);
    });
    to.expect_values(mine, [](int rank, std::size_t index) { return rank == 2 ? at_all(index) / 4 : at_all(index); });
    const Memory<int> whole(mine, 4 * count, input);
    together(mine, [&](const Rank& me, std::size_t each) {
        const std::size_t offset = static_cast<std::size_t>(me.rank) * count;
        return ncclReduceScatter(whole[each], whole[each] + offset, count, int32, sum, me.comm, me.stream);
    });
    whole.expect_values(mine, [&](int rank, std::size_t index) {
        return index / count == static_cast<std::size_t>(rank) ? at_all(index) : input(rank, index);
    });
}

void copies_are_right(const Ranks& mine, std::size_t count) {
    const Memory<int> from(mine, count, input);
    const Memory<int> to(mine, 4 * count, untouched);
    together(mine, [&](const Rank& me, std::size_t each) {
        return ncclAllGather(from[each], to[each], count, int32, me.comm, me.stream);
    });
    const auto gathered = [&](std::size_t index) { return input(static_cast<int>(index / count), index % count); };
    to.expect_values(mine, [&](int, std::size_t index) { return gathered(index); });

    const Memory<int> whole(mine, 4 * count, input);
    const Memory<int> swapped(mine, 4 * count, untouched);
    together(mine, [&](const Rank& me, std::size_t each) {
        return ncclAlltoAll(whole[each], swapped[each], count, int32, me.comm, me.stream);
    });
    swapped.expect_values(mine, [&](int rank, std::size_t index) {
        const std::size_t at = static_cast<std::size_t>(rank) * count + index % count;
        return input(static_cast<int>(index / count), at);
    });

    together(mine, [&](const Rank& me, std::size_t each) {
        return ncclBroadcast(from[each], from[each], count, int32, 3, me.comm, me.stream);
    });
    from.expect_values(mine, [](int, std::size_t index) { return input(3, index); });

    const Memory<int> part(mine, count, input);
    const Memory<int> all(mine, 4 * count, untouched);
    together(mine, [&](const Rank& me, std::size_t each) {
        return ncclGather(part[each], all[each], count, int32, 1, me.comm, me.stream);
    });
    all.expect_values(mine, [&](int rank, std::size_t index) { return rank == 1 ? gathered(index) : -1; });
    together(mine, [&](const Rank& me, std::size_t each) {
        return ncclScatter(all[each], part[each], count, int32, 1, me.comm, me.stream);
    });
    part.expect_values(mine, input);
}

void messages_are_right(const Ranks& mine, std::size_t count) {
    const Memory<int> from(mine, count, input);
    const Memory<int> to(mine, count, untouched);
    must(ncclGroupStart());
    for (std::size_t each = 0; each < mine.size(); ++each) {
        const Rank& me = mine[each];
        const std::size_t half = count / 2;
        const int next = (me.rank + 1) % ranks;
        const int before = (me.rank + ranks - 1) % ranks;
        // Two messages the same way arrive in their order.
        must(ncclSend(from[each], half, int32, next, me.comm, me.stream));
        must(ncclRecv(to[each], half, int32, before, me.comm, me.stream));
        must(ncclSend(from[each] + half, count - half, int32, next, me.comm, me.stream));
        must(ncclRecv(to[each] + half, count - half, int32, before, me.comm, me.stream));
    }
    must(ncclGroupEnd());
    for (const Rank& each : mine) {
        must(cuStreamSynchronize(each.stream));
    }
    to.expect_values(mine, [](int rank, std::size_t index) { return input((rank + ranks - 1) % ranks, index); });
}

// Sums `one` of rank 0 with `tiny` of the three others; all are bit patterns.
template <class Bits>
void expect_sum(const Ranks& mine, Type type, Bits one, Bits tiny, Bits wanted) {
    const Memory<Bits> data(mine, 100, [=](int rank, std::size_t) { return rank == 0 ? one : tiny; });
    together(mine, [&](const Rank& me, std::size_t each) {
        return ncclAllReduce(data[each], data[each], 100, type, sum, me.comm, me.stream);
    });
    data.expect_values(mine, [=](int, std::size_t) { return wanted; });
}

void small_floats_round_at_every_step(const Ranks& mine) {
    using Two = std::uint16_t;
    expect_sum<Two>(mine, float16, 0x3C00, 0x1000, 0x3C00);   // 1 + 2^-11 is a tie and stays 1, three times
    expect_sum<Two>(mine, float16, 0x3C01, 0x1000, 0x3C02);   // from an odd number the first step goes up, only it
    expect_sum<Two>(mine, float16, 0x0001, 0x0001, 0x0004);   // the smallest there is
    expect_sum<Two>(mine, float16, 0x7BFF, 0x7BFF, 0x7C00);   // infinity
    expect_sum<Two>(mine, bfloat16, 0x3F80, 0x3B80, 0x3F80);  // 1 + 2^-8
    expect_sum<Two>(mine, bfloat16, 0x3F80, 0x3F80, 0x4080);  // 4
    using One = std::uint8_t;
    expect_sum<One>(mine, float8e4m3, 0x38, 0x18, 0x38);  // 1 + 2^-4
    expect_sum<One>(mine, float8e4m3, 0x38, 0x38, 0x48);  // 4
    expect_sum<One>(mine, float8e4m3, 0x7E, 0x7E, 0x7E);  // 448 is the largest, and stays
    expect_sum<One>(mine, float8e5m2, 0x3C, 0x3C, 0x44);  // 4
    expect_sum<One>(mine, float8e5m2, 0x7B, 0x7B, 0x7B);  // 57344
}

void averages_and_scaled_sums_are_right(const Ranks& mine) {
    const Memory<float> data(mine, 100, [](int rank, std::size_t) { return static_cast<float>(rank); });
    together(mine, [&](const Rank& me, std::size_t each) {
        return ncclAllReduce(data[each], data[each], 100, float32, avg, me.comm, me.stream);
    });
    data.expect_values(mine, [](int, std::size_t) { return 1.5F; });
    std::vector<int> operations;
    for (const Rank& each : mine) {
        float factor = 2;
        must(ncclRedOpCreatePreMulSum(&operations.emplace_back(), &factor, float32, 1, each.comm));
    }
    together(mine, [&](const Rank& me, std::size_t each) {
        return ncclAllReduce(data[each], data[each], 100, float32, operations[each], me.comm, me.stream);
    });
    data.expect_values(mine, [](int, std::size_t) { return 12.0F; });
    for (std::size_t each = 0; each < mine.size(); ++each) {
        must(ncclRedOpDestroy(operations[each], mine[each].comm));
        expect_code(
            ncclAllReduce(data[each], data[each], 1, float32, operations[each], mine[each].comm, mine[each].stream), 4);
    }
}

void a_graph_repeats_a_collective(const Ranks& mine) {
    const Memory<int> data(mine, 10, [](int, std::size_t) { return 1; });
    std::vector<cu_graph_exec> executables;
    for (std::size_t each = 0; each < mine.size(); ++each) {
        const Rank& me = mine[each];
        cu_graph graph = nullptr;
        must(cuStreamBeginCapture_v2(me.stream, 1));
        must(ncclAllReduce(data[each], data[each], 10, int32, sum, me.comm, me.stream));
        must(ncclAllReduce(data[each], data[each], 10, int32, sum, me.comm, me.stream));
        must(cuStreamEndCapture(me.stream, &graph));
        must(cuGraphInstantiateWithFlags(&executables.emplace_back(), graph, 0));
        must(cuGraphDestroy(graph));
    }
    for (int launches = 0; launches < 2; ++launches) {
        for (std::size_t each = 0; each < mine.size(); ++each) {
            must(cuGraphLaunch(executables[each], mine[each].stream));
        }
    }
    for (const Rank& each : mine) {
        must(cuStreamSynchronize(each.stream));
    }
    data.expect_values(mine, [](int, std::size_t) { return 256; });
}

void a_split_makes_smaller_worlds(const Ranks& mine) {
    Ranks halves = mine;
    must(ncclGroupStart());
    for (std::size_t each = 0; each < mine.size(); ++each) {
        must(ncclCommSplit(mine[each].comm, mine[each].rank % 2, -mine[each].rank, &halves[each].comm, nullptr));
    }
    must(ncclGroupEnd());
    const Memory<int> data(mine, 10, input);
    for (const Rank& each : halves) {
        int count = 0;
        int rank = 0;
        must(ncclCommCount(each.comm, &count));
        must(ncclCommUserRank(each.comm, &rank));
        expect(count == 2 && rank == (each.rank < 2 ? 1 : 0), "two ranks by colour, the last first by key");
    }
    together(halves, [&](const Rank& me, std::size_t each) {
        return ncclAllReduce(data[each], data[each], 10, int32, sum, me.comm, me.stream);
    });
    data.expect_values(mine,
                       [](int rank, std::size_t index) { return input(rank % 2, index) + input(rank % 2 + 2, index); });
    for (const Rank& each : halves) {
        must(ncclCommDestroy(each.comm));
    }
}

void windows_are_registered_by_all(const Ranks& mine) {
    const Memory<int> data(mine, 10, input);
    std::vector<nccl_window> windows(mine.size());
    must(ncclGroupStart());
    for (std::size_t each = 0; each < mine.size(); ++each) {
        must(ncclCommWindowRegister(mine[each].comm, data[each], 40, &windows[each], 1));
        expect(windows[each] == nullptr, "it happens at the end of the group");
    }
    must(ncclGroupEnd());
    for (std::size_t each = 0; each < mine.size(); ++each) {
        must(ncclCommWindowDeregister(mine[each].comm, windows[each]));
        expect_code(ncclCommWindowRegister(mine[each].comm, data[each] + 1, 4, &windows[each], 1), 4);
    }
}

void wrong_arguments_are_refused(const Ranks& mine) {
    const Rank& me = mine[0];
    use_device(me.device);
    const Buffer<int> buffer(4);
    std::vector<int> host(4);
    expect_code(ncclAllReduce(buffer.data(), buffer.data(), 5, int32, sum, me.comm, me.stream), 4);
    expect_code(ncclAllReduce(host.data(), host.data(), 4, int32, sum, me.comm, me.stream), 4);
    expect_code(ncclAllReduce(buffer.data(), buffer.data(), 4, 12, sum, me.comm, me.stream), 4);
    expect_code(ncclBroadcast(buffer.data(), buffer.data(), 4, int32, ranks, me.comm, me.stream), 4);
    expect_code(ncclAllReduce(buffer.data(), buffer.data(), 4, int32, sum, nullptr, me.stream), 4);
    expect_code(ncclAllReduce(buffer.data(), buffer.data(), 4, int32, sum, me.comm, nullptr), 1);
    expect(std::strlen(ncclGetLastError(nullptr)) > 0, "it says why");
    expect_code(ncclGroupEnd(), 5);
}

void check_all(const Ranks& mine) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{1001}, std::size_t{300'001}}) {
        reductions_are_right(mine, count);
        copies_are_right(mine, count);
        messages_are_right(mine, count);
    }
    small_floats_round_at_every_step(mine);
    averages_and_scaled_sums_are_right(mine);
    a_graph_repeats_a_collective(mine);
    a_split_makes_smaller_worlds(mine);
    windows_are_registered_by_all(mine);
    wrong_arguments_are_refused(mine);
    for (const Rank& each : mine) {
        must(ncclCommDestroy(each.comm));
        must(cuStreamDestroy_v2(each.stream));
    }
}

Ranks all_devices() {
    must(cuInit(0));
    std::vector<nccl_comm> comms(ranks);
    must(ncclCommInitAll(comms.data(), ranks, nullptr));
    Ranks mine(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
        Rank& each = mine[static_cast<std::size_t>(rank)];
        use_device(rank);
        each = {rank, rank, comms[static_cast<std::size_t>(rank)], nullptr};
        must(cuStreamCreate(&each.stream, 1));
    }
    return mine;
}

int check_devices() {
    check_all(all_devices());
    return verdict();
}

// At STANDIN_GBPS=1 and STANDIN_LATENCY_US=5000 a MiB goes over the bus in 5 ms + 1.5 x 1.05 ms.
int check_pace() {
    const Ranks mine = all_devices();
    const std::size_t count = 1 << 18;
    const Memory<int> data(mine, count, input);
    const auto start = std::chrono::steady_clock::now();
    together(mine, [&](const Rank& me, std::size_t each) {
        return ncclAllReduce(data[each], data[each], count, int32, sum, me.comm, me.stream);
    });
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    expect(time.count() >= 6.57e-3 && time.count() < 1, "it takes 6.6 ms, not " + std::to_string(time.count()));
    return verdict();
}

Rank join(const nccl_id& id, int rank) {
    use_device(rank);
    Rank mine{rank, rank, nullptr, nullptr};
    must(ncclCommInitRank(&mine.comm, ranks, id, rank));
    must(cuStreamCreate(&mine.stream, 1));
    return mine;
}

// Runs `action` in a process for each rank; the id was made here, where no thread runs.
int in_processes(const std::function<int(const nccl_id&, int)>& action) {
    nccl_id id{};
    must(ncclGetUniqueId(&id));
    std::vector<pid_t> children;
    for (int rank = 0; rank < ranks; ++rank) {
        const pid_t child = ::fork();
        if (child == 0) {
            std::_Exit(action(id, rank));
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a rank ends well");
    }
    return verdict();
}

// STANDIN_FAULT="kind=wrong,rank=1,call=2,element=3;kind=sleep,rank=2,call=3,us=50000;kind=error,rank=3,call=4;
// kind=gpuhang,rank=0,call=5": each rank meets its own.
int suffer(const nccl_id& id, int rank) {
    using Clock = std::chrono::steady_clock;
    const Ranks mine{join(id, rank)};
    const Memory<int> data(mine, 10, [](int, std::size_t) { return 1; });
    const Memory<int> to(mine, 10, untouched);
    const auto call = [&] { return ncclAllReduce(data[0], to[0], 10, int32, sum, mine[0].comm, mine[0].stream); };
    must(call());
    must(call());
    must(cuStreamSynchronize(mine[0].stream));
    to.expect_values(mine, [](int me, std::size_t at) { return me == 1 && at == 3 ? 4 + (1 << 28) : 4; });

    const auto start = Clock::now();
    must(call());
    expect((Clock::now() - start > std::chrono::milliseconds{50}) == (rank == 2), "only rank 2 sleeps in its call");
    must(cuStreamSynchronize(mine[0].stream));
    expect(Clock::now() - start > std::chrono::milliseconds{20}, "all wait for it");

    expect_code(call(), rank == 3 ? 2 : 0);
    expect(rank != 3 || std::strstr(ncclGetLastError(mine[0].comm), "reset") != nullptr, "NCCL's words are kept");
    if (rank == 3) {
        must(call());  // in place of the one that failed
    }
    must(cuStreamSynchronize(mine[0].stream));

    must(call());
    ::usleep(300'000);
    expect_code(cuStreamQuery(mine[0].stream), 600);
    int error = -1;
    must(ncclCommGetAsyncError(mine[0].comm, &error));
    expect_code(error, 0);
    must(ncclCommAbort(mine[0].comm));
    must(cuStreamSynchronize(mine[0].stream));
    return verdict();
}

}  // namespace

int main(int count, char** arguments) {
    const std::string what = count == 2 ? arguments[1] : "";
    if (what == "devices") {
        return check_devices();
    }
    if (what == "processes") {
        return in_processes([](const nccl_id& id, int rank) {
            check_all({join(id, rank)});
            return verdict();
        });
    }
    if (what == "faults") {
        return in_processes(suffer);
    }
    if (what == "pace") {
        return check_pace();
    }
    std::fprintf(stderr, "devices, processes, faults or pace?\n");
    return EXIT_FAILURE;
}
