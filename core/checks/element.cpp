// The 16-bit floats against arithmetic on their definition: every value there and back, and every rounding boundary.
#include "element.hpp"

#include <cmath>
#include <limits>

#include "expect.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;

struct Format {
    int fraction_bits;
    int bias;
    std::uint16_t infinity;
};
constexpr Format float16_format{10, 15, 0x7C00};
constexpr Format bfloat16_format{7, 127, 0x7F80};

// The value of a finite pattern without its sign, from the definition in IEEE 754, section 3.4.
double defined_value(std::uint16_t bits, const Format& format) {
    const int exponent = bits >> format.fraction_bits;
    const double fraction = std::ldexp(bits & ((1 << format.fraction_bits) - 1), -format.fraction_bits);
    return exponent == 0 ? std::ldexp(fraction, 1 - format.bias) : std::ldexp(1 + fraction, exponent - format.bias);
}

template <class T>
void check_values(const Format& format) {
    for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
        const T element{static_cast<std::uint16_t>(pattern)};
        const auto magnitude = static_cast<std::uint16_t>(pattern & 0x7FFF);
        const float value = element.value();
        const std::string text = "pattern " + std::to_string(pattern);
        expect(std::signbit(value) == (pattern >= 0x8000) || magnitude > format.infinity, text + " keeps its sign");
        if (magnitude > format.infinity) {
            expect(std::isnan(value) && std::isnan(T::round(value).value()), text + " stays a NaN");
            continue;
        }
        const bool infinite = magnitude == format.infinity;
        const double defined = infinite ? std::numeric_limits<double>::infinity() : defined_value(magnitude, format);
        expect(std::fabs(static_cast<double>(value)) == defined, text + " has its value");
        expect(T::round(value) == element, text + " comes back");
        expect(from_double<T>(to_double(element)) == element, text + " comes back through double");
    }
}

// Rounding is monotonic, so that it is right everywhere when it is right at, just below and just above each midpoint.
template <class T>
void check_rounding(const Format& format) {
    for (std::uint16_t low = 0; low < format.infinity; ++low) {
        const auto high = static_cast<std::uint16_t>(low + 1);
        // Infinity rounds as if it were the next number of the same spacing.
        const double below = defined_value(low, format);
        const double above = defined_value(high, format);
        const auto middle = static_cast<float>((below + above) / 2);
        const std::uint16_t even = low % 2 == 0 ? low : high;
        for (const float sign : {1.0F, -1.0F}) {
            const auto sign_bit = static_cast<std::uint16_t>(sign < 0 ? 0x8000 : 0);
            const auto rounds = [&](float value, std::uint16_t expected) {
                expect(T::round(sign * value).bits == (expected | sign_bit),
                       "the midpoint above pattern " + std::to_string(low) + " rounds right");
            };
            rounds(std::nextafter(middle, 0.0F), low);
            rounds(middle, even);
            rounds(std::nextafter(middle, std::numeric_limits<float>::infinity()), high);
        }
    }
    constexpr float largest = std::numeric_limits<float>::max();
    constexpr float smallest = std::numeric_limits<float>::denorm_min();
    expect(T::round(largest).bits == format.infinity, "the largest float is infinite");
    expect(T::round(-largest).bits == (format.infinity | 0x8000), "the smallest float is minus infinity");
    expect(T::round(smallest).bits == 0 && T::round(-smallest).bits == 0x8000,
           "tiny values round to a zero with a sign");
}

void check_names() {
    for (std::size_t index = 0; index < std::size(data_type_names); ++index) {
        const auto type = by_name<DataType>(data_type_names, data_type_names[index]);
        expect(type == static_cast<DataType>(index), "names stand in order");
    }
    expect(with_type(DataType::bfloat16, [](auto element) { return sizeof element; }) == 2, "bfloat16 has two bytes");
    expect(with_type(DataType::float64, [](auto element) { return sizeof element; }) == 8, "float64 has eight bytes");
    expect_throw<std::invalid_argument>([] { by_name<Operation>(operation_names, "mean"); }, "mean is no operation");
    expect_throw<std::invalid_argument>([] { with_type(static_cast<DataType>(99), [](auto) {}); }, "99 is no type");
}

}  // namespace

int main() {
    check_values<Float16>(float16_format);
    check_values<BFloat16>(bfloat16_format);
    check_rounding<Float16>(float16_format);
    check_rounding<BFloat16>(bfloat16_format);
    check_names();
    return verdict();
}
