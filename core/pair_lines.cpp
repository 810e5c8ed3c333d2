#include "pair_lines.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

namespace busbw {

namespace {

constexpr std::size_t fewest_cells = 3;
constexpr std::size_t most_cells = 5;
constexpr std::string_view no_answer = "-";
constexpr double missing = std::numeric_limits<double>::quiet_NaN();

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

std::string_view stripped(std::string_view text) {
    while (!text.empty() && is_blank(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && is_blank(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

// The whole text as a number without a sign; nothing where it is none, or does not fit.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
    if (text.empty() || !(is_digit(text.front()) || text.front() == '.')) {
        return std::nullopt;
    }
    Number found{};
    const char* const end = text.data() + text.size();
    const auto [stopped, problem] = std::from_chars(text.data(), end, found);
    if (problem != std::errc{} || stopped != end) {
        return std::nullopt;
    }
    return found;
}

}  // namespace

void PairLines::know_endpoint(std::string text, std::int32_t endpoint, std::int32_t node) {
    ends_.insert_or_assign(std::move(text), End{endpoint, node});
}

void PairLines::know_unit(std::string text, double scale) { units_.insert_or_assign(std::move(text), scale); }

std::size_t PairLines::read(std::string_view text, std::size_t at, PairRows& rows) const {
    while (at < text.size()) {
        const std::size_t end = text.find('\n', at);
        if (end == std::string_view::npos || !line(text.substr(at, end - at), rows)) {
            return at;
        }
        at = end + 1;
    }
    return at;
}

bool PairLines::line(std::string_view text, PairRows& rows) const {
    std::array<std::string_view, most_cells> cells;
    std::size_t count = 0;
    for (std::size_t from = 0; from <= text.size(); ++count) {
        if (count == most_cells) {
            return false;
        }
        const std::size_t to = std::min(text.find(separator_, from), text.size());
        cells[count] = stripped(text.substr(from, to - from));
        from = to + 1;
    }
    if (count < fewest_cells) {
        return false;
    }
    const auto sender = ends_.find(cells[0]);
    const auto receiver = ends_.find(cells[1]);
    const auto unit = units_.find(cells[3]);
    if (sender == ends_.end() || receiver == ends_.end() || unit == units_.end() ||
        sender->second.node == receiver->second.node) {
        return false;
    }
    double reached = missing;
    if (cells[2] != no_answer) {
        reached = number_of<double>(cells[2]).value_or(missing) * unit->second;
        if (!(std::isfinite(reached) && reached > 0.0)) {
            return false;
        }
    }
    const std::optional<std::int32_t> round = cells[4].empty() ? 0 : number_of<std::int32_t>(cells[4]);
    if (!round || *round > most_rounds_) {
        return false;
    }
    rows.senders.push_back(sender->second.endpoint);
    rows.receivers.push_back(receiver->second.endpoint);
    rows.rounds.push_back(*round);
    rows.values.push_back(reached);
    return true;
}

}  // namespace busbw
