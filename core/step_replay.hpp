// A training step replayed: exchanges among groups of ranks in the order of a step, with computing between them, each
// waited for or going on beside it. Units: nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "clock.hpp"
#include "exchange.hpp"
#include "heartbeat.hpp"

namespace busbw {

// compute: for `time`; call: exchange `which`, waited for; begin: the same, which goes on until it is finished.
enum class StepAct : std::uint8_t { compute, call, begin, finish };
inline constexpr std::string_view step_act_names[] = {"compute", "call", "begin", "finish"};

struct StepMove {
    StepAct act;
    std::size_t which;
    nanoseconds time;
};

// Throws std::invalid_argument unless every move is of one of `exchanges`, and each that begins is finished before it
// is called again and before the end.
void check_moves(std::span<const StepMove> moves, std::size_t exchanges);

// One step as a rank saw it. By exchange: from its start until it was done, and what the rank waited for it.
struct StepTimes {
    explicit StepTimes(std::size_t exchanges) : busy(exchanges), exposed(exchanges) {}
    nanoseconds step = 0;
    nanoseconds compute = 0;
    std::vector<nanoseconds> busy;
    std::vector<nanoseconds> exposed;
};

// Repeats a step `count` times over MPI; the ranks of `everyone` meet before each. Computing is a wait by the clock,
// during which what has begun is helped along, as an MPI without a thread of its own needs it; with `yields` the
// processor is given away meanwhile.
template <class Handle>
std::vector<StepTimes> replay(std::span<const Exchange<Handle>* const> exchanges, std::span<const StepMove> moves,
                              const Heartbeat& beat, Handle everyone, std::size_t count, bool yields);

}  // namespace busbw
