// The two-level alltoall as the loops call it, between threads that stand for ranks: every number of ranks up to 12,
// every way to make equal groups of them, slices of 1 to 40 bytes of every data type's size.
#include <memory>
#include <stdexcept>
#include <thread>

#include "buffer.hpp"
#include "exchange.hpp"
#include "expect.hpp"
#include "simulated.hpp"
#include "thread_mpi.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;
using Handle = pointer_handle;

constexpr std::size_t longest_slice_bytes = 40;

// All communicators of `ranks` ranks in groups of `group`.
struct Grouping {
    Grouping(int all, int members) : ranks{all}, group{members} {
        for (int number = 0; number < groups(); ++number) {
            intra.push_back(std::make_unique<Meeting>(group));
        }
        for (int place = 0; place < group; ++place) {
            rail.push_back(std::make_unique<Meeting>(groups()));
        }
    }
    [[nodiscard]] int groups() const { return ranks / group; }
    [[nodiscard]] Member intra_of(int rank) const {
        return {intra[static_cast<std::size_t>(rank / group)].get(), rank % group};
    }
    [[nodiscard]] Member rail_of(int rank) const {
        return {rail[static_cast<std::size_t>(rank % group)].get(), rank / group};
    }
    [[nodiscard]] std::string text() const {
        return std::to_string(ranks) + " ranks in groups of " + std::to_string(group);
    }
    int ranks;
    int group;
    std::vector<std::unique_ptr<Meeting>> intra;
    std::vector<std::unique_ptr<Meeting>> rail;
};

// One rank's exchange, with what it points to.
class Station {
   public:
    Station(const MpiApi<Handle>& mpi, const Grouping& grouping, int rank, DataType type, int count)
        : pattern_{17, grouping.ranks, type, Operation::sum},
          bytes_{element_bytes(type)},
          intra_{grouping.intra_of(rank)},
          rail_{grouping.rail_of(rank)},
          seat_{rank, grouping.ranks, 0},
          need_{footprint(Kind::alltoall_2dh, seat_, static_cast<std::size_t>(count), false)},
          send_{need_.send * bytes_},
          receive_{need_.receive * bytes_},
          scratch_{need_.send * bytes_} {
        exchange_.mpi = &mpi;
        exchange_.datatype = &bytes_;
        exchange_.kind = Kind::alltoall_2dh;
        exchange_.seat = seat_;
        exchange_.count = count;
        exchange_.in_place = false;
        exchange_.send = send_.data();
        exchange_.receive = receive_.data();
        exchange_.element_bytes = bytes_;
        exchange_.levels = {&intra_, &rail_, grouping.group, scratch_.bytes()};
    }
    Station(const Station&) = delete;
    Station& operator=(const Station&) = delete;

    [[nodiscard]] Exchange<Handle>& exchange() { return exchange_; }

    // Exchanges twice, so that nothing depends on what was in the buffers; returns what is wrong, or nothing.
    [[nodiscard]] std::string exchanged() {
        check_levels(exchange_);
        fill(pattern_, seat_.rank, 0, send_.data(), need_.send);
        const std::vector<std::byte> input(send_.bytes().begin(), send_.bytes().end());
        with_call(exchange_, [](auto&& call) {
            call();
            call();
        });
        const auto count = static_cast<std::size_t>(exchange_.count);
        const Contract rules = contract(Kind::alltoall_2dh, seat_, count, false);
        const Mismatch found = compare(pattern_, receive_.data(), rules.output);
        std::string problem;
        if (found.wrong != 0) {
            problem += std::to_string(found.wrong) + " wrong, element " + std::to_string(found.index) + " is " +
                       found.got + " for " + found.expected + "; ";
        }
        if (!std::ranges::equal(input, send_.bytes())) {
            problem += "the input was overwritten; ";
        }
        if (send_.overrun() || receive_.overrun() || scratch_.overrun()) {
            problem += "a buffer was left; ";
        }
        return problem;
    }

   private:
    Pattern pattern_;
    std::size_t bytes_;
    Member intra_;
    Member rail_;
    Seat seat_;
    Footprint need_;
    Buffer send_;
    Buffer receive_;
    Buffer scratch_;
    Exchange<Handle> exchange_{};
};

std::vector<int> counts_of(DataType type) {
    std::vector<int> counts{1025};
    for (std::size_t bytes = element_bytes(type); bytes <= longest_slice_bytes; bytes += element_bytes(type)) {
        counts.push_back(static_cast<int>(bytes / element_bytes(type)));
    }
    return counts;
}

// What one rank does in a grouping: every count of every type.
void take_part(const MpiApi<Handle>& mpi, const Grouping& grouping, int rank, std::vector<std::string>& problems) {
    for (const DataType type : {DataType::int8, DataType::float16, DataType::float32, DataType::float64}) {
        for (const int count : counts_of(type)) {
            const std::string problem = Station{mpi, grouping, rank, type, count}.exchanged();
            if (!problem.empty()) {
                problems.push_back("rank " + std::to_string(rank) + ", " + std::to_string(count) + " elements of " +
                                   std::string(data_type_names[static_cast<std::size_t>(type)]) + ": " + problem);
            }
        }
    }
}

void check_grouping(const MpiApi<Handle>& mpi, const Grouping& grouping) {
    std::vector<std::vector<std::string>> problems(static_cast<std::size_t>(grouping.ranks));
    {
        std::vector<std::jthread> ranks;
        for (int rank = 0; rank < grouping.ranks; ++rank) {
            ranks.emplace_back([&, rank] { take_part(mpi, grouping, rank, problems[static_cast<std::size_t>(rank)]); });
        }
    }
    for (const std::vector<std::string>& of_rank : problems) {
        for (const std::string& problem : of_rank) {
            expect(false, grouping.text() + ", " + problem);
        }
    }
}

void check_refused(const std::string& what, const MpiApi<Handle>& mpi, const auto& change) {
    const Grouping grouping{6, 2};
    Station station{mpi, grouping, 3, DataType::int8, 5};
    check_levels(station.exchange());
    change(station.exchange());
    expect_throw<std::invalid_argument>([&] { check_levels(station.exchange()); }, what);
}

void check_refusals(const MpiApi<Handle>& mpi) {
    const Grouping other{6, 3};
    Member wrong = other.intra_of(3);
    check_refused("groups that are not equal", mpi, [](auto& x) { x.levels.group = 4; });
    check_refused("groups of nobody", mpi, [](auto& x) { x.levels.group = 0; });
    check_refused("a communicator of another grouping", mpi, [&](auto& x) { x.levels.intra = &wrong; });
    check_refused("the two communicators exchanged", mpi, [](auto& x) { std::swap(x.levels.intra, x.levels.rail); });
    check_refused("a scratch that is too small", mpi,
                  [](auto& x) { x.levels.scratch = x.levels.scratch.first(x.levels.scratch.size() - 1); });
    check_refused("more elements to one rank than MPI counts", mpi, [](auto& x) {
        x.count = 800'000'000;  // three groups of it are above 2^31
        x.levels.scratch = {x.levels.scratch.data(), 6UL * 800'000'000};
    });
    expect_throw<std::invalid_argument>([] { contract(Kind::alltoall_2dh, {0, 4, 0}, 1, true); }, "in place");
}

}  // namespace

int main() {
    const MpiApi<Handle> mpi = thread_mpi();
    for (int ranks = 1; ranks <= 12; ++ranks) {
        for (int group = 1; group <= ranks; ++group) {
            if (ranks % group == 0) {
                check_grouping(mpi, {ranks, group});
            }
        }
    }
    check_refusals(mpi);
    return verdict();
}
