// Filling and comparing, for each type and operation: what is right passes, one wrong element is found where it stands,
// and rounding is allowed as far as the bound says and no further.
#include "pattern.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "expect.hpp"
#include "simulated.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;

std::string name_of(const Pattern& pattern) {
    return std::string(data_type_names[static_cast<std::size_t>(pattern.type)]) + " " +
           std::string(operation_names[static_cast<std::size_t>(pattern.operation)]) + " over " +
           std::to_string(pattern.ranks);
}

std::vector<std::byte> input_of(const Pattern& pattern, int rank, std::size_t count) {
    std::vector<std::byte> input(count * element_bytes(pattern.type));
    fill(pattern, rank, 0, input.data(), count);
    return input;
}

// The reduction over the first `ranks` ranks.
std::vector<std::byte> reduced_over(const Pattern& pattern, int ranks, std::size_t count) {
    std::vector<std::byte> total;
    for (int rank = 0; rank < ranks; ++rank) {
        std::vector<std::byte> next = input_of(pattern, rank, count);
        prepare(pattern, next.data(), count);
        if (rank == 0) {
            total = next;
        } else {
            combine(pattern, next.data(), total.data(), count);
        }
    }
    finish(pattern, total.data(), count);
    return total;
}

std::vector<std::byte> reduced(const Pattern& pattern, std::size_t count) {
    return reduced_over(pattern, pattern.ranks, count);
}

// Rounding 1/n to 8 bits, and every product with it, leaves no digit to check.
bool bound_says_nothing(const Pattern& pattern) {
    const bool smallest = pattern.type == DataType::float8e4m3 || pattern.type == DataType::float8e5m2;
    const auto ranks = static_cast<unsigned>(pattern.ranks);
    return pattern.operation == Operation::avg && !is_power_of_two(ranks) && (smallest || ranks > 100);
}

// Changes one element to a far different value of its type.
void spoil(std::vector<std::byte>& elements, std::size_t index, std::size_t size) {
    for (std::size_t byte = 0; byte < size; ++byte) {
        elements[index * size + byte] ^= std::byte{0x55};
    }
}

void check_copy(const Pattern& pattern, std::size_t count) {
    const int source = pattern.ranks - 1;
    const std::size_t size = element_bytes(pattern.type);
    const std::vector<std::byte> right = input_of(pattern, source, count);
    const std::vector<Segment> rules{{0, count, source, 0}};
    expect(compare(pattern, right.data(), rules).wrong == 0, name_of(pattern) + " copied");
    expect(input_of(pattern, source, count) == right, name_of(pattern) + " is the same every time");
    for (const std::size_t index : {std::size_t{0}, count / 2, count - 1}) {
        std::vector<std::byte> wrong = right;
        spoil(wrong, index, size);
        const Mismatch found = compare(pattern, wrong.data(), rules);
        expect(found.wrong == 1 && found.index == index && found.got != found.expected,
               name_of(pattern) + " copied wrongly at " + std::to_string(index));
    }
    if (count > 100) {
        const std::vector<Segment> shifted{{0, count - 1, source, 1}};
        expect(compare(pattern, right.data() + size, shifted).wrong == 0,
               name_of(pattern) + " from its second element");
        // Of few values many are equal to their neighbours.
        const bool distinct = (pattern.operation != Operation::prod || is_floating(pattern.type)) && size > 1;
        expect(!distinct || compare(pattern, right.data(), shifted).wrong > (count - 1) / 4,
               name_of(pattern) + " shifted by one");
    }
}

void check_reduction(const Pattern& pattern, std::size_t count) {
    const std::vector<std::byte> right = reduced(pattern, count);
    const std::vector<Segment> rules{{0, count, all_ranks, 0}};
    const Mismatch none = compare(pattern, right.data(), rules);
    expect(none.wrong == 0, name_of(pattern) + " reduced: " + none.got + " for " + none.expected);
    for (const std::size_t index : {std::size_t{0}, count / 2, count - 1}) {
        std::vector<std::byte> wrong = right;
        spoil(wrong, index, element_bytes(pattern.type));
        const Mismatch found = compare(pattern, wrong.data(), rules);
        expect(found.wrong == 1 && found.index == index, name_of(pattern) + " wrong at " + std::to_string(index));
    }
    std::vector<std::byte> poison(right.size(), std::byte{0xFF});
    const std::size_t wrong = compare(pattern, poison.data(), rules).wrong;
    expect(is_floating(pattern.type) ? wrong == count : wrong >= count / 2, name_of(pattern) + " never written");
}

// A sum that lost one rank's share must not pass: the bound is for rounding only.
void check_missing_rank(const Pattern& pattern, std::size_t count) {
    const std::vector<std::byte> total = reduced_over(pattern, pattern.ranks - 1, count);
    const std::size_t wrong = compare(pattern, total.data(), std::vector<Segment>{{0, count, all_ranks, 0}}).wrong;
    expect(wrong > count / 15, name_of(pattern) + " without one rank: " + std::to_string(wrong) + " wrong");
}

template <class T>
void check_bound(const Pattern& pattern) {
    constexpr std::size_t count = 500;
    const std::vector<Segment> rules{{0, count, all_ranks, 0}};
    std::vector<T> within(count);
    std::vector<T> beyond(count);
    for (std::size_t index = 0; index < count; ++index) {
        double total = pattern.operation == Operation::sum ? 0.0 : 1.0;
        double magnitude = 0;
        for (int rank = 0; rank < pattern.ranks; ++rank) {
            T element{};
            std::memcpy(&element, input_of(pattern, rank, count).data() + index * sizeof(T), sizeof(T));
            total = pattern.operation == Operation::sum ? total + to_double(element) : total * to_double(element);
            magnitude += std::fabs(to_double(element));
        }
        const double scale = pattern.operation == Operation::sum ? magnitude : std::fabs(total);
        const double bound = (pattern.ranks - 1) * Traits<T>::epsilon * scale;
        within[index] = from_double<T>(total + bound / 4);
        beyond[index] = from_double<T>(total + bound * 2);
    }
    const auto bytes_of = [](const std::vector<T>& elements) {
        return reinterpret_cast<const std::byte*>(elements.data());
    };
    expect(compare(pattern, bytes_of(within), rules).wrong == 0, name_of(pattern) + " within the bound");
    expect(compare(pattern, bytes_of(beyond), rules).wrong == count, name_of(pattern) + " beyond the bound");
}

void check_neutral(const Pattern& pattern) {
    constexpr std::size_t count = 9;
    std::vector<std::byte> once(count * element_bytes(pattern.type));
    fill_neutral(pattern, once.data(), count);
    prepare(pattern, once.data(), count);
    std::vector<std::byte> twice = once;
    combine(pattern, once.data(), twice.data(), count);
    expect(once == twice, name_of(pattern) + " is neutral");
}

}  // namespace

int main() {
    for (std::size_t type = 0; type < std::size(data_type_names); ++type) {
        for (std::size_t operation = 0; operation < std::size(operation_names); ++operation) {
            for (const int ranks : {1, 2, 3, 8, 130}) {
                const Pattern pattern{42, ranks, static_cast<DataType>(type), static_cast<Operation>(operation)};
                if (bound_says_nothing(pattern)) {
                    continue;
                }
                for (const std::size_t count : {1UL, 1024UL, 2500UL}) {
                    check_copy(pattern, count);
                    check_reduction(pattern, count);
                }
                check_neutral(pattern);
                if (ranks == 3 || ranks == 8) {
                    check_missing_rank(pattern, 2500);
                }
            }
        }
    }
    check_reduction({42, 256, DataType::bfloat16, Operation::sum}, 2500);
    check_reduction({42, 2048, DataType::float16, Operation::sum}, 100);
    for (const Operation operation : {Operation::sum, Operation::prod}) {
        check_bound<float>({7, 4, DataType::float32, operation});
        check_bound<double>({7, 4, DataType::float64, operation});
    }
    return verdict();
}
