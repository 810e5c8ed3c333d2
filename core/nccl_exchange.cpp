#include "nccl_exchange.hpp"

#include <bit>
#include <stdexcept>

#include "portable/kernel_arguments.hpp"

namespace busbw {
namespace {

std::size_t index(int number) { return static_cast<std::size_t>(number); }

int steps_of(const NcclShape& shape) {
    if (shape.kind == NcclKind::hypercube) {
        return 1 + std::countr_zero(static_cast<unsigned>(shape.ranks));
    }
    return shape.kind == NcclKind::alltoall_2dh ? 4 : 1;
}

bool has_operation(NcclKind kind) {
    return kind == NcclKind::all_reduce || kind == NcclKind::reduce_scatter || kind == NcclKind::reduce;
}

}  // namespace

NcclExchange::NcclExchange(const NcclApi& nccl, NcclShape shape, std::vector<NcclMember> members, Rotation rotation,
                           std::size_t shift)
    : nccl_{&nccl},
      shape_{std::move(shape)},
      members_{std::move(members)},
      rotation_{rotation},
      shift_bytes_{0},
      element_bytes_{with_type(shape_.type, [](auto element) { return sizeof element; })},
      type_{type_number(shape_.type, nccl.version)},
      steps_{steps_of(shape_)} {
    check_shape(shape_);
    if (type_ < 0) {
        throw std::invalid_argument("this NCCL has no such data type");
    }
    shift_bytes_ = shift * element_bytes_;
    for (const NcclMember& member : members_) {
        nccl_op operation = 0;
        if (shape_.operation == Operation::mulsum && has_operation(shape_.kind)) {
            with_type(shape_.type, [&]<class T>(T) {
                T factor = from_double<T>(mulsum_factor);
                constexpr int on_host = 1;  // ncclScalarHostImmediate: the factor is read before this returns
                nccl.check(nccl.red_op_create_premulsum(&operation, &factor, type_, on_host, member.comm),
                           "ncclRedOpCreatePreMulSum", member.comm);
            });
        } else if (has_operation(shape_.kind)) {
            operation = operation_number(shape_.operation);
        }
        operations_.push_back(operation);
    }
}

NcclExchange::~NcclExchange() {
    if (shape_.operation == Operation::mulsum && has_operation(shape_.kind)) {
        for (std::size_t member = 0; member < members_.size(); ++member) {
            nccl_->red_op_destroy(operations_[member], members_[member].comm);
        }
    }
}

NcclExchange::Place NcclExchange::place(std::size_t member, std::uint64_t call) const noexcept {
    const NcclMember& one = members_[member];
    const std::size_t slot = call % rotation_.slots;
    return {one.send + slot * rotation_.send_stride + shift_bytes_,
            one.receive + slot * rotation_.receive_stride + shift_bytes_,
            one.scratch + slot * rotation_.scratch_stride + shift_bytes_};
}

void NcclExchange::launch(std::uint64_t call) const {
    const bool together = members_.size() > 1;
    for (int number = 0; number < steps_; ++number) {
        if (together) {
            check(nccl_->group_start(), "ncclGroupStart", nullptr);
        }
        for (std::size_t member = 0; member < members_.size(); ++member) {
            if (together) {
                members_[member].gpu->use();
            }
            step(member, number, place(member, call));
        }
        if (together) {
            check(nccl_->group_end(), "ncclGroupEnd", nullptr);
        }
    }
}

void NcclExchange::step(std::size_t member, int number, const Place& at) const {
    switch (shape_.kind) {
        case NcclKind::alltoallv: alltoallv(members_[member], at); break;
        case NcclKind::hypercube: hypercube(members_[member], number, at); break;
        case NcclKind::alltoall_2dh: two_level(members_[member], number, at); break;
        default: simple(members_[member], at, operations_[member]); break;
    }
}

void NcclExchange::simple(const NcclMember& member, const Place& at, nccl_op operation) const {
    const NcclApi& nccl = *nccl_;
    const nccl_comm comm = member.comm;
    const cuda_stream stream = member.gpu->stream();
    const std::size_t count = shape_.count;
    const std::size_t mine = index(member.rank) * count * element_bytes_;
    const bool at_root = member.rank == shape_.root;
    const std::byte* const from = shape_.in_place ? at.receive : at.send;
    switch (shape_.kind) {
        case NcclKind::all_reduce:
            return check(nccl.all_reduce(from, at.receive, count, type_, operation, comm, stream), "ncclAllReduce",
                         comm);
        case NcclKind::all_gather:
            return check(
                nccl.all_gather(shape_.in_place ? at.receive + mine : at.send, at.receive, count, type_, comm, stream),
                "ncclAllGather", comm);
        case NcclKind::reduce_scatter:
            return check(nccl.reduce_scatter(from, shape_.in_place ? at.receive + mine : at.receive, count, type_,
                                             operation, comm, stream),
                         "ncclReduceScatter", comm);
        case NcclKind::broadcast:
            return check(nccl.broadcast(from, at.receive, count, type_, shape_.root, comm, stream), "ncclBroadcast",
                         comm);
        case NcclKind::reduce:
            return check(nccl.reduce(from, at.receive, count, type_, operation, shape_.root, comm, stream),
                         "ncclReduce", comm);
        case NcclKind::alltoall: return alltoall(comm, shape_.ranks, at.send, at.receive, count, stream);
        case NcclKind::gather: {
            const std::byte* const part = shape_.in_place && at_root ? at.receive + mine : at.send;
            if (nccl.gather != nullptr) {
                return check(nccl.gather(part, at.receive, count, type_, shape_.root, comm, stream), "ncclGather",
                             comm);
            }
            check(nccl.group_start(), "ncclGroupStart", comm);
            check(nccl.send(part, count, type_, shape_.root, comm, stream), "ncclSend", comm);
            for (int rank = 0; at_root && rank < shape_.ranks; ++rank) {
                check(nccl.recv(at.receive + index(rank) * count * element_bytes_, count, type_, rank, comm, stream),
                      "ncclRecv", comm);
            }
            return check(nccl.group_end(), "ncclGroupEnd", comm);
        }
        case NcclKind::scatter: {
            std::byte* const part = shape_.in_place && at_root ? at.receive + mine : at.receive;
            if (nccl.scatter != nullptr) {
                return check(nccl.scatter(from, part, count, type_, shape_.root, comm, stream), "ncclScatter", comm);
            }
            check(nccl.group_start(), "ncclGroupStart", comm);
            for (int rank = 0; at_root && rank < shape_.ranks; ++rank) {
                check(nccl.send(from + index(rank) * count * element_bytes_, count, type_, rank, comm, stream),
                      "ncclSend", comm);
            }
            check(nccl.recv(part, count, type_, shape_.root, comm, stream), "ncclRecv", comm);
            return check(nccl.group_end(), "ncclGroupEnd", comm);
        }
        case NcclKind::sendrecv:
        case NcclKind::sendrecv_pair: {
            const auto [left, right] = shape_.pair;
            const bool paired = shape_.kind == NcclKind::sendrecv_pair;
            if (paired && member.rank != left && member.rank != right) {
                return;
            }
            const int other = member.rank == left ? right : left;
            const int to = paired ? other : (member.rank + 1) % shape_.ranks;
            const int source = paired ? other : (member.rank + shape_.ranks - 1) % shape_.ranks;
            check(nccl.group_start(), "ncclGroupStart", comm);
            check(nccl.send(at.send, count, type_, to, comm, stream), "ncclSend", comm);
            check(nccl.recv(at.receive, count, type_, source, comm, stream), "ncclRecv", comm);
            return check(nccl.group_end(), "ncclGroupEnd", comm);
        }
        default: throw std::invalid_argument("unknown collective");
    }
}

void NcclExchange::alltoall(nccl_comm comm, int ranks, const std::byte* from, std::byte* into, std::size_t count,
                            cuda_stream stream) const {
    if (nccl_->alltoall != nullptr) {
        return check(nccl_->alltoall(from, into, count, type_, comm, stream), "ncclAlltoAll", comm);
    }
    check(nccl_->group_start(), "ncclGroupStart", comm);
    for (int peer = 0; peer < ranks; ++peer) {
        const std::size_t part = index(peer) * count * element_bytes_;
        check(nccl_->send(from + part, count, type_, peer, comm, stream), "ncclSend", comm);
        check(nccl_->recv(into + part, count, type_, peer, comm, stream), "ncclRecv", comm);
    }
    check(nccl_->group_end(), "ncclGroupEnd", comm);
}

void NcclExchange::alltoallv(const NcclMember& member, const Place& at) const {
    const cuda_stream stream = member.gpu->stream();
    std::size_t send_at = 0;
    std::size_t receive_at = 0;
    check(nccl_->group_start(), "ncclGroupStart", member.comm);
    for (int peer = 0; peer < shape_.ranks; ++peer) {
        const std::size_t out = sent(shape_, member.rank, peer);
        const std::size_t in = sent(shape_, peer, member.rank);
        if (out > 0) {
            check(nccl_->send(at.send + send_at * element_bytes_, out, type_, peer, member.comm, stream), "ncclSend",
                  member.comm);
        }
        if (in > 0) {
            check(nccl_->recv(at.receive + receive_at * element_bytes_, in, type_, peer, member.comm, stream),
                  "ncclRecv", member.comm);
        }
        send_at += out;
        receive_at += in;
    }
    check(nccl_->group_end(), "ncclGroupEnd", member.comm);
}

// Step 0 puts the own part in its place; step k exchanges the 2^(k-1) parts held so far with the rank that differs in
// bit k-1.
void NcclExchange::hypercube(const NcclMember& member, int number, const Place& at) const {
    const cuda_stream stream = member.gpu->stream();
    const std::size_t part = shape_.count * element_bytes_;
    if (number == 0) {
        if (!shape_.in_place) {
            const CudaApi& cuda = member.gpu->cuda();
            cuda.check(cuda.copy_on_device(address_of(at.receive + index(member.rank) * part), address_of(at.send),
                                           part, stream),
                       "cuMemcpyDtoDAsync");
        }
        return;
    }
    const int mask = 1 << (number - 1);
    const int held = member.rank & ~(mask - 1);
    const int peer = member.rank ^ mask;
    const std::size_t count = shape_.count * index(mask);
    check(nccl_->group_start(), "ncclGroupStart", member.comm);
    check(nccl_->send(at.receive + index(held) * part, count, type_, peer, member.comm, stream), "ncclSend",
          member.comm);
    check(nccl_->recv(at.receive + index(held ^ mask) * part, count, type_, peer, member.comm, stream), "ncclRecv",
          member.comm);
    check(nccl_->group_end(), "ncclGroupEnd", member.comm);
}

// Tutel's two-level alltoall (Hwang et al., MLSys 2023, appendix A): slices for one place of every node are brought
// together, exchanged within the node, brought together by node, and exchanged between the nodes.
void NcclExchange::two_level(const NcclMember& member, int number, const Place& at) const {
    const auto group = index(shape_.group);
    const std::size_t nodes = index(shape_.ranks) / group;
    const cuda_stream stream = member.gpu->stream();
    switch (number) {
        case 0: return transpose(*member.gpu, at.send, at.scratch, nodes, group);
        case 1: return alltoall(member.intra, shape_.group, at.scratch, at.receive, shape_.count * nodes, stream);
        case 2: return transpose(*member.gpu, at.receive, at.scratch, group, nodes);
        default:
            return alltoall(member.rail, static_cast<int>(nodes), at.scratch, at.receive, shape_.count * group, stream);
    }
}

void NcclExchange::transpose(const Gpu& gpu, const std::byte* from, std::byte* into, std::size_t rows,
                             std::size_t columns) const {
    const std::size_t slice = shape_.count * element_bytes_;
    const auto ends = reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(into) | slice;
    if (gpu.has_kernels()) {
        const bool words = ends % sizeof(std::uint64_t) == 0;
        const std::size_t items = rows * columns * slice / (words ? sizeof(std::uint64_t) : 1);
        gpu.launch(words ? "transpose_words" : "transpose_bytes", TransposeArguments{from, into, slice, rows, columns},
                   items, gpu.stream());
        return;
    }
    for (std::size_t column = 0; column < columns; ++column) {
        const CudaCopy2D copy{.source_x = 0,
                              .source_y = 0,
                              .source_type = cuda_memory_device,
                              .source_host = nullptr,
                              .source = address_of(from + column * slice),
                              .source_array = nullptr,
                              .source_pitch = columns * slice,
                              .target_x = 0,
                              .target_y = 0,
                              .target_type = cuda_memory_device,
                              .target_host = nullptr,
                              .target = address_of(into + column * rows * slice),
                              .target_array = nullptr,
                              .target_pitch = slice,
                              .width = slice,
                              .height = rows};
        gpu.cuda().check(gpu.cuda().copy_2d(&copy, gpu.stream()), "cuMemcpy2DAsync");
    }
}

}  // namespace busbw
