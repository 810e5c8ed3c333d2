"""What a bisection found, as text for a terminal: the questions in their order, and the answer."""

from rich.text import Text

from busbw.model.bisection import Bisection
from busbw.show.plain import printable
from busbw.show.text.bisection_words import ANSWERS, asked_words, estimate_words
from busbw.show.text.terminal import console

_COLOURS = {"found": "bold green", "none": "bold", "cannot_tell": "bold cyan"}


def bisection_text(found: Bisection) -> None:
    """Print what was asked, and what it came to."""
    out = console()
    out.print(Text(printable(f"good  {found.plan.good}\nbad   {found.plan.bad}")), soft_wrap=True)
    for number, item in enumerate(found.plan.items, start=1):
        out.print(Text(printable(f"  {number}  {item}")), soft_wrap=True)
    if found.point is not None and found.whole is not None:
        out.print(Text(printable(f"bad against good at {found.point}: {estimate_words(found.whole)}")), soft_wrap=True)
    for step in found.steps:
        out.print(
            Text(f"  {asked_words(step)}: {estimate_words(step.estimate)}, {ANSWERS[step.answer]}"), soft_wrap=True
        )
    text = Text()
    text.append(found.outcome.replace("_", " "), style=_COLOURS[found.outcome])
    text.append(printable(f": {found.sentence}"))
    out.print(text, soft_wrap=not out.is_terminal)
