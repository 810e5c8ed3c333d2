"""Print figures of the house: how many rooms there are, and how many of them a command enters.

`scripts/house_figures.py [--src DIR] [--python PYTHON]`: a source tree, and an interpreter that has busbw
installed, which runs the commands. Needs nothing but the standard library.
"""

import argparse
import ast
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = "#!/bin/bash\nexport NCCL_IB_HCA=mlx5\nexport NCCL_DEBUG=INFO\nmpirun -np 8 ./all_reduce_perf -b 8 -e 1G\n"
TABLE = """# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 1 iters: 20 validation: 1
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1073741824     268435456     float     sum      -1   4096.0  262.14  458.75      0   4096.0  262.14  458.75      0
"""
COMMANDS = {
    "--help": ("--help",),
    "run --plan": ("run", "all_reduce", "--ranks", "2", "--plan"),
    "env lint": ("env", "lint", "{folder}/job.sh"),
    "env recommend": ("env", "recommend", "--platform", "azure-nd-h100-v5"),
    "topo show": ("topo", "show", "azure-nd-h100-v5"),
    "judge": ("judge", "{folder}/table.txt", "--platform", "azure-nd-h100-v5"),
}
# Runs a command and counts the modules whose functions are called, and how often the next call is in another one.
FOLLOW = r"""
import json, os, sys, time
entered, changes, last = set(), 0, None
def follow(frame, event, argument):
    global changes, last
    if event == "call":
        name = frame.f_globals.get("__name__", "")
        if name.startswith("busbw") and frame.f_code.co_name != "<module>":
            entered.add(name)
            if name != last:
                changes, last = changes + 1, name
sys.argv = ["busbw", *json.loads(sys.argv[1])]
from busbw.cli import main
if os.environ.get("FOLLOW"):
    sys.setprofile(follow)
try:
    main()
except SystemExit as error:
    code = error.code
sys.setprofile(None)
imported = sum(name.split(".")[0] == "busbw" for name in sys.modules)
found = {"entered": len(entered), "changes": changes, "imported": imported, "cpu_s": time.process_time(), "code": code}
with open(os.environ["FIGURES"], "w") as file:
    json.dump(found, file)
"""
REPEATS = 5


def main() -> None:
    """Print the figures of the source tree, then those of six commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", type=Path, default=ROOT / "src" / "busbw")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    asked = parser.parse_args()
    for name, value in tree_figures(asked.src).items():
        print(f"{name:38} {value:>8}")
    print(f"\n{'command':16} {'entered':>8} {'changes':>8} {'imported':>8} {'CPU ms':>8}  exit")
    for name, words in COMMANDS.items():
        found = command_figures(asked.python, words)
        print(
            f"{name:16} {found['entered']:8} {found['changes']:8} {found['imported']:8} {1e3 * found['cpu_s']:8.0f}"
            f"  {found['code']}"
        )


def tree_figures(src: Path) -> dict[str, int]:
    """Return counts of a source tree, by name."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(src.rglob("*.py"))}
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in trees}
    importers = _importers(src, trees)
    classes = Counter(node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    folders = Counter(path.parent for path in trees)
    return {
        "modules": len(trees),
        "lines of Python": sum(lines.values()),
        "median lines of a module": int(statistics.median(lines.values())),
        "longest module": max(lines.values()),
        "most modules in a folder": max(folders.values()),
        "modules with one importer": sum(len(found) == 1 for found in importers.values()),
        "of these below 60 lines": sum(
            len(found) == 1 and lines[path] < 60 and path.name != "__init__.py" for path, found in importers.items()
        ),
        "public functions that only forward": sum(_forwards(tree) for tree in trees.values()),
        "class names used twice": sum(number > 1 for number in classes.values()),
        "lines of imports": sum(_import_lines(tree) for tree in trees.values()),
    }


def _importers(src: Path, trees: dict[Path, ast.Module]) -> dict[Path, set[Path]]:
    """Return who imports each module."""
    names = {}
    for path in trees:
        parts = path.relative_to(src.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found: dict[Path, set[Path]] = defaultdict(set)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                for alias in node.names:
                    target = names.get(f"{node.module}.{alias.name}") or names.get(node.module)
                    if target is not None and target != path:
                        found[target].add(path)
    return found


def _forwards(tree: ast.Module) -> int:
    """Return how many public functions do nothing but call another one with their own arguments."""
    number = 0
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or node.decorator_list:
            continue
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if len(body) == 1 and isinstance(body[0], ast.Return) and isinstance(body[0].value, ast.Call):
            call = body[0].value
            given = [ast.unparse(word) for word in call.args] + [ast.unparse(word.value) for word in call.keywords]
            own = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            number += given == own and isinstance(call.func, ast.Name | ast.Attribute)
    return number


def _import_lines(tree: ast.Module) -> int:
    return sum(
        node.end_lineno - node.lineno + 1 for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)
    )


def command_figures(python: str, words: tuple[str, ...]) -> dict[str, float]:
    """Return what a command enters and imports, its exit code, and the least processor time of several runs."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "job.sh").write_text(SCRIPT, encoding="utf-8")
        Path(folder, "table.txt").write_text(TABLE, encoding="utf-8")
        given = json.dumps([word.format(folder=folder) for word in words])
        figures = Path(folder, "figures.json")
        environment = {**os.environ, "FIGURES": str(figures), "BUSBW_RUNS": folder}

        def run(more: dict[str, str]) -> dict[str, float]:
            command = [python, "-c", FOLLOW, given]
            subprocess.run(command, env={**environment, **more}, capture_output=True, check=False, timeout=120)
            return json.loads(figures.read_text(encoding="utf-8"))

        found = run({"FOLLOW": "1"})
        return {**found, "cpu_s": min(run({})["cpu_s"] for _ in range(REPEATS))}


if __name__ == "__main__":
    sys.exit(main())
