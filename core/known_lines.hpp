// Lines of a log that differ from one that was told in their digits alone: what their numbers mean is known, and they
// are read here into columns. What a line means is told by whoever looks at the first of them, and any other line with
// a mark in it is left to him. Memory is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "log_sieve.hpp"

namespace busbw {

// whole: digits; real: a number with a sign, commas between thousands, a point, an exponent; clock: [hours:]minutes:
// seconds, in seconds; moment: YYYY-MM-DD hh:mm:ss.fraction, in seconds of the calendar, NaN where there is no such
// month; zeros: nothing else, where another digit would mean another thing. real and moment are doubles, the others
// int64.
enum class CellKind : std::uint8_t { whole, real, clock, moment, zeros };

struct KnownColumn {
    CellKind kind;
    // Where a line does not say it.
    double fill;
};

// Where in a line a cell stands, in bytes.
struct KnownCell {
    std::size_t column;
    std::size_t begin;
    std::size_t end;
};

struct KnownRow {
    std::size_t table;
    std::vector<KnownCell> cells;
};

// Lines [begin, end) that are left, and the number of the first.
struct LeftLines {
    std::size_t begin;
    std::size_t end;
    std::uint64_t number;
};

class KnownLines {
   public:
    // A line without any of the marks is nothing to anybody.
    explicit KnownLines(const std::vector<std::string>& marks) : marks_{marks} {}

    // Returns the number of a new table.
    std::size_t add_table(std::vector<KnownColumn> columns);
    // Reads such lines as these rows from now on. `is_json`: its numbers are those of JSON, and a line in which one
    // begins with a zero too many is left. Where there is no room everything learned before is forgotten first.
    // Throws std::invalid_argument for a table, a column or a cell that there is not.
    void learn(std::string_view line, std::vector<KnownRow> rows, bool is_json);
    [[nodiscard]] bool knows(std::string_view line) const;

    // Reads lines from `at` on, the first of which has this number, and returns those that are left next: as many with
    // a mark in them as follow each other, up to some kilobytes; none at the end. A line ends with a newline or with
    // 0x1e, which counts none.
    LeftLines read(std::string_view text, std::size_t at, std::uint64_t number);
    // Lines that were read into rows so far.
    [[nodiscard]] std::uint64_t taken() const { return taken_; }
    // Returns the columns of a table, 8 bytes a cell, and empties them. The first is the number of the line.
    std::vector<std::vector<std::uint64_t>> drain(std::size_t table);

   private:
    struct Table {
        std::vector<KnownColumn> columns;
        std::vector<std::vector<std::uint64_t>> cells;
    };
    struct Known {
        // With a zero for each digit.
        std::string text;
        std::vector<KnownRow> rows;
        // Where a digit stands that must be no zero.
        std::vector<std::size_t> first_digits;
    };

    const Known* find(std::string_view line) const;
    bool take(const Known& known, std::string_view line, std::uint64_t number);

    Needles marks_;
    std::vector<Table> tables_;
    // By the hash of their text.
    std::unordered_map<std::uint64_t, Known> known_;
    std::size_t known_bytes_ = 0;
    // Lines without a mark that are known.
    std::size_t nothing_ = 0;
    std::uint64_t taken_ = 0;
    // Kept between lines for their memory alone.
    mutable std::string blanked_;
    std::vector<std::uint64_t> row_;
    std::string number_;
};

// Returns a text without the escape sequences of terminals: colours, moves of the cursor, character sets.
std::string without_escapes(std::string_view text);

}  // namespace busbw
