// Lines that are known: what is read of them, what is left, and any bytes at all.
#include "known_lines.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "expect.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;

double real(std::uint64_t bits) { return std::bit_cast<double>(bits); }

// A line with a step and a value, `s 12 4.50`.
KnownLines with_steps() {
    KnownLines lines{{"s "}};
    lines.add_table({{CellKind::whole, 0.0}, {CellKind::real, 0.0}, {CellKind::whole, -1.0}});
    lines.learn("s 12 4.50", {{0, {{0, 2, 4}, {1, 5, 9}}}}, false);
    return lines;
}

void reads_what_differs_in_digits_and_leaves_the_rest() {
    KnownLines lines = with_steps();
    const std::string text = "s 34 0.25\nhay\ns x\ns 1 2.00\ns 56 7.00\x1es 57 7.00\n";
    const LeftLines left = lines.read(text, 0, 10);
    expect(text.substr(left.begin, left.end - left.begin) == "s x\ns 1 2.00\n" && left.number == 12, "two are left");
    const LeftLines end = lines.read(text, left.end, 14);
    expect(end.begin == text.size() && end.end == text.size() && end.number == 15, "nothing is left");
    const auto columns = lines.drain(0);
    expect(columns[0] == std::vector<std::uint64_t>{10, 14, 14}, "a state of a line counts none");
    expect(columns[1] == std::vector<std::uint64_t>{34, 56, 57}, "steps");
    expect(real(columns[2][0]) == 0.25 && real(columns[2][1]) == 7.0, "values");
    expect(std::bit_cast<std::int64_t>(columns[3][0]) == -1, "what is not said is filled");
    expect(lines.taken() == 3 && lines.drain(0)[0].empty(), "it is emptied");
}

void reads_each_kind_of_cell() {
    KnownLines lines{{"s"}};
    lines.add_table({{CellKind::real, 0.0}, {CellKind::clock, 0.0}, {CellKind::moment, 0.0}});
    const std::string line = "s -1,234.5e-01 1:02:03 2026-11-21 12:34:56,250";
    lines.learn(line, {{0, {{0, 2, 14}, {1, 15, 22}, {2, 23, 46}}}}, false);
    static_cast<void>(lines.read(line + "\n" + "s -1,234.5e-01 1:02:03 2026-13-21 12:34:56,250\n", 0, 1));
    const auto columns = lines.drain(0);
    expect(real(columns[1][0]) == -123.45, "commas, sign and exponent");
    expect(columns[2][0] == 3723, "a clock");
    expect(std::fmod(real(columns[3][0]), 60.0) == 56.25 && std::isnan(real(columns[3][1])), "a moment, and none");
}

void leaves_numbers_that_are_none_of_json() {
    KnownLines lines{{"s"}};
    lines.add_table({{CellKind::whole, 0.0}});
    lines.learn(R"(s {"a": 12, "b": 0.25e+10})", {{0, {{0, 8, 10}}}}, true);
    expect(lines.read(R"(s {"a": 99, "b": 0.05e+01})", 0, 1).begin == 26, "zeros behind a point");
    expect(lines.read(R"(s {"a": 09, "b": 0.25e+10})", 0, 1).begin == 0, "a zero in front");
}

void leaves_what_does_not_fit() {
    KnownLines lines{{"s"}};
    lines.add_table({{CellKind::real, 0.0}});
    lines.learn("s 1e100", {{0, {{0, 2, 7}}}}, false);
    expect(lines.read("s 9e999", 0, 1).begin == 0 && lines.taken() == 0, "it is no double");
    std::string endless = "s ";
    endless.append(5000, '1');
    lines.learn(endless, {}, false);
    expect(lines.read(endless, 0, 1).begin == 0, "too long");
    expect_throw<std::invalid_argument>([&] { lines.learn("s", {{1, {}}}, false); }, "no such table");
    expect_throw<std::invalid_argument>([&] { lines.learn("s", {{0, {{0, 0, 2}}}}, false); }, "beyond the line");
}

void leaves_digits_that_must_be_zeros() {
    KnownLines lines{{"s"}};
    lines.add_table({{CellKind::whole, 0.0}, {CellKind::zeros, 0.0}});
    lines.learn("s 12.0", {{0, {{0, 2, 4}, {1, 5, 6}}}}, false);
    expect(lines.read("s 34.0", 0, 1).begin == 6 && lines.taken() == 1, "a zero");
    expect(lines.read("s 34.5", 0, 1).begin == 0 && lines.taken() == 1, "another digit");
}

void hands_out_some_kilobytes_at_once() {
    KnownLines lines{{"s"}};
    std::string text;
    while (text.size() < 100000) {
        text += "s hay\n";
    }
    const LeftLines left = lines.read(text, 6, 2);
    expect(left.begin == 6 && left.end > 10000 && left.end < 20000 && left.end % 6 == 0, "not all of it");
}

void forgets_where_there_is_no_room() {
    KnownLines lines = with_steps();
    for (int count = 1; count < 4500; ++count) {
        std::string line = "s";
        line.append(static_cast<std::size_t>(count % 4000), 'x');
        line += count < 4000 ? "" : "y";
        lines.learn(line, {}, false);
    }
    expect(!lines.knows("s 12 4.50") && lines.knows("sxxxy"), "the last ones are known");
}

void takes_out_escapes() {
    expect(without_escapes("a\x1b[31mb\x1b[38;2;1;2;3mc\x1b(Bd\x1b[?25le") == "abcde", "sequences");
    const std::string others = "\x1b[1;\x1b(A\x1b[111111111111111111111m\x1b";
    expect(without_escapes(others) == others, "what is none stays");
}

void takes_any_bytes() {
    std::mt19937 chance{1};
    const std::vector<std::string> pieces{
        "s ", "12", " ", "4.50", "\n", "\x1e", "x", "\x1b[", "m", std::string(1, '\0'), "\xff"};
    for (int round = 0; round < 2000; ++round) {
        std::string text;
        for (int count = 0; count < 40; ++count) {
            text += pieces[chance() % pieces.size()];
        }
        KnownLines lines = with_steps();
        std::uint64_t number = 1;
        for (std::size_t at = 0; at < text.size();) {
            const LeftLines left = lines.read(text, at, number);
            expect(left.begin >= at && left.end >= left.begin && (left.end > at || left.end == text.size()),
                   "it goes on");
            const auto part = std::string_view{text}.substr(left.begin, left.end - left.begin);
            number = left.number + static_cast<std::uint64_t>(std::ranges::count(part, '\n'));
            at = left.end;
        }
        expect(number == 1 + static_cast<std::uint64_t>(std::ranges::count(text, '\n')), "every line is counted");
        static_cast<void>(without_escapes(text));
    }
}

}  // namespace

int main() {
    reads_what_differs_in_digits_and_leaves_the_rest();
    reads_each_kind_of_cell();
    leaves_numbers_that_are_none_of_json();
    leaves_what_does_not_fit();
    leaves_digits_that_must_be_zeros();
    hands_out_some_kilobytes_at_once();
    forgets_where_there_is_no_room();
    takes_out_escapes();
    takes_any_bytes();
    return verdict();
}
