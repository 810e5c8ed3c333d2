// The calls that move data: checking their arguments, counting them for faults, and adding them to a group.
#include <cstring>

#include "driver_memory.hpp"
#include "nccl_faults.hpp"
#include "nccl_group.hpp"

namespace standin::nccl {
namespace {

constexpr int operators = 5;

Reduction reduction_of(Communicator& communicator, int operation, int type) {
    if (operation >= 0 && operation < operators) {
        return {.kind = static_cast<Operator>(operation)};
    }
    const std::scoped_lock lock{communicator.mutex};
    const auto index = static_cast<std::size_t>(operation - operators);
    const bool exists =
        operation >= operators && index < communicator.operations.size() && communicator.operations[index].exists;
    expect(exists, invalid_argument, "reduction operation unknown to this communicator");
    const UserOperation& made = communicator.operations[index];
    expect(made.type == static_cast<DataType>(type), invalid_argument,
           "Data type supplied to user-created ncclRedOp_t does not match type given to reduction operation");
    return made.reduction;
}

void check_memory(const void* start, std::size_t bytes, const char* text) {
    expect(bytes == 0 || is_known(start, bytes), invalid_argument, text);
}

struct Call {
    Function function;
    const void* from;
    void* to;
    std::size_t count;
    int type;
    int operation = 0;
    int root = 0;
};

Status enqueue(const Call& call, const Communicator* handle, Stream* stream,
               const char* function = __builtin_FUNCTION()) {
    const auto add = [&] {
        in_group([&] {
            const auto communicator = ready_communicator(handle);
            expect(call.type >= 0 && call.type < data_types, invalid_argument, "invalid type");
            expect(call.root >= 0 && call.root < communicator->ranks, invalid_argument, "invalid root");
            Task task{.function = call.function,
                      .from = static_cast<const std::byte*>(call.from),
                      .to = static_cast<std::byte*>(call.to),
                      .count = call.count,
                      .type = static_cast<DataType>(call.type),
                      .reduction = reduction_of(*communicator, call.operation, call.type),
                      .root = call.root};
            check_memory(call.from, bytes_read(task, communicator->rank, communicator->ranks),
                         "the send buffer is not a device's memory, or is too small");
            check_memory(call.to, bytes_written(task, communicator->rank, communicator->ranks),
                         "the receive buffer is not a device's memory, or is too small");
            task.fault = count_call(communicator->world_rank);
            add_task(communicator, task, stream);
        });
    };
    return reply(add, function);
}

}  // namespace

STANDIN_API Status ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation,
                                 Communicator* communicator, Stream* stream) {
    return enqueue({Function::all_reduce, from, to, count, type, operation}, communicator, stream);
}

STANDIN_API Status ncclReduce(const void* from, void* to, std::size_t count, int type, int operation, int root,
                              Communicator* communicator, Stream* stream) {
    return enqueue({Function::reduce, from, to, count, type, operation, root}, communicator, stream);
}

STANDIN_API Status ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int operation,
                                     Communicator* communicator, Stream* stream) {
    return enqueue({Function::reduce_scatter, from, to, count, type, operation}, communicator, stream);
}

STANDIN_API Status ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root,
                                 Communicator* communicator, Stream* stream) {
    return enqueue({Function::broadcast, from, to, count, type, 0, root}, communicator, stream);
}

STANDIN_API Status ncclBcast(void* buffer, std::size_t count, int type, int root, Communicator* communicator,
                             Stream* stream) {
    return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}

STANDIN_API Status ncclAllGather(const void* from, void* to, std::size_t count, int type, Communicator* communicator,
                                 Stream* stream) {
    return enqueue({Function::all_gather, from, to, count, type}, communicator, stream);
}

STANDIN_API Status ncclSend(const void* from, std::size_t count, int type, int peer, Communicator* communicator,
                            Stream* stream) {
    return enqueue({Function::send, from, nullptr, count, type, 0, peer}, communicator, stream);
}

STANDIN_API Status ncclRecv(void* to, std::size_t count, int type, int peer, Communicator* communicator,
                            Stream* stream) {
    return enqueue({Function::recv, nullptr, to, count, type, 0, peer}, communicator, stream);
}

#if VERSION >= 22803
STANDIN_API Status ncclAlltoAll(const void* from, void* to, std::size_t count, int type, Communicator* communicator,
                                Stream* stream) {
    return enqueue({Function::alltoall, from, to, count, type}, communicator, stream);
}

STANDIN_API Status ncclGather(const void* from, void* to, std::size_t count, int type, int root,
                              Communicator* communicator, Stream* stream) {
    return enqueue({Function::gather, from, to, count, type, 0, root}, communicator, stream);
}

STANDIN_API Status ncclScatter(const void* from, void* to, std::size_t count, int type, int root,
                               Communicator* communicator, Stream* stream) {
    return enqueue({Function::scatter, from, to, count, type, 0, root}, communicator, stream);
}
#endif

STANDIN_API Status ncclRedOpCreatePreMulSum(int* operation, void* scalar, int type, int residence,
                                            Communicator* handle) {
    return reply([&] {
        const auto communicator = ready_communicator(handle);
        expect(operation != nullptr && scalar != nullptr, invalid_argument, "RedOpCreatePreMulSum : argument is NULL");
        expect(type >= 0 && type < data_types && (residence == 0 || residence == 1), invalid_argument,
               "RedOpCreatePreMulSum : invalid type or residence");
        UserOperation made{.type = static_cast<DataType>(type), .reduction = {.kind = Operator::scaled_sum}};
        if (residence == 0) {
            made.reduction.scalar_address = scalar;
        } else {
            std::memcpy(made.reduction.scalar.data(), scalar, bytes_of(made.type));
        }
        const std::scoped_lock lock{communicator->mutex};
        communicator->operations.push_back(made);
        *operation = operators + static_cast<int>(communicator->operations.size()) - 1;
    });
}

STANDIN_API Status ncclRedOpDestroy(int operation, Communicator* handle) {
    return reply([&] {
        const auto communicator = ready_communicator(handle);
        const std::scoped_lock lock{communicator->mutex};
        const auto index = static_cast<std::size_t>(operation - operators);
        expect(
            operation >= operators && index < communicator->operations.size() && communicator->operations[index].exists,
            invalid_argument, "ncclRedOpDestroy : operator unknown to communicator");
        communicator->operations[index].exists = false;
    });
}

}  // namespace standin::nccl
