"""Ask whether the tests notice faults: change one line of busbw at a time and run the tests that lie closest to it.

    .venv/bin/python scripts/mutate.py --count 40 --seed 1 --save before.json
    .venv/bin/python scripts/mutate.py --again before.json --save after.json

The lines are drawn at random, the same ones for the same seed and sources. Everything happens in a copy of the tree and
of .venv in a temporary folder, removed at the end; neither the sources nor .venv are written to. Run for a change are
the test files that import its module, then those that import what imports it, and so on, up to the first failure or
until the time for one change is over. Tests that time processes are left out. The table goes to standard output;
`--again` tries the changes of an earlier result and exits with 1 if one survives that was killed there.
"""

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "busbw"
LEFT_OUT = {".git", ".venv", ".venv-mpich", ".venv-impi", "__pycache__", "wheels"}
OPPOSITE = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
# The folders of tests that look hardest at a package, where they have not its name or that of a package within it.
TESTED_IN = {
    "api": ("compare", "report", "formats"), "base": ("stats", "plans"), "cli": ("e2e", "report"),
    "facts": ("platforms", "env"),
    "logs": ("doctor",), "machine": ("probe", "detect"), "measure": ("plans", "backends", "launchers", "survival"),
    "model": ("plans", "history"), "show": ("report", "exports"), "store": ("history",),
}  # fmt: skip
# So many test files are tried before the other ones of the same distance.
FEW = 8
# Test files that start from more of busbw than this are told apart no further.
FARTHEST = 4
NOTHING_RAN = 5


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change of one line, and what became of it."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    new: str
    words: str
    # Of the test that failed; "" where none did.
    killed_by: str = ""
    # Whether every test that was to be run was run.
    is_settled: bool = True


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Return every change that can be made to a module."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = text.encode().splitlines(keepends=True)
    skipped = set(_never_run(tree))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        for target, new, words in _changes(node, lines):
            yield Mutant(
                file=str(path.relative_to(SOURCES)),
                line=target.lineno,
                column=target.col_offset,
                end_line=target.end_lineno,
                end_column=target.end_col_offset,
                new=new,
                words=words,
            )


def _never_run(tree: ast.AST) -> Iterator[ast.AST]:
    """Return the nodes that say nothing or only forbid: annotations, decorators, assertions and `strict` of a zip."""
    for node in ast.walk(tree):
        held = [getattr(node, "annotation", None), getattr(node, "returns", None), *getattr(node, "decorator_list", ())]
        if isinstance(node, ast.Assert) or (isinstance(node, ast.keyword) and node.arg == "strict"):
            held.append(node)
        for each in held:
            if each is not None:
                yield from ast.walk(each)


def _changes(node: ast.AST, lines: list[bytes]) -> Iterator[tuple[ast.expr, str, str]]:
    """Return what can be changed at a node: the expression, what stands there instead, and words for it."""

    def source(part: ast.expr) -> str:
        held = lines[part.lineno - 1 : part.end_lineno]
        held[-1] = held[-1][: part.end_col_offset]
        held[0] = held[0][part.col_offset :]
        return b"".join(held).decode()

    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        new = OPPOSITE[type(node.ops[0])]
        yield node, f"({source(node.left)} {new} {source(node.comparators[0])})", f"comparison becomes {new}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, str(not node.value), f"{node.value} becomes {not node.value}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield node, f"({source(node)} + 1)", f"{source(node)} becomes one more"
    elif isinstance(node, ast.BoolOp):
        new = " or " if isinstance(node.op, ast.And) else " and "
        yield node, f"({new.join(f'({source(each)})' for each in node.values)})", f"`{new.strip()}` instead"
    elif isinstance(node, ast.Return) and node.value is not None and source(node.value) != "None":
        yield node.value, "None", "returns None"
    elif isinstance(node, ast.If | ast.IfExp):
        yield node.test, f"(not ({source(node.test)}))", "`not` added"
        yield node.test, f"(False and ({source(node.test)}))", "branch dropped"


def applied(text: str, mutant: Mutant) -> str:
    """Return a module's text with the change in it."""
    lines = text.encode().splitlines(keepends=True)
    first, last = mutant.line - 1, mutant.end_line - 1
    before, after = lines[first][: mutant.column], lines[last][mutant.end_column :]
    # As many lines as before: those behind it keep their numbers.
    new = mutant.new.replace("\n", " \\\n") if mutant.new.count("\n") else mutant.new
    return b"".join([*lines[:first], before + new.encode() + after, *lines[last + 1 :]]).decode()


def compiles(mutant: Mutant) -> bool:
    """Return whether the changed module is still one."""
    try:
        ast.parse(applied((SOURCES / mutant.file).read_text(encoding="utf-8"), mutant))
    except SyntaxError:
        return False
    return True


def drawn(count: int, seed: int) -> list[Mutant]:
    """Return `count` changes: lines at random among all that can be changed, then one of the changes of each."""
    by_line: dict[tuple[str, int], list[Mutant]] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        for mutant in mutants_of(path):
            by_line.setdefault((mutant.file, mutant.line), []).append(mutant)
    lot = random.Random(seed)  # noqa: S311 - the same changes for the same seed
    chosen = (lot.choice(by_line[line]) for line in lot.sample(sorted(by_line), min(len(by_line), 2 * count)))
    return [mutant for mutant in chosen if compiles(mutant)][:count]


@cache
def imported(path: Path) -> frozenset[str]:
    """Return the modules of busbw, or of the tests, that a file names in its imports."""
    found: set[str] = set()
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*package[: len(package) - node.level + 1]]) if node.level else ""
            name = ".".join(part for part in (base, node.module) if part)
            found |= {name, *(f"{name}.{alias.name}" for alias in node.names)}
    return frozenset(each for each in found if each.startswith(("busbw", "tests")))


def module_of(path: Path) -> str:
    """Return a module's name."""
    under = path.relative_to(ROOT / "src" if path.is_relative_to(SOURCES) else ROOT).with_suffix("")
    return ".".join(under.parts).removesuffix(".__init__")


def nearest_tests(file: str) -> list[list[str]]:
    """Return the test files that reach a module, those with the fewest modules in between first."""
    paths = {module_of(path): path for path in [*SOURCES.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]}
    reached, steps, near = {module_of(SOURCES / file)}, [], {*TESTED_IN.get(Path(file).parts[0], ()), *Path(file).parts}
    for _step in range(FARTHEST):
        new = {name for name, path in paths.items() if name not in reached and not reached.isdisjoint(imported(path))}
        reached |= new
        tests = [paths[name].relative_to(ROOT) for name in new if paths[name].name.startswith("test_")]
        # Of the package's own folder first, then the short ones: a fault is mostly found there, and soon.
        tests.sort(key=lambda path: (near.isdisjoint(path.parts), (ROOT / path).stat().st_size))
        steps += [[str(path) for path in part] for part in (tests[:FEW], tests[FEW:]) if part]
    # Those that start busbw as a process import nothing of it.
    seen = {path for step in steps for path in step}
    rest = {str(path.relative_to(ROOT)) for name in near for path in (ROOT / "tests").glob(f"{name}/**/test_*.py")}
    return [*steps, sorted(rest - seen)] if rest - seen else steps


def copied(folder: Path) -> Path:
    """Return a copy of the tree with an environment of its own: files of .venv are linked, so never write into one."""
    tree = folder / "tree"
    shutil.copytree(ROOT, tree, symlinks=True, ignore=lambda _path, names: LEFT_OUT & set(names))
    subprocess.run(["cp", "-al", str(ROOT / ".venv"), str(tree / ".venv")], check=True)
    for program in (tree / ".venv" / "bin").iterdir():
        if program.is_symlink() or not program.is_file() or str(ROOT).encode() not in program.read_bytes():
            continue
        content, mode = program.read_bytes(), program.stat().st_mode
        program.unlink()
        program.write_bytes(content.replace(str(ROOT).encode(), str(tree).encode()))
        program.chmod(mode)
    return tree


def tests_fail(tree: Path, files: list[str], timeout_s: float) -> str | None:
    """Return the first test that fails, "" where none does, or None where the time was not enough."""
    # The last -r counts.
    options = ["-x", "-q", "-n", "0", "--timed", "no", "--timeout", "60", "-p", "no:cacheprovider", "-rfE"]
    command = [str(tree / ".venv" / "bin" / "python"), "-m", "pytest", *options, *files]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(tree.parent)}
    with subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            printed, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None
    if process.returncode in (0, NOTHING_RAN):
        return ""
    failed = [line.split()[1] for line in printed.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return failed[0] if failed else f"pytest ended with {process.returncode}"


def tried(tree: Path, mutant: Mutant, limit_s: float) -> Mutant:
    """Return the change with what the tests say of it."""
    (installed,) = (tree / ".venv").glob("lib/python3*/site-packages/busbw")
    target = installed / mutant.file
    kept = target.with_suffix(".kept")
    target.rename(kept)
    target.write_text(applied(kept.read_text(encoding="utf-8"), mutant), encoding="utf-8")
    ends_s = time.monotonic() + limit_s
    try:
        for files in nearest_tests(mutant.file):
            failed = tests_fail(tree, files, max(1.0, ends_s - time.monotonic()))
            if failed is None:
                return replace(mutant, killed_by="", is_settled=False)
            if failed:
                return replace(mutant, killed_by=failed, is_settled=True)
    finally:
        kept.replace(target)
    return replace(mutant, killed_by="", is_settled=True)


def row(mutant: Mutant) -> str:
    """Return a line of the table."""
    survived = "survived" if mutant.is_settled else "survived until the time was over"
    return f"| {mutant.file}:{mutant.line} | {mutant.words} | {mutant.killed_by or survived} |"


def main() -> int:
    """Draw changes, try them and print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=40, help="changes to draw")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120, metavar="S", help="seconds for the tests of one change")
    parser.add_argument("--again", type=Path, metavar="FILE", help="try the changes of an earlier result")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the result as JSON")
    asked = parser.parse_args()
    if asked.again is not None:
        before = [Mutant(**each) for each in json.loads(asked.again.read_text(encoding="utf-8"))]
    else:
        before = drawn(asked.count, asked.seed)
    after: list[Mutant] = []
    print("| line | change | killed by |\n|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="busbw-mutate-") as folder:
        tree = copied(Path(folder))
        for mutant in before:
            after.append(tried(tree, mutant, asked.limit))
            print(row(after[-1]), flush=True)
            if asked.save is not None:
                asked.save.write_text(json.dumps([asdict(each) for each in after], indent=1), encoding="utf-8")
    lost = [old for old, new in zip(before, after, strict=True) if old.killed_by and not new.killed_by]
    print(f"\n{sum(bool(each.killed_by) for each in after)} of {len(after)} killed", flush=True)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
