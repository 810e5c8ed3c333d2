// As much of an MPI as the two-level alltoall calls, between threads of one process: more ranks, and more ways to group
// them, than processes could be started for. A communicator's handle points to the member that holds it.
#pragma once

#include <barrier>
#include <cstddef>
#include <cstring>
#include <vector>

#include "mpi_api.hpp"

namespace busbw::checks {

// Where the ranks of one communicator meet.
class Meeting {
   public:
    explicit Meeting(int ranks) : ranks_{ranks}, offered_(static_cast<std::size_t>(ranks)), barrier_{ranks} {}

    [[nodiscard]] int ranks() const { return ranks_; }
    void alltoall(int rank, const std::byte* from, std::byte* into, std::size_t part_bytes) {
        offered_[static_cast<std::size_t>(rank)] = from;
        barrier_.arrive_and_wait();
        for (std::size_t source = 0; source < offered_.size(); ++source) {
            std::memcpy(into + source * part_bytes, offered_[source] + static_cast<std::size_t>(rank) * part_bytes,
                        part_bytes);
        }
        barrier_.arrive_and_wait();
    }

   private:
    int ranks_;
    std::vector<const std::byte*> offered_;
    std::barrier<> barrier_;
};

struct Member {
    Meeting* meeting;
    int rank;
};

// A data type's handle points to its bytes.
inline int thread_alltoall(const void* from, int count, pointer_handle type, void* into, int, pointer_handle,
                           pointer_handle communicator) {
    const auto& member = *static_cast<const Member*>(communicator);
    member.meeting->alltoall(member.rank, static_cast<const std::byte*>(from), static_cast<std::byte*>(into),
                             static_cast<std::size_t>(count) * *static_cast<const std::size_t*>(type));
    return 0;
}

inline int thread_rank(pointer_handle communicator, int* rank) {
    *rank = static_cast<const Member*>(communicator)->rank;
    return 0;
}

inline int thread_size(pointer_handle communicator, int* ranks) {
    *ranks = static_cast<const Member*>(communicator)->meeting->ranks();
    return 0;
}

inline MpiApi<pointer_handle> thread_mpi() {
    MpiApi<pointer_handle> mpi{};
    mpi.alltoall = thread_alltoall;
    mpi.comm_rank = thread_rank;
    mpi.comm_size = thread_size;
    return mpi;
}

}  // namespace busbw::checks
