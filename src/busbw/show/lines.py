"""Lines for a terminal: text is wrapped at words to its width, and a command stays in one piece to be copied.

Where output is no terminal nothing is wrapped: a text is one line.
"""

import re
from collections.abc import Iterator, Sequence
from math import log

from rich.console import Console
from rich.text import Text

from busbw.base.collectives import COLLECTIVES
from busbw.base.text import printable
from busbw.base.units import format_size
from busbw.model.comparison import ComparedPoint
from busbw.model.run import Measurement
from busbw.show.words import us

# A quoted value belongs to its name: NCCL_NET="AWS Libfabric" is one word.
_WORD = re.compile(r'(?:"[^"\n]*"|\S)+')
_ARGUMENT = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
_NUMBER = re.compile(r"[(+-]*[\d.,]*\d")
_UNIT = re.compile(r"(?:[KMGT]?i?B|[GM]B/s|ns|us|ms|s|%|x)(?![\w/])")
_QUOTED = re.compile(r"`([^`\n]+)`")
# Results that an earlier version stored name commands of busbw without quoting them.
_OWN = re.compile(r"\bbusbw [a-z]+(?= )")
# Words without any sign of an argument that may follow in such a command.
_ARGUMENT_WORDS = frozenset(COLLECTIVES) | {
    "all", "rail", "cross", "default", "off", "last", "isolated", "stream", "list", "recommend", "lint", "masks",
}  # fmt: skip
_ARGUMENT_SIGN = re.compile(r"-|[A-Z0-9=/_]")
# What stood behind a command in its sentence has no place before what follows it on a line of its own.
AFTER_A_COMMAND = "`,;:.) "
# From so many words on a command stands on a line of its own.
_LONG_WORDS = 4
_LEAST_WIDTH = 20


Span = tuple[int, int]


def say(out: Console, text: Text, *, indent: int = 0, hang: int = 2) -> None:
    """Print one text; what does not fit on its line goes on below, indented by `hang` more."""
    if not out.is_terminal:
        out.print(Text(" " * indent) + text, soft_wrap=True)
        return
    for paragraph in text.split("\n"):
        for place, (start, end) in enumerate(_spans(paragraph.plain, out.width - indent, hang)):
            out.print(Text(" " * (indent + (hang if place else 0))) + paragraph[start:end], soft_wrap=True)


def say_action(out: Console, label: str, words: str, *, indent: int = 2) -> None:
    """Print what to do after its label, as `action_lines` has it."""
    width = out.width if out.is_terminal else None
    for line in action_lines(label, printable(words).replace("\n", " "), width, indent=indent):
        out.print(Text(line), soft_wrap=True)


def action_lines(label: str, words: str, width: int | None, *, indent: int = 2) -> tuple[str, ...]:
    """Return what to do as lines of at most `width` (None: one line), each command whole on a line of its own.

    A command stands in backticks, which it loses there. Where it alone is wider than the line it is broken between
    arguments, with a backslash, so that it can be copied as it is. A word that is wider than the line stays whole.
    """
    head = " " * indent + f"{label}: "
    if width is None or len(head) + len(words) <= width:
        return (head + words,)
    room = max(_LEAST_WIDTH, width - len(head))
    found = tuple(command_spans(words))
    alone = [each for each in found if is_long(words[slice(*each)]) or each[1] - each[0] > room]
    lines: list[str] = []
    at = 0
    for start, end in (*alone, (len(words), len(words))):
        prose = words[at:start].rstrip(" (`")
        lines += _filled(prose.lstrip(AFTER_A_COMMAND) if at else prose, room) if prose or lines else [""]
        lines += [f"  {line}" for line in _command_lines(words[start:end], room - 2)] if start < end else []
        at = end
    return tuple(f"{head if not place else ' ' * len(head)}{line}".rstrip() for place, line in enumerate(lines))


def _filled(prose: str, width: int) -> list[str]:
    return [prose[slice(*span)] for span in _spans(prose, width, 0) if prose]


def _spans(text: str, width: int, hang: int) -> Iterator[Span]:
    """Yield where each line begins and ends; those below the first are shorter by `hang`."""
    start: int | None = None
    end, room = 0, max(_LEAST_WIDTH, width)
    for first, last in _words(text):
        if start is None:
            # The blanks that a text begins with are its own indentation.
            start = 0
        elif last - start > room:
            yield start, end
            start, room = first, max(_LEAST_WIDTH, width - hang)
        end = last
    yield start or 0, end


def _words(text: str) -> Iterator[Span]:
    """Yield what no line end may divide: words, numbers with their unit, short commands."""
    whole = tuple(command_spans(text))
    held: Span | None = None
    for found in _WORD.finditer(text):
        first, last = found.span()
        if held is not None:
            is_unit = _NUMBER.fullmatch(text[slice(*held)]) and _UNIT.match(found[0])
            is_inside = any(start < first < end and held[1] > start for start, end in whole)
            if is_unit or is_inside:
                held = held[0], last
                continue
            yield held
        held = first, last
    if held is not None:
        yield held


def command_spans(words: str) -> Iterator[Span]:
    """Yield where each command of a text begins and ends, without the backticks around it."""
    at = 0
    while True:
        quoted, own = _QUOTED.search(words, at), _OWN.search(words, at)
        if quoted is not None and (own is None or quoted.start() <= own.start()):
            yield quoted.span(1)
            at = quoted.end()
        elif own is not None:
            at = _end_of_own(words, own.end())
            yield own.start(), at
        else:
            return


def _end_of_own(words: str, at: int) -> int:
    """Return where a command of busbw ends that nothing closes: before the first word that is not an argument."""
    end = at
    for found in _ARGUMENT.finditer(words, at):
        argument = found[0].rstrip(",;:).")
        if not argument or not (_ARGUMENT_SIGN.search(argument) or argument in _ARGUMENT_WORDS):
            return end
        end = found.start() + len(argument)
        if argument != found[0]:
            return end
    return end


def arguments_of(command: str) -> tuple[str, ...]:
    """Return the words of a command as they are written, quotes included."""
    return tuple(_ARGUMENT.findall(command))


def is_long(command: str) -> bool:
    """Whether a command has so many words that it stands on a line of its own."""
    return len(arguments_of(command)) >= _LONG_WORDS


def _command_lines(command: str, width: int) -> list[str]:
    """Return a command broken between arguments, never between an option and its value, with backslashes."""
    lines = [""]
    for argument in _with_values(arguments_of(command)):
        # Two columns are the backslash's.
        if lines[-1] and len(lines[-1]) + 1 + len(argument) + 2 > width:
            lines[-1] += " \\"
            lines.append(f"  {argument}")
        else:
            lines[-1] += f" {argument}" if lines[-1] else argument
    return lines


def _with_values(arguments: Sequence[str]) -> Iterator[str]:
    held = ""
    for argument in arguments:
        if held.startswith("-") and " " not in held and not argument.startswith("-"):
            yield f"{held} {argument}"
            held = ""
            continue
        if held:
            yield held
        held = argument
    if held:
        yield held


_BARS = "▁▂▃▄▅▆▇█"
# A line of 80 columns holds these and the words beside them.
_MOST_BARS = 24
_FEWEST = 3


def spark(values: Sequence[float], among: Sequence[float] = ()) -> str:
    """Return a bar for each value, lowest and highest at the ends of the scale; a blank for what is not positive.

    `among`: values of other lines with which it shares the scale.
    """
    known = [value for value in (*values, *among) if value > 0]
    if not any(value > 0 for value in values):
        return " " * len(values)
    low, wide = log(min(known)), log(max(known)) - log(min(known))
    top = len(_BARS) - 1
    return "".join(
        (_BARS[round(top * (log(value) - low) / wide)] if wide > 0 else _BARS[top // 2]) if value > 0 else " "
        for value in values
    )


def curve_lines(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """Return time and bus bandwidth over the sizes, a line each; () for fewer than three sizes, which show no curve.

    Of very many sizes some are left out between, as the line says.
    """
    items = [item for item in measurements if item.median_s > 0 and item.samples > 0]
    if len(items) < _FEWEST:
        return ()
    every = -(-len(items) // _MOST_BARS)
    shown = items[::every]
    sizes = f"{format_size(shown[0].size_bytes)} to {format_size(shown[-1].size_bytes)}"
    sizes += f" (1 in {every})" if every > 1 else ""
    times_s = [item.median_s for item in shown]
    rates_Bps = [item.busbw_Bps for item in shown]
    first = f"# time  {spark(times_s)} {us(min(times_s))} to {us(max(times_s))} us; {sizes}"
    if max(rates_Bps) <= 0:
        return (first,)
    lowest_Bps = min(rate for rate in rates_Bps if rate > 0)
    return (first, f"# busbw {spark(rates_Bps)} {lowest_Bps / 1e9:.2g} to {max(rates_Bps) / 1e9:.3g} GB/s; logarithmic")


def paired_lines(points: Sequence[ComparedPoint], letters: tuple[str, str]) -> tuple[str, ...]:
    """Return the bus bandwidth of two sides over the sizes, a line each on one scale; () for fewer than three sizes."""
    rates = [(point.size_bytes, point.first_busbw_Bps or 0.0, point.other_busbw_Bps or 0.0) for point in points]
    items = [(size_bytes, first_Bps, other_Bps) for size_bytes, first_Bps, other_Bps in rates if first_Bps * other_Bps]
    if len(items) < _FEWEST:
        return ()
    every = -(-len(items) // _MOST_BARS)
    shown = items[::every]
    sides = [first_Bps for _, first_Bps, _ in shown], [other_Bps for _, _, other_Bps in shown]
    sizes = f"{format_size(shown[0][0])} to {format_size(shown[-1][0])}"
    sizes += f" (1 in {every})" if every > 1 else ""
    return tuple(
        f"# busbw {letter} {spark(own, other)} {min(own) / 1e9:.2g} to {max(own) / 1e9:.3g} GB/s; {note}"
        for letter, own, other, note in zip(
            letters, sides, reversed(sides), (sizes, "same scale, logarithmic"), strict=True
        )
    )
