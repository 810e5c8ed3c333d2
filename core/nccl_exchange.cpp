#include "nccl_exchange.hpp"

#include <bit>
#include <stdexcept>
#include <utility>

#include "nccl_group.hpp"
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

NcclOperation::NcclOperation(const NcclApi& nccl, nccl_comm comm, Operation operation, DataType type) {
    if (operation != Operation::mulsum) {
        number_ = operation_number(operation);
        return;
    }
    with_type(type, [&]<class T>(T) {
        T factor = from_double<T>(mulsum_factor);
        constexpr int on_host = 1;  // ncclScalarHostImmediate: the factor is read before this returns
        nccl.check(nccl.red_op_create_premulsum(&number_, &factor, type_number(type, nccl.version), on_host, comm),
                   "ncclRedOpCreatePreMulSum", comm);
    });
    nccl_ = &nccl;
    comm_ = comm;
}

NcclOperation::NcclOperation(NcclOperation&& other) noexcept
    : nccl_{std::exchange(other.nccl_, nullptr)}, comm_{other.comm_}, number_{other.number_} {}

NcclOperation::~NcclOperation() {
    if (nccl_ != nullptr) {
        nccl_->red_op_destroy(number_, comm_);
    }
}

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
        operations_.push_back(has_operation(shape_.kind)
                                  ? NcclOperation{nccl, member.comm, shape_.operation, shape_.type}
                                  : NcclOperation{});
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
    for (int number = 0; number < steps_; ++number) {
        if (members_.size() == 1) {
            step(0, number, place(0, call));
            continue;
        }
        NcclGroup group{*nccl_};
        for (std::size_t member = 0; member < members_.size(); ++member) {
            group.use(*members_[member].gpu);
            step(member, number, place(member, call));
        }
        group.end();
    }
}

void NcclExchange::step(std::size_t member, int number, const Place& at) const {
    switch (shape_.kind) {
        case NcclKind::alltoallv: alltoallv(members_[member], at); break;
        case NcclKind::hypercube: hypercube(members_[member], number, at); break;
        case NcclKind::alltoall_2dh: two_level(members_[member], number, at); break;
        default: simple(members_[member], at, operations_[member].number()); break;
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
        case NcclKind::gather:
            return gather(member, shape_.in_place && at_root ? at.receive + mine : at.send, at.receive);
        case NcclKind::scatter:
            return scatter(member, from, shape_.in_place && at_root ? at.receive + mine : at.receive);
        case NcclKind::sendrecv:
            return send_and_receive(member, at, (member.rank + 1) % shape_.ranks,
                                    (member.rank + shape_.ranks - 1) % shape_.ranks);
        case NcclKind::sendrecv_pair: {
            const auto [left, right] = shape_.pair;
            if (member.rank != left && member.rank != right) {
                return;
            }
            const int other = member.rank == left ? right : left;
            return send_and_receive(member, at, other, other);
        }
        default: throw std::invalid_argument("unknown collective");
    }
}

void NcclExchange::gather(const NcclMember& member, const std::byte* part, std::byte* whole) const {
    const NcclApi& nccl = *nccl_;
    const nccl_comm comm = member.comm;
    const cuda_stream stream = member.gpu->stream();
    const std::size_t count = shape_.count;
    if (nccl.gather != nullptr) {
        return check(nccl.gather(part, whole, count, type_, shape_.root, comm, stream), "ncclGather", comm);
    }
    NcclGroup group{nccl, comm};
    check(nccl.send(part, count, type_, shape_.root, comm, stream), "ncclSend", comm);
    for (int rank = 0; member.rank == shape_.root && rank < shape_.ranks; ++rank) {
        check(nccl.recv(whole + index(rank) * count * element_bytes_, count, type_, rank, comm, stream), "ncclRecv",
              comm);
    }
    group.end();
}

void NcclExchange::scatter(const NcclMember& member, const std::byte* whole, std::byte* part) const {
    const NcclApi& nccl = *nccl_;
    const nccl_comm comm = member.comm;
    const cuda_stream stream = member.gpu->stream();
    const std::size_t count = shape_.count;
    if (nccl.scatter != nullptr) {
        return check(nccl.scatter(whole, part, count, type_, shape_.root, comm, stream), "ncclScatter", comm);
    }
    NcclGroup group{nccl, comm};
    for (int rank = 0; member.rank == shape_.root && rank < shape_.ranks; ++rank) {
        check(nccl.send(whole + index(rank) * count * element_bytes_, count, type_, rank, comm, stream), "ncclSend",
              comm);
    }
    check(nccl.recv(part, count, type_, shape_.root, comm, stream), "ncclRecv", comm);
    group.end();
}

void NcclExchange::send_and_receive(const NcclMember& member, const Place& at, int to, int from) const {
    const cuda_stream stream = member.gpu->stream();
    NcclGroup group{*nccl_, member.comm};
    check(nccl_->send(at.send, shape_.count, type_, to, member.comm, stream), "ncclSend", member.comm);
    check(nccl_->recv(at.receive, shape_.count, type_, from, member.comm, stream), "ncclRecv", member.comm);
    group.end();
}

void NcclExchange::alltoall(nccl_comm comm, int ranks, const std::byte* from, std::byte* into, std::size_t count,
                            cuda_stream stream) const {
    if (nccl_->alltoall != nullptr) {
        return check(nccl_->alltoall(from, into, count, type_, comm, stream), nccl_->alltoall_name, comm);
    }
    NcclGroup group{*nccl_, comm};
    for (int peer = 0; peer < ranks; ++peer) {
        const std::size_t part = index(peer) * count * element_bytes_;
        check(nccl_->send(from + part, count, type_, peer, comm, stream), "ncclSend", comm);
        check(nccl_->recv(into + part, count, type_, peer, comm, stream), "ncclRecv", comm);
    }
    group.end();
}

void NcclExchange::alltoallv(const NcclMember& member, const Place& at) const {
    const cuda_stream stream = member.gpu->stream();
    std::size_t send_at = 0;
    std::size_t receive_at = 0;
    NcclGroup group{*nccl_, member.comm};
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
    group.end();
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
    NcclGroup group{*nccl_, member.comm};
    check(nccl_->send(at.receive + index(held) * part, count, type_, peer, member.comm, stream), "ncclSend",
          member.comm);
    check(nccl_->recv(at.receive + index(held ^ mask) * part, count, type_, peer, member.comm, stream), "ncclRecv",
          member.comm);
    group.end();
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
