// The sieve that a log of NCCL goes through: what is most of a large log is counted here, and the rest is handed out.
// Memory is bounded: every table has a most, and what does not fit any more is counted under one entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "repeated_lines.hpp"

namespace busbw {

// A line that somebody has to look at. `speaker`: index into speakers(); -1: `text` is the whole line, with its head;
// -2 - N: so it is, and it was learned with token N.
struct SievedLine {
    std::uint64_t number;
    std::int64_t speaker;
    // Equal for lines that differ in numbers and addresses only.
    std::uint64_t shape;
    std::string text;
};

// How often one speaker said that one of its connections goes `via` something. Ranks: -1 when not told apart any more.
struct Connection {
    std::uint32_t speaker;
    std::uint32_t via;
    std::int32_t from;
    std::int32_t to;
    bool operator==(const Connection&) const = default;
};

struct ConnectionHash {
    std::size_t operator()(const Connection& key) const noexcept;
};

struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};

// Numbers texts in the order they come, at most `most` of them.
class Names {
   public:
    explicit Names(std::size_t most) : most_{most} {}
    // Returns the number of `text`; -1 when it has none.
    [[nodiscard]] std::int64_t find(std::string_view text) const;
    // Returns the number of `text`, a new one when it has none; -1 when the table is full.
    std::int64_t number(std::string_view text);
    [[nodiscard]] const std::vector<std::string>& all() const { return names_; }

   private:
    std::size_t most_;
    std::vector<std::string> names_;
    std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> numbers_;
};

// Texts to look for in one walk over a line, however many they are.
class Needles {
   public:
    explicit Needles(const std::vector<std::string>& texts);

    [[nodiscard]] bool any_in(std::string_view line) const;

   private:
    // By the first two bytes of a text: 1 + the place in `groups_`; 0 where no text begins so.
    std::vector<std::uint16_t> group_of_;
    std::vector<std::vector<std::string>> groups_;
    std::vector<std::string> single_bytes_;
};

class LogSieve {
   public:
    // `needles`: a line that is not one of NCCL's is handed out when it holds one of them.
    explicit LogSieve(const std::vector<std::string>& needles);

    // Reads a block; returns the lines in it that somebody has to look at.
    std::vector<SievedLine> feed(std::string_view block);
    // Ends a source: returns its last line when that has no newline. Numbers begin again at 1.
    std::vector<SievedLine> finish();
    // Reads one line again that was handed out whole, after what stood in the way of reading it was taken off.
    std::vector<SievedLine> again(std::string_view line, std::uint64_t number);
    // Drops lines of this shape from now on: nothing is in them.
    void ignore(std::uint64_t shape);
    // Hands out `token` with a whole line from now on, where it differs from this one outside `spans` in numbers only.
    void learn(std::string_view line, const std::vector<std::pair<std::size_t, std::size_t>>& spans,
               std::int64_t token) {
        repeated_.learn(line, spans, token);
    }
    void forget() { repeated_.forget(); }

    [[nodiscard]] std::uint64_t lines() const { return lines_; }
    [[nodiscard]] std::uint64_t nccl_lines() const { return nccl_lines_; }
    [[nodiscard]] std::uint64_t too_long() const { return too_long_; }
    // `host:pid:device`, in the order they come; the device is -1 where none is printed.
    [[nodiscard]] const std::vector<std::string>& speakers() const { return speakers_.all(); }
    // What connections go via; the rank in parentheses is an n.
    [[nodiscard]] const std::vector<std::string>& ways() const { return ways_.all(); }
    [[nodiscard]] const std::unordered_map<Connection, std::uint64_t, ConnectionHash>& connections() const {
        return connections_;
    }
    // Messages that tell what NCCL chose for one call, without times, and how often each came.
    [[nodiscard]] const std::unordered_map<std::string, std::uint64_t, TextHash, std::equal_to<>>& choices() const {
        return choices_;
    }

   private:
    void line(std::string_view text, std::uint64_t number, std::vector<SievedLine>& out);
    bool info(std::string_view text, std::size_t mark, std::uint64_t number, std::vector<SievedLine>& out);
    bool connection(std::int64_t speaker, std::string_view message);
    bool choice(std::string_view message);
    std::int64_t speaker_of(std::string_view word, std::size_t host_size, std::string_view device);
    std::string_view known_in(std::string_view word, std::size_t host_size);
    void hand_out(std::string_view text, std::int64_t speaker, std::uint64_t number, std::vector<SievedLine>& out);

    Needles needles_;
    RepeatedLines repeated_;
    Names speakers_;
    Names ways_;
    // `host:pid`
    std::unordered_set<std::string, TextHash, std::equal_to<>> processes_;
    std::unordered_map<Connection, std::uint64_t, ConnectionHash> connections_;
    std::unordered_map<std::string, std::uint64_t, TextHash, std::equal_to<>> choices_;
    std::unordered_set<std::uint64_t> ignored_;
    std::string rest_;
    // Kept between lines for its memory alone.
    std::string name_;
    bool skipping_ = false;
    std::uint64_t number_ = 0;
    std::uint64_t lines_ = 0;
    std::uint64_t nccl_lines_ = 0;
    std::uint64_t too_long_ = 0;
};

}  // namespace busbw
