// Contracts and footprints: each kind is played through for 1 to 8 ranks in plain C++, by what the MPI standard says
// about it, and must be accepted; anything left undone must not.
#include "exchange.hpp"

#include <cstring>

#include "buffer.hpp"
#include "expect.hpp"
#include "simulated.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;

// One game: all ranks with their buffers.
struct Table {
    Kind kind;
    int ranks;
    int root;
    std::size_t count;
    bool in_place;
    Pattern pattern;
    std::vector<Buffer> send;
    std::vector<Buffer> receive;

    [[nodiscard]] Seat seat(int rank) const { return {rank, ranks, root}; }
    [[nodiscard]] Contract rules(int rank) const { return contract(kind, seat(rank), count, in_place); }
    [[nodiscard]] std::size_t size() const { return element_bytes(pattern.type); }
    [[nodiscard]] std::byte* sent(int rank, std::size_t element = 0) const {
        return send[static_cast<std::size_t>(rank)].data() + element * size();
    }
    [[nodiscard]] std::byte* received(int rank, std::size_t element = 0) const {
        return receive[static_cast<std::size_t>(rank)].data() + element * size();
    }
    [[nodiscard]] std::string text() const {
        return std::string(kind_names[static_cast<std::size_t>(kind)]) + (in_place ? " in place" : "") + " over " +
               std::to_string(ranks) + ", root " + std::to_string(root) + ", " + std::to_string(count) + " elements";
    }
};

Table lay(Kind kind, int ranks, int root, std::size_t count, bool in_place, const Pattern& pattern) {
    Table table{kind, ranks, root, count, in_place, pattern, {}, {}};
    for (int rank = 0; rank < ranks; ++rank) {
        const Footprint need = footprint(kind, table.seat(rank), count, in_place);
        table.send.emplace_back(need.send * table.size());
        table.receive.emplace_back(need.receive * table.size());
        const Contract rules = table.rules(rank);
        fill(pattern, rank, 0, rules.input_in_receive ? table.received(rank, rules.input_at) : table.sent(rank),
             rules.input_count);
    }
    return table;
}

using Message = std::vector<std::byte>;

Message copy_of(const Table& table, const std::byte* from, std::size_t elements) {
    return {from, from + elements * table.size()};
}

void put(const Message& message, std::byte* into) {
    if (!message.empty()) {
        std::memcpy(into, message.data(), message.size());
    }
}

// Where MPI takes `parts` parts of a rank's input from, and their copy.
std::vector<Message> inputs(const Table& table, std::size_t parts) {
    std::vector<Message> taken;
    for (int rank = 0; rank < table.ranks; ++rank) {
        const bool gathers = table.kind == Kind::all_gather || table.kind == Kind::gather;
        const bool only_root = table.kind == Kind::reduce || table.kind == Kind::gather;
        const bool from_receive = table.in_place && (!only_root || rank == table.root);
        const std::size_t own = gathers ? static_cast<std::size_t>(rank) * table.count : 0;
        taken.push_back(
            copy_of(table, from_receive ? table.received(rank, own) : table.sent(rank), parts * table.count));
    }
    return taken;
}

Message reduction_of(const Table& table, const std::vector<Message>& taken) {
    Message total = taken.front();
    for (std::size_t rank = 1; rank < taken.size(); ++rank) {
        combine(table.pattern, taken[rank].data(), total.data(), total.size() / table.size());
    }
    return total;
}

Message part_of(const Table& table, const Message& message, int part) {
    const std::size_t bytes = table.count * table.size();
    const std::byte* begin = message.data() + static_cast<std::size_t>(part) * bytes;
    return {begin, begin + bytes};
}

void play_reduction(const Table& table) {
    const bool scatters = table.kind == Kind::reduce_scatter;
    const Message total = reduction_of(table, inputs(table, scatters ? static_cast<std::size_t>(table.ranks) : 1));
    for (int rank = 0; rank < table.ranks; ++rank) {
        if (table.kind != Kind::reduce || rank == table.root) {
            put(scatters ? part_of(table, total, rank) : total, table.received(rank));
        }
    }
}

void play_parts(const Table& table) {
    const bool everyone_has_all = table.kind == Kind::alltoall || table.kind == Kind::alltoall_2dh;
    const std::vector<Message> taken = inputs(table, everyone_has_all ? static_cast<std::size_t>(table.ranks) : 1);
    for (int to = 0; to < table.ranks; ++to) {
        if (table.kind == Kind::gather && to != table.root) {
            continue;
        }
        for (int from = 0; from < table.ranks; ++from) {
            const Message& message = taken[static_cast<std::size_t>(from)];
            put(everyone_has_all ? part_of(table, message, to) : message,
                table.received(to, static_cast<std::size_t>(from) * table.count));
        }
    }
}

void play_from_root(const Table& table) {
    const bool scatters = table.kind == Kind::scatter;
    const auto parts = static_cast<std::size_t>(scatters ? table.ranks : 1);
    const Message all =
        copy_of(table, scatters ? table.sent(table.root) : table.received(table.root), parts * table.count);
    for (int rank = 0; rank < table.ranks; ++rank) {
        if (!(table.in_place && rank == table.root)) {
            put(scatters ? part_of(table, all, rank) : all, table.received(rank));
        }
    }
}

void play_pairs(const Table& table) {
    const std::vector<Message> taken = inputs(table, 1);
    for (int rank = 0; rank < table.ranks; ++rank) {
        const Seat seat = table.seat(rank);
        const int from = table.kind == Kind::sendrecv ? seat.previous() : seat.peer();
        if (table.kind != Kind::bandwidth || !seat.starts_pair()) {
            put(taken[static_cast<std::size_t>(from)], table.received(rank));
        }
    }
}

void play(const Table& table) {
    switch (table.kind) {
        case Kind::all_reduce:
        case Kind::reduce:
        case Kind::reduce_scatter: return play_reduction(table);
        case Kind::all_gather:
        case Kind::gather:
        case Kind::alltoall:
        case Kind::alltoall_2dh: return play_parts(table);
        case Kind::broadcast:
        case Kind::scatter: return play_from_root(table);
        case Kind::sendrecv:
        case Kind::latency:
        case Kind::bandwidth:
        case Kind::bibw: return play_pairs(table);
    }
}

std::size_t outputs(const Table& table, int rank) {
    std::size_t elements = 0;
    for (const Segment& segment : table.rules(rank).output) {
        elements += segment.count;
    }
    return elements;
}

void check_played(const Table& table) {
    play(table);
    for (int rank = 0; rank < table.ranks; ++rank) {
        const std::string text = table.text() + ", rank " + std::to_string(rank);
        const Contract rules = table.rules(rank);
        const Mismatch none = compare(table.pattern, table.received(rank), rules.output);
        expect(none.wrong == 0, text + ": " + none.got + " for " + none.expected);
        expect(!table.send[static_cast<std::size_t>(rank)].overrun() &&
                   !table.receive[static_cast<std::size_t>(rank)].overrun(),
               text + ": the footprint is large enough");
        for (const Segment& segment : rules.output) {
            for (const std::size_t index : {segment.at, segment.at + segment.count - 1}) {
                const Message kept = copy_of(table, table.received(rank, index), 1);
                std::memset(table.received(rank, index), 0xFF, table.size());
                const Mismatch found = compare(table.pattern, table.received(rank), rules.output);
                expect(found.wrong == 1 && found.index == index, text + ": one element not written");
                put(kept, table.received(rank, index));
            }
        }
    }
}

// Nobody exchanged anything: every element another rank should have brought is missing.
void check_poison(const Table& table) {
    for (int rank = 0; rank < table.ranks; ++rank) {
        table.receive[static_cast<std::size_t>(rank)].poison();
        const Mismatch found = compare(table.pattern, table.received(rank), table.rules(rank).output);
        expect(found.wrong == outputs(table, rank), table.text() + ", rank " + std::to_string(rank) + ": only poison");
    }
}

void check_unplayed(const Table& table) {
    for (int rank = 0; rank < table.ranks; ++rank) {
        const Contract rules = table.rules(rank);
        const bool alone = table.ranks == 1 && rules.input_in_receive;
        const bool sends = table.kind == Kind::broadcast && rank == table.root;
        const Mismatch found = compare(table.pattern, table.received(rank), rules.output);
        expect(alone || sends || found.wrong > 0 || outputs(table, rank) == 0,
               table.text() + ", rank " + std::to_string(rank) + ": nothing exchanged");
    }
}

bool in_pairs(Kind kind) { return kind == Kind::latency || kind == Kind::bandwidth || kind == Kind::bibw; }

}  // namespace

int main() {
    for (std::size_t index = 0; index < std::size(kind_names); ++index) {
        const auto kind = static_cast<Kind>(index);
        for (const int ranks : {1, 2, 3, 4, 7, 8}) {
            if (in_pairs(kind) && ranks % 2 != 0) {
                continue;
            }
            for (const bool in_place : {false, true}) {
                for (const std::size_t count : {1UL, 4UL, 1025UL}) {
                    for (const int root : {0, ranks - 1}) {
                        // In place, the three patterns between pairs do not differ; the two-level alltoall has no
                        // such form.
                        const bool same = in_place && (in_pairs(kind) || kind == Kind::alltoall_2dh);
                        const Pattern pattern{11, ranks, DataType::float32, Operation::sum};
                        check_unplayed(lay(kind, ranks, root, count, in_place && !same, pattern));
                        check_played(lay(kind, ranks, root, count, in_place && !same, pattern));
                        check_poison(lay(kind, ranks, root, count, in_place && !same, pattern));
                    }
                }
            }
        }
    }
    for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float64}) {
        for (const Operation operation : {Operation::sum, Operation::prod, Operation::min, Operation::max}) {
            check_played(lay(Kind::all_reduce, 5, 0, 33, false, {5, 5, type, operation}));
            check_played(lay(Kind::reduce_scatter, 5, 0, 33, true, {5, 5, type, operation}));
        }
    }
    return verdict();
}
