#include "reduce.hpp"

#include <algorithm>

namespace busbw {
namespace {

template <class T, Operation Op>
void combine_all(void* in, void* inout, int* length, void* /*datatype*/) {
    const T* left = static_cast<const T*>(in);
    T* right = static_cast<T*>(inout);
    for (int index = 0; index < *length; ++index) {
        const float a = left[index].value();
        const float b = right[index].value();
        float result = 0;
        if constexpr (Op == Operation::sum) {
            result = a + b;
        } else if constexpr (Op == Operation::prod) {
            result = a * b;
        } else if constexpr (Op == Operation::min) {
            result = std::min(a, b);
        } else {
            result = std::max(a, b);
        }
        right[index] = T::round(result);
    }
}

template <class T>
reduction* choose(Operation operation) {
    switch (operation) {
        case Operation::sum: return combine_all<T, Operation::sum>;
        case Operation::prod: return combine_all<T, Operation::prod>;
        case Operation::min: return combine_all<T, Operation::min>;
        case Operation::max: return combine_all<T, Operation::max>;
        case Operation::avg:
        case Operation::mulsum: break;  // NCCL's
    }
    throw std::invalid_argument("MPI has no such operation");
}

}  // namespace

reduction* reduction_for(DataType type, Operation operation) {
    if (type == DataType::float16) {
        return choose<Float16>(operation);
    }
    if (type == DataType::bfloat16) {
        return choose<BFloat16>(operation);
    }
    throw std::invalid_argument("reductions of this data type belong to MPI");
}

}  // namespace busbw
