// Shared memory without a name: an unlinked file that its maker's /proc entry leads to, so that nothing is left behind
// however the ranks end.
#include "nccl_segment.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <random>

namespace standin::nccl {
namespace {

constexpr std::size_t line = 64;

struct Header {
    std::uint64_t tag;
    alignas(line) Barrier host;
    alignas(line) Barrier stream;
};

struct alignas(line) Doorbell {
    std::atomic<std::uint32_t> rings;
};

// What an id says.
struct Address {
    std::array<char, 8> magic;
    std::int32_t process;
    std::int32_t file;
    std::uint64_t tag;
};
constexpr std::array<char, 8> magic = {'S', 'T', 'A', 'N', 'D', 'I', 'N', '\n'};

Address address_in(const UniqueId& id) {
    Address address;
    std::memcpy(&address, id.internal.data(), sizeof address);
    expect(address.magic == magic, invalid_argument, "the unique id was not made by ncclGetUniqueId");
    return address;
}

constexpr std::size_t up_to(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

// Where each part begins, for so many ranks.
struct Layout {
    explicit Layout(int ranks) {
        const auto count = static_cast<std::size_t>(ranks);
        doorbells = up_to(sizeof(Header), line);
        host_posts = doorbells + count * sizeof(Doorbell);
        stream_posts = host_posts + count * post_bytes;
        boxes = up_to(stream_posts + count * post_bytes, 4096);
        slots = up_to(boxes + count * count * sizeof(Box), 4096);
        end = slots + count * Segment::slot_bytes;
    }
    std::size_t doorbells, host_posts, stream_posts, boxes, slots, end;
};

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value) {
    const timespec most{.tv_sec = 0, .tv_nsec = 100'000'000};
    ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &most, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::chrono::seconds patience() { return std::chrono::seconds{environment_number("STANDIN_PATIENCE_S", 120)}; }

}  // namespace

UniqueId Segment::create() {
    const int file = ::memfd_create("nccl-stand-in", MFD_CLOEXEC);
    expect(file >= 0 && ::ftruncate(file, static_cast<off_t>(Layout{1}.end)) == 0, system_error,
           "cannot make shared memory");
    std::random_device random;
    Address address{.magic = magic,
                    .process = ::getpid(),
                    .file = file,
                    .tag = (static_cast<std::uint64_t>(random()) << 32) | random()};
    expect(::pwrite(file, &address.tag, sizeof address.tag, offsetof(Header, tag)) == sizeof address.tag, system_error,
           "cannot write to shared memory");
    UniqueId id{};
    std::memcpy(id.internal.data(), &address, sizeof address);
    return id;
}

void Segment::release(const UniqueId& id) {
    const Address address = address_in(id);
    if (address.process == ::getpid()) {
        ::close(address.file);
    }
}

Segment::Segment(const UniqueId& id, int count) : ranks{count} {
    const Address address = address_in(id);
    const std::string path = "/proc/" + std::to_string(address.process) + "/fd/" + std::to_string(address.file);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    expect(file >= 0, system_error, "socketProgressOpt: Call to recv failed: the process that made the id is gone");
    bytes_ = Layout{ranks}.end;
    std::uint64_t tag = 0;
    const bool right = ::pread(file, &tag, sizeof tag, offsetof(Header, tag)) == sizeof tag && tag == address.tag;
    const bool sized = right && ::ftruncate(file, static_cast<off_t>(bytes_)) == 0;
    void* const start =
        sized ? ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;  // NOLINT
    ::close(file);
    expect(right, invalid_argument, "the unique id belongs to a communicator that exists no more");
    expect(start != MAP_FAILED, system_error, "cannot map shared memory");
    start_ = static_cast<std::byte*>(start);
}

Segment::~Segment() { ::munmap(start_, bytes_); }

void Segment::meet_on_host() { meet(reinterpret_cast<Header*>(start_)->host); }
void Segment::meet_on_stream() { meet(reinterpret_cast<Header*>(start_)->stream); }

std::span<std::byte, post_bytes> Segment::host_post(int rank) const {
    return std::span<std::byte, post_bytes>{at(Layout{ranks}.host_posts + static_cast<std::size_t>(rank) * post_bytes),
                                            post_bytes};
}

std::span<std::byte, post_bytes> Segment::stream_post(int rank) const {
    return std::span<std::byte, post_bytes>{
        at(Layout{ranks}.stream_posts + static_cast<std::size_t>(rank) * post_bytes), post_bytes};
}

std::byte* Segment::slot(int rank) const {
    return at(Layout{ranks}.slots + static_cast<std::size_t>(rank) * slot_bytes);
}

Box& Segment::box(int from, int to) const {
    const auto index = static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(to);
    return reinterpret_cast<Box*>(at(Layout{ranks}.boxes))[index];
}

std::atomic<std::uint32_t>& Segment::doorbell(int rank) const {
    return reinterpret_cast<Doorbell*>(at(Layout{ranks}.doorbells))[rank].rings;
}

void Segment::ring(int rank) const {
    ++doorbell(rank);
    futex_wake_all(doorbell(rank));
}

void Segment::wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value) const {
    for (int tries = 0; tries < 50; ++tries) {
        if (word.load() != value) {
            return;
        }
        ::sched_yield();
    }
    const auto latest = std::chrono::steady_clock::now() + patience();
    while (word.load() == value) {
        if (aborted_) {
            throw Problem{remote_error, "the communicator was aborted"};
        }
        if (std::chrono::steady_clock::now() > latest) {
            throw Problem{remote_error, "a peer did not answer for as long as STANDIN_PATIENCE_S allows"};
        }
        futex_wait(word, value);
    }
}

void Segment::meet(Barrier& barrier) const {
    const std::uint32_t generation = barrier.generation.load();
    if (barrier.arrived.fetch_add(1) + 1 == static_cast<std::uint32_t>(ranks)) {
        barrier.arrived.store(0);
        ++barrier.generation;
        futex_wake_all(barrier.generation);
    } else {
        wait_while(barrier.generation, generation);
    }
}

}  // namespace standin::nccl
