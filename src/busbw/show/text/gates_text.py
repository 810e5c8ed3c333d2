"""What gates came to, as text for a terminal: a line a gate, its answer first."""

from rich.text import Text

from busbw.model.gates import GateAnswers, GateOutcome
from busbw.show.plain import printable
from busbw.show.text.terminal import console

_WORDS: dict[GateOutcome, str] = {"pass": "pass", "fail": "fail", "cannot_tell": "cannot tell"}
_COLOURS: dict[GateOutcome, str] = {"pass": "bold green", "fail": "bold red", "cannot_tell": "bold cyan"}
_INDENT = max(map(len, _WORDS.values())) + 2
_LEAST_WIDTH = 20


def gates_text(gates: GateAnswers) -> None:
    """Print what each gate came to, what it was held against, and all in one line."""
    for answer in gates.answers:
        head = Text.assemble((_WORDS[answer.outcome].ljust(_INDENT), _COLOURS[answer.outcome]))
        _say(head, f"{answer.text}: {answer.sentence}", indent=_INDENT)
    if gates.baseline is not None:
        _say(Text(), f"baseline: {gates.baseline.name}")
    for note in (*(gates.baseline.notes if gates.baseline is not None else ()), *gates.notes):
        _say(Text(), f"note: {note}")
    gates_line(gates)


def gates_line(gates: GateAnswers) -> None:
    """Print what all gates came to, its first word coloured."""
    word = _WORDS[gates.outcome]
    _say(Text.assemble((word, _COLOURS[gates.outcome])), gates.sentence.removeprefix(word))


def _say(head: Text, words: str, *, indent: int = 2) -> None:
    """Print one line; what does not fit goes on below, indented."""
    out = console()
    if not out.is_terminal:
        out.print(head, Text(printable(words)), sep="", soft_wrap=True)
        return
    lines = Text(printable(words)).wrap(out, max(_LEAST_WIDTH, out.width - max(indent, len(head))))
    for place, line in enumerate(lines):
        out.print((head if place == 0 else Text(" " * indent)) + line)
