// Sends and receives: all of a group move at once, piece by piece, through a box for each pair of ranks.
#include <algorithm>
#include <cstring>
#include <vector>

#include "nccl_task.hpp"

namespace standin::nccl {
namespace {

struct Message {
    const Task* task;
    std::size_t moved = 0;

    [[nodiscard]] bool done() const { return moved == task->bytes(); }
};

bool push(Segment& segment, int rank, Message& message) {
    Box& box = segment.box(rank, message.task->root);
    if (box.full.load() != 0) {
        return false;
    }
    const std::size_t bytes = std::min(Box::room, message.task->bytes() - message.moved);
    std::memcpy(box.piece.data(), message.task->from + message.moved, bytes);
    box.bytes = static_cast<std::uint32_t>(bytes);
    message.moved += bytes;
    box.full.store(1);
    segment.ring(message.task->root);
    return true;
}

bool pull(Segment& segment, int rank, Message& message) {
    Box& box = segment.box(message.task->root, rank);
    if (box.full.load() == 0) {
        return false;
    }
    if (box.bytes > message.task->bytes() - message.moved) {
        throw Problem{invalid_usage, "a peer sends more than this rank receives"};
    }
    std::memcpy(message.task->to + message.moved, box.piece.data(), box.bytes);
    message.moved += box.bytes;
    box.full.store(0);
    segment.ring(message.task->root);
    return true;
}

bool same_way(const Task& left, const Task& right) {
    return left.function == right.function && left.root == right.root;
}

// Moves what can be moved now, in the order of the calls between two ranks and one way.
bool advance(Segment& segment, int rank, std::vector<Message>& messages) {
    bool moved = false;
    for (auto message = messages.begin(); message != messages.end(); ++message) {
        const bool is_next = std::none_of(messages.begin(), message, [&](const Message& before) {
            return !before.done() && same_way(*before.task, *message->task);
        });
        while (!message->done() && is_next) {
            const bool sends = message->task->function == Function::send;
            if (!(sends ? push(segment, rank, *message) : pull(segment, rank, *message))) {
                break;
            }
            moved = true;
        }
    }
    return moved;
}

}  // namespace

void exchange_messages(Segment& segment, int rank, std::span<const Task> messages) {
    std::vector<Message> open;
    for (const Task& task : messages) {
        open.push_back({&task});
    }
    while (!std::all_of(open.begin(), open.end(), [](const Message& each) { return each.done(); })) {
        auto& doorbell = segment.doorbell(rank);
        const std::uint32_t rings = doorbell.load();
        if (!advance(segment, rank, open)) {
            segment.wait_while(doorbell, rings);
        }
    }
}

}  // namespace standin::nccl
