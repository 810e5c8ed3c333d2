"""What a collective is predicted to take, and measured cells held against it, on a terminal."""

import csv
import io
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from busbw.base.text import counted, printable
from busbw.base.units import format_rate, format_size, format_time
from busbw.model.predict.nccl_choice import PredictedChoice
from busbw.model.predict.prediction import (
    ChangedCall,
    HeldTable,
    PredictedCall,
    PredictedSize,
    Prediction,
    SimulatedCall,
)
from busbw.show.lines import say
from busbw.show.text.terminal import console

COLUMNS = (
    "platform", "collective", "nodes", "ranks", "size_bytes", "algorithm", "protocol", "time_s", "busbw_GBps",
    "low_GBps", "high_GBps", "bound_GBps", "kinship", "cannot", "what_if", "ratio", "low_ratio",
    "high_ratio",
)  # fmt: skip

_LEAST_GBps = 1e8


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
    out.print(_table(found.rows, several=len(nodes) > 1))
    out.print()
    for line in _foundations(found, explained=explained):
        say(out, Text(printable(line)))


def _table(rows: Sequence[PredictedSize], *, several: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    if several:
        table.add_column("nodes", justify="right")
    for name in ("size", "time", "busbw"):
        table.add_column(name, justify="right")
    for name in ("90 %", "algorithm", "most of it"):
        table.add_column(name)
    for row in rows:
        table.add_row(*([str(row.nodes)] if several else []), *_cells(row))
    return table


def _cells(row: PredictedSize) -> tuple[str, ...]:
    call = row.expected
    if call is None:
        return format_size(row.size_bytes), "", "", "cannot tell", "", ""
    return (
        format_size(row.size_bytes),
        format_time(call.time_s),
        format_rate(call.busbw_Bps),
        _between(call),
        f"{call.algorithm}{_protocol(row, call)}",
        call.mostly,
    )


def _between(call: PredictedCall) -> str:
    """Return the interval, in GB/s without the unit where that has three digits."""
    if call.low_Bps < _LEAST_GBps:
        return f"{format_rate(call.low_Bps)} to {format_rate(call.high_Bps)}"
    return f"{call.low_Bps / 1e9:.3g} to {call.high_Bps / 1e9:.3g}"


def _protocol(row: PredictedSize, call: PredictedCall) -> str:
    """Return the protocol that NCCL would take, where it takes this algorithm."""
    taken = row.choice.chosen if row.choice is not None else None
    return f" {taken.protocol}" if taken is not None and taken.algorithm == call.algorithm else ""


def _foundations(found: Prediction, *, explained: bool) -> list[str]:
    told = [row for row in found.rows if row.expected is not None]
    calls = [row.expected for row in told if row.expected is not None]
    lines = [f"cannot tell: {reason}" for reason in dict.fromkeys(row.cannot for row in found.rows if row.cannot)]
    lines += [f"algorithm: {by}" for by in dict.fromkeys(row.chosen_by for row in told)]
    lines += [f"interval: {words}" for words in dict.fromkeys(call.interval_words for call in calls)]
    lines += [
        f"extrapolated: {words}" for words in dict.fromkeys(words for call in calls for words in call.extrapolated)
    ]
    lines += [_changed_words(row, row.changed) for row in told if row.changed is not None]
    lines += [f"by {row.simulated.tier}: {_simulated_words(row, row.simulated)}" for row in told if row.simulated]
    beside = dict.fromkeys(row.cannot_simulate for row in told if row.cannot_simulate)
    lines += [f"by {found.beside}: cannot tell: {reason}" for reason in beside]
    untold = dict.fromkeys(row.cannot_change for row in told if row.cannot_change)
    lines += [f"what if: cannot tell: {reason}" for reason in untold]
    documents = dict.fromkeys(document for call in calls for document in call.documents)
    if documents:
        lines.append(f"constants: fitted to {', '.join(documents)}; tier {found.tier} (docs/method-predicting.md)")
    if explained:
        lines += [f"  {words}" for words in dict.fromkeys(words for call in calls for words in call.basis)]
        lines += [_way_words(row, call) for row in told for call in row.others]
        lines += [f"  {row.simulated.tier}: {row.simulated.words}" for row in told if row.simulated]
        lines += [words for row in told if row.choice is not None for words in _choice_words(row.choice)]
    return lines + [f"note: {note}" for note in found.notes]


def _changed_words(row: PredictedSize, changed: ChangedCall) -> str:
    what = f"{format_size(row.size_bytes)} on {counted(row.nodes, 'node')}"
    between = f"{changed.low_ratio:.2f} to {changed.high_ratio:.2f}"
    rate = f"about {format_rate(changed.busbw_Bps)}, by {changed.algorithm}"
    tier = f"; tier {changed.tier}" if changed.tier != "closed" else ""
    assumed = f"; between: {'; '.join(changed.assumed)}" if len(changed.assumed) > 1 else ""
    return f"what if {changed.words}: {what}: x {changed.ratio:.2f} (90 %: {between}), {rate}{tier}{assumed}"


def _simulated_words(row: PredictedSize, call: SimulatedCall) -> str:
    what = f"{format_size(row.size_bytes)} on {counted(row.nodes, 'node')}"
    return f"{what}: {format_time(call.time_s)}, {format_rate(call.busbw_Bps)}, by {call.algorithm}; no interval"


def _way_words(row: PredictedSize, call: PredictedCall) -> str:
    share = f"{format_rate(call.low_Bps)} to {format_rate(call.high_Bps)}"
    what = f"{format_size(row.size_bytes)} on {counted(row.nodes, 'node')}"
    return f"  {what} by {call.algorithm}: {format_time(call.time_s)}, {format_rate(call.busbw_Bps)} ({share})"


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
            rows.writerow((*head, *[""] * 8, row.cannot, *[""] * 4))
            continue
        rates = (f"{rate / 1e9:.6g}" for rate in (call.busbw_Bps, call.low_Bps, call.high_Bps, call.bound_Bps))
        name = _protocol(row, call).strip()
        rows.writerow((*head, call.algorithm, name, f"{call.time_s:.6g}", *rates, call.kinship, "", *_ratio_cells(row)))
    return text.getvalue()


def _ratio_cells(row: PredictedSize) -> tuple[str, ...]:
    changed = row.changed
    if changed is None:
        return "", "", "", ""
    return changed.words, *(f"{ratio:.6g}" for ratio in (changed.ratio, changed.low_ratio, changed.high_ratio))


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
    say(out, Text("e = |ln(predicted / measured)|; a document that constants were fitted to proves nothing about them"))
