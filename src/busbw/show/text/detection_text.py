"""A detection as text: one line, or the whole ladder."""

from collections.abc import Iterable
from itertools import groupby

from rich.text import Text

from busbw.model.detection import Candidate, Detection
from busbw.show.plain import printable
from busbw.show.text.terminal import console

_RUNGS = {"firmware": "1 firmware", "metadata": "2 metadata service", "hardware": "3 hardware"}
_HEADINGS = {
    "matches": "it is",
    "possible": "possible: nothing speaks against it, and too little for it",
    "near_miss": "near misses",
}
_UNKNOWN = "unknown"


def detection_line(found: Detection) -> str:
    """Return id, how sure, and why, in one line."""
    sure = found.confidence if found.confidence is not None else "cannot tell"
    return printable(f"{found.platform or _UNKNOWN}  {sure}: {found.because}".replace("\n", " "))


def detection_text(found: Detection) -> None:
    """Print the line, what each step of the ladder saw, and why each near miss is none."""
    out = console()
    out.print(Text(detection_line(found), style="bold"), soft_wrap=True)
    for contradiction in found.contradictions:
        out.print(Text(printable(f"warn {contradiction.part}: {contradiction.text}"), style="yellow"), soft_wrap=True)
        if contradiction.fix is not None:
            _line(f"  {contradiction.fix}")
    for rung, group in groupby(found.evidence, key=lambda each: each.rung):
        _heading(_RUNGS[rung])
        for each in group:
            _line(f"  {each.seen}")
            _line(f"    says {each.says}")
    for standing, candidates in groupby(found.candidates, key=lambda each: each.standing):
        _heading(_HEADINGS[standing])
        for candidate in candidates:
            _candidate(candidate)


def warnings(found: Detection) -> Iterable[str]:
    """Yield where the host is not as its platform, a line each."""
    for each in found.contradictions:
        yield printable(f"warning: {each.text}")


def _candidate(candidate: Candidate) -> None:
    _line(f"  {candidate.platform}")
    # Of a near miss only what is against it is of interest; all of it is in --json.
    rest = () if candidate.standing == "near_miss" else (("+", candidate.agrees), ("?", candidate.unseen))
    for sign, texts in (("-", candidate.differs), *rest):
        for text in texts:
            _line(f"    {sign} {text}")


def _heading(text: str) -> None:
    out = console()
    out.print()
    out.print(Text(text, style="bold"))


def _line(text: str) -> None:
    console().print(Text(printable(text)), soft_wrap=True)
