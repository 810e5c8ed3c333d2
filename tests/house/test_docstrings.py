"""What is public says what it is, and numbers that have a unit say which."""

import ast
import re
from collections.abc import Iterator

import pytest

from .tree import modules

# A number is a time, a size or a rate when the last word of its name says so, in the singular or the plural.
QUANTITIES = {
    "time", "timeout", "duration", "elapsed", "delay", "latency", "lateness", "wall", "age", "period",
    "size", "memory", "rate", "bandwidth", "busbw", "algbw", "throughput", "speed",
}  # fmt: skip
# int, float and what holds them: tuple[int, ...], float | None, Sequence[float].
NUMBER = re.compile(r"(?:\b(?:int|float|None|tuple|list|Sequence|Mapping|dict|str)\b|[\[\]|,. ])+")


def is_public(name: str) -> bool:
    return not name.startswith("_")


def undocumented(body: list[ast.stmt], outer: str = "") -> Iterator[str]:
    """Yield each public class and function in `body`, and in its public classes, that has no docstring."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not is_public(node.name):
            continue
        # A property's setter and an overload repeat what is documented already.
        repeats = any("overload" in ast.unparse(each) or ".setter" in ast.unparse(each) for each in node.decorator_list)
        if ast.get_docstring(node) is None and not repeats:
            yield f"{outer}{node.name}, line {node.lineno}"
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, f"{node.name}.")


def is_number(annotation: ast.expr | None) -> bool:
    if annotation is None:
        return False
    text = ast.unparse(annotation).strip("'\"")
    return bool(NUMBER.fullmatch(text)) and bool(re.search(r"\b(?:int|float)\b", text)) and "str" not in text


def numbers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the names of fields and parameters that hold numbers, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_number(node.annotation):
            yield node.target.id, node.lineno
        elif isinstance(node, ast.arg) and is_number(node.annotation):
            yield node.arg, node.lineno


def lacks_unit(name: str) -> bool:
    return name.lower().rsplit("_", maxsplit=1)[-1].removesuffix("s") in QUANTITIES


def test_everything_public_has_a_docstring() -> None:
    bare = [module.where for module in modules() if not ast.get_docstring(module.tree)]
    missing = [f"{module.where}: {name}" for module in modules() for name in undocumented(module.tree.body)]
    assert (bare, missing) == ([], [])


def test_times_sizes_and_rates_carry_their_unit() -> None:
    found = [
        f"{each.where}:{line} {name}" for each in modules() for name, line in numbers(each.tree) if lacks_unit(name)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("time: float", ["time"]),
        ("time_s: float", []),
        ("rate_Bps: float | None", []),
        ("rate: float | None", ["rate"]),
        ("sizes_bytes: tuple[int, ...]", []),
        ("size: tuple[int, ...]", ["size"]),
        ("size: str", []),
        ("rates: dict[int, float]", ["rates"]),
        ("runtime: float", []),
    ],
)
def test_the_unit_check_tells_quantities_from_the_rest(declared: str, expected: list[str]) -> None:
    assert [name for name, _ in numbers(ast.parse(declared)) if lacks_unit(name)] == expected
