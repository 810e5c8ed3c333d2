// Lines of known texts are read, and the first that is anything else is left where it begins.
#include "pair_lines.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "expect.hpp"

using namespace busbw;
using namespace busbw::checks;

namespace {

PairLines known() {
    PairLines lines{',', 1000};
    lines.know_endpoint("n0", 0, 0);
    lines.know_endpoint("n1", 1, 1);
    lines.know_endpoint("n1:b", 2, 1);
    lines.know_unit("GB/s", 1e9);
    lines.know_unit("", 1e6);
    return lines;
}

void known_lines_are_read() {
    PairRows rows;
    const std::string text = "n0,n1,47.5,GB/s,2\n n1:b , n0\t,1e3\r\nn1,n0,-,GB/s\nn1,n0,.5,,\n";
    expect(known().read(text, 0, rows) == text.size(), "all of it is read");
    expect(rows.senders == std::vector<std::int32_t>({0, 2, 1, 1}) &&
               rows.receivers == std::vector<std::int32_t>({1, 0, 0, 0}) &&
               rows.rounds == std::vector<std::int32_t>({2, 0, 0, 0}),
           "ends and rounds");
    expect(rows.values[0] == 47.5e9 && rows.values[1] == 1e9 && std::isnan(rows.values[2]) && rows.values[3] == 5e5,
           "values in their units");
}

void any_other_line_is_left() {
    const PairLines lines = known();
    for (const char* const line : {"n0,x,1,GB/s\n",
                                   "n0,n1,1,us\n",
                                   "n0,n1,0,GB/s\n",
                                   "n0,n1,-1,GB/s\n",
                                   "n0,n1,inf,GB/s\n",
                                   "n0,n1,nan,GB/s\n",
                                   "n0,n1,0x1,GB/s\n",
                                   "n0,n1,1e400,GB/s\n",
                                   "n0,n1,1e300,GB/s\n",
                                   "n0,n1,1 2,GB/s\n",
                                   "n0,n1,,GB/s\n",
                                   "n1,n1:b,1,GB/s\n",
                                   "n0,n1\n",
                                   "n0,n1,1,GB/s,1,\n",
                                   "n0,n1,1,GB/s,-1\n",
                                   "n0,n1,1,GB/s,1001\n",
                                   "n0,n1,1,GB/s,99999999999999999999\n",
                                   "n0,n1,1,GB/s,1.5\n",
                                   "\n",
                                   "# n0,n1,1\n",
                                   "n0,n1,1,GB/s"}) {
        PairRows rows;
        const std::string first = "n0,n1,1\n";
        expect(lines.read(first + line, 0, rows) == first.size(), line);
        expect(rows.values.size() == 1, line);
        expect(lines.read(first + line, first.size(), rows) == first.size(), line);
    }
}

}  // namespace

int main() {
    known_lines_are_read();
    any_other_line_is_left();
    return verdict();
}
