// NCCL and GPUs for Python. Every function that can wait releases the interpreter lock.
#include "bind_nccl.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bind_heartbeat.hpp"
#include "bind_mpi.hpp"
#include "communicators.hpp"
#include "empty_launches.hpp"
#include "gate.hpp"
#include "host_link.hpp"
#include "nccl_exchange.hpp"
#include "nccl_loops.hpp"
#include "nccl_replay.hpp"
#include "nccl_verify.hpp"
#include "nvrtc.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace busbw {
namespace {

std::unique_ptr<Gate> mpi_gate(const AnyMpi& mpi, handle_value communicator, handle_value byte, int rank) {
    return std::visit(
        [&]<class Handle>(const MpiApi<Handle>& api) -> std::unique_ptr<Gate> {
            return std::make_unique<MpiGate<Handle>>(api, to_handle<Handle>(communicator), to_handle<Handle>(byte),
                                                     rank);
        },
        mpi);
}

NcclShape shape(const std::string& kind, const std::string& type, const std::string& operation, int ranks, int root,
                std::size_t count, bool in_place, std::pair<int, int> pair, int group,
                std::vector<std::size_t> matrix) {
    return {by_name<NcclKind>(nccl_kind_names, kind),
            by_name<DataType>(data_type_names, type),
            by_name<Operation>(operation_names, operation),
            ranks,
            root,
            count,
            in_place,
            pair,
            group,
            std::move(matrix)};
}

nb::typed<nb::tuple, std::size_t, std::size_t, std::size_t> nccl_footprint_of(const NcclShape& what, int rank) {
    const NcclFootprint need = nccl_footprint(what, rank);
    return nb::make_tuple(need.send, need.receive, need.scratch);
}

// The GPUs of one process and what each of them uses.
struct Equipment {
    std::vector<const Gpu*> gpus;
    std::vector<const GpuMemory*> send;
    std::vector<const GpuMemory*> receive;
    std::vector<const GpuMemory*> scratch;
    int first;
};

std::unique_ptr<NcclExchange> make_nccl_exchange(const NcclApi& nccl, const NcclShape& what, const Equipment& with,
                                                 const Communicators& all, const Communicators* intra,
                                                 const Communicators* rail, const Rotation& rotation,
                                                 std::size_t shift) {
    const std::size_t size = with_type(what.type, [](auto element) { return sizeof element; });
    std::vector<NcclMember> members;
    for (std::size_t gpu = 0; gpu < with.gpus.size(); ++gpu) {
        const int rank = with.first + static_cast<int>(gpu);
        const NcclFootprint need = nccl_footprint(what, rank);
        const std::size_t last = rotation.slots - 1;
        const auto fits = [&](const GpuMemory& memory, std::size_t count, std::size_t stride, std::size_t extra) {
            return (count + shift) * size + last * stride + extra <= memory.size();
        };
        if (!fits(*with.send.at(gpu), need.send, rotation.send_stride, 0) ||
            !fits(*with.receive.at(gpu), need.receive, rotation.receive_stride, guard_bytes) ||
            !fits(*with.scratch.at(gpu), need.scratch, rotation.scratch_stride, 0)) {
            throw std::invalid_argument("buffers are too small for this exchange");
        }
        members.push_back({with.gpus[gpu], all.of(gpu), intra != nullptr ? intra->of(gpu) : nullptr,
                           rail != nullptr ? rail->of(gpu) : nullptr, rank, with.send[gpu]->data(),
                           with.receive[gpu]->data(), with.scratch[gpu]->data()});
    }
    return std::make_unique<NcclExchange>(nccl, what, std::move(members), rotation, shift);
}

NcclUniqueId id_of(nb::bytes bytes) {
    NcclUniqueId id;
    if (bytes.size() != id.bytes.size()) {
        throw std::invalid_argument("a unique id has 128 bytes");
    }
    std::copy_n(bytes.c_str(), id.bytes.size(), id.bytes.begin());
    return id;
}

nb::bytes unique_id(const NcclApi& nccl) {
    NcclUniqueId id;
    nccl.check(nccl.get_unique_id(&id), "ncclGetUniqueId");
    return nb::bytes{id.bytes.data(), id.bytes.size()};
}

std::vector<std::string> types_of(const NcclApi& nccl) {
    std::vector<std::string> names;
    for (std::size_t type = 0; type < std::size(data_type_names); ++type) {
        if (type_number(static_cast<DataType>(type), nccl.version) >= 0) {
            names.emplace_back(data_type_names[type]);
        }
    }
    return names;
}

// A bench with the memory that its heartbeats lie in.
struct HeldBench {
    HeldBench() = default;
    HeldBench(const HeldBench&) = delete;
    HeldBench& operator=(const HeldBench&) = delete;
    std::vector<HeldHeartbeat> heartbeats;
    NcclBench bench{};
};

std::unique_ptr<HeldBench> make_bench(const Gate& gate, const std::vector<nb::object>& memories, nanoseconds step) {
    auto held = std::make_unique<HeldBench>();
    held->bench.gate = &gate;
    held->bench.step = step;
    for (const nb::object& memory : memories) {
        held->bench.beats.push_back(held->heartbeats.emplace_back(memory).beat());
    }
    return held;
}

}  // namespace

void bind_nccl(nb::module_& module) {
    const nb::call_guard<nb::gil_scoped_release> waits;

    nb::class_<GpuFacts>(module, "GpuFacts")
        .def_ro("ordinal", &GpuFacts::ordinal)
        .def_ro("name", &GpuFacts::name)
        .def_ro("bus_id", &GpuFacts::bus_id)
        .def_ro("memory_bytes", &GpuFacts::memory_bytes)
        .def_ro("free_bytes", &GpuFacts::free_bytes)
        .def_ro("l2_bytes", &GpuFacts::l2_bytes)
        .def_ro("multiprocessors", &GpuFacts::multiprocessors)
        .def_ro("capability", &GpuFacts::capability);
    nb::class_<CudaApi>(module, "Cuda")
        .def(nb::init<const std::string&>(), "path"_a, waits)
        .def_prop_ro("path", [](const CudaApi& cuda) { return cuda.library.path(); })
        .def_ro("driver_version", &CudaApi::driver_version)
        .def_ro("devices", &CudaApi::devices)
        .def("facts", &gpu_facts, "ordinal"_a, waits);
    nb::class_<Nvrtc>(module, "Nvrtc")
        .def(nb::init<const std::string&>(), "path"_a, waits)
        .def_prop_ro("path", [](const Nvrtc& nvrtc) { return nvrtc.library.path(); })
        .def_ro("major", &Nvrtc::major)
        .def_ro("minor", &Nvrtc::minor)
        .def(
            "compile_kernels",
            [](const Nvrtc& nvrtc, int capability) {
                std::vector<char> code;
                {
                    const nb::gil_scoped_release release;
                    code = nvrtc.compile(kernel_source(), capability);
                }
                return nb::bytes{code.data(), code.size()};
            },
            "capability"_a);
    nb::class_<NcclApi>(module, "Nccl")
        .def(nb::init<const std::string&>(), "path"_a, waits)
        .def_prop_ro("path", [](const NcclApi& nccl) { return nccl.library.path(); })
        .def_ro("version", &NcclApi::version)
        .def_prop_ro("config_fields", [](const NcclApi& nccl) { return config_fields(nccl.version); })
        .def_prop_ro("dtypes", types_of)
        .def_prop_ro("has_memory", [](const NcclApi& nccl) { return nccl.mem_alloc != nullptr; })
        .def_prop_ro("has_registration", [](const NcclApi& nccl) { return nccl.comm_register != nullptr; })
        .def_prop_ro("has_windows", [](const NcclApi& nccl) { return nccl.window_register != nullptr; })
        .def_prop_ro("has_debug_reset", [](const NcclApi& nccl) { return nccl.reset_debug != nullptr; })
        .def("reset_debug", [](const NcclApi& nccl) { nccl.reset_debug(); })
        .def("unique_id", unique_id);
    nb::class_<Gpu>(module, "Gpu")
        .def(
            "__init__",
            [](Gpu* self, const CudaApi& cuda, int ordinal, nb::bytes code) {
                const std::span<const char> kernels{code.c_str(), code.size()};
                const nb::gil_scoped_release release;
                new (self) Gpu{cuda, ordinal, kernels};
            },
            "cuda"_a, "ordinal"_a, "code"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("facts", &Gpu::facts)
        .def_prop_ro("has_kernels", &Gpu::has_kernels);
    nb::class_<EmptyLaunches>(module, "EmptyLaunches")
        .def_ro("issue_ns", &EmptyLaunches::issue)
        .def_ro("device_ns", &EmptyLaunches::device)
        .def_ro("done_ns", &EmptyLaunches::done);
    nb::class_<GpuMemory>(module, "GpuMemory")
        .def(nb::init<const Gpu&, std::size_t, const NcclApi*>(), "gpu"_a, "size"_a, "nccl"_a.none(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 4>(), waits)
        .def_prop_ro("size", &GpuMemory::size);
    nb::class_<PinnedMemory>(module, "PinnedMemory")
        .def(nb::init<const Gpu&, std::size_t>(), "gpu"_a, "size"_a, nb::keep_alive<1, 2>(), waits)
        .def_prop_ro("size", &PinnedMemory::size);
    nb::class_<Communicators>(module, "Communicators")
        .def(
            "__init__",
            [](Communicators* self, const NcclApi& nccl, std::vector<const Gpu*> gpus, nb::bytes id, int ranks,
               int first, const ConfigFields& fields) {
                const NcclUniqueId number = id_of(id);
                const nb::gil_scoped_release release;
                new (self) Communicators{nccl, std::move(gpus), number, ranks, first, fields};
            },
            "nccl"_a, "gpus"_a, "unique_id"_a, "ranks"_a, "first"_a, "config"_a, nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 3>())
        .def("split", &Communicators::split, "colors"_a, "keys"_a, nb::keep_alive<0, 1>(), waits)
        .def("register_buffers", &Communicators::register_buffers, "memories"_a, waits)
        .def("register_windows", &Communicators::register_windows, "memories"_a, waits)
        .def("abort", &Communicators::abort, waits)
        .def("words", &Communicators::words, waits);
    nb::class_<Gate>(module, "Gate").def("meet", &Gate::meet, "lead_ns"_a, waits);
    nb::exception<Stalled>(module, "Stalled", PyExc_RuntimeError);
    nb::class_<HeldBench>(module, "NcclBench");
    nb::class_<NcclShape>(module, "NcclShape");
    nb::class_<Rotation>(module, "Rotation")
        .def(nb::init<std::size_t, std::size_t, std::size_t, std::size_t>(), "slots"_a, "send_stride"_a,
             "receive_stride"_a, "scratch_stride"_a);
    nb::class_<Equipment>(module, "Equipment")
        .def(nb::init<std::vector<const Gpu*>, std::vector<const GpuMemory*>, std::vector<const GpuMemory*>,
                      std::vector<const GpuMemory*>, int>(),
             "gpus"_a, "send"_a, "receive"_a, "scratch"_a, "first"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
             nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>());
    nb::class_<NcclExchange>(module, "NcclExchange");
    nb::class_<NcclGraph>(module, "NcclGraph")
        .def(nb::init<const NcclExchange&, std::uint64_t>(), "exchange"_a, "calls"_a, nb::keep_alive<1, 2>(), waits)
        .def(
            "replay",
            [](const NcclGraph& graph, const HeldBench& held, std::size_t count) {
                return graph.replay(held.bench, count);
            },
            "bench"_a, "count"_a, waits);
    nb::class_<GpuLoad>(module, "GpuLoad")
        .def(nb::init<const Gpu&, std::size_t>(), "gpu"_a, "n"_a, nb::keep_alive<1, 2>(), waits)
        .def_prop_ro("product_ns", &GpuLoad::product_time);

    nb::class_<NcclReplay>(module, "NcclReplay")
        .def(nb::init<const GpuLoad&, std::vector<const NcclExchange*>, std::vector<StepMove>>(), "load"_a,
             "exchanges"_a, "moves"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), waits)
        .def(
            "run",
            [](const NcclReplay& replay, const HeldBench& held, std::size_t count) {
                return replay.run(held.bench, count);
            },
            "bench"_a, "count"_a, waits);

    module.def("rate_to_gpu", rate_to_gpu, "gpu"_a, "host"_a, "device"_a, "copies"_a, waits);
    module.def("rate_from_gpu", rate_from_gpu, "gpu"_a, "host"_a, "device"_a, "copies"_a, waits);
    module.def("comes_back", comes_back, "gpu"_a, "host"_a, "device"_a, waits);
    module.attr("GUARD_BYTES") = guard_bytes;
    module.attr("WINDOW_ALIGNMENT") = nccl_window_alignment;
    module.def("mpi_gate", mpi_gate, "mpi"_a, "communicator"_a, "byte"_a, "rank"_a, nb::keep_alive<0, 1>());
    module.def(
        "socket_gate",
        [](std::vector<int> sockets, bool is_first, nanoseconds timeout) -> std::unique_ptr<Gate> {
            return std::make_unique<SocketGate>(std::move(sockets), is_first, timeout);
        },
        "sockets"_a, "is_first"_a, "timeout_ns"_a);
    module.def(
        "empty_launches",
        [](const std::vector<const Gpu*>& gpus, const Gate& gate, std::size_t batches, std::uint64_t launches) {
            return empty_launches(gpus, gate, batches, launches);
        },
        "gpus"_a, "gate"_a, "batches"_a, "launches"_a, waits);
    module.def("no_gate", []() -> std::unique_ptr<Gate> { return std::make_unique<NoGate>(); });
    module.def("nccl_bench", make_bench, "gate"_a, "heartbeats"_a, "step_ns"_a, nb::keep_alive<0, 1>());
    module.def("nccl_shape", shape, "kind"_a, "dtype"_a, "op"_a, "ranks"_a, "root"_a, "count"_a, "in_place"_a, "pair"_a,
               "group"_a, "matrix"_a);
    module.def(
        "nccl_output",
        [](const NcclShape& what, int rank) {
            std::size_t elements = 0;
            for (const Segment& segment : nccl_contract(what, rank).output) {
                elements += segment.count;
            }
            return elements;
        },
        "shape"_a, "rank"_a);
    module.def("nccl_footprint", nccl_footprint_of, "shape"_a, "rank"_a);
    module.def("make_nccl_exchange", make_nccl_exchange, "nccl"_a, "shape"_a, "equipment"_a, "communicators"_a,
               "intra"_a.none(), "rail"_a.none(), "rotation"_a, "shift"_a, nb::keep_alive<0, 1>(),
               nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>(), nb::keep_alive<0, 5>(), nb::keep_alive<0, 6>());
    module.def(
        "nccl_verify",
        [](const NcclExchange& exchange, const HeldBench& held, const Pattern& pattern) {
            return verify(exchange, held.bench, pattern);
        },
        "exchange"_a, "bench"_a, "pattern"_a, waits);
    module.def(
        "nccl_settle", [](const NcclExchange& exchange, const Pattern& pattern) { settle(exchange, pattern); },
        "exchange"_a, "pattern"_a, waits);
    module.def(
        "nccl_once", [](const NcclExchange& exchange, const HeldBench& held) { once(exchange, held.bench); },
        "exchange"_a, "bench"_a, waits);
    module.def(
        "nccl_stream",
        [](const NcclExchange& exchange, const HeldBench& held, std::size_t count, std::uint64_t calls) {
            return stream(exchange, held.bench, count, calls);
        },
        "exchange"_a, "bench"_a, "count"_a, "calls"_a, waits);
    module.def(
        "nccl_isolated",
        [](const NcclExchange& exchange, const HeldBench& held, std::size_t count, const Window& window) {
            return isolated(exchange, held.bench, count, window);
        },
        "exchange"_a, "bench"_a, "count"_a, "window"_a, waits);
    module.def(
        "nccl_loaded",
        [](const NcclExchange& exchange, const HeldBench& held, const std::vector<const GpuLoad*>& loads,
           std::size_t count, std::uint64_t calls,
           nanoseconds expected) { return loaded(exchange, held.bench, loads, count, calls, expected); },
        "exchange"_a, "bench"_a, "loads"_a, "count"_a, "calls"_a, "expected_ns"_a, waits);
}

}  // namespace busbw
