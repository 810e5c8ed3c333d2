// Lines that came before, told apart by the numbers that count and by nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace busbw {

// A line's form is its text with every number blanked: runs of digits, and words of hexadecimal digits with a digit in
// them. Which numbers of a form count is learned: those that lie in the spans somebody names. Memory is bounded.
class RepeatedLines {
   public:
    // Returns what was learned of a line of this form with the same numbers where they count; -1 when nothing was.
    [[nodiscard]] std::int64_t find(std::string_view line) const;
    // Keeps `token`, at least 0, for such lines. `spans`: [begin, end) of what counts, in bytes of `line`. Nothing is
    // kept when there is no room.
    void learn(std::string_view line, const std::vector<std::pair<std::size_t, std::size_t>>& spans,
               std::int64_t token);
    void forget();

   private:
    // By form: which of its numbers count, in ascending order.
    std::unordered_map<std::uint64_t, std::vector<std::uint16_t>> counting_;
    std::unordered_map<std::uint64_t, std::int64_t> tokens_;
};

}  // namespace busbw
