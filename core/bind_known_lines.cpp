// Lines of logs whose numbers are known, for Python.
#include "bind_known_lines.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "known_lines.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace busbw {

namespace {

std::string_view bytes_of(const nb::bytes& text) { return {text.c_str(), text.size()}; }

CellKind kind_of(const std::string& name) {
    if (name == "whole") {
        return CellKind::whole;
    }
    if (name == "real") {
        return CellKind::real;
    }
    if (name == "clock") {
        return CellKind::clock;
    }
    if (name == "moment") {
        return CellKind::moment;
    }
    if (name == "zeros") {
        return CellKind::zeros;
    }
    throw std::invalid_argument("no cell is a " + name);
}

std::size_t add_table(KnownLines& lines, const std::vector<std::pair<std::string, double>>& columns) {
    std::vector<KnownColumn> made;
    made.reserve(columns.size());
    for (const auto& [kind, fill] : columns) {
        made.push_back({kind_of(kind), fill});
    }
    return lines.add_table(std::move(made));
}

using CellTuple = std::tuple<std::size_t, std::size_t, std::size_t>;

void learn(KnownLines& lines, const nb::bytes& line,
           const std::vector<std::pair<std::size_t, std::vector<CellTuple>>>& rows, bool is_json) {
    std::vector<KnownRow> made;
    for (const auto& [table, cells] : rows) {
        KnownRow row{table, {}};
        for (const auto& [column, begin, end] : cells) {
            row.cells.push_back({column, begin, end});
        }
        made.push_back(std::move(row));
    }
    lines.learn(bytes_of(line), std::move(made), is_json);
}

std::tuple<std::size_t, std::size_t, std::uint64_t> read(KnownLines& lines, const nb::bytes& text, std::size_t at,
                                                         std::uint64_t number) {
    const LeftLines left = lines.read(bytes_of(text), at, number);
    return {left.begin, left.end, left.number};
}

nb::typed<nb::list, nb::bytes> drain(KnownLines& lines, std::size_t table) {
    nb::list made;
    for (const std::vector<std::uint64_t>& column : lines.drain(table)) {
        made.append(nb::bytes(static_cast<const void*>(column.data()), column.size() * sizeof column[0]));
    }
    return made;
}

}  // namespace

void bind_known_lines(nb::module_& module) {
    nb::class_<KnownLines>(module, "KnownLines")
        .def(nb::init<std::vector<std::string>>(), "marks"_a)
        .def("add_table", add_table, "columns"_a)
        .def("learn", learn, "line"_a, "rows"_a, "is_json"_a)
        .def(
            "knows", [](const KnownLines& lines, const nb::bytes& line) { return lines.knows(bytes_of(line)); },
            "line"_a)
        .def("read", read, "text"_a, "at"_a, "number"_a)
        .def("drain", drain, "table"_a)
        .def_prop_ro("taken", &KnownLines::taken);
    module.def(
        "without_escapes",
        [](const nb::bytes& text) {
            const std::string plain = without_escapes(bytes_of(text));
            return nb::bytes(plain.data(), plain.size());
        },
        "text"_a);
}

}  // namespace busbw
