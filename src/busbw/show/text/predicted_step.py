"""What the communication of a training step is predicted to take, on a terminal.

Alone because a prediction of one collective has no step.
"""

from rich.table import Table
from rich.text import Text

from busbw.base.text import counted, printable
from busbw.base.units import format_size, format_time
from busbw.model.predict.step import PredictedStep, PredictedTerm, TimeSpan
from busbw.show.lines import say
from busbw.show.text.terminal import console


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
        table.add_row(*_cells(term))
    out.print(table)
    out.print()
    say(out, Text(f"a step communicates {_words(found.total)}"))
    say(
        out,
        Text(
            f"exposed: {_words(found.exposed)}; of {format_time(found.overlappable_s)} that may overlap "
            f"{100 * found.overlap:.0f} % is taken to be hidden (--overlap)"
        ),
    )
    if found.classes:
        rest = "its terms rest on one constant each, and their errors are added"
        say(out, Text(printable(f"interval: {'; '.join(found.classes)}: {rest}")))
    for words in dict.fromkeys(found.untold):
        say(out, Text(printable(f"cannot tell, and in no sum: {words}")))


def _cells(term: PredictedTerm) -> tuple[str, ...]:
    nodes = f"{term.group}, {term.ranks} on {counted(term.nodes, 'node')}"
    head = (printable(term.name), nodes, format_size(term.size_bytes), str(term.calls))
    if term.total is None or term.exposed is None or term.call is None:
        return *head, "", "cannot tell" if term.cannot else "nothing", "", ""
    exposed = format_time(term.exposed.time_s) if term.exposed.time_s else "hidden"
    return *head, format_time(term.total.time_s), _ends(term.total), exposed, term.call.algorithm


def _words(span: TimeSpan) -> str:
    return f"{format_time(span.time_s)} (90 %: {_ends(span)})"


def _ends(span: TimeSpan) -> str:
    return f"{format_time(span.low_s)} to {format_time(span.high_s)}"
