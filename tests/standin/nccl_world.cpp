// Making communicators, splitting them, asking about them and ending them.
#include "nccl_world.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "nccl_group.hpp"

extern "C" {
int cuCtxGetDevice(int* device);
int cuDeviceGetCount(int* count);
int cuDeviceGetPCIBusId(char* bus_id, int bytes, int device);
int cuInit(unsigned flags);
}

namespace standin::nccl {
namespace {

constexpr int no_color = -1;

void check_cuda(int result) { require(result == 0, static_cast<Result>(result)); }

// As the CUDA runtime does it, a thread without a context works on device 0.
int current_device() {
    check_cuda(cuInit(0));
    int device = 0;
    return cuCtxGetDevice(&device) == 0 ? device : 0;
}

std::uint64_t tag_of(const UniqueId& id) {
    std::uint64_t tag = 0;
    std::memcpy(&tag, id.internal.data() + 16, sizeof tag);
    return tag;
}

// What tells one GPU from another among all hosts.
struct Place {
    std::array<char, 256> host{};
    std::array<char, 32> bus_id{};
    bool operator==(const Place&) const = default;
};

Place place_of(int device) {
    Place place;
    if (const char* const id = std::getenv("NCCL_HOSTID")) {
        std::strncpy(place.host.data(), id, place.host.size() - 1);
    } else {
        ::gethostname(place.host.data(), place.host.size() - 1);
    }
    check_cuda(cuDeviceGetPCIBusId(place.bus_id.data(), static_cast<int>(place.bus_id.size()), device));
    return place;
}

template <class T>
void post(const Segment& segment, int rank, const T& value) {
    static_assert(sizeof value <= post_bytes);
    std::memcpy(segment.host_post(rank).data(), &value, sizeof value);
}

template <class T>
T read_post(const Segment& segment, int rank) {
    T value;
    std::memcpy(&value, segment.host_post(rank).data(), sizeof value);
    return value;
}

std::string describe(const Communicator& communicator) {
    char text[160];
    std::snprintf(text, sizeof text, "comm %p rank %d nranks %d cudaDev %d busId %s commId 0x%llx",
                  static_cast<const void*>(&communicator), communicator.rank, communicator.ranks, communicator.device,
                  place_of(communicator.device).bus_id.data(),
                  static_cast<unsigned long long>(tag_of(communicator.id)));
    return text;
}

// Waits for all ranks; two of them on one GPU are refused.
void join(Communicator& communicator) {
    inform(communicator.device, "ncclCommInitRank " + describe(communicator) + " - Init START");
    const auto segment = std::make_shared<Segment>(communicator.id, communicator.ranks);
    communicator.use(segment);
    const Place mine = place_of(communicator.device);
    post(*segment, communicator.rank, mine);
    segment->meet_on_host();
    for (int other = 0; other < communicator.ranks; ++other) {
        if (other != communicator.rank && read_post<Place>(*segment, other) == mine) {
            throw Problem{invalid_usage, "Duplicate GPU detected : rank " + std::to_string(communicator.rank) +
                                             " and rank " + std::to_string(other) + " both on CUDA device " +
                                             mine.bus_id.data()};
        }
    }
    segment->meet_on_host();
    if (communicator.rank == 0) {
        Segment::release(communicator.id);
    }
    communicator.profiler.start(communicator.config.name, tag_of(communicator.id), communicator.rank,
                                communicator.ranks);
    inform(communicator.device, "ncclCommInitRank " + describe(communicator) + " - Init COMPLETE");
}

void create(Communicator** result, int ranks, const UniqueId& id, int rank, const void* config, int device) {
    show_version(rank, device);
    expect(result != nullptr, invalid_argument, "CommInitRank : newcomm argument is NULL");
    expect(ranks >= 1 && ranks <= Segment::most_ranks && rank >= 0 && rank < ranks, invalid_argument,
           "Invalid rank requested");
    const auto communicator = std::make_shared<Communicator>();
    communicator->rank = rank;
    communicator->ranks = ranks;
    communicator->world_rank = rank;
    communicator->device = device;
    communicator->id = id;
    communicator->config = read_config(config);
    *result = handles<Communicator>().add(communicator);
    add_job({communicator, [communicator] { join(*communicator); }});
}

struct Choice {
    int color;
    int key;
    int rank;
    UniqueId id;
};

// Finds this rank's place among the ranks of its colour, whose first makes the new id.
void split(Communicator& parent, Communicator* child, int color, int key) {
    Segment& segment = *parent.segment;
    post(segment, parent.rank, Choice{color, key, parent.rank, {}});
    segment.meet_on_host();
    std::vector<Choice> group;
    for (int rank = 0; rank < parent.ranks; ++rank) {
        const auto choice = read_post<Choice>(segment, rank);
        if (choice.color == color) {
            group.push_back(choice);
        }
    }
    std::ranges::stable_sort(group, {}, &Choice::key);
    segment.meet_on_host();
    const int leader = group.front().rank;
    if (color != no_color && leader == parent.rank) {
        post(segment, parent.rank, Choice{color, key, parent.rank, Segment::create()});
    }
    segment.meet_on_host();
    if (child != nullptr) {
        child->id = read_post<Choice>(segment, leader).id;
        child->ranks = static_cast<int>(group.size());
        child->rank = static_cast<int>(std::ranges::find(group, parent.rank, &Choice::rank) - group.begin());
    }
    segment.meet_on_host();
    if (child != nullptr) {
        join(*child);
    }
}

void destroy(const Communicator* handle, bool waits) {
    const auto communicator = communicator_of(handle);
    if (waits) {
        expect(communicator->state != in_progress, invalid_argument,
               "Attempt to use communicator before the previous operation returned ncclSuccess");
        communicator->drain();
    } else {
        communicator->abort();
    }
    handles<Communicator>().remove(handle);
    communicator->profiler.finish();
}

}  // namespace

void Communicator::begin_work() {
    const std::scoped_lock lock{mutex};
    ++outstanding;
}

void Communicator::end_work() {
    const std::scoped_lock lock{mutex};
    --outstanding;
    changed.notify_all();
}

void Communicator::use(std::shared_ptr<Segment> shared) {
    const std::scoped_lock lock{mutex};
    segment = std::move(shared);
    if (aborted) {
        segment->abort();
    }
}

void Communicator::abort() {
    const std::scoped_lock lock{mutex};
    aborted = true;
    if (segment) {
        segment->abort();
    }
}

void Communicator::drain() {
    std::unique_lock lock{mutex};
    changed.wait(lock, [&] { return outstanding == 0; });
}

std::shared_ptr<Communicator> communicator_of(const Communicator* handle) {
    expect(handle != nullptr, invalid_argument, "comm argument is NULL");
    try {
        return handles<Communicator>().get(handle);
    } catch (const Failure&) {
        throw Problem{invalid_argument, "Error: corrupted comm object detected"};
    }
}

std::shared_ptr<Communicator> ready_communicator(const Communicator* handle) {
    auto communicator = communicator_of(handle);
    expect(communicator->state != in_progress, invalid_argument,
           "Attempt to use communicator before the previous operation returned ncclSuccess");
    expect(communicator->state == ok, communicator->state, "the communicator had an error before");
    expect(!communicator->finalized, invalid_usage, "the communicator was finalized");
    return communicator;
}

STANDIN_API Status ncclGetUniqueId(UniqueId* id) {
    return reply([&] {
        expect(id != nullptr, invalid_argument, "GetUniqueId : out argument is NULL");
        *id = Segment::create();
    });
}

STANDIN_API Status ncclCommInitRankConfig(Communicator** communicator, int ranks, UniqueId id, int rank,
                                          const void* config) {
    return reply([&] { in_group([&] { create(communicator, ranks, id, rank, config, current_device()); }); });
}

STANDIN_API Status ncclCommInitRank(Communicator** communicator, int ranks, UniqueId id, int rank) {
    return ncclCommInitRankConfig(communicator, ranks, id, rank, nullptr);
}

STANDIN_API Status ncclCommInitAll(Communicator** communicators, int count, const int* devices) {
    return reply([&] {
        check_cuda(cuInit(0));
        int present = 0;
        check_cuda(cuDeviceGetCount(&present));
        expect(communicators != nullptr && count > 0, invalid_argument, "Invalid device count requested");
        const UniqueId id = Segment::create();
        in_group([&] {
            for (int rank = 0; rank < count; ++rank) {
                const int device = devices == nullptr ? rank : devices[rank];
                expect(device >= 0 && device < present, unhandled_cuda_error, "invalid device ordinal");
                create(communicators + rank, count, id, rank, nullptr, device);
            }
        });
    });
}

STANDIN_API Status ncclCommSplit(Communicator* handle, int color, int key, Communicator** result, const void* config) {
    return reply([&] {
        in_group([&] {
            const auto parent = ready_communicator(handle);
            expect(result != nullptr, invalid_argument, "CommSplit : newcomm argument is NULL");
            expect(color >= no_color, invalid_argument, "CommSplit : color must be non-negative or NOCOLOR");
            *result = nullptr;
            std::shared_ptr<Communicator> child;
            if (color != no_color) {
                child = std::make_shared<Communicator>();
                child->world_rank = parent->world_rank;
                child->device = parent->device;
                child->config = config == nullptr ? parent->config : read_config(config);
                *result = handles<Communicator>().add(child);
            }
            add_job({child ? child : parent, [=] { split(*parent, child.get(), color, key); }});
        });
    });
}

STANDIN_API Status ncclCommFinalize(Communicator* handle) {
    return reply([&] {
        const auto communicator = ready_communicator(handle);
        communicator->finalized = true;
        communicator->drain();
    });
}

STANDIN_API Status ncclCommDestroy(Communicator* handle) {
    return reply([&] {
        if (handle != nullptr) {
            destroy(handle, true);
        }
    });
}

STANDIN_API Status ncclCommAbort(Communicator* handle) {
    return reply([&] {
        if (handle != nullptr) {
            destroy(handle, false);
        }
    });
}

STANDIN_API long standinCommunicators() { return static_cast<long>(handles<Communicator>().count()); }

// Operations that were made for communicators which are there still.
STANDIN_API long standinOperations() {
    long count = 0;
    for (const auto& communicator : handles<Communicator>().all()) {
        const std::scoped_lock lock{communicator->mutex};
        count += std::ranges::count(communicator->operations, true, &UserOperation::exists);
    }
    return count;
}

STANDIN_API Status ncclCommGetAsyncError(Communicator* handle, Status* error) {
    return reply([&] { *error = communicator_of(handle)->state; });
}

STANDIN_API Status ncclCommCount(const Communicator* handle, int* count) {
    return reply([&] { *count = communicator_of(handle)->ranks; });
}

STANDIN_API Status ncclCommCuDevice(const Communicator* handle, int* device) {
    return reply([&] { *device = communicator_of(handle)->device; });
}

STANDIN_API Status ncclCommUserRank(const Communicator* handle, int* rank) {
    return reply([&] { *rank = communicator_of(handle)->rank; });
}

}  // namespace standin::nccl
