// One exchange over NCCL, on the GPUs of this process: what is called, on which buffers. Counts are elements, offsets
// bytes unless named otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu.hpp"
#include "nccl_api.hpp"
#include "nccl_shape.hpp"

namespace busbw {

// One GPU's part: its communicators and its buffers. `intra` and `rail` are for alltoall_2dh, null otherwise.
struct NcclMember {
    const Gpu* gpu;
    nccl_comm comm;
    nccl_comm intra;
    nccl_comm rail;
    int rank;
    std::byte* send;
    std::byte* receive;
    std::byte* scratch;
};

// How calls move through the buffers, so that a message is not found in the cache that the last one left it in: call k
// uses slot k % slots, each so many bytes behind the one before.
struct Rotation {
    std::size_t slots = 1;
    std::size_t send_stride = 0;
    std::size_t receive_stride = 0;
    std::size_t scratch_stride = 0;
};

// What NCCL reduces by: a number of its own, or one that was made for a communicator and goes with this.
class NcclOperation {
   public:
    NcclOperation() = default;  // of exchanges that reduce nothing
    // Throws std::runtime_error with NCCL's words.
    NcclOperation(const NcclApi& nccl, nccl_comm comm, Operation operation, DataType type);
    NcclOperation(NcclOperation&& other) noexcept;
    NcclOperation& operator=(NcclOperation&&) = delete;
    ~NcclOperation();
    [[nodiscard]] nccl_op number() const noexcept { return number_; }

   private:
    const NcclApi* nccl_ = nullptr;  // where it was made
    nccl_comm comm_ = nullptr;
    nccl_op number_ = 0;
};

class NcclExchange {
   public:
    // `shift` moves every buffer by so many elements, to try what is not aligned.
    NcclExchange(const NcclApi& nccl, NcclShape shape, std::vector<NcclMember> members, Rotation rotation,
                 std::size_t shift = 0);
    NcclExchange(const NcclExchange&) = delete;
    NcclExchange& operator=(const NcclExchange&) = delete;

    // Puts call number `call` on the streams of all members, and returns without waiting for it.
    void launch(std::uint64_t call) const;

    [[nodiscard]] const NcclApi& nccl() const noexcept { return *nccl_; }
    [[nodiscard]] const NcclShape& shape() const noexcept { return shape_; }
    [[nodiscard]] const std::vector<NcclMember>& members() const noexcept { return members_; }
    [[nodiscard]] std::size_t element_bytes() const noexcept { return element_bytes_; }
    // The buffers of member `member` in the slot of call `call`.
    struct Place {
        std::byte* send;
        std::byte* receive;
        std::byte* scratch;
    };
    [[nodiscard]] Place place(std::size_t member, std::uint64_t call) const noexcept;
    [[nodiscard]] std::size_t slots() const noexcept { return rotation_.slots; }

   private:
    void step(std::size_t member, int number, const Place& at) const;
    void simple(const NcclMember& member, const Place& at, nccl_op operation) const;
    void gather(const NcclMember& member, const std::byte* part, std::byte* whole) const;
    void scatter(const NcclMember& member, const std::byte* whole, std::byte* part) const;
    void send_and_receive(const NcclMember& member, const Place& at, int to, int from) const;
    void alltoall(nccl_comm comm, int ranks, const std::byte* from, std::byte* into, std::size_t count,
                  cuda_stream stream) const;
    void alltoallv(const NcclMember& member, const Place& at) const;
    void hypercube(const NcclMember& member, int number, const Place& at) const;
    void two_level(const NcclMember& member, int number, const Place& at) const;
    void transpose(const Gpu& gpu, const std::byte* from, std::byte* into, std::size_t rows, std::size_t columns) const;
    void check(nccl_result result, const char* call, nccl_comm comm) const { nccl_->check(result, call, comm); }

    const NcclApi* nccl_;
    NcclShape shape_;
    std::vector<NcclMember> members_;
    Rotation rotation_;
    std::size_t shift_bytes_;
    std::size_t element_bytes_;
    nccl_type type_;
    std::vector<NcclOperation> operations_;
    int steps_;
};

}  // namespace busbw
