// Every exchange over NCCL, its check and its loops, between four GPUs of one process, over the stand-ins for CUDA's
// driver, NVRTC and NCCL: check_nccl_over_stand_in FOLDER NCCL_FOLDER. No GPU is needed.
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "empty_launches.hpp"
#include "expect.hpp"
#include "gpu_check.hpp"
#include "stand_in_world.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;

// Calls are counted for each rank over all communicators: the first two worlds make two each before anything else, and
// the third hangs in its first.
constexpr const char* planted =
    "kind=wrong,rank=2,call=1,element=5;kind=wrong,rank=2,call=3,element=5;kind=gpuhang,rank=0,call=5";

NcclShape shape_of(NcclKind kind, std::size_t count, DataType type = DataType::float32) {
    NcclShape shape{kind, type, Operation::sum, world_ranks, 0, count, false, {1, 3}, world_group, {}};
    // The farther a rank, the more it is sent, and nothing to itself.
    for (int from = 0; from < world_ranks; ++from) {
        for (int to = 0; to < world_ranks; ++to) {
            shape.matrix.push_back(static_cast<std::size_t>((to - from + world_ranks) % world_ranks) * count);
        }
    }
    return shape;
}

bool has_in_place_form(NcclKind kind) {
    switch (kind) {
        case NcclKind::alltoall:
        case NcclKind::alltoallv:
        case NcclKind::sendrecv:
        case NcclKind::sendrecv_pair:
        case NcclKind::alltoall_2dh: return false;
        default: return true;
    }
}

std::string text_of(const NcclShape& shape, const Layout& layout) {
    return std::string(nccl_kind_names[static_cast<std::size_t>(shape.kind)]) + " of " + std::to_string(shape.count) +
           " " + std::string(data_type_names[static_cast<std::size_t>(shape.type)]) + " " +
           std::string(operation_names[static_cast<std::size_t>(shape.operation)]) + ", root " +
           std::to_string(shape.root) + (shape.in_place ? ", in place" : "") + ", shifted by " +
           std::to_string(layout.shift) + ", " + std::to_string(layout.slots) + " slots";
}

Pattern pattern_of(const NcclShape& shape) { return {11, world_ranks, shape.type, shape.operation}; }

void check_right(const World& world, const NcclShape& shape, const Layout& layout = {}) {
    const Held held{world, shape, layout};
    const std::vector<Mismatch> found = verify(held.exchange(), world.bench(), pattern_of(shape));
    expect(found.size() == world_ranks, text_of(shape, layout) + ": an answer for every rank");
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
        expect(found[rank].wrong == 0, text_of(shape, layout) + ": rank " + std::to_string(rank) + " has " +
                                           found[rank].got + " for " + found[rank].expected + " at " +
                                           std::to_string(found[rank].index));
    }
}

void check_kinds(const World& world) {
    for (std::size_t kind = 0; kind < std::size(nccl_kind_names); ++kind) {
        for (const std::size_t count : {1, 257}) {
            NcclShape shape = shape_of(static_cast<NcclKind>(kind), count);
            for (const int root : {0, world_ranks - 1}) {
                shape.root = root;
                for (const bool in_place : {false, true}) {
                    shape.in_place = in_place;
                    if (in_place && !has_in_place_form(shape.kind)) {
                        expect_throw<std::invalid_argument>([&] { nccl_contract(shape, 0); },
                                                            "no in-place form: " + text_of(shape, {}));
                        continue;
                    }
                    check_right(world, shape);
                    check_right(world, shape, {3, 2});
                }
            }
        }
    }
}

void check_types_and_operations(const World& world) {
    for (std::size_t type = 0; type < std::size(data_type_names); ++type) {
        NcclShape shape = shape_of(NcclKind::all_reduce, 67, static_cast<DataType>(type));
        if (type_number(shape.type, world.nccl().version) < 0) {
            expect_throw<std::invalid_argument>([&] { Held(world, shape); }, "no such type: " + text_of(shape, {}));
            continue;
        }
        for (std::size_t operation = 0; operation < std::size(operation_names); ++operation) {
            shape.operation = static_cast<Operation>(operation);
            check_right(world, shape, {1, 1});
        }
        check_right(world, shape_of(NcclKind::alltoall_2dh, 5, shape.type), {1, 1});
    }
}

// The rank and the element that the stand-in was told of are found, and nothing else.
void check_planted(const World& world) {
    const NcclShape shape = shape_of(NcclKind::all_reduce, 1000);
    const Held held{world, shape};
    const std::vector<Mismatch> found = verify(held.exchange(), world.bench(), pattern_of(shape));
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
        expect(found[rank].wrong == (rank == 2 ? 1 : 0), "one wrong element, on rank 2");
    }
    expect(found[2].index == 5 && !found[2].got.empty() && found[2].got != found[2].expected,
           "element 5 is wrong: " + std::to_string(found[2].index) + ", " + found[2].got);
    check_right(world, shape);
}

// A GPU that never ends is given up within the time that was allowed.
void check_hang(const Libraries& with) {
    const World world{with, true, per_second / 5};
    const Held held{world, shape_of(NcclKind::all_reduce, 1000)};
    const nanoseconds before = wall_clock();
    expect_throw<Stalled>([&] { once(held.exchange(), world.bench()); }, "a GPU that hangs is given up");
    expect(wall_clock() - before < 10 * per_second, "it is given up in time");
    expect(world.word_of(0, Heartbeat::in_call) == 2, "the heartbeat says that a GPU is waited for");
    world.abort();
}

void check_samples(const std::vector<Samples>& samples, std::size_t count, const std::string& text) {
    expect(samples.size() == world_ranks, text + ": samples for every GPU");
    for (const Samples& one : samples) {
        expect(one.duration.size() == count, text + ": every sample is kept");
        expect(std::ranges::all_of(one.duration, [](nanoseconds time) { return time > 0; }), text + ": takes time");
        expect(one.issued.size() == count, text + ": how long the host took to start it is kept");
        expect(std::ranges::all_of(one.issued, [](nanoseconds time) { return time > 0; }),
               text + ": starting takes time");
    }
}

void check_loops(const World& world, NcclKind kind) {
    NcclShape shape = shape_of(kind, 4099);
    shape.in_place = has_in_place_form(kind);
    const Held held{world, shape, {0, 3}};
    const NcclExchange& exchange = held.exchange();
    const std::string text = text_of(shape, {0, 3});
    const std::uint64_t calls_before = world.word_of(0, Heartbeat::calls);
    settle(exchange, pattern_of(shape));
    check_samples(stream(exchange, world.bench(), 3, 4), 3, text + " in a stream");
    expect(world.word_of(0, Heartbeat::calls) == calls_before + 12, text + ": every call is counted");
    const auto alone = isolated(exchange, world.bench(), 3, {0, 20'000'000, true});
    check_samples(alone, 3, text + " alone");
    for (const Samples& one : alone) {
        for (std::size_t sample = 0; sample < one.lateness.size(); ++sample) {
            expect(one.missed[sample] == 1 || one.lateness[sample] >= 0, text + ": starts after the common start");
        }
    }
    const NcclGraph graph{exchange, 4};
    check_samples(graph.replay(world.bench(), 3), 3, text + " in a graph");
    const std::vector<Mismatch> found = verify(exchange, world.bench(), pattern_of(shape));
    expect(std::ranges::all_of(found, [](const Mismatch& one) { return one.wrong == 0; }), text + ": is right after");
}

void check_load(const World& world) {
    const Held held{world, shape_of(NcclKind::all_reduce, 1000)};
    std::vector<std::unique_ptr<GpuLoad>> loads;
    std::vector<const GpuLoad*> borrowed;
    for (int rank = 0; rank < world_ranks; ++rank) {
        loads.push_back(std::make_unique<GpuLoad>(world.gpu(rank), 32));
        expect(loads.back()->product_time() > 0, "a product takes time");
        borrowed.push_back(loads.back().get());
    }
    const auto samples = loaded(held.exchange(), world.bench(), borrowed, 3, 2, per_second / 100);
    check_samples(samples, 3, "beside products");
}

// A launch takes the host at least what the stand-in was told.
void check_empty_launches(const World& world) {
    constexpr nanoseconds told = 200'000;
    constexpr std::size_t batches = 3;
    constexpr std::uint64_t launches = 4;
    const NoGate gate;
    const std::vector<const Gpu*> gpus{&world.gpu(2), &world.gpu(0)};
    const auto found = empty_launches(gpus, gate, batches, launches);
    expect(found.size() == gpus.size(), "launches on every GPU");
    for (const EmptyLaunches& one : found) {
        expect(one.issue.size() == batches && one.device.size() == batches, "every batch is kept");
        expect(std::ranges::all_of(one.issue, [](nanoseconds time) { return time >= told * nanoseconds{launches}; }),
               "the host takes its time for every launch");
        for (std::size_t batch = 0; batch < batches; ++batch) {
            expect(one.done[batch] >= one.issue[batch], "the GPU is done after the host has launched");
        }
        expect(std::ranges::all_of(one.device, [](nanoseconds time) { return time >= 0; }),
               "time goes forward on the GPU");
    }
    expect(empty_launches({}, gate, batches, launches).empty(), "no GPUs, no launches");
}

// An output written by hand, compared by kernels or by the host: all of it right, then one byte of it wrong.
void check_comparison(const World& world, DataType type) {
    const std::size_t size = with_type(type, [](auto element) { return sizeof element; });
    const Pattern pattern{5, world_ranks, type, Operation::sum};
    const Gpu& gpu = world.gpu(1);
    constexpr std::size_t count = 777;
    const GpuMemory memory{gpu, count * size, nullptr};
    const std::vector<Segment> segments{{0, 300, 3, 40}, {300, 0, 0, 0}, {300, 477, 2, 9}};
    fill_on(gpu, pattern, 3, 40, memory.data(), 300);
    fill_on(gpu, pattern, 2, 9, memory.data() + 300 * size, 477);
    const std::string text{data_type_names[static_cast<std::size_t>(type)]};
    expect(compare_on(gpu, pattern, memory.data(), segments).wrong == 0, text + ": what was written is right");
    for (const std::size_t wrong : {0, 299, 300, 776}) {
        std::vector<std::byte> element(size);
        std::byte* const at = memory.data() + wrong * size;
        gpu.cuda().check(gpu.cuda().copy_to_host(element.data(), address_of(at), size, gpu.stream()), "copy");
        gpu.wait();
        // A bit of the mantissa: -0 is no other number than 0.
        element.front() ^= std::byte{1};
        gpu.cuda().check(gpu.cuda().copy_to_device(address_of(at), element.data(), size, gpu.stream()), "copy");
        gpu.wait();
        const Mismatch found = compare_on(gpu, pattern, memory.data(), segments);
        expect(found.wrong == 1 && found.index == wrong, text + ": element " + std::to_string(wrong) + " is found");
        element.front() ^= std::byte{1};
        gpu.cuda().check(gpu.cuda().copy_to_device(address_of(at), element.data(), size, gpu.stream()), "copy");
        gpu.wait();
    }
}

void check_registration(const World& world) {
    const bool has_buffers = world.nccl().comm_register != nullptr;
    const bool has_windows = world.nccl().window_register != nullptr;
    std::vector<std::unique_ptr<GpuMemory>> held;
    std::vector<const GpuMemory*> memories;
    for (int rank = 0; rank < world_ranks; ++rank) {
        const NcclApi* const from = has_buffers ? &world.nccl() : nullptr;
        held.push_back(std::make_unique<GpuMemory>(world.gpu(rank), nccl_window_alignment, from));
        memories.push_back(held.back().get());
    }
    if (has_buffers) {
        world.all().register_buffers(memories);
    } else {
        expect_throw<std::runtime_error>([&] { world.all().register_buffers(memories); }, "no buffers before 2.19");
    }
    if (has_windows) {
        world.all().register_windows(memories);
    } else {
        expect_throw<std::runtime_error>([&] { world.all().register_windows(memories); }, "no windows before 2.27");
    }
}

void check_refusals(const World& world) {
    NcclShape shape = shape_of(NcclKind::sendrecv_pair, 1);
    shape.pair = {2, 2};
    expect_throw<std::invalid_argument>([&] { nccl_contract(shape, 0); }, "a pair is two ranks");
    shape = shape_of(NcclKind::alltoall_2dh, 1);
    shape.group = 3;
    expect_throw<std::invalid_argument>([&] { nccl_contract(shape, 0); }, "groups of three do not divide four ranks");
    shape = shape_of(NcclKind::alltoallv, 1);
    shape.matrix.pop_back();
    expect_throw<std::invalid_argument>([&] { nccl_contract(shape, 0); }, "the matrix lacks a number");
    shape = shape_of(NcclKind::hypercube, 1);
    shape.ranks = 3;
    expect_throw<std::invalid_argument>([&] { nccl_contract(shape, 0); }, "three ranks are no hypercube");
    expect_throw<std::runtime_error>([&] { world.gpu(0).launch("no_such_kernel", 0, 1, world.gpu(0).stream()); },
                                     "a kernel that is not there");
    const std::vector<const Gpu*> gpus{&world.gpu(0)};
    if (!world.gpu(0).has_kernels()) {
        expect_throw<std::runtime_error>([&] { empty_launches(gpus, NoGate{}, 1, 1); }, "no kernel to launch");
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fputs("usage: check_nccl_over_stand_in FOLDER NCCL_FOLDER\n", stderr);
        return EXIT_FAILURE;
    }
    setenv("STANDIN_FAULT", planted, 1);
    setenv("STANDIN_LAUNCH_US", "200", 1);
    const Libraries with{arguments[1], arguments[2]};
    const World on_gpus{with, true};
    const World on_host{with, false};
    expect(on_gpus.all().words().empty(), "NCCL says nothing of communicators that are well");
    check_planted(on_gpus);
    check_planted(on_host);
    check_hang(with);
    for (const World* world : {&on_gpus, &on_host}) {
        check_kinds(*world);
        check_types_and_operations(*world);
        for (const NcclKind kind : {NcclKind::all_reduce, NcclKind::hypercube, NcclKind::alltoall_2dh}) {
            check_loops(*world, kind);
        }
        for (const DataType type : {DataType::int8, DataType::uint32, DataType::bfloat16, DataType::float64}) {
            check_comparison(*world, type);
        }
        check_refusals(*world);
    }
    check_load(on_gpus);
    check_empty_launches(on_gpus);
    check_registration(on_gpus);
    return verdict();
}
