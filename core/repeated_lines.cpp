#include "repeated_lines.hpp"

#include <algorithm>
#include <array>

namespace busbw {

namespace {

constexpr std::size_t most_forms = std::size_t{1} << 16U;
constexpr std::size_t most_tokens = std::size_t{1} << 18U;
// A line with more numbers is not learned.
constexpr std::size_t most_numbers = 256;
constexpr std::uint64_t hash_start = 14695981039346656037ULL;

enum class LetterKind : std::uint8_t { other = 0, word = 1, hex_letter = 2, digit = 3 };

// ASCII as it is; bytes of other letters belong to words.
constexpr std::array<LetterKind, 256> letter_kinds = [] {
    std::array<LetterKind, 256> made{};
    for (std::size_t letter = 0; letter < made.size(); ++letter) {
        const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
        made[letter] = letter >= '0' && letter <= '9'                 ? LetterKind::digit
                       : letter >= 'a' && letter <= 'f'               ? LetterKind::hex_letter
                       : is_letter || letter == '_' || letter >= 0x80 ? LetterKind::word
                                                                      : LetterKind::other;
    }
    return made;
}();

LetterKind kind_of(char letter) { return letter_kinds[static_cast<unsigned char>(letter)]; }

std::uint64_t hash_with(std::uint64_t hash, char letter) {
    return (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ULL;
}

struct Number {
    std::size_t begin;
    std::size_t end;
};

struct Form {
    std::uint64_t hash = hash_start;
    std::array<Number, most_numbers> numbers;
    std::size_t count = 0;

    // Returns false when there are too many.
    bool add(std::size_t begin, std::size_t end) {
        if (count == most_numbers) {
            return false;
        }
        numbers[count++] = {begin, end};
        // No letter of a text.
        hash = hash_with(hash, '\0');
        return true;
    }
};

// Fills in `form`; returns false for a line with too many numbers.
bool read_form(std::string_view line, Form& form) {
    std::size_t at = 0;
    while (at < line.size()) {
        if (kind_of(line[at]) == LetterKind::other) {
            form.hash = hash_with(form.hash, line[at++]);
            continue;
        }
        std::size_t end = at;
        bool is_hex = true;
        bool has_digit = false;
        for (; end < line.size() && kind_of(line[end]) != LetterKind::other; ++end) {
            has_digit = has_digit || kind_of(line[end]) == LetterKind::digit;
            is_hex = is_hex && (kind_of(line[end]) >= LetterKind::hex_letter ||
                                (end == at + 1 && line[at] == '0' && line[end] == 'x'));
        }
        if (is_hex && has_digit) {
            if (!form.add(at, end)) {
                return false;
            }
            at = end;
            continue;
        }
        while (at < end) {
            const std::size_t begin = at;
            while (at < end && kind_of(line[at]) == LetterKind::digit) {
                ++at;
            }
            if (at > begin) {
                if (!form.add(begin, at)) {
                    return false;
                }
            } else {
                form.hash = hash_with(form.hash, line[at++]);
            }
        }
    }
    return true;
}

std::uint64_t key_of(std::string_view line, const Form& form, const std::vector<std::uint16_t>& counting) {
    std::uint64_t key = form.hash;
    for (const std::uint16_t index : counting) {
        key = hash_with(hash_with(key, '\0'), static_cast<char>(index));
        for (const char letter :
             line.substr(form.numbers[index].begin, form.numbers[index].end - form.numbers[index].begin)) {
            key = hash_with(key, letter);
        }
    }
    return key;
}

}  // namespace

std::int64_t RepeatedLines::find(std::string_view line) const {
    Form form;
    if (tokens_.empty() || !read_form(line, form)) {
        return -1;
    }
    const auto counting = counting_.find(form.hash);
    if (counting == counting_.end()) {
        return -1;
    }
    const auto found = tokens_.find(key_of(line, form, counting->second));
    return found == tokens_.end() ? -1 : found->second;
}

void RepeatedLines::learn(std::string_view line, const std::vector<std::pair<std::size_t, std::size_t>>& spans,
                          std::int64_t token) {
    Form form;
    if (tokens_.size() >= most_tokens || !read_form(line, form) ||
        (counting_.size() >= most_forms && !counting_.contains(form.hash))) {
        return;
    }
    // What counts for one line of a form counts for all: keys that lack a number are not found any more.
    std::vector<std::uint16_t>& counting = counting_[form.hash];
    for (std::size_t index = 0; index < form.count; ++index) {
        const Number& number = form.numbers[index];
        const auto place = std::ranges::lower_bound(counting, static_cast<std::uint16_t>(index));
        const bool is_known = place != counting.end() && *place == index;
        if (!is_known && std::ranges::any_of(spans, [&](const auto& span) {
                return number.begin < span.second && span.first < number.end;
            })) {
            counting.insert(place, static_cast<std::uint16_t>(index));
        }
    }
    tokens_[key_of(line, form, counting)] = token;
}

void RepeatedLines::forget() {
    counting_.clear();
    tokens_.clear();
}

}  // namespace busbw
