#include "log_sieve.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

namespace busbw {

namespace {

constexpr std::size_t longest_line = std::size_t{1} << 20U;
// Of a line that is handed out; NCCL's own lines end at 1024.
constexpr std::size_t longest_text = 4096;
constexpr std::size_t most_speakers = std::size_t{1} << 18U;
constexpr std::size_t most_ways = 4096;
constexpr std::size_t most_connections = std::size_t{1} << 19U;
constexpr std::size_t most_choices = 4096;
constexpr std::size_t most_ignored = std::size_t{1} << 17U;
constexpr std::size_t shape_reads = 512;
// In place of a speaker; it goes down from here.
constexpr std::int64_t first_learned = -2;
// Of an address without 0x before it: a group of one of IPv6 has four.
constexpr std::size_t shortest_hex = 4;
constexpr std::array<std::string_view, 6> levels{"INFO", "WARN", "ATTN", "TRACE", "CALL", "DIAG"};

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

bool is_hex(char letter) { return is_digit(letter) || (letter >= 'a' && letter <= 'f'); }

bool is_host(char letter) {
    return is_digit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '-' ||
           letter == '.' || letter == '_';
}

// Returns where digits begin that end before `end`; `end` when none do.
std::size_t digits_before(std::string_view text, std::size_t end) {
    while (end > 0 && is_digit(text[end - 1])) {
        --end;
    }
    return end;
}

// Reads a text from left to right; every step says whether it was there.
class Cursor {
   public:
    explicit Cursor(std::string_view text) : text_{text} {}

    bool skip(std::string_view expected) {
        if (!text_.starts_with(expected)) {
            return false;
        }
        text_.remove_prefix(expected.size());
        return true;
    }

    bool spaces() {
        const std::size_t end = std::min(text_.find_first_not_of(' '), text_.size());
        text_.remove_prefix(end);
        return end > 0;
    }

    template <class Number>
    bool number(Number& value) {
        const auto [end, problem] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
        if (problem != std::errc{}) {
            return false;
        }
        text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
        return true;
    }

    // `[2]`, `[a4000]`
    bool bracketed_hex() {
        std::size_t end = 1;
        while (end < text_.size() && is_hex(text_[end])) {
            ++end;
        }
        if (!text_.starts_with('[') || end == 1 || end >= text_.size() || text_[end] != ']') {
            return false;
        }
        text_.remove_prefix(end + 1);
        return true;
    }

    [[nodiscard]] std::string_view rest() const { return text_; }

   private:
    std::string_view text_;
};

struct Ends {
    std::int32_t from = -1;
    std::int32_t to = -1;
    std::string_view via;
};

// Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/0/GDRDMA
// Before 2.8 it is a Ring, and before 2.6 ranks of a connection over the network have no GPU behind them.
std::optional<Ends> ends_in(std::string_view message) {
    Cursor at{message};
    Ends ends;
    std::uint32_t channel = 0;
    if (!(at.skip("Channel ") || at.skip("Ring ")) || !at.number(channel) || (at.skip("/") && !at.number(channel)) ||
        !at.spaces() || !at.skip(":") || !at.spaces() || !at.number(ends.from)) {
        return std::nullopt;
    }
    static_cast<void>(at.bracketed_hex());
    if (!at.skip(" -> ") || !at.number(ends.to)) {
        return std::nullopt;
    }
    static_cast<void>(at.bracketed_hex());
    if (!at.spaces()) {
        return std::nullopt;
    }
    static_cast<void>(at.skip("[send] ") || at.skip("[receive] "));
    if (!at.skip("via ")) {
        return std::nullopt;
    }
    ends.via = at.rest().substr(0, std::min(at.rest().find(" comm "), at.rest().find(" [repeated ")));
    while (ends.via.ends_with(' ')) {
        ends.via.remove_suffix(1);
    }
    return ends;
}

// Which rank stands in the middle is of no interest: NET/IB/0(12)/GDRDMA becomes NET/IB/0(n)/GDRDMA.
std::string without_proxy(std::string_view via) {
    const std::size_t open = via.find('(');
    std::size_t end = open == std::string_view::npos ? via.size() : open + 1;
    while (end < via.size() && is_digit(via[end])) {
        ++end;
    }
    if (end >= via.size() || via[end] != ')' || end == open + 1) {
        return std::string{via};
    }
    return std::string{via.substr(0, open)} + "(n" + std::string{via.substr(end)};
}

// Returns where a word of hexadecimal digits ends that begins here and has a digit in it; `begin` where none does.
std::size_t hex_word_end(std::string_view text, std::size_t begin) {
    std::size_t end = begin;
    bool has_digit = false;
    for (; end < text.size() && is_hex(text[end]); ++end) {
        has_digit = has_digit || is_digit(text[end]);
    }
    const bool goes_on = end < text.size() && (is_host(text[end]) && text[end] != '-' && text[end] != '.');
    return has_digit && !goes_on && end - begin >= shortest_hex ? end : begin;
}

// FNV-1a over what is neither a number, an address nor a space.
std::uint64_t shape_of(std::string_view text) {
    std::uint64_t hash = 14695981039346656037ULL;
    const std::string_view read = text.substr(0, shape_reads);
    for (std::size_t index = 0; index < read.size(); ++index) {
        const char letter = read[index];
        const bool begins_word = index == 0 || !is_host(read[index - 1]);
        if (const std::size_t end = begins_word ? hex_word_end(read, index) : index; end > index) {
            index = end - 1;
        } else if (letter == 'x' && index > 0 && read[index - 1] == '0') {
            while (index + 1 < read.size() && is_hex(read[index + 1])) {
                ++index;
            }
        } else if (!is_digit(letter) && letter != ' ' && letter != '-') {
            hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ULL;
        }
    }
    return hash;
}

// Returns where `NCCL LEVEL` stands in a line; npos when it does not.
std::size_t mark_in(std::string_view text) {
    for (std::size_t at = text.find("NCCL "); at != std::string_view::npos; at = text.find("NCCL ", at + 1)) {
        const std::string_view after = text.substr(at + 5, 6);
        if (at > 0 && text[at - 1] == ' ' && std::ranges::any_of(levels, [&](std::string_view level) {
                return after.starts_with(level) && (after.size() == level.size() || after[level.size()] == ' ');
            })) {
            return at;
        }
    }
    return std::string_view::npos;
}

// Somebody else's line may have been written into this one: what stands before it is cut off, and not read.
std::size_t last_mark_in(std::string_view text, std::size_t mark) {
    for (std::size_t next = mark; next != std::string_view::npos;) {
        next = mark_in(text.substr(mark + 9));
        mark += next == std::string_view::npos ? 0 : next + 9;
    }
    return mark;
}

std::size_t first_two(std::string_view text, std::size_t at) {
    return (std::size_t{static_cast<unsigned char>(text[at])} << 8U) | static_cast<unsigned char>(text[at + 1]);
}

}  // namespace

std::size_t ConnectionHash::operator()(const Connection& key) const noexcept {
    std::uint64_t hash = (std::uint64_t{key.speaker} << 32U) | key.via;
    hash ^= ((std::uint64_t{static_cast<std::uint32_t>(key.from)} << 32U) | static_cast<std::uint32_t>(key.to)) *
            0x9E3779B97F4A7C15ULL;
    hash *= 0xD6E8FEB86659FD93ULL;
    return static_cast<std::size_t>(hash ^ (hash >> 32U));
}

std::int64_t Names::find(std::string_view text) const {
    const auto found = numbers_.find(text);
    return found == numbers_.end() ? -1 : std::int64_t{found->second};
}

std::int64_t Names::number(std::string_view text) {
    if (const std::int64_t known = find(text); known >= 0) {
        return known;
    }
    if (names_.size() >= most_) {
        return -1;
    }
    const auto next = static_cast<std::uint32_t>(names_.size());
    names_.emplace_back(text);
    numbers_.emplace(names_.back(), next);
    return next;
}

Needles::Needles(const std::vector<std::string>& texts) : group_of_(1U << 16U) {
    for (const std::string& text : texts) {
        if (text.size() < 2) {
            single_bytes_.push_back(text);
            continue;
        }
        std::uint16_t& group = group_of_[first_two(text, 0)];
        if (group == 0) {
            groups_.emplace_back();
            group = static_cast<std::uint16_t>(groups_.size());
        }
        groups_[group - 1U].push_back(text);
    }
}

bool Needles::any_in(std::string_view line) const {
    for (std::size_t at = 0; at + 1 < line.size(); ++at) {
        const std::uint16_t group = group_of_[first_two(line, at)];
        if (group != 0 && std::ranges::any_of(groups_[group - 1U], [&](const std::string& text) {
                return line.substr(at).starts_with(text);
            })) {
            return true;
        }
    }
    return std::ranges::any_of(single_bytes_,
                               [&](const std::string& text) { return line.find(text) != std::string_view::npos; });
}

LogSieve::LogSieve(const std::vector<std::string>& needles)
    : needles_{needles}, speakers_{most_speakers}, ways_{most_ways} {}

std::vector<SievedLine> LogSieve::feed(std::string_view block) {
    std::vector<SievedLine> out;
    std::size_t start = 0;
    while (start < block.size()) {
        const void* found = std::memchr(block.data() + start, '\n', block.size() - start);
        if (found == nullptr) {
            break;
        }
        const auto end = static_cast<std::size_t>(static_cast<const char*>(found) - block.data());
        const std::string_view part = block.substr(start, end - start);
        start = end + 1;
        ++number_;
        ++lines_;
        if (skipping_) {
            skipping_ = false;
        } else if (rest_.empty()) {
            line(part, number_, out);
        } else {
            rest_ += part;
            line(rest_, number_, out);
            rest_.clear();
        }
    }
    if (!skipping_) {
        rest_ += block.substr(start);
        if (rest_.size() > longest_line) {
            ++too_long_;
            skipping_ = true;
            rest_ = std::string{};
        }
    }
    return out;
}

std::vector<SievedLine> LogSieve::finish() {
    std::vector<SievedLine> out;
    if (!rest_.empty() || skipping_) {
        ++lines_;
        line(rest_, number_ + 1, out);
    }
    rest_.clear();
    skipping_ = false;
    number_ = 0;
    return out;
}

std::vector<SievedLine> LogSieve::again(std::string_view line_again, std::uint64_t number) {
    std::vector<SievedLine> out;
    line(line_again, number, out);
    return out;
}

void LogSieve::ignore(std::uint64_t shape) {
    if (ignored_.size() < most_ignored) {
        ignored_.insert(shape);
    }
}

void LogSieve::line(std::string_view text, std::uint64_t number, std::vector<SievedLine>& out) {
    if (text.ends_with('\r')) {
        text.remove_suffix(1);
    }
    if (std::memchr(text.data(), '\x1b', text.size()) != nullptr) {
        hand_out(text, -1, number, out);
        return;
    }
    if (const std::size_t mark = mark_in(text); mark != std::string_view::npos) {
        ++nccl_lines_;
        if (!info(text, last_mark_in(text, mark), number, out)) {
            hand_out(text, -1, number, out);
        }
    } else if (needles_.any_in(text)) {
        hand_out(text, -1, number, out);
    }
}

// Reads host:pid:tid [device] in front of the mark from right to left: nobody knows all that launchers write before it.
bool LogSieve::info(std::string_view text, std::size_t mark, std::uint64_t number, std::vector<SievedLine>& out) {
    if (!text.substr(mark).starts_with("NCCL INFO")) {
        return false;
    }
    std::size_t end = mark - 1;
    std::string_view device = "-1";
    if (end > 0 && text[end - 1] == ']') {
        const std::size_t open = text.rfind('[', end);
        if (open == std::string_view::npos || open == 0 || text[open - 1] != ' ') {
            return false;
        }
        device = text.substr(open + 1, end - open - 2);
        end = open - 1;
    }
    const std::size_t thread = digits_before(text, end);
    const std::size_t process =
        thread == end || thread < 2 || text[thread - 1] != ':' ? 0 : digits_before(text, thread - 1);
    if (process < 2 || process == thread - 1 || text[process - 1] != ':') {
        return false;
    }
    std::size_t begin = process - 1;
    while (begin > 0 && is_host(text[begin - 1])) {
        --begin;
    }
    if (process - 1 == begin || device.size() > 8) {
        return false;
    }
    const std::string_view message = text.substr(std::min(mark + 10, text.size()));
    const std::int64_t speaker = speaker_of(text.substr(begin, thread - 1 - begin), process - 1 - begin, device);
    if (speaker >= 0 && !connection(speaker, message) && !choice(message)) {
        hand_out(message, speaker, number, out);
    }
    return true;
}

std::int64_t LogSieve::speaker_of(std::string_view word, std::size_t host_size, std::string_view device) {
    name_.assign(word).append(":").append(device);
    if (const std::int64_t known = speakers_.find(name_); known >= 0) {
        return known;
    }
    name_.assign(known_in(word, host_size)).append(":").append(device);
    return speakers_.number(name_);
}

// A piece of another line may stand before the host, without a space: the same process has been seen without it.
std::string_view LogSieve::known_in(std::string_view word, std::size_t host_size) {
    if (processes_.contains(word)) {
        return word;
    }
    for (std::size_t start = 1; start < host_size; ++start) {
        if (processes_.contains(word.substr(start))) {
            return word.substr(start);
        }
    }
    if (processes_.size() < most_speakers) {
        processes_.emplace(word);
    }
    return word;
}

bool LogSieve::connection(std::int64_t speaker, std::string_view message) {
    if (!message.starts_with("Channel ") && !message.starts_with("Ring ")) {
        return false;
    }
    const std::optional<Ends> ends = ends_in(message);
    if (!ends) {
        return false;
    }
    const std::int64_t way = ends->via.find('(') == std::string_view::npos ? ways_.number(ends->via)
                                                                           : ways_.number(without_proxy(ends->via));
    if (way < 0) {
        return true;
    }
    Connection key{static_cast<std::uint32_t>(speaker), static_cast<std::uint32_t>(way), ends->from, ends->to};
    if (const auto found = connections_.find(key); found != connections_.end()) {
        ++found->second;
        return true;
    }
    if (connections_.size() >= most_connections) {
        key.from = key.to = -1;
        // One more for every way there is, at the most.
        key.speaker = 0;
    }
    ++connections_[key];
    return true;
}

// AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}
bool LogSieve::choice(std::string_view message) {
    const bool is_chosen = message.substr(0, 80).find(" Bytes -> Algo ") != std::string_view::npos ||
                           message.starts_with("Best tuning") || message.starts_with("algSelection:");
    if (!is_chosen) {
        return false;
    }
    const std::string_view timeless = message.substr(0, std::min(message.find(" time "), longest_text));
    if (const auto found = choices_.find(timeless); found != choices_.end()) {
        ++found->second;
    } else if (choices_.size() < most_choices) {
        choices_.emplace(timeless, 1);
    }
    return true;
}

void LogSieve::hand_out(std::string_view text, std::int64_t speaker, std::uint64_t number,
                        std::vector<SievedLine>& out) {
    const std::string_view kept = text.substr(0, longest_text);
    const std::uint64_t shape = shape_of(text);
    if (!ignored_.contains(shape)) {
        const std::int64_t token = speaker < 0 ? repeated_.find(kept) : -1;
        out.push_back({number, token < 0 ? speaker : first_learned - token, shape, std::string{kept}});
    }
}

}  // namespace busbw
