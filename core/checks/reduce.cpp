// The reductions given to MPI for 16-bit floats agree, bit for bit, with combining one element at a time.
#include "reduce.hpp"

#include <vector>

#include "expect.hpp"
#include "simulated.hpp"

int main() {
    using namespace busbw;
    using namespace busbw::checks;
    constexpr int count = 3000;
    for (const DataType type : {DataType::float16, DataType::bfloat16}) {
        for (const Operation operation : {Operation::sum, Operation::prod, Operation::min, Operation::max}) {
            const Pattern pattern{3, 2, type, operation};
            std::vector<std::uint16_t> left(count);
            std::vector<std::uint16_t> right(count);
            fill(pattern, 0, 0, reinterpret_cast<std::byte*>(left.data()), count);
            fill(pattern, 1, 0, reinterpret_cast<std::byte*>(right.data()), count);
            std::vector<std::uint16_t> expected = right;
            combine(pattern, reinterpret_cast<const std::byte*>(left.data()),
                    reinterpret_cast<std::byte*>(expected.data()), count);
            int length = count;
            reduction_for(type, operation)(left.data(), right.data(), &length, nullptr);
            expect(right == expected, std::string(operation_names[static_cast<std::size_t>(operation)]));
        }
    }
    expect_throw<std::invalid_argument>([] { reduction_for(DataType::float32, Operation::sum); }, "MPI adds float32");
    return verdict();
}
