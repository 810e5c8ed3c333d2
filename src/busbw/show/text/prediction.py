"""What a collective or a step is predicted to take, and measured cells held against it, on a terminal."""

import csv
import io
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from busbw.base.text import counted, printable
from busbw.base.units import format_rate, format_size, format_time, rate_range
from busbw.model.predict.nccl_choice import PredictedChoice
from busbw.model.predict.prediction import (
    HeldTable,
    Kinship,
    Narrower,
    PredictedCall,
    PredictedSize,
    Prediction,
    Sensitivity,
    SimulatedCall,
    TimedSchedule,
)
from busbw.model.predict.step import PredictedStep, PredictedTerm, TimeSpan
from busbw.predict.intervals import band_of
from busbw.show.lines import say
from busbw.show.text.terminal import console

_KINSHIP: dict[Kinship, str] = {
    "in family": "the constant that counts most is from such GPUs and such a network",
    "across": "the constant that counts most is from other GPUs or another network",
    "calibrated": "shifted by measured sizes of the machine itself",
}
# Detail of `predict.intervals` that is the same for every call.
_POOLED = "a document counts by its farthest cell; the average of all counts as three more documents like this"
COLUMNS = (
    "platform", "collective", "nodes", "ranks", "size_bytes", "algorithm", "protocol", "time_s", "busbw_GBps",
    "low_GBps", "high_GBps", "bound_GBps", "kinship", "cannot", "what_if", "ratio", "low_ratio",
    "high_ratio", "cannot_change", "tier", "tier_time_s", "tier_busbw_GBps", "cannot_tier",
)  # fmt: skip


def prediction_text(found: Prediction, *, explained: bool) -> None:
    """Print a table of sizes, then what it rests on; with `explained` each constant and each other way."""
    out = console()
    nodes = sorted({row.nodes for row in found.rows})
    where = counted(nodes[0], "node") if len(nodes) == 1 else f"{', '.join(map(str, nodes))} nodes"
    gpus = f"of {counted(found.gpus, 'GPU')}" if found.gpus else "without GPUs"
    ranks = f", {counted(nodes[0] * found.gpus, 'rank')}" if len(nodes) == 1 and found.gpus else ""
    asked = f"{found.collective} on {where} {gpus}{ranks}"
    say(out, Text(f"{found.name}: {asked}; predicted, nothing of it is measured"))
    out.print()
    several = len(nodes) > 1
    out.print(_table(found.rows, several=several))
    out.print()
    told = [row for row in found.rows if row.expected is not None]
    for title, table in (
        *_changed_tables(told, several=several),
        *(_other_ways_tables(told, several=several) if explained else ()),
    ):
        say(out, Text(printable(title)))
        out.print(table)
        out.print()
    for line in _foundations(found, explained=explained):
        say(out, Text(printable(line)))


def _table(rows: Sequence[PredictedSize], *, several: bool) -> Table:
    table = _empty_table(("size", "time", "busbw"), ("90 %", "algorithm", "most of it"), several=several)
    for row in rows:
        table.add_row(*([str(row.nodes)] if several else []), *_cells(row))
    return table


def _empty_table(numbers: Sequence[str], words: Sequence[str], *, several: bool) -> Table:
    """Return a table without rows: the nodes where there are several, columns of numbers, then of words."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in (*(["nodes"] if several else []), *numbers):
        table.add_column(name, justify="right")
    for name in words:
        table.add_column(name)
    return table


def _changed_tables(rows: Sequence[PredictedSize], *, several: bool) -> list[tuple[str, Table]]:
    """Return what changes of the machine would give, a table for each set of changes, with its title."""
    tables: dict[str, Table] = {}
    for row in rows:
        changed = row.changed
        if changed is None:
            continue
        tier = f", tier {changed.tier}" if changed.tier != "closed" else ""
        title = f"what if {changed.words}{tier}"
        if title not in tables:
            tables[title] = _empty_table(("size", "ratio"), ("90 %", "busbw", "algorithm"), several=several)
        tables[title].add_row(
            *([str(row.nodes)] if several else []),
            format_size(row.size_bytes),
            f"x {changed.ratio:.2f}",
            f"{changed.low_ratio:.2f} to {changed.high_ratio:.2f}",
            f"about {format_rate(changed.busbw_Bps)}",
            changed.algorithm,
        )
    return list(tables.items())


def _other_ways_tables(rows: Sequence[PredictedSize], *, several: bool) -> list[tuple[str, Table]]:
    """Return what the other algorithms are predicted to take, as one table with its title, or none."""
    if not any(row.others for row in rows):
        return []
    table = _empty_table(("size", "time", "busbw"), ("90 %", "algorithm"), several=several)
    for row in rows:
        for call in row.others:
            table.add_row(
                *([str(row.nodes)] if several else []),
                format_size(row.size_bytes),
                format_time(call.time_s),
                format_rate(call.busbw_Bps),
                rate_range(call.low_Bps, call.high_Bps),
                call.algorithm,
            )
    return [("by other algorithms", table)]


def _cells(row: PredictedSize) -> tuple[str, ...]:
    call = row.expected
    if call is None:
        return format_size(row.size_bytes), "", "", "cannot tell", "", ""
    return (
        format_size(row.size_bytes),
        format_time(call.time_s),
        format_rate(call.busbw_Bps),
        rate_range(call.low_Bps, call.high_Bps),
        f"{call.algorithm}{_protocol(row, call)}",
        call.mostly,
    )


def _protocol(row: PredictedSize, call: PredictedCall) -> str:
    """Return the protocol that NCCL would take, where it takes this algorithm; nothing for Simple."""
    taken = row.choice.chosen if row.choice is not None else None
    is_told = taken is not None and taken.algorithm == call.algorithm and taken.protocol != "Simple"
    return f" {taken.protocol}" if taken is not None and is_told else ""


def _foundations(found: Prediction, *, explained: bool) -> list[str]:
    told = [row for row in found.rows if row.expected is not None]
    calls = [row.expected for row in told if row.expected is not None]
    lines = [f"cannot tell: {reason}" for reason in dict.fromkeys(row.cannot for row in found.rows if row.cannot)]
    lines += [f"algorithm: {by}" for by in dict.fromkeys(row.chosen_by for row in told)]
    lines += [_kinship_words(calls, kinship, found.tier) for kinship in dict.fromkeys(call.kinship for call in calls)]
    lines += [f"interval: {words}" for words in dict.fromkeys(call.interval_words for call in calls)]
    lines += [
        f"extrapolated: {words}" for words in dict.fromkeys(words for call in calls for words in call.extrapolated)
    ]
    lines += [_shift_words(row, row.before, row.expected) for row in told if row.before and row.expected]
    if calls:
        largest = max(calls, key=lambda call: (call.nodes, call.size_bytes))
        lines.append(f"widest part of the interval of {_call_words(largest)}: {largest.widest}")
    lines += [_narrower_words(found.narrower)] if found.narrower is not None else []
    lines += [f"what if: between: {words}" for words in dict.fromkeys(_assumed_words(row) for row in told) if words]
    lines += [f"by {row.simulated.tier}: {_simulated_words(row, row.simulated)}" for row in told if row.simulated]
    lines += [_line_rate_words(row, call) for row in found.rows for call in row.at_line_rate]
    beside = dict.fromkeys(row.cannot_simulate for row in found.rows if row.cannot_simulate)
    lines += [f"by {found.beside}: cannot tell: {reason}" for reason in beside]
    untold = dict.fromkeys(row.cannot_change for row in told if row.cannot_change)
    lines += [f"what if: cannot tell: {reason}" for reason in untold]
    documents = dict.fromkeys(document for call in calls for document in call.documents)
    if documents:
        lines.append(f"constants: fitted to {', '.join(documents)} (docs/method-predicting.md)")
    if explained:
        lines += _sensitivity_words(found.sensitivity) if found.sensitivity is not None else []
        lines += [f"  {words}" for words in dict.fromkeys(words for call in calls for words in call.basis)]
        lines += [f"  interval: {_POOLED}"] if calls else []
        lines += [f"  {row.simulated.tier}: {row.simulated.words}" for row in told if row.simulated]
        lines += [f"  {call.algorithm}: {call.words}" for row in found.rows for call in row.at_line_rate]
        lines += [words for row in told if row.choice is not None for words in _choice_words(row.choice)]
    return lines + [f"note: {note}" for note in found.notes]


def _shift_words(row: PredictedSize, before: PredictedCall, after: PredictedCall) -> str:
    """Return what calibrating cells changed: the rate, its interval, and the constant of large messages."""
    what = f"{format_size(row.size_bytes)} on {counted(row.nodes, 'node')}"
    rates = f"{format_rate(before.busbw_Bps)} -> {format_rate(after.busbw_Bps)}"
    if before.share is not None and after.share is not None and band_of(row.size_bytes) == "large":
        constant = f"; {after.limited_by}: {before.share:.3f} -> {after.share:.3f} of line rate"
    else:
        constant = f"; each part of its time x {after.time_s / before.time_s:.3f}"
    ends = " -> ".join(rate_range(each.low_Bps, each.high_Bps) for each in (before, after))
    return f"calibrated: {what}: {rates}; 90 %: {ends}{constant}"


def _kinship_words(calls: Sequence[PredictedCall], kinship: Kinship, tier: str) -> str:
    alike = [call for call in calls if call.kinship == kinship]
    documents = dict.fromkeys(name for call in alike for name in call.documents)
    unmeasured = dict.fromkeys(call.unmeasured for call in alike if call.unmeasured is not None)
    if kinship == "across" and unmeasured:
        words = "; ".join(unmeasured)
        if not all(call.unmeasured for call in alike):
            words += "; in other rows the constant that counts most is from other GPUs or another network"
    elif any(call.presumed for call in alike):
        words = "no document tells its links or network; cells of the machine itself do"
    else:
        words = _KINSHIP[kinship]
    return f"{kinship}: {words}; {counted(len(documents), 'document')}, tier {tier}"


def _narrower_words(narrower: Narrower) -> str:
    what = f"one measured size on {counted(narrower.nodes, 'node')} (--calibrate RUN)"
    before, after = (f"+-{100 * width:.0f} %" for width in (narrower.half_width, narrower.calibrated_half_width))
    if narrower.calibrated_half_width >= narrower.half_width or before == after:
        return f"{what} would shift it and not make it narrower than {before}"
    other = "" if narrower.nodes in (1, 2) else "; one on 2 nodes would only shift it"
    return f"{what} would make it {after} instead of {before}{other}"


def _call_words(call: PredictedCall) -> str:
    return f"{format_size(call.size_bytes)} on {counted(call.nodes, 'node')}"


def _sensitivity_words(found: Sensitivity) -> list[str]:
    """Return what each input is worth, a line each, the one that matters most first."""
    what = f"{format_size(found.size_bytes)} on {counted(found.nodes, 'node')}"
    lines = [f"  what each input is worth, {100 * found.change:.0f} % less and more, for {what}:"]
    for each in found.inputs:
        less, more = (100 * (rate / found.busbw_Bps - 1) for rate in (each.less_Bps, each.more_Bps))
        fitted = " (fitted)" if each.is_fitted else ""
        lines.append(f"    {less:+6.1f} % to {more:+6.1f} %  {each.name}{fitted}")
    return lines


def _assumed_words(row: PredictedSize) -> str:
    """Return what the ends of the changed interval assume, where nobody has published which of them holds."""
    assumed = row.changed.assumed if row.changed is not None else ()
    return "; ".join(assumed) if len(assumed) > 1 else ""


def _simulated_words(row: PredictedSize, call: SimulatedCall) -> str:
    what = f"{format_size(row.size_bytes)} on {counted(row.nodes, 'node')}"
    return f"{what}: {format_time(call.time_s)}, {format_rate(call.busbw_Bps)}, by {call.algorithm}; no interval"


def _line_rate_words(row: PredictedSize, call: SimulatedCall) -> str:
    what = f"{format_size(row.size_bytes)} on {counted(row.nodes, 'node')}"
    told = f"{format_time(call.time_s)}, {format_rate(call.busbw_Bps)}, by {call.algorithm}"
    return f"at line rate, by {call.tier}: {what}: {told}; no prediction: latency, software and losses are left out"


def _choice_words(choice: PredictedChoice) -> list[str]:
    taken = choice.chosen
    channels = f"{taken.channels} channels" if taken.channels is not None else "channels not known"
    next_best = choice.others[0] if choice.others else None
    after = f"; then {next_best.algorithm} {next_best.protocol}, {next_best.time_us:.1f} us" if next_best else ""
    counted_for = f"{taken.time_us:.1f} us for {format_size(choice.size_bytes)} by {taken.algorithm} {taken.protocol}"
    with_most = f"at most {channels} of {taken.threads} threads"
    if taken.chunk_bytes is not None:
        with_most += f", chunks of {format_size(taken.chunk_bytes)}"
    return [f"  NCCL {choice.release} counts {counted_for}, {with_most}{after} (for choosing; no time)"]


def prediction_csv(found: Prediction) -> str:
    """Return a row a size, comma-separated, with a heading."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for row in found.rows:
        call = row.expected
        head = (found.name, found.collective, row.nodes, row.nodes * found.gpus, row.size_bytes)
        if call is None:
            rows.writerow((*head, *[""] * 8, row.cannot, *[""] * 5, *_tier_cells(found, row)))
            continue
        rates = (f"{rate / 1e9:.6g}" for rate in (call.busbw_Bps, call.low_Bps, call.high_Bps, call.bound_Bps))
        name = _protocol(row, call).strip()
        rows.writerow(
            (
                *head,
                call.algorithm,
                name,
                f"{call.time_s:.6g}",
                *rates,
                call.kinship,
                "",
                *_ratio_cells(row),
                *_tier_cells(found, row),
            )
        )
    return text.getvalue()


def _ratio_cells(row: PredictedSize) -> tuple[str, ...]:
    changed = row.changed
    if changed is None:
        return "", "", "", "", row.cannot_change or ""
    return changed.words, *(f"{ratio:.6g}" for ratio in (changed.ratio, changed.low_ratio, changed.high_ratio)), ""


def _tier_cells(found: Prediction, row: PredictedSize) -> tuple[str, ...]:
    """Return what steps or events make of a call, where that was asked for; of SHARP at line rate nothing."""
    tier = found.beside or ""
    if row.simulated is None:
        return tier, "", "", row.cannot_simulate or (row.cannot or "" if tier else "")
    return tier, f"{row.simulated.time_s:.6g}", f"{row.simulated.busbw_Bps / 1e9:.6g}", ""


def timed_text(found: TimedSchedule) -> None:
    """Print what a schedule of somebody else takes, size by size."""
    out = console()
    where = f"{counted(found.nodes, 'node')} of {found.name}, {counted(found.ranks, 'rank')}"
    acts = f"{found.acts} sends, receives and calculations"
    say(out, Text(printable(f"{found.where}: {found.collective} by {found.form}, {acts}")))
    say(out, Text(f"on {where}; predicted, nothing of it is measured"))
    out.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("size", "time", "busbw"):
        table.add_column(name, justify="right")
    for row in found.rows:
        call = row.timed
        told = ("cannot tell", "") if call is None else (format_time(call.time_s), format_rate(call.busbw_Bps))
        table.add_row(format_size(row.size_bytes), *told)
    out.print(table)
    out.print()
    for reason in dict.fromkeys(row.cannot for row in found.rows if row.cannot):
        say(out, Text(printable(f"cannot tell: {reason}")))
    timed = [row.timed for row in found.rows if row.timed is not None]
    for call in timed[-1:]:
        say(out, Text(f"tier {call.tier}: {call.words}"))
    if timed:
        say(out, Text(f"links and hops: what was fitted to {found.constants}; no interval (docs/method-predicting.md)"))


def held_text(found: HeldTable) -> None:
    """Print what each document makes of the predictions, and each cell outside of its interval."""
    out = console()
    cells = counted(len(found.cells), "cell")
    say(
        out,
        Text(
            f"{printable(found.where)}: {cells} of {counted(len({each.document for each in found.cells}), 'document')}"
        ),
    )
    out.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("document", "sizes", "cells", "told", "median e", "inside", "half-width", "machines"):
        table.add_column(name, justify="left" if name in ("document", "sizes", "machines") else "right")
    names = {"large": "1 GiB on", "middle": "1 MiB on", "small": "below"}
    for each in found.documents:
        table.add_row(
            printable(each.document),
            names[each.band],
            str(each.cells),
            str(each.told),
            f"{100 * each.median_error:.1f} %" if each.median_error is not None else "",
            str(each.inside),
            f"{100 * each.half_width:.0f} %" if each.half_width is not None else "",
            each.kinship or "",
        )
    if found.documents:
        out.print(table)
        out.print()
    outside = [cell for cell in found.cells if cell.is_inside is False]
    for cell in outside[:20]:
        call = cell.predicted
        if call is not None:
            say(
                out,
                Text(
                    f"outside: {printable(cell.document)}, {cell.collective} of {format_size(cell.size_bytes)} on "
                    f"{counted(cell.nodes, 'node')}: {format_rate(cell.measured_Bps)}, not "
                    f"{format_rate(call.low_Bps)} to {format_rate(call.high_Bps)}"
                ),
            )
    if len(outside) > 20:
        say(out, Text(f"and {len(outside) - 20} more; --json has all"))
    for reason in dict.fromkeys(cell.cannot for cell in found.cells if cell.cannot):
        say(out, Text(printable(f"cannot tell: {reason}")))
    for words in found.left_out:
        say(out, Text(printable(f"left out: {words}")))
    if not found.cells and not found.left_out:
        say(out, Text("cannot tell: the table has no rows"))
    say(out, Text("e = |ln(predicted / measured)|; a document that constants were fitted to proves nothing about them"))


def step_text(found: PredictedStep) -> None:
    """Print each kind of call, then the sum of a step, what of it is exposed, and what that rests on."""
    out = console()
    head = f"{found.workload} on {counted(found.gpus, 'GPU')} of {found.platform}: communication of one rank in a step"
    say(out, Text(printable(f"{head}; predicted, nothing of it is measured")))
    out.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("call", "group"):
        table.add_column(name)
    for name in ("size", "calls", "all of them"):
        table.add_column(name, justify="right")
    for name in ("90 %", "exposed", "algorithm"):
        table.add_column(name)
    for term in found.terms:
        table.add_row(*_term_cells(term))
    out.print(table)
    out.print()
    say(out, Text(f"a step communicates {_span_words(found.total)}"))
    say(
        out,
        Text(
            f"exposed: {_span_words(found.exposed)}; of {format_time(found.overlappable_s)} that may overlap "
            f"{100 * found.overlap:.0f} % is taken to be hidden (--overlap)"
        ),
    )
    if found.classes:
        rest = "errors are added among calls of one class (algorithm, what limits), by squares between classes"
        say(out, Text(printable(f"interval: {rest}: {'; '.join(found.classes)}")))
    for words in dict.fromkeys(found.untold):
        say(out, Text(printable(f"cannot tell, and in no sum: {words}")))


def _term_cells(term: PredictedTerm) -> tuple[str, ...]:
    nodes = f"{term.group}, {term.ranks} on {counted(term.nodes, 'node')}"
    head = (printable(term.name), nodes, format_size(term.size_bytes), str(term.calls))
    if term.total is None or term.exposed is None or term.call is None:
        return *head, "", "cannot tell" if term.cannot else "nothing", "", ""
    exposed = format_time(term.exposed.time_s) if term.exposed.time_s else "hidden"
    return *head, format_time(term.total.time_s), _span_ends(term.total), exposed, term.call.algorithm


def _span_words(span: TimeSpan) -> str:
    return f"{format_time(span.time_s)} (90 %: {_span_ends(span)})"


def _span_ends(span: TimeSpan) -> str:
    return f"{format_time(span.low_s)} to {format_time(span.high_s)}"
