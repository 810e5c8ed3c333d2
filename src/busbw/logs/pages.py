"""Pages of text, as a README or an issue, that are given as a log: what of them is no line of a log.

A page is told by its markup. Its lines count only where they stand between fences, and where these hold a log.
"""

import re
from collections.abc import Iterable

from busbw.logs.excerpts import Excerpt, lines_of

# A longer text is no page.
_LONGEST = 3000
# Of a line so much is looked at.
_OF_LINE = 600
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
# What only markup has; a heading is none of them alone, for programs begin lines with "#" too.
_MARKS = (
    re.compile(r"\[[^\]]{1,200}\]\([^)]{1,300}\)"),
    re.compile(r"(?<!`)`[^`']{1,80}`(?!`)"),
    re.compile(r"\*\*\w[^*]{0,200}\*\*"),
    re.compile(r"\|(?: ?:?-{2,}:? ?\|){1,20}\s*$"),
    re.compile(r"#{2,4} [A-Z0-9]"),
    _FENCE,
)
_HEADING = re.compile(r"#{1,4} [A-Z0-9]")
_FEWEST_KINDS = 2
# What programs and launchers write in front of lines, and what else stands in logs alone.
_OF_LOG = re.compile(
    r"\d\d:\d\d:\d\d|\bNCCL (?:INFO|WARN)\b|^\s*\[?[\w.-]{1,100}:\d{1,9}(?::\d|\])|^\s*Traceback|^\s*File \"|"
    r"^\s*\[[^\]]{0,40}\d[^\]]{0,40}\]|"
    r"^\s*(?:srun|slurmstepd|sbatch|mpirun|mpiexec|orted|prted|ssh|bash|docker)[^ ]{0,40}: |"
    r"^\s*\w{1,80}(?:Error|Exception): |^\s*[-=]{40}|^\s*\d{1,6}: |^\s*#\s{1,20}\d{1,15}\s|\bUCX +(?:ERROR|WARN)",
    re.ASCII,
)
_FEWEST_OF_LOG = 3
# Beside one such line a page has so many others.
_OTHERS = 5
# A sentence of prose has so many words, and of these so many that only join others.
_WORDS = 9
_JOINING = re.compile(r"\b(?:the|a|an|of|is|are|to|and|that|it|in|for|with|which|or|as|on)\b", re.IGNORECASE)
_FEWEST_JOINING = 3
# One or two sentences may be all that a program says.
_FEWEST_SENTENCES = 3
_SPOKEN = re.compile(
    r"^\s*[\w./@+-]{1,60}(?:\[\d{1,9}\]|\(\d{1,9}\))?: |^\W{0,8}(?:error|fatal|warning|abort\w*|failed|critical)\b|"
    r"^\s*[$>%] \S|\w_\w{1,60}\(|\berrno\b|\b0x[\da-f]",
    re.IGNORECASE | re.ASCII,
)


def page_lines(excerpts: tuple[Excerpt, ...], lengths: tuple[int, ...]) -> frozenset[tuple[int, int]]:
    """Return the lines (source, number) of pages of text that are no lines of a log."""
    found: set[tuple[int, int]] = set()
    for source, length in enumerate(lengths):
        if 0 < length <= _LONGEST:
            of_source = tuple(each for each in excerpts if each.source == source)
            found |= {(source, number) for number in _of_page(lines_of(of_source))}
    return frozenset(found)


def _of_page(lines: Iterable[tuple[int, int, str]]) -> set[int]:
    plain: list[tuple[int, str]] = []
    fenced: list[tuple[int, str]] = []
    kinds: set[re.Pattern[str]] = set()
    is_fenced = False
    for _source, number, line in lines:
        text = line[:_OF_LINE]
        if _FENCE.match(text) is not None:
            is_fenced = not is_fenced
            kinds.add(_FENCE)
            plain.append((number, ""))
            continue
        (fenced if is_fenced else plain).append((number, text))
        if not is_fenced:
            kinds.update(mark for mark in _MARKS if mark.search(text) is not None)
            if _HEADING.match(text) is not None:
                kinds.add(_HEADING)
    written = [text for _, text in plain if text.strip()]
    of_log = sum(_OF_LOG.search(text) is not None for text in written)
    if len(kinds) < _FEWEST_KINDS or kinds <= {_FENCE} or of_log * _OTHERS > len(written):
        return set()
    kept = sum(_OF_LOG.search(text) is not None for _, text in fenced) >= _FEWEST_OF_LOG
    return {number for number, _ in (plain if kept else [*plain, *fenced])}


def is_prose(lines: Iterable[tuple[int, int, str]]) -> bool:
    """Whether a text is made of sentences, with nothing in front of any line as programs write it."""
    sentences = 0
    for _source, _number, line in lines:
        text = line[:_OF_LINE]
        if _OF_LOG.search(text) is not None or _SPOKEN.search(text) is not None:
            return False
        sentences += len(text.split()) >= _WORDS and len(_JOINING.findall(text)) >= _FEWEST_JOINING
    return sentences >= _FEWEST_SENTENCES
