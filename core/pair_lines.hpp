// Lines `sender,receiver,value[,unit][,round]` of a table of pairs. A matrix of thousands of hosts has millions of
// lines and few texts: what a text means is told once, and lines of known texts alone are read here. Any other line is
// left to whoever tells them, and says what is wrong with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace busbw {

// Tests by columns, in the order of their lines. A value that is missing is NaN.
struct PairRows {
    std::vector<std::int32_t> senders;
    std::vector<std::int32_t> receivers;
    std::vector<std::int32_t> rounds;
    std::vector<double> values;
};

class PairLines {
   public:
    // `most_rounds`: the highest number of a round.
    PairLines(char separator, std::int32_t most_rounds) : separator_{separator}, most_rounds_{most_rounds} {}

    // What a cell means from now on: an endpoint, the node that it is of, and what a unit is times.
    void know_endpoint(std::string text, std::int32_t endpoint, std::int32_t node);
    void know_unit(std::string text, double scale);

    // Reads lines of `text` from `at` on, adds them to `rows`, and returns where the first begins that is left: one
    // with a text that is not known, a value or a round that is no plain number, two ends on one node, another number
    // of cells, or no end. The end of the text where all were read.
    std::size_t read(std::string_view text, std::size_t at, PairRows& rows) const;

   private:
    struct End {
        std::int32_t endpoint;
        std::int32_t node;
    };
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
    };
    template <class Value>
    using Known = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

    bool line(std::string_view text, PairRows& rows) const;

    char separator_;
    std::int32_t most_rounds_;
    Known<End> ends_;
    Known<double> units_;
};

}  // namespace busbw
