#include "known_lines.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace busbw {

namespace {

// Longer lines are looked at around their marks only, which is not for here.
constexpr std::size_t longest_line = 4096;
constexpr std::size_t most_known = 4096;
// Of lines that are nothing to anybody: to know them is faster than to look for marks in them.
constexpr std::size_t most_nothing = 1024;
constexpr std::size_t most_known_bytes = std::size_t{4} << 20U;
constexpr char line_end = '\n';
constexpr char state_end = '\x1e';
// Of lines that are left at once: what is learned of them is of use from the next ones on.
constexpr std::size_t most_left = std::size_t{16} << 10U;
constexpr std::size_t most_digits = 18;
// Whole numbers and powers of ten up to these are doubles, and one division of theirs is rounded once.
constexpr std::size_t exact_digits = 15;
constexpr std::array<double, 16> powers{1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                        1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
constexpr std::array<int, 12> days_before{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
constexpr std::size_t minute_size = 16;
constexpr std::size_t longest_escape = 20;

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

std::uint64_t bits_of(std::int64_t value) { return std::bit_cast<std::uint64_t>(value); }

std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

// One walk for both ends: a bar's line may have millions of states, and its newline is far away.
std::size_t line_end_from(std::string_view text, std::size_t at) {
    while (at < text.size() && text[at] != line_end && text[at] != state_end) {
        ++at;
    }
    return at;
}

// Writes a line with a zero for each digit.
void blank(std::string_view line, std::string& blanked) {
    blanked.resize(line.size());
    std::ranges::transform(line, blanked.begin(), [](char letter) { return is_digit(letter) ? '0' : letter; });
}

std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = text.size() * 0x9E3779B97F4A7C15ULL;
    while (!text.empty()) {
        std::uint64_t word = 0;
        const std::size_t size = std::min(sizeof word, text.size());
        std::memcpy(&word, text.data(), size);
        hash = std::rotl((hash ^ word) * 0xD6E8FEB86659FD93ULL, 29);
        text.remove_prefix(size);
    }
    return hash;
}

std::optional<std::int64_t> whole_of(std::string_view text) {
    if (text.empty() || text.size() > most_digits) {
        return std::nullopt;
    }
    std::int64_t value = 0;
    for (const char letter : text) {
        if (!is_digit(letter)) {
            return std::nullopt;
        }
        value = value * 10 + (letter - '0');
    }
    return value;
}

// A number of at most 15 digits with a point; nothing for any other, which is not to say that it is none.
std::optional<double> short_real_of(std::string_view text) {
    std::int64_t digits = 0;
    std::size_t count = 0;
    std::size_t behind_point = 0;
    bool has_point = false;
    for (const char letter : text) {
        if (letter == '.' && !has_point && count > 0) {
            has_point = true;
        } else if (is_digit(letter) && count < exact_digits) {
            digits = digits * 10 + (letter - '0');
            ++count;
            behind_point += has_point ? 1U : 0U;
        } else {
            return std::nullopt;
        }
    }
    if (count == 0) {
        return std::nullopt;
    }
    return static_cast<double>(digits) / powers[behind_point];
}

std::optional<double> real_of(std::string_view text, std::string& without_commas) {
    if (const std::optional<double> value = short_real_of(text)) {
        return value;
    }
    if (text.find(',') != std::string_view::npos) {
        without_commas.clear();
        std::ranges::copy_if(text, std::back_inserter(without_commas), [](char letter) { return letter != ','; });
        text = without_commas;
    }
    double value = 0.0;
    const char* const end = text.data() + text.size();
    const auto [stopped, problem] = std::from_chars(text.data(), end, value);
    if (problem != std::errc{} || stopped != end) {
        return std::nullopt;
    }
    return value;
}

std::optional<std::int64_t> clock_of(std::string_view text) {
    std::int64_t seconds = 0;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t to = std::min(text.find(':', from), text.size());
        const std::optional<std::int64_t> part = whole_of(text.substr(from, to - from));
        if (!part || seconds > std::numeric_limits<std::int32_t>::max()) {
            return std::nullopt;
        }
        seconds = seconds * 60 + *part;
        from = to + 1;
    }
    return seconds;
}

// The whole part of years / every, downwards.
int leaps(int years, int every) { return years >= 0 ? years / every : -1; }

// 2026-11-21 12:34:56,123
std::optional<double> moment_of(std::string_view text, std::string& seconds) {
    if (text.size() < minute_size + 4) {
        return std::nullopt;
    }
    const auto part = [&](std::size_t at, std::size_t size) {
        return static_cast<int>(whole_of(text.substr(at, size)).value_or(0));
    };
    const int year = part(0, 4);
    const int month = part(5, 2);
    if (month < 1 || month > 12) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    const int past = year - (month < 3 ? 1 : 0);
    const int leap = leaps(past, 4) - leaps(past, 100) + leaps(past, 400);
    const int days = year * 365 + leap + days_before[static_cast<std::size_t>(month - 1)] + part(8, 2);
    const double start = days * 86400.0 + part(11, 2) * 3600 + part(14, 2) * 60;
    // As 105.123 for 05,123, so that it is rounded as it is where lines are looked at one by one.
    seconds.assign(1, '1');
    seconds.append(text.substr(minute_size + 1));
    std::ranges::replace(seconds, ',', '.');
    const std::optional<double> hundred_more = short_real_of(seconds);
    if (!hundred_more) {
        return std::nullopt;
    }
    const double moment = start + *hundred_more - 100.0;
    return moment == 0.0 ? std::numeric_limits<double>::quiet_NaN() : moment;
}

std::optional<std::uint64_t> cell_of(CellKind kind, std::string_view text, std::string& kept) {
    const auto bits = [](const auto& value) {
        return value ? std::optional<std::uint64_t>{bits_of(*value)} : std::nullopt;
    };
    switch (kind) {
        case CellKind::whole: return bits(whole_of(text));
        case CellKind::real: return bits(real_of(text, kept));
        case CellKind::clock: return bits(clock_of(text));
        case CellKind::moment: return bits(moment_of(text, kept));
        case CellKind::zeros:
            return text.find_first_not_of('0') == std::string_view::npos ? std::optional<std::uint64_t>{0}
                                                                         : std::nullopt;
    }
    return std::nullopt;
}

// Where numbers of JSON begin that have several digits before the point: the first is no zero.
std::vector<std::size_t> first_digits_in(std::string_view line) {
    std::vector<std::size_t> places;
    for (std::size_t at = 0; at + 1 < line.size(); ++at) {
        if (!is_digit(line[at]) || !is_digit(line[at + 1]) || (at > 0 && is_digit(line[at - 1]))) {
            continue;
        }
        const std::size_t sign = at > 0 && (line[at - 1] == '-' || line[at - 1] == '+') ? 1 : 0;
        const char before = at > sign ? line[at - sign - 1] : ' ';
        const bool is_behind = (at > 0 && line[at - 1] == '.') || before == 'e' || before == 'E';
        if (!is_behind) {
            places.push_back(at);
        }
    }
    return places;
}

}  // namespace

std::size_t KnownLines::add_table(std::vector<KnownColumn> columns) {
    std::vector<std::vector<std::uint64_t>> cells(columns.size() + 1);
    tables_.push_back({std::move(columns), std::move(cells)});
    return tables_.size() - 1;
}

void KnownLines::learn(std::string_view line, std::vector<KnownRow> rows, bool is_json) {
    for (const KnownRow& row : rows) {
        for (const KnownCell& cell : row.cells) {
            if (row.table >= tables_.size() || cell.column >= tables_[row.table].columns.size() ||
                cell.begin > cell.end || cell.end > line.size()) {
                throw std::invalid_argument("no cell of column " + std::to_string(cell.column) + " at " +
                                            std::to_string(cell.begin));
            }
        }
        if (row.table >= tables_.size()) {
            throw std::invalid_argument("no table " + std::to_string(row.table));
        }
    }
    if (line.size() > longest_line) {
        return;
    }
    if (known_.size() >= most_known || known_bytes_ + line.size() > most_known_bytes) {
        known_.clear();
        known_bytes_ = 0;
        nothing_ = 0;
    }
    blank(line, blanked_);
    known_bytes_ += blanked_.size();
    known_.try_emplace(hash_of(blanked_),
                       Known{blanked_, std::move(rows), is_json ? first_digits_in(line) : std::vector<std::size_t>{}});
}

const KnownLines::Known* KnownLines::find(std::string_view line) const {
    if (known_.empty() || line.size() > longest_line) {
        return nullptr;
    }
    blank(line, blanked_);
    const auto found = known_.find(hash_of(blanked_));
    return found != known_.end() && found->second.text == blanked_ ? &found->second : nullptr;
}

bool KnownLines::knows(std::string_view line) const { return find(line) != nullptr; }

bool KnownLines::take(const Known& known, std::string_view line, std::uint64_t number) {
    if (std::ranges::any_of(known.first_digits, [&](std::size_t at) { return line[at] == '0'; })) {
        return false;
    }
    row_.clear();
    for (const KnownRow& row : known.rows) {
        for (const KnownCell& cell : row.cells) {
            const std::string_view text = line.substr(cell.begin, cell.end - cell.begin);
            const std::optional<std::uint64_t> value =
                cell_of(tables_[row.table].columns[cell.column].kind, text, number_);
            if (!value) {
                return false;
            }
            row_.push_back(*value);
        }
    }
    // Only now: a line is read with all its rows, or left.
    std::size_t next = 0;
    for (const KnownRow& row : known.rows) {
        Table& table = tables_[row.table];
        table.cells[0].push_back(number);
        for (const KnownCell& cell : row.cells) {
            table.cells[cell.column + 1].push_back(row_[next++]);
        }
        for (std::size_t column = 0; column < table.columns.size(); ++column) {
            std::vector<std::uint64_t>& cells = table.cells[column + 1];
            const auto [kind, fill] = table.columns[column];
            const bool is_real = kind == CellKind::real || kind == CellKind::moment;
            if (cells.size() < table.cells[0].size()) {
                cells.push_back(is_real ? bits_of(fill) : bits_of(static_cast<std::int64_t>(fill)));
            }
        }
    }
    taken_ += known.rows.empty() ? 0U : 1U;
    return true;
}

LeftLines KnownLines::read(std::string_view text, std::size_t at, std::uint64_t number) {
    LeftLines left{text.size(), text.size(), number};
    bool has_left = false;
    while (at < text.size()) {
        const std::size_t end = line_end_from(text, at);
        const std::string_view line = text.substr(at, end - at);
        const Known* const known = find(line);
        const bool is_left = known != nullptr ? has_left || !take(*known, line, number) : marks_.any_in(line);
        if (known == nullptr && !is_left && nothing_ < most_nothing) {
            learn(line, {}, false);
            ++nothing_;
        }
        if (has_left && (known != nullptr || !is_left || at - left.begin >= most_left)) {
            left.end = at;
            return left;
        }
        if (is_left && !has_left) {
            left.begin = at;
            left.number = number;
            has_left = true;
        }
        number += end < text.size() && text[end] == line_end ? 1U : 0U;
        at = end + 1;
    }
    if (!has_left) {
        left.number = number;
    }
    return left;
}

std::vector<std::vector<std::uint64_t>> KnownLines::drain(std::size_t table) {
    std::vector<std::vector<std::uint64_t>>& cells = tables_.at(table).cells;
    std::vector<std::vector<std::uint64_t>> drained(cells.size());
    drained.swap(cells);
    return drained;
}

std::string without_escapes(std::string_view text) {
    std::string plain;
    plain.reserve(text.size());
    while (!text.empty()) {
        const std::size_t at = std::min(text.find('\x1b'), text.size());
        plain.append(text.substr(0, at));
        text.remove_prefix(at);
        if (text.empty()) {
            break;
        }
        std::size_t end = 1;
        if (text.substr(1).starts_with("(B")) {
            end = 3;
        } else if (text.substr(1).starts_with('[')) {
            const std::size_t letter = text.find_first_not_of("0123456789;?", 2);
            const char last = letter < text.size() && letter <= 2 + longest_escape ? text[letter] : ' ';
            end = (last >= 'A' && last <= 'Z') || (last >= 'a' && last <= 'z') ? letter + 1 : 1;
        }
        // A lone escape is no sequence, and stays.
        plain.append(text.substr(0, end == 1 ? 1 : 0));
        text.remove_prefix(end);
    }
    return plain;
}

}  // namespace busbw
