// The measuring loops over a real Open MPI, opened as the ranks do it: mpirun -n N check_loops_over_mpi LIBMPI.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>

#include "buffer.hpp"
#include "clock_sync.hpp"
#include "expect.hpp"
#include "loops.hpp"
#include "reduce.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;
using Handle = pointer_handle;

// What mpi4py gives to busbw: the library, loaded and started, and Open MPI's handles, which are addresses in it.
class Library {
   public:
    explicit Library(const char* path) : path_{path}, library_{dlopen(path, RTLD_NOW | RTLD_GLOBAL)} {
        if (library_ == nullptr) {
            throw std::runtime_error(dlerror());
        }
        if (reinterpret_cast<int (*)(int*, char***)>(handle("MPI_Init"))(nullptr, nullptr) != 0) {
            throw std::runtime_error("MPI_Init failed");
        }
    }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    ~Library() { reinterpret_cast<int (*)()>(dlsym(library_, "MPI_Finalize"))(); }

    [[nodiscard]] Handle handle(const char* name) const {
        void* symbol = dlsym(library_, name);
        if (symbol == nullptr) {
            throw std::runtime_error(std::string("no ") + name);
        }
        return symbol;
    }
    [[nodiscard]] const std::string& path() const { return path_; }

   private:
    std::string path_;
    void* library_;
};

struct World {
    MpiApi<Handle> mpi;
    Handle communicator;
    Handle byte;
    int (*split)(Handle, int, int, Handle*);
    int rank = 0;
    int ranks = 0;
};

World enter(const Library& library) {
    World world{find_mpi<Handle>(library.path()), library.handle("ompi_mpi_comm_world"),
                library.handle("ompi_mpi_byte"),
                reinterpret_cast<int (*)(Handle, int, int, Handle*)>(library.handle("MPI_Comm_split"))};
    check(world.mpi, world.mpi.comm_rank(world.communicator, &world.rank), "MPI_Comm_rank");
    check(world.mpi, world.mpi.comm_size(world.communicator, &world.ranks), "MPI_Comm_size");
    return world;
}

struct Elements {
    DataType type;
    std::size_t bytes;
    Handle datatype;
    Handle operation;
};

struct Case {
    Kind kind;
    int root;
    int count;
    bool in_place;
    Levels<Handle> levels{};
};

std::string text_of(const World& world, const Case& point) {
    return std::string(kind_names[static_cast<std::size_t>(point.kind)]) + (point.in_place ? " in place" : "") +
           ", root " + std::to_string(point.root) + ", groups of " + std::to_string(point.levels.group) + ", " +
           std::to_string(point.count) + " elements, rank " + std::to_string(world.rank);
}

Exchange<Handle> exchange_of(const World& world, const Elements& elements, const Case& point, const Buffer& send,
                             const Buffer& receive, const Buffer& scratch) {
    constexpr int window = 8;
    constexpr std::size_t slots = 2UL * window;
    const Levels<Handle>& levels = point.levels;
    return {.mpi = &world.mpi,
            .communicator = world.communicator,
            .datatype = elements.datatype,
            .operation = elements.operation,
            .byte = world.byte,
            .in_place_mark = reinterpret_cast<void*>(1),  // MPI_IN_PLACE of Open MPI
            .kind = point.kind,
            .seat = {world.rank, world.ranks, point.root},
            .count = point.count,
            .in_place = point.in_place,
            .window = window,
            .send = send.data(),
            .receive = receive.data(),
            .element_bytes = elements.bytes,
            .requests = std::vector<Handle>(slots),
            .statuses = std::vector<status_space>(slots),
            .levels = {levels.intra, levels.rail, levels.group, scratch.bytes()}};
}

void check_samples(const Samples& samples, std::size_t count, const std::string& text) {
    expect(samples.duration.size() == count, text + ": every sample is kept");
    expect(std::ranges::all_of(samples.duration, [](nanoseconds time) { return time > 0; }), text + ": takes time");
}

// The exchange verified once, then repeated by both loops.
void check_case(const World& world, const Elements& elements, const Case& point, const Heartbeat& beat,
                const ClockOffset& clock) {
    const Seat seat{world.rank, world.ranks, point.root};
    const auto count = static_cast<std::size_t>(point.count);
    const std::string text = text_of(world, point);
    const Footprint need = footprint(point.kind, seat, count, point.in_place);
    const Buffer send{need.send * elements.bytes};
    const Buffer receive{need.receive * elements.bytes};
    const Buffer scratch{point.kind == Kind::alltoall_2dh ? send.size() : 0};
    const Exchange<Handle> exchange = exchange_of(world, elements, point, send, receive, scratch);
    const Contract rules = contract(point.kind, seat, count, point.in_place);
    const Pattern pattern{99, world.ranks, elements.type, Operation::sum};
    std::byte* input = rules.input_in_receive ? receive.data() + rules.input_at * elements.bytes : send.data();

    fill(pattern, world.rank, 0, input, rules.input_count);
    const std::vector<std::byte> sent(send.bytes().begin(), send.bytes().end());
    with_call(exchange, [](auto&& call) { call(); });
    expect(std::ranges::equal(sent, send.bytes()), text + ": the input stays");
    const Mismatch none = compare(pattern, receive.data(), rules.output);
    expect(none.wrong == 0, text + ": " + std::to_string(none.index) + " is " + none.got + " for " + none.expected);

    fill_neutral(pattern, input, rules.input_count);
    check_samples(stream(exchange, beat, 3, 2), 3, text + " in a stream");
    const Samples alone = isolated(exchange, beat, 3, {clock.offset, 20'000, true});
    check_samples(alone, 3, text + " alone");
    for (std::size_t sample = 0; sample < alone.lateness.size(); ++sample) {
        expect(alone.lateness[sample] >= 0 && alone.lateness[sample] <= alone.duration[sample], text + ": lateness");
    }
    expect(!send.overrun() && !receive.overrun() && !scratch.overrun(), text + ": stays in its buffers");
}

bool in_pairs(Kind kind) { return kind == Kind::latency || kind == Kind::bandwidth || kind == Kind::bibw; }

void check_kinds(const World& world, const Elements& elements, const Heartbeat& beat, const ClockOffset& clock) {
    for (std::size_t index = 0; index < std::size(kind_names); ++index) {
        const auto kind = static_cast<Kind>(index);
        if ((in_pairs(kind) && world.ranks % 2 != 0) || kind == Kind::alltoall_2dh) {
            continue;
        }
        for (const bool in_place : {false, true}) {
            if (in_place && (in_pairs(kind) || kind == Kind::broadcast)) {
                continue;
            }
            for (const int count : {1, 1000, 70'000}) {
                check_case(world, elements, {kind, 0, count, in_place}, beat, clock);
                check_case(world, elements, {kind, world.ranks - 1, count, in_place}, beat, clock);
            }
        }
    }
}

// Every way to make equal groups, with slices that are no multiple of anything.
void check_two_levels(const World& world, const Library& library, const Heartbeat& beat, const ClockOffset& clock) {
    const Elements bytes{DataType::int8, 1, library.handle("ompi_mpi_int8_t"), library.handle("ompi_mpi_op_sum")};
    for (int group = 1; group <= world.ranks; ++group) {
        if (world.ranks % group != 0) {
            continue;
        }
        Levels<Handle> levels{.group = group};
        const int place = world.rank % group;
        const int number = world.rank / group;
        check(world.mpi, world.split(world.communicator, number, place, &levels.intra), "MPI_Comm_split");
        check(world.mpi, world.split(world.communicator, place, number, &levels.rail), "MPI_Comm_split");
        for (const int count : {1, 7, 40, 1001, 70'001}) {
            check_case(world, bytes, {Kind::alltoall_2dh, 0, count, false, levels}, beat, clock);
        }
    }
}

// MPI calls the core's function for a type it does not know.
void check_own_operation(const World& world, const Library& library, const Heartbeat& beat, const ClockOffset& clock) {
    for (const DataType type : {DataType::float16, DataType::bfloat16}) {
        Handle operation{};
        check(world.mpi, world.mpi.op_create(reduction_for(type, Operation::sum), 1, &operation), "MPI_Op_create");
        const Elements elements{type, 2, library.handle("ompi_mpi_uint16_t"), operation};
        for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::reduce}) {
            check_case(world, elements, {kind, 0, 5000, false}, beat, clock);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: mpirun -n N %s LIBMPI\n", argv[0]);
        return EXIT_FAILURE;
    }
    const Library library{argv[1]};
    const World world = enter(library);
    expect(world.mpi.library.find("libmpi") != std::string::npos, "found in " + world.mpi.library);
    alignas(8) std::array<std::byte, Heartbeat::bytes> memory{};
    const Heartbeat beat{memory};
    const ClockOffset clock =
        synchronise(Peers<Handle>{&world.mpi, world.communicator, world.byte, world.rank, world.ranks}, 50);
    // One host, one clock: the truth is 0.
    expect(std::abs(clock.offset) <= clock.error, "offset " + std::to_string(clock.offset));
    expect((world.rank == 0) == (clock.error == 0), "rank 0 alone is without error");
    const Elements floats{DataType::float32, 4, library.handle("ompi_mpi_float"), library.handle("ompi_mpi_op_sum")};
    check_kinds(world, floats, beat, clock);
    check_two_levels(world, library, beat, clock);
    check_own_operation(world, library, beat, clock);
    return verdict();
}
