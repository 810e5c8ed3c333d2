"""Every command shown in the documentation works as shown.

A block tagged `console` is run: its lines that begin with `$`, in order, all blocks of a document in one fresh folder.
busbw must give an answer: 0, or what this machine makes of it, 1 (findings) or 4 (cannot tell). Where its line ends in
`# exits N` a command must exit with N. No other block is run.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.runner import NO_DEVICES
from tests.sleeping import SLEEPING
from tests.standin.build import build
from tests.warm import warm_busbw

from busbw.base.errors import ExitCode

from .tree import ROOT

LONGEST_S = 400
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```console[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Their commands measure GPUs; here that is the stand-ins of tests/standin.
ON_STAND_INS = ("nccl.md",)
# Without a shell: neither pipes nor redirection.
PROGRAMS = {"busbw", "cat", "cp", "ls", "rm"}
MEASURING = (("busbw", "run"), ("busbw", "compare"))
ANSWERS = (ExitCode.OK, ExitCode.FINDINGS, ExitCode.CANNOT_TELL)
LINK = re.compile(r"\]\((?!https?://)([^)#:\s]+)(?:#([^)\s]*))?\)")
EXIT = re.compile(r"\s*#\s*exits (\d+)\s*$")


@dataclass(frozen=True)
class Example:
    """One command of a document and the exit codes that are as stated."""

    line: int
    argv: tuple[str, ...]
    exit_codes: tuple[int, ...]


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
                argv = tuple(shlex.split(command, comments=True))
                usual = ANSWERS if argv[0] == "busbw" else (0,)
                found.append(Example(first_line + number, argv, (int(stated[1]),) if stated else usual))
    return found


def _stand_ins() -> dict[str, str]:
    """Return what makes busbw find the stand-ins for CUDA's driver, NVRTC and NCCL, built if need be."""
    made = build(ROOT / "build" / "standin")
    folders = [str(made.cuda.parent), str(made.nccl().parent)]
    return {"LD_LIBRARY_PATH": os.pathsep.join([*folders, os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(os.pathsep)}


def _run(argv: tuple[str, ...], folder: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end: busbw in one that is there, unless a library must be found when it starts."""
    if argv[0] == "busbw" and "LD_LIBRARY_PATH" not in environment:
        return warm_busbw(*argv[1:], cwd=folder, env=environment, timeout=LONGEST_S)
    return subprocess.run(
        [shutil.which(argv[0], path=environment["PATH"]) or argv[0], *argv[1:]],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )


def _parameter(document: Path) -> pytest.ParameterSet:
    """Return a document by its name; it counts as timed where a command of it measures."""
    measures = any(example.argv[:2] in MEASURING for example in examples(document.read_text(encoding="utf-8")))
    return pytest.param(document, id=str(document.relative_to(ROOT)), marks=[pytest.mark.timed] if measures else [])


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("document", [_parameter(document) for document in DOCUMENTS])
def test_the_commands_of_a_document_exit_as_stated(document: Path, tmp_path: Path) -> None:
    binaries = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    environment["XDG_DATA_HOME"] = str(tmp_path / "data")
    environment.pop("BUSBW_RUNS", None)
    environment |= NO_DEVICES | SLEEPING
    if document.name in ON_STAND_INS:
        environment |= _stand_ins()
    if (data := document.parent / "data").is_dir():
        shutil.copytree(data, tmp_path / "data")
    for example in examples(document.read_text(encoding="utf-8")):
        where = f"{document.relative_to(ROOT)}:{example.line}: {shlex.join(example.argv)}"
        assert example.argv[0] in PROGRAMS, f"{where}: only {sorted(PROGRAMS)} are run; tag other blocks `text` or `sh`"
        done = _run(example.argv, tmp_path, environment)
        said = f"\nstdout:\n{done.stdout[-2000:]}\nstderr:\n{done.stderr[-2000:]}"
        assert done.returncode in example.exit_codes, f"{where} exits {done.returncode}{said}"


def test_examples_are_found_with_their_exit_codes_and_lines() -> None:
    text = (
        "# Title\n\n```console\n$ busbw run -n 2 \\\n    --json\noutput\n$ busbw show 'a b'  # exits 2\n```\n"
        "```text\n$ busbw never\n```\n"
    )
    assert examples(text) == [
        Example(line=4, argv=("busbw", "run", "-n", "2", "--json"), exit_codes=ANSWERS),
        Example(line=6, argv=("busbw", "show", "a b"), exit_codes=(2,)),
    ]


def headings(text: str) -> set[str]:
    """Return the names by which the headings of a page are linked."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.replace("`", "")).strip().lower().replace(" ", "-") for title in titles}


def broken_links(page: Path, text: str) -> list[str]:
    """Return the links of a page that lead to no file, or to no heading of one."""
    found = []
    for target, heading in LINK.findall(text):
        there = (page.parent / target).resolve()
        if not there.exists() or (heading and there.suffix == ".md" and heading not in headings(there.read_text())):
            found.append(f"{page.relative_to(ROOT)}: {target}#{heading}".rstrip("#"))
    return found


def test_every_link_leads_to_a_page_and_its_heading() -> None:
    pages = [*DOCUMENTS, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    assert [line for page in pages for line in broken_links(page, page.read_text())] == []


def test_a_broken_link_is_seen() -> None:
    page = ROOT / "docs" / "fabric.md"
    assert broken_links(page, "[a](nowhere.md) [b](fabric.md#measuring) [c](fabric.md#no-such-heading)") == [
        "docs/fabric.md: nowhere.md",
        "docs/fabric.md: fabric.md#no-such-heading",
    ]
