"""Lines that end where their text does: rich fills rows and wrapped lines up with blanks."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment


class TrimmedLines(RenderHook):
    """What a console is given to print everything without blanks at the ends of lines."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Return the same, trimmed."""
        return [_Trimmed(each) for each in renderables]


class _Trimmed:
    def __init__(self, whole: ConsoleRenderable) -> None:
        self._whole = whole

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line: list[Segment] = []
        for segment in _by_line(console.render(self._whole, options)):
            if segment.text == "\n":
                yield from _trimmed(line)
                yield Segment.line()
                line = []
            else:
                line.append(segment)
        yield from line


def _by_line(segments: Iterable[Segment]) -> Iterable[Segment]:
    """Yield the segments with each end of a line alone."""
    for text, style, control in segments:
        if control:
            yield Segment(text, style, control)
            continue
        for place, part in enumerate(text.split("\n")):
            if place:
                yield Segment.line()
            if part:
                yield Segment(part, style)


def _trimmed(line: list[Segment]) -> list[Segment]:
    kept = list(line)
    while kept and not kept[-1].control and not kept[-1].text.strip(" "):
        kept.pop()
    if kept:
        kept[-1] = Segment(kept[-1].text.rstrip(" "), kept[-1].style, kept[-1].control)
    return kept
