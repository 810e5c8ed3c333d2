"""Every command shown in the documentation works as shown.

A block tagged `console` is run: its lines that begin with `$ busbw`, in order, all blocks of a document in one fresh
directory. A command must exit with 0, or with N where its line ends in `# exits N`. No other block is run.
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from .tree import ROOT

LONGEST_S = 180
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```console[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"\s*#\s*exits (\d+)\s*$")


@dataclass(frozen=True)
class Example:
    """One command of a document and the exit code that it states."""

    line: int
    argv: tuple[str, ...]
    exit_code: int


def examples(text: str) -> list[Example]:
    """Return the commands of all console blocks. A backslash at a line's end continues it."""
    found = []
    for block in BLOCK.finditer(text):
        first_line = text.count("\n", 0, block.start(1)) + 1
        content = re.sub(r"\\\n", "  ", block[1])
        for number, line in enumerate(content.splitlines()):
            if line.startswith("$ "):
                stated = EXIT.search(line)
                command = EXIT.sub("", line[2:])
                exit_code = int(stated[1]) if stated else 0
                found.append(Example(first_line + number, tuple(shlex.split(command, comments=True)), exit_code))
    return found


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_of_a_document_exit_as_stated(document: Path, tmp_path: Path) -> None:
    binaries = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    for example in examples(document.read_text(encoding="utf-8")):
        where = f"{document.relative_to(ROOT)}:{example.line}: {shlex.join(example.argv)}"
        assert example.argv[0] == "busbw", f"{where}: only busbw is run; tag other blocks `text` or `sh`"
        done = subprocess.run(
            [binaries / "busbw", *example.argv[1:]],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        said = f"\nstdout:\n{done.stdout[-2000:]}\nstderr:\n{done.stderr[-2000:]}"
        assert done.returncode == example.exit_code, f"{where} exits {done.returncode}{said}"


def test_examples_are_found_with_their_exit_codes_and_lines() -> None:
    text = (
        "# Title\n\n```console\n$ busbw run -n 2 \\\n    --json\noutput\n$ busbw show 'a b'  # exits 2\n```\n"
        "```text\n$ busbw never\n```\n"
    )
    assert examples(text) == [
        Example(line=4, argv=("busbw", "run", "-n", "2", "--json"), exit_code=0),
        Example(line=6, argv=("busbw", "show", "a b"), exit_code=2),
    ]
