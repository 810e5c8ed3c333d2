#include "nccl_verify.hpp"

#include <algorithm>

#include "gpu_check.hpp"

namespace busbw {
namespace {

std::byte* input_of(const NcclExchange& exchange, std::size_t member, const Contract& rules, std::uint64_t call) {
    const NcclExchange::Place at = exchange.place(member, call);
    return rules.input_in_receive ? at.receive + rules.input_at * exchange.element_bytes() : at.send;
}

// Whether all bytes behind the output are still poisoned.
bool is_untouched(const Gpu& gpu, const std::byte* behind) {
    std::vector<std::byte> guard(guard_bytes);
    gpu.use();
    gpu.cuda().check(gpu.cuda().copy_to_host(guard.data(), address_of(behind), guard.size(), gpu.stream()),
                     "cuMemcpyDtoHAsync");
    gpu.wait();
    return std::ranges::all_of(guard, [](std::byte one) { return one == std::byte{0xFF}; });
}

}  // namespace

std::vector<Mismatch> verify(const NcclExchange& exchange, const NcclBench& bench, const Pattern& pattern) {
    const auto& members = exchange.members();
    const std::size_t size = exchange.element_bytes();
    for (std::size_t member = 0; member < members.size(); ++member) {
        const Gpu& gpu = *members[member].gpu;
        const int rank = members[member].rank;
        const Contract rules = nccl_contract(exchange.shape(), rank);
        const NcclFootprint need = nccl_footprint(exchange.shape(), rank);
        poison_on(gpu, exchange.place(member, 0).receive, need.receive * size + guard_bytes);
        if (rules.input_count > 0) {
            fill_on(gpu, pattern, rank, 0, input_of(exchange, member, rules, 0), rules.input_count);
        }
    }
    // Nobody begins before every output is poisoned: a peer may write into it directly.
    bench.gate->meet(0);
    once(exchange, bench);
    std::vector<Mismatch> found;
    for (std::size_t member = 0; member < members.size(); ++member) {
        const Gpu& gpu = *members[member].gpu;
        const Contract rules = nccl_contract(exchange.shape(), members[member].rank);
        const std::size_t end = nccl_footprint(exchange.shape(), members[member].rank).receive;
        const std::byte* const output = exchange.place(member, 0).receive;
        found.push_back(compare_on(gpu, pattern, output, rules.output));
        if (found.back().wrong == 0 && !is_untouched(gpu, output + end * size)) {
            found.back() = {1, end, "something", "nothing: it is behind the end of the result"};
        }
    }
    bench.gate->meet(0);
    return found;
}

void settle(const NcclExchange& exchange, const Pattern& pattern) {
    for (std::size_t member = 0; member < exchange.members().size(); ++member) {
        const Contract rules = nccl_contract(exchange.shape(), exchange.members()[member].rank);
        for (std::uint64_t slot = 0; slot < exchange.slots() && rules.input_count > 0; ++slot) {
            fill_neutral_on(*exchange.members()[member].gpu, pattern, input_of(exchange, member, rules, slot),
                            rules.input_count);
        }
    }
}

}  // namespace busbw
