// Whatever fails while something is begun, nothing of it is left: each call to the driver and to NCCL is made to fail
// in turn, over the stand-ins, which count what was not given back: check_nothing_left FOLDER NCCL_FOLDER.
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "empty_launches.hpp"
#include "expect.hpp"
#include "gpu_check.hpp"
#include "host_link.hpp"
#include "nccl_group.hpp"
#include "stand_in_world.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;

// What the stand-ins count, and the door through which a call is made to fail.
class StandIn {
   public:
    explicit StandIn(const Libraries& with) {
        with.cuda.library.find(refuse_, "standinRefuse");
        for (const char* name :
             {"Contexts", "Streams", "CapturingStreams", "Graphs", "Events", "Modules", "Allocations"}) {
            with.cuda.library.find(counts_[name], ("standin" + std::string(name)).c_str());
        }
        for (const char* name : {"OpenGroups", "Communicators", "Operations"}) {
            with.nccl.library.find(counts_[name], ("standin" + std::string(name)).c_str());
        }
        if (with.nccl.comm_register != nullptr) {
            with.nccl.library.find(counts_["Registrations"], "standinRegistrations");
        }
    }
    // Call `call` of `function` from now on fails.
    void refuse(const std::string& function, int call) const {
        refuse_((function + "=" + std::to_string(call)).c_str());
    }
    void refuse_nothing() const { refuse_(""); }

    [[nodiscard]] std::map<std::string, long> held() const {
        std::map<std::string, long> held;
        for (const auto& [name, count] : counts_) {
            held[name] = count();
        }
        return held;
    }
    [[nodiscard]] long held(const std::string& name) const { return counts_.at(name)(); }

   private:
    void (*refuse_)(const char*) = nullptr;
    std::map<std::string, long (*)()> counts_;
};

using Counts = std::map<std::string, long>;

void expect_same(const Counts& before, const Counts& after, const std::string& what) {
    for (const auto& [name, count] : before) {
        expect(after.at(name) == count,
               what + ": " + std::to_string(after.at(name) - count) + " " + name + " are left");
    }
}

// Whether `make` throws when call `call` of `function` fails. What it returns is given up again, undisturbed.
template <class Make>
bool throws(const StandIn& stand_in, const std::string& function, int call, const Make& make) {
    stand_in.refuse(function, call);
    try {
        [[maybe_unused]] const auto made = make();
        stand_in.refuse_nothing();
        return false;
    } catch (const std::runtime_error&) {
        stand_in.refuse_nothing();
        return true;
    }
}

// Makes each call of each of `functions` fail in turn, until there is no further one. What `make` returns is given up.
template <class Make>
void check_nothing_left(const StandIn& stand_in, const std::string& what, const std::vector<std::string>& functions,
                        const Make& make) {
    for (const std::string& function : functions) {
        int call = 1;
        for (bool failed = true; failed; ++call) {
            const Counts before = stand_in.held();
            failed = throws(stand_in, function, call, make);
            expect_same(before, stand_in.held(), what + ", " + function + " " + std::to_string(call));
        }
        expect(call > 2, what + ": calls " + function);
    }
}

NcclShape shape_of(NcclKind kind, Operation operation = Operation::sum) {
    constexpr std::size_t parts = world_ranks * world_ranks;
    return {kind,        DataType::float32,
            operation,   world_ranks,
            0,           64,
            false,       {1, 3},
            world_group, std::vector<std::size_t>(parts, 64)};
}

// Every GPU comes to the end of what it was given: none waits for one that was given nothing.
void expect_idle(const World& world, const std::string& what) {
    const nanoseconds before = wall_clock();
    for (int rank = 0; rank < world_ranks; ++rank) {
        world.gpu(rank).wait();
    }
    expect(wall_clock() - before < 5 * per_second, what + ": no GPU waits for another");
}

void check_gpu(const Libraries& with, const StandIn& stand_in) {
    check_nothing_left(stand_in, "a GPU",
                       {"cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuStreamCreate",
                        "cuMemGetInfo_v2", "cuModuleLoadData"},
                       [&] { return std::make_unique<Gpu>(with.cuda, 0, with.code); });
}

void check_memory(const World& world, const StandIn& stand_in) {
    check_nothing_left(stand_in, "memory", {"cuCtxSetCurrent", "cuMemAlloc_v2"},
                       [&] { return std::make_unique<GpuMemory>(world.gpu(1), 4096, nullptr); });
    check_nothing_left(stand_in, "page-locked memory", {"cuCtxSetCurrent", "cuMemHostAlloc"},
                       [&] { return std::make_unique<PinnedMemory>(world.gpu(1), 4096); });
    const PinnedMemory host{world.gpu(1), 4096};
    const GpuMemory device{world.gpu(1), 4096, nullptr};
    check_nothing_left(stand_in, "copies to a GPU",
                       {"cuEventCreate", "cuEventRecord", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize"},
                       [&] { return rate_to_gpu(world.gpu(1), host, device, 2); });
    if (world.nccl().mem_alloc != nullptr) {
        check_nothing_left(stand_in, "memory of NCCL", {"cuCtxSetCurrent", "ncclMemAlloc", "cuMemAlloc_v2"},
                           [&] { return std::make_unique<GpuMemory>(world.gpu(1), 4096, &world.nccl()); });
    }
}

void check_communicators(const World& world, const StandIn& stand_in) {
    const auto join = [&] {
        std::vector<const Gpu*> gpus;
        for (int rank = 0; rank < world_ranks; ++rank) {
            gpus.push_back(&world.gpu(rank));
        }
        NcclUniqueId id;
        world.nccl().check(world.nccl().get_unique_id(&id), "ncclGetUniqueId");
        return std::make_unique<Communicators>(world.nccl(), std::move(gpus), id, world_ranks, 0, ConfigFields{});
    };
    check_nothing_left(stand_in, "communicators",
                       {"cuCtxSetCurrent", "ncclGroupStart", "ncclCommInitRankConfig", "ncclGroupEnd"}, join);
    check_nothing_left(stand_in, "a split", {"cuCtxSetCurrent", "ncclGroupStart", "ncclCommSplit", "ncclGroupEnd"},
                       [&] { return world.all().split({0, 0, 1, 1}, {0, 1, 0, 1}); });
    if (world.nccl().window_register == nullptr) {
        return;
    }
    std::vector<std::unique_ptr<GpuMemory>> memories;
    std::vector<const GpuMemory*> borrowed;
    for (int rank = 0; rank < world_ranks; ++rank) {
        memories.push_back(std::make_unique<GpuMemory>(world.gpu(rank), nccl_window_alignment, &world.nccl()));
        borrowed.push_back(memories.back().get());
    }
    check_nothing_left(stand_in, "windows",
                       {"cuCtxSetCurrent", "ncclGroupStart", "ncclCommWindowRegister", "ncclGroupEnd"}, [&] {
                           auto joined = join();
                           joined->register_windows(borrowed);
                           return joined;
                       });
    check_nothing_left(stand_in, "buffers", {"cuCtxSetCurrent", "ncclCommRegister"}, [&] {
        auto joined = join();
        joined->register_buffers(borrowed);
        return joined;
    });
}

// What an exchange of `kind` calls of NCCL, and of the driver, while it is launched.
std::vector<std::string> called_by(const NcclApi& nccl, NcclKind kind) {
    const auto has_or_messages = [](bool has, const char* name) {
        return has ? std::vector<std::string>{name} : std::vector<std::string>{"ncclSend", "ncclRecv"};
    };
    switch (kind) {
        case NcclKind::all_reduce: return {"ncclAllReduce"};
        case NcclKind::all_gather: return {"ncclAllGather"};
        case NcclKind::reduce_scatter: return {"ncclReduceScatter"};
        case NcclKind::broadcast: return {"ncclBroadcast"};
        case NcclKind::reduce: return {"ncclReduce"};
        case NcclKind::alltoall: return has_or_messages(nccl.alltoall != nullptr, "ncclAlltoAll");
        case NcclKind::gather: return has_or_messages(nccl.gather != nullptr, "ncclGather");
        case NcclKind::scatter: return has_or_messages(nccl.scatter != nullptr, "ncclScatter");
        case NcclKind::hypercube: return {"ncclSend", "ncclRecv", "cuMemcpyDtoDAsync_v2"};
        case NcclKind::alltoall_2dh: {
            std::vector<std::string> called = has_or_messages(nccl.alltoall != nullptr, "ncclAlltoAll");
            called.emplace_back("cuLaunchKernel");
            return called;
        }
        default: return {"ncclSend", "ncclRecv"};
    }
}

void check_launches(const World& world, const StandIn& stand_in) {
    for (std::size_t kind = 0; kind < std::size(nccl_kind_names); ++kind) {
        const std::string name{nccl_kind_names[kind]};
        const Held held{world, shape_of(static_cast<NcclKind>(kind))};
        std::vector<std::string> functions = called_by(world.nccl(), static_cast<NcclKind>(kind));
        functions.insert(functions.end(), {"cuCtxSetCurrent", "ncclGroupStart", "ncclGroupEnd"});
        check_nothing_left(stand_in, name, functions, [&] {
            held.exchange().launch(0);
            return 0;
        });
        expect_idle(world, name);
    }
}

void check_operations(const World& world, const StandIn& stand_in) {
    check_nothing_left(stand_in, "operations", {"cuCtxSetCurrent", "cuMemAlloc_v2", "ncclRedOpCreatePreMulSum"}, [&] {
        return std::make_unique<Held>(world, shape_of(NcclKind::all_reduce, Operation::mulsum));
    });
}

void check_graphs(const World& world, const StandIn& stand_in) {
    for (const NcclKind kind : {NcclKind::all_reduce, NcclKind::hypercube, NcclKind::alltoall_2dh}) {
        const std::string name = "a graph of " + std::string(nccl_kind_names[static_cast<std::size_t>(kind)]);
        const Held held{world, shape_of(kind)};
        std::vector<std::string> functions = called_by(world.nccl(), kind);
        functions.insert(functions.end(),
                         {"cuCtxSetCurrent", "cuStreamBeginCapture_v2", "ncclGroupStart", "ncclGroupEnd",
                          "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphUpload", "cuStreamSynchronize"});
        check_nothing_left(stand_in, name, functions, [&] { return std::make_unique<NcclGraph>(held.exchange(), 2); });
        expect_idle(world, name);
        const NcclGraph graph{held.exchange(), 2};
        expect(graph.replay(world.bench(), 1).size() == world_ranks, name + " is captured again");
    }
}

void check_measuring(const World& world, const StandIn& stand_in) {
    const Held held{world, shape_of(NcclKind::all_reduce)};
    const Pattern pattern{3, world_ranks, DataType::float32, Operation::sum};
    // Not cuCtxSetCurrent: when that fails while memory is given back, the driver is taken to be gone.
    check_nothing_left(stand_in, "a check of results",
                       {"cuMemsetD8Async", "cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
                        "cuModuleGetFunction", "cuLaunchKernel", "cuStreamQuery"},
                       [&] { return verify(held.exchange(), world.bench(), pattern); });
    check_nothing_left(stand_in, "samples alone", {"ncclAllReduce", "ncclGroupEnd", "cuStreamQuery"},
                       [&] { return isolated(held.exchange(), world.bench(), 2, {0, 1'000'000, true}); });
    check_nothing_left(stand_in, "a load", {"cuCtxSetCurrent", "cuMemAlloc_v2", "cuMemsetD8Async", "cuLaunchKernel"},
                       [&] { return std::make_unique<GpuLoad>(world.gpu(0), 32); });
    check_nothing_left(
        stand_in, "empty launches",
        {"cuEventCreate", "cuEventRecord", "cuLaunchKernel", "cuStreamSynchronize", "cuEventElapsedTime"}, [&] {
            const std::vector<const Gpu*> gpus{&world.gpu(2), &world.gpu(0)};
            return empty_launches(gpus, NoGate{}, 2, 2);
        });
}

// A group left by an exception of somebody else is closed, and one in another too; an end says what NCCL says.
void check_groups(const World& world, const StandIn& stand_in) {
    const NcclApi& nccl = world.nccl();
    expect_throw<std::logic_error>(
        [&] {
            const NcclGroup outer{nccl};
            const NcclGroup inner{nccl};
            expect(stand_in.held("OpenGroups") == 2, "two groups are open");
            throw std::logic_error("of somebody else");
        },
        "the exception goes through");
    expect(stand_in.held("OpenGroups") == 0, "no group is left open");
    expect_throw<std::runtime_error>(
        [&] {
            NcclGroup group{nccl};
            stand_in.refuse("ncclGroupEnd", 1);
            group.end();
        },
        "an end that fails is told");
    expect(stand_in.held("OpenGroups") == 0, "a group whose end failed is closed once");
    stand_in.refuse_nothing();
}

// What fails while something is given up is not told, and ends nothing else. Comes last: it leaves what was refused.
void check_giving_up(const Libraries& with, const StandIn& stand_in) {
    const World world{with, true};
    const Held held{world, shape_of(NcclKind::all_reduce, Operation::mulsum)};
    for (const char* function : {"cuGraphExecDestroy", "cuGraphDestroy"}) {
        std::optional<NcclGraph> graph{std::in_place, held.exchange(), 1};
        const long before = stand_in.held("Graphs");
        stand_in.refuse(function, 1);
        graph.reset();
        expect(stand_in.held("Graphs") == before - 2 * world_ranks + 1, "all graphs go but the one refused");
    }
    for (const char* function : {"cuCtxSetCurrent", "cuMemFree_v2"}) {
        std::optional<GpuMemory> memory{std::in_place, world.gpu(0), 4096, nullptr};
        stand_in.refuse(function, 1);
        memory.reset();
    }
    for (const char* function : {"cuCtxSetCurrent", "cuModuleUnload", "cuStreamDestroy_v2"}) {
        std::optional<Gpu> gpu{std::in_place, with.cuda, 0, with.code};
        const long before = stand_in.held("Contexts");
        stand_in.refuse(function, 1);
        gpu.reset();
        expect(stand_in.held("Contexts") == before - 1, std::string("the context goes though refused ") + function);
    }
    for (const char* function : {"ncclGroupEnd", "ncclCommDestroy", "ncclGroupStart"}) {
        auto part = world.all().split({0, 0, 1, 1}, {0, 1, 0, 1});
        stand_in.refuse(function, 1);
        part.reset();
        expect(stand_in.held("OpenGroups") == 0, std::string("no group is left open by refused ") + function);
    }
    stand_in.refuse_nothing();
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fputs("usage: check_nothing_left FOLDER NCCL_FOLDER\n", stderr);
        return EXIT_FAILURE;
    }
    const Libraries with{arguments[1], arguments[2]};
    const StandIn stand_in{with};
    const Counts before = stand_in.held();
    {
        const World world{with, true};
        check_memory(world, stand_in);
        check_groups(world, stand_in);
        check_communicators(world, stand_in);
        check_launches(world, stand_in);
        check_operations(world, stand_in);
        check_graphs(world, stand_in);
        check_measuring(world, stand_in);
    }
    expect_same(before, stand_in.held(), "a world");
    check_gpu(with, stand_in);
    check_giving_up(with, stand_in);
    return verdict();
}
