// Opens the core's contracts to tests, which compare them with a model of their own. Only nccl_shape.cpp is built
// with this.
#include <algorithm>
#include <cstddef>
#include <exception>

#include "nccl_shape.hpp"

extern "C" {

// The index of `kind` in nccl_kind_names, numbers of the shape, and the matrix row by row where there is one. Fills
// `input` with (count, whether in the receive buffer, where) and footprint (send, receive, scratch), `segments` with
// (at, count, source, source_at) each. Returns how many segments there are, -1 when the shape is refused.
long busbw_contract(int kind, int ranks, int root, std::size_t count, int in_place, int left, int right, int group,
                    const std::size_t* matrix, int rank, std::size_t* input, long* segments) {
    try {
        busbw::NcclShape shape{static_cast<busbw::NcclKind>(kind),
                               busbw::DataType::float32,
                               busbw::Operation::sum,
                               ranks,
                               root,
                               count,
                               in_place != 0,
                               {left, right},
                               group,
                               {}};
        if (matrix != nullptr) {
            shape.matrix.assign(matrix, matrix + ranks * ranks);
        }
        const busbw::Contract rules = busbw::nccl_contract(shape, rank);
        const busbw::NcclFootprint need = busbw::nccl_footprint(shape, rank);
        const std::size_t told[] = {
            rules.input_count, rules.input_in_receive ? 1U : 0U, rules.input_at, need.send, need.receive, need.scratch};
        std::copy(std::begin(told), std::end(told), input);
        for (const busbw::Segment& segment : rules.output) {
            *segments++ = static_cast<long>(segment.at);
            *segments++ = static_cast<long>(segment.count);
            *segments++ = segment.source;
            *segments++ = static_cast<long>(segment.source_at);
        }
        return static_cast<long>(rules.output.size());
    } catch (const std::exception&) {
        return -1;
    }
}
}
