"""What a bisection found, as text for a terminal: the questions in their order, and the answer."""

from rich.text import Text

from busbw.model.bisection import Answer, Bisection
from busbw.model.comparison import Estimate
from busbw.report.plain import printable
from busbw.report.terminal import console

_ANSWERS: dict[Answer, str] = {"shows": "does it", "absent": "does not", "unclear": "unclear"}
_COLOURS = {"found": "bold green", "none": "bold", "cannot_tell": "bold cyan"}


def bisection_text(found: Bisection) -> None:
    """Print what was asked, and what it came to."""
    out = console()
    out.print(Text(printable(f"good  {found.plan.good}\nbad   {found.plan.bad}")), soft_wrap=True)
    for number, item in enumerate(found.plan.items, start=1):
        out.print(Text(printable(f"  {number}  {item}")), soft_wrap=True)
    if found.point is not None and found.whole is not None:
        out.print(Text(printable(f"bad against good at {found.point}: {_estimate(found.whole)}")), soft_wrap=True)
    for step in found.steps:
        numbers = "+".join(str(item + 1) for item in step.items)
        out.print(Text(f"  {numbers}: {_estimate(step.estimate)}, {_ANSWERS[step.answer]}"), soft_wrap=True)
    text = Text()
    text.append(found.outcome.replace("_", " "), style=_COLOURS[found.outcome])
    text.append(printable(f": {found.sentence}"))
    out.print(text, soft_wrap=not out.is_terminal)


def _estimate(estimate: Estimate) -> str:
    change = f"gain {100 * (estimate.ratio - 1):+.1f} %"
    if estimate.low is None or estimate.high is None:
        return f"{change} ({len(estimate.blocks)} blocks)"
    return (
        f"{change} ({100 * (estimate.low - 1):+.1f} to {100 * (estimate.high - 1):+.1f}, {len(estimate.blocks)} blocks)"
    )
