// The analysis of a fabric, for Python: columns are arrays of its module `array`, read and written in place. The
// interpreter's lock is let go of while they are gone over.
#include "bind_fabric.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fabric_fit.hpp"
#include "fabric_scan.hpp"
#include "pair_lines.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace busbw {

namespace {

template <class Value>
constexpr char format_of() {
    using Plain = std::remove_const_t<Value>;
    return std::is_same_v<Plain, double> ? 'd' : std::is_same_v<Plain, std::int32_t> ? 'i' : 'B';
}

// An array of Python's, which its owner cannot resize while this lives. `Value` is const where it is only read.
template <class Value>
class Column {
   public:
    // Throws nanobind::python_error where `memory` is no such memory, std::invalid_argument for other elements.
    explicit Column(nb::handle memory) : view_{view_of(memory)} {
        const std::string format = view_->format == nullptr ? "B" : view_->format;
        if (format != std::string(1, format_of<Value>()) || view_->itemsize != sizeof(Value)) {
            throw std::invalid_argument("an array of '" + std::string(1, format_of<Value>()) + "' was expected, not '" +
                                        format + "'");
        }
    }
    [[nodiscard]] std::span<Value> values() const {
        return {static_cast<Value*>(view_->buf), static_cast<std::size_t>(view_->len) / sizeof(Value)};
    }

   private:
    struct Release {
        void operator()(Py_buffer* view) const noexcept {
            PyBuffer_Release(view);
            delete view;
        }
    };
    static std::unique_ptr<Py_buffer, Release> view_of(nb::handle memory) {
        auto view = std::make_unique<Py_buffer>();
        const int wanted = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (std::is_const_v<Value> ? 0 : PyBUF_WRITABLE);
        if (PyObject_GetBuffer(memory.ptr(), view.get(), wanted) != 0) {
            throw nb::python_error();
        }
        return std::unique_ptr<Py_buffer, Release>{view.release()};
    }

    std::unique_ptr<Py_buffer, Release> view_;
};

using Numbers = Column<const std::int32_t>;
using Reals = Column<const double>;
using Marks = Column<const std::uint8_t>;

FabricTerms fit(nb::handle senders, nb::handle receivers, nb::handle rounds, nb::handle kinds, nb::handle logs,
                nb::handle leaves, nb::handle rails, bool twoway, nb::handle residuals) {
    const Numbers held_senders{senders}, held_receivers{receivers}, held_rounds{rounds}, held_kinds{kinds};
    const Numbers held_leaves{leaves}, held_rails{rails};
    const Reals held_logs{logs};
    const Column<double> into{residuals};
    const nb::gil_scoped_release release;
    return fit_fabric(
        {held_senders.values(), held_receivers.values(), held_rounds.values(), held_kinds.values(), held_logs.values()},
        {held_leaves.values(), held_rails.values()}, twoway, into.values());
}

void logs_of(nb::handle values, bool inverse, nb::handle logs) {
    const Reals from{values};
    const Column<double> into{logs};
    const nb::gil_scoped_release release;
    log_slowness(from.values(), inverse, into.values());
}

void kinds_of(nb::handle senders, nb::handle receivers, nb::handle leaves, nb::handle groups, nb::handle kinds) {
    const Numbers held_senders{senders}, held_receivers{receivers}, held_leaves{leaves}, held_groups{groups};
    const Column<std::int32_t> into{kinds};
    const nb::gil_scoped_release release;
    hop_kinds(
        {.senders = held_senders.values(), .receivers = held_receivers.values(), .rounds = {}, .kinds = {}, .logs = {}},
        held_leaves.values(), held_groups.values(), into.values());
}

// What of tests a scan goes over.
struct Scanned {
    Scanned(nb::handle senders, nb::handle receivers, nb::handle residuals)
        : senders_{senders}, receivers_{receivers}, residuals_{residuals} {}
    [[nodiscard]] PairColumns columns() const {
        return {.senders = senders_.values(), .receivers = receivers_.values(), .rounds = {}, .kinds = {}, .logs = {}};
    }
    [[nodiscard]] std::span<const double> residuals() const { return residuals_.values(); }

   private:
    Numbers senders_;
    Numbers receivers_;
    Reals residuals_;
};

std::vector<Unsteady> unsteady_of(nb::handle senders, nb::handle receivers, nb::handle rounds, nb::handle residuals,
                                  nb::handle sender_terms, nb::handle receiver_terms, nb::handle leaves,
                                  nb::handle explained, double large, double sound, std::size_t fewest) {
    const Scanned scanned{senders, receivers, residuals};
    const Numbers held_rounds{rounds}, held_leaves{leaves};
    const Reals held_senders{sender_terms}, held_receivers{receiver_terms};
    const Marks held_explained{explained};
    PairColumns columns = scanned.columns();
    columns.rounds = held_rounds.values();
    const nb::gil_scoped_release release;
    return unsteady(columns, scanned.residuals(), {held_senders.values(), held_receivers.values()},
                    held_leaves.values(), held_explained.values(), large, sound, fewest);
}

std::vector<RegionCell> cells_of(nb::handle senders, nb::handle receivers, nb::handle residuals, nb::handle regions) {
    const Scanned scanned{senders, receivers, residuals};
    const Numbers held_regions{regions};
    const nb::gil_scoped_release release;
    return region_cells(scanned.columns(), scanned.residuals(), held_regions.values());
}

Crossings crossings_of(nb::handle senders, nb::handle receivers, nb::handle residuals, nb::handle leaves,
                       double least) {
    const Scanned scanned{senders, receivers, residuals};
    const Numbers held_leaves{leaves};
    const nb::gil_scoped_release release;
    return crossings(scanned.columns(), scanned.residuals(), held_leaves.values(), least);
}

std::vector<std::uint32_t> marked_tests(nb::handle senders, nb::handle receivers, nb::handle marked) {
    const Numbers held_senders{senders}, held_receivers{receivers};
    const Marks held_marks{marked};
    const nb::gil_scoped_release release;
    return tests_of(
        {.senders = held_senders.values(), .receivers = held_receivers.values(), .rounds = {}, .kinds = {}, .logs = {}},
        held_marks.values());
}

template <class Value>
nb::bytes bytes_of(const std::vector<Value>& values) {
    return nb::bytes{static_cast<const void*>(values.data()), values.size() * sizeof(Value)};
}

using ReadLines = nb::typed<nb::tuple, std::size_t, std::size_t, nb::bytes, nb::bytes, nb::bytes, nb::bytes>;

ReadLines read_lines(const PairLines& lines, const nb::bytes& text, std::size_t at) {
    const std::string_view content{text.c_str(), text.size()};
    PairRows rows;
    std::size_t end = at;
    {
        const nb::gil_scoped_release release;
        end = lines.read(content, at, rows);
    }
    return nb::make_tuple(end, rows.values.size(), bytes_of(rows.senders), bytes_of(rows.receivers),
                          bytes_of(rows.rounds), bytes_of(rows.values));
}

}  // namespace

void bind_fabric(nb::module_& module) {
    nb::class_<RoundTerm>(module, "RoundTerm")
        .def_ro("round", &RoundTerm::round)
        .def_ro("kind", &RoundTerm::kind)
        .def_ro("value", &RoundTerm::value);
    nb::class_<FabricTerms>(module, "FabricTerms")
        .def_ro("overall", &FabricTerms::overall)
        .def_ro("noise", &FabricTerms::noise)
        .def_ro("hops", &FabricTerms::hops)
        .def_ro("rails", &FabricTerms::rails)
        .def_ro("up", &FabricTerms::up)
        .def_ro("down", &FabricTerms::down)
        .def_ro("rounds", &FabricTerms::rounds)
        .def_ro("senders", &FabricTerms::senders)
        .def_ro("receivers", &FabricTerms::receivers)
        .def_ro("sent", &FabricTerms::sent)
        .def_ro("received", &FabricTerms::received);
    nb::class_<Unsteady>(module, "Unsteady")
        .def_ro("endpoint", &Unsteady::endpoint)
        .def_ro("effect", &Unsteady::effect);
    nb::class_<RegionCell>(module, "RegionCell")
        .def_ro("one", &RegionCell::one)
        .def_ro("other", &RegionCell::other)
        .def_ro("tests", &RegionCell::tests)
        .def_ro("ends", &RegionCell::ends)
        .def_ro("median", &RegionCell::median)
        .def_ro("least", &RegionCell::least);
    nb::class_<Crossings>(module, "Crossings").def_ro("by_leaf", &Crossings::by_leaf).def_ro("slow", &Crossings::slow);
    module.def("fit_fabric", fit, "senders"_a, "receivers"_a, "rounds"_a, "kinds"_a, "logs"_a, "leaves"_a, "rails"_a,
               "twoway"_a, "residuals"_a);
    module.def("log_slowness", logs_of, "values"_a, "inverse"_a, "logs"_a);
    module.def("hop_kinds", kinds_of, "senders"_a, "receivers"_a, "leaves"_a, "groups"_a, "kinds"_a);
    module.def("unsteady", unsteady_of, "senders"_a, "receivers"_a, "rounds"_a, "residuals"_a, "sender_terms"_a,
               "receiver_terms"_a, "leaves"_a, "explained"_a, "large"_a, "sound"_a, "fewest"_a);
    module.def("region_cells", cells_of, "senders"_a, "receivers"_a, "residuals"_a, "regions"_a);
    module.def("crossings", crossings_of, "senders"_a, "receivers"_a, "residuals"_a, "leaves"_a, "least"_a);
    module.def("tests_of", marked_tests, "senders"_a, "receivers"_a, "marked"_a);
    nb::class_<PairLines>(module, "PairLines")
        .def(nb::init<char, std::int32_t>(), "separator"_a, "most_rounds"_a)
        .def("know_endpoint", &PairLines::know_endpoint, "text"_a, "endpoint"_a, "node"_a)
        .def("know_unit", &PairLines::know_unit, "text"_a, "scale"_a)
        .def("read", read_lines, "text"_a, "at"_a);
}

}  // namespace busbw
