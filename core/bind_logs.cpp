// The sieve for logs, for Python. It lets go of the interpreter's lock while it reads.
#include "bind_logs.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "log_sieve.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace busbw {

namespace {

// What is no UTF-8 is replaced: a log holds any bytes.
nb::str decoded(std::string_view text) {
    PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
    if (made == nullptr) {
        throw nb::python_error();
    }
    return nb::steal<nb::str>(made);
}

using LineTuple = nb::typed<nb::tuple, std::uint64_t, std::int64_t, std::uint64_t, nb::str>;

nb::typed<nb::list, LineTuple> handed_out(const std::vector<SievedLine>& lines) {
    nb::list made;
    for (const SievedLine& line : lines) {
        made.append(nb::make_tuple(line.number, line.speaker, line.shape, decoded(line.text)));
    }
    return made;
}

nb::typed<nb::list, LineTuple> feed(LogSieve& sieve, const nb::bytes& block) {
    const std::string_view bytes{block.c_str(), block.size()};
    std::vector<SievedLine> lines;
    {
        const nb::gil_scoped_release release;
        lines = sieve.feed(bytes);
    }
    return handed_out(lines);
}

nb::typed<nb::list, nb::str> decoded_all(const std::vector<std::string>& texts) {
    nb::list made;
    for (const std::string& text : texts) {
        made.append(decoded(text));
    }
    return made;
}

using ConnectionTuple = nb::typed<nb::tuple, std::uint32_t, std::uint32_t, std::int32_t, std::int32_t, std::uint64_t>;

nb::typed<nb::list, ConnectionTuple> connections(const LogSieve& sieve) {
    nb::list made;
    for (const auto& [key, count] : sieve.connections()) {
        made.append(nb::make_tuple(key.speaker, key.via, key.from, key.to, count));
    }
    return made;
}

nb::typed<nb::list, nb::typed<nb::tuple, nb::str, std::uint64_t>> choices(const LogSieve& sieve) {
    nb::list made;
    for (const auto& [text, count] : sieve.choices()) {
        made.append(nb::make_tuple(decoded(text), count));
    }
    return made;
}

}  // namespace

void bind_logs(nb::module_& module) {
    nb::class_<LogSieve>(module, "LogSieve")
        .def(nb::init<std::vector<std::string>>(), "needles"_a)
        .def("feed", feed, "block"_a)
        .def("finish", [](LogSieve& sieve) { return handed_out(sieve.finish()); })
        .def(
            "again",
            [](LogSieve& sieve, const std::string& line, std::uint64_t number) {
                return handed_out(sieve.again(line, number));
            },
            "line"_a, "number"_a)
        .def("ignore", &LogSieve::ignore, "shape"_a)
        .def(
            "learn",
            [](LogSieve& sieve, const std::string& line, const std::vector<std::pair<std::size_t, std::size_t>>& spans,
               std::int64_t token) { sieve.learn(line, spans, token); },
            "line"_a, "spans"_a, "token"_a)
        .def("forget", &LogSieve::forget)
        .def_prop_ro("lines", &LogSieve::lines)
        .def_prop_ro("nccl_lines", &LogSieve::nccl_lines)
        .def_prop_ro("too_long", &LogSieve::too_long)
        .def("speakers", [](const LogSieve& sieve) { return decoded_all(sieve.speakers()); })
        .def("ways", [](const LogSieve& sieve) { return decoded_all(sieve.ways()); })
        .def("connections", connections)
        .def("choices", choices);
}

}  // namespace busbw
