"""Programs of Python as trees, those of Python 2 and those with a line that is none too, and what a tree alone shows.

Python 2 is written anew as Python 3 in which each character keeps its place, so that what is found stands where the
file has it; only the statements that Python 3 does not know are touched.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from busbw.base.text import listed
from busbw.env.reading.commands import LAUNCHERS

# Statements of Python 2 by the beginning of their line or behind a colon or semicolon.
_PRINT = re.compile(r"(?P<before>^[ \t]*|[:;][ \t]*)print(?P<to>[ \t]+(?:>>[ \t]*)?)(?=[^\s=(.,)])", re.MULTILINE)
_EXEC = re.compile(r"(?P<before>^[ \t]*)exec (?=[^\s=(.,])", re.MULTILINE)
_EXCEPT = re.compile(
    r"(?P<head>^[ \t]*except[ \t]+(?:[\w.]+|\([^()\n]*\)))(?P<name>[ \t]*,[ \t]*\w+[ \t]*)(?=:)", re.MULTILINE
)
_RAISE = re.compile(r"(?P<head>^[ \t]*raise[ \t]+[\w.]+)[ \t]*,", re.MULTILINE)
# Lines that are left out so that the rest is a program, and the longest text that is tried again for it.
_MOST_LEFT_OUT = 3
_LONGEST_AGAIN = 200_000
_NOT_ALL = "not all of it is Python"
_ALONE = re.compile(rf"(?:.*[;&|]\s*)?(?:\w+=\S*\s+)*(?:\S*/)?(?:{LAUNCHERS})", re.DOTALL)


class ProgramTree(NamedTuple):
    """A program, None where it is none; `refusal`: what is not Python, None where all is; `line`: where that begins."""

    module: ast.Module | None
    refusal: str | None
    line: int = 1


def tree_of(text: str) -> ProgramTree:
    """Return the tree of a program, in Python 3 or 2, without the few lines that are in neither."""
    found, error = _parsed(text)
    if found is not None or not isinstance(error, SyntaxError):
        return ProgramTree(found, _reason(error))
    tried = _as_python_3(text)
    lines = tried.split("\n")
    left_out: list[int] = []
    module, again = _parsed(tried)
    while module is None and isinstance(again, SyntaxError) and len(left_out) < _MOST_LEFT_OUT:
        number = again.lineno
        if (
            number is None
            or not 0 < number <= len(lines)
            or not lines[number - 1].strip()
            or len(text) > _LONGEST_AGAIN
        ):
            break
        left_out.append(number)
        lines[number - 1] = " " * len(lines[number - 1])
        module, again = _parsed("\n".join(lines))
    if module is None:
        return ProgramTree(None, _reason(error))
    if not left_out:
        return ProgramTree(module, None)
    where = listed(str(number) for number in sorted(left_out))
    return ProgramTree(module, f"{_NOT_ALL}: line {where} is left out", min(left_out))


def _parsed(text: str) -> tuple[ast.Module | None, Exception | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text), None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return None, error


def _reason(error: Exception | None) -> str | None:
    if error is None:
        return None
    what = str(error.args[0] if error.args else error)[:100]
    return f"what it puts together is not followed, {_NOT_ALL}: {what}"


def _as_python_3(text: str) -> str:
    """Return a program of Python 2 as one of Python 3, at its length: a text printed is a text that stands there."""
    text = _PRINT.sub(lambda found: f"{found['before']}0;{' ' * (len('print') - 2 + len(found['to']))}", text)
    text = _EXEC.sub(lambda found: f"{found['before']}0;   ", text)
    text = _EXCEPT.sub(lambda found: found["head"] + " " * len(found["name"]), text)
    text = _RAISE.sub(lambda found: found["head"] + " " * (len(found[0]) - len(found["head"]) - 1) + ";", text)
    return text.replace(" <> ", " != ")


def undivided(module: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield texts that end with a launcher, with a list joined with blanks right behind them, and the launcher.

    Such a list begins with its first item: `"mpirun" + " ".join(options)`. What a name holds may begin with a blank.
    """
    for node in ast.walk(module):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left = node.left
            last = left.right if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add) else left
            pairs = [(last, node.right)]
        elif isinstance(node, ast.JoinedStr):
            pairs = [
                (one, other.value)
                for one, other in zip(node.values, node.values[1:], strict=False)
                if isinstance(other, ast.FormattedValue)
            ]
        for text, joined in pairs:
            written = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
            if _ALONE.fullmatch(written) is not None and _is_joined(joined):
                yield text, written.split()[-1]


def _is_joined(node: ast.expr) -> bool:
    """Whether an expression is `" ".join(...)`; items that are joined with nothing have blanks of their own."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "join":
        return False
    between = node.func.value
    return isinstance(between, ast.Constant) and isinstance(between.value, str) and between.value.isspace()
