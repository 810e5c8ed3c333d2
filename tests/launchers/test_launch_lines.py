"""The page of command lines: held against the write-ups, and against what `busbw launch` prints.

After a wanted change: `LAUNCH_LINES=write python -m pytest tests/launchers/test_launch_lines.py` writes what is printed
now; then give each new line its row in the table.
"""

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.cli.command import busbw

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "launch-lines.md"
WRITE_UPS = ROOT.parent / "shared" / "seeds"
FILES = {
    '"Performance at Scale': "azure-interconnects.txt",
    '"Optimizing AI Workloads': "azure-cpu-pinning.txt",
    '"Massively parallel': "oci-nccl.txt",
    "Isambard-AI's guide": "isambard-nccl.txt",
}
SECTION = re.compile(
    r"^## (.+?)\n(.+?)\n.*?^Theirs:\n\n```sh\n(.+?)\n```\n\n"
    r"Ours:\n\n```sh\nbusbw launch (.+?)\n```\n\n```sh\n(.+?)\n```\n(.+?)(?=^## |\Z)",
    re.MULTILINE | re.DOTALL,
)
BREAK = " \\\n    "
FOLDER = "/runs/x"
# What stands before the command: remarks, and the files beside it.
BEFORE = ("#", "END_OF_FILE", "chmod ", "cat >")
FEWEST_SECTIONS = 11
LEAST_REASON = 5


@dataclass(frozen=True)
class Section:
    title: str
    about: str
    theirs: list[str]
    # Behind `busbw launch`.
    command: str
    ours: list[str]
    rows: list[tuple[str, str, str]]


def sections() -> list[Section]:
    found = []
    for title, about, theirs, command, ours, table in SECTION.findall(PAGE.read_text(encoding="utf-8")):
        rows = []
        for line in table.splitlines():
            if line.startswith("| ") and not line.startswith("| theirs"):
                left, right, because = (cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1])
                rows.append((unquoted(left), unquoted(right), because))
        found.append(Section(title, about, theirs.split(BREAK), command, ours.split(BREAK), rows))
    return found


def unquoted(cell: str) -> str:
    return cell[1:-1] if cell.startswith("`") else cell


def words(text: str) -> str:
    """Return a text without the breaks of its command lines."""
    return " ".join(re.sub(r"\\\s", " ", text).split())


def printed(command: str) -> str:
    """Return the command that `busbw launch` prints, without the remarks and files before it."""
    done = CliRunner().invoke(busbw, ["launch", *shlex.split(command)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.replace(str(Path.cwd()), FOLDER).split("\n")
    last = max(number for number, line in enumerate(lines) if line.startswith(BEFORE))
    return "\n".join(lines[last + 1 :]).strip()


@pytest.mark.parametrize("section", sections(), ids=lambda each: each.title)
def test_the_page_shows_what_the_command_prints(section: Section, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    shown, now = BREAK.join(section.ours), printed(section.command)

    if os.environ.get("LAUNCH_LINES") == "write":
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(page.replace(f"```sh\n{shown}\n```", f"```sh\n{now}\n```"), encoding="utf-8")
    else:
        assert shown == now


@pytest.mark.parametrize("section", sections(), ids=lambda each: each.title)
def test_a_command_starts_as_many_processes_as_were_asked_for(section: Section):
    asked = dict(re.findall(r"--(nodes|ranks-per-node) (\d+)", section.command.partition(" -- ")[0]))
    words = shlex.split(" ".join(section.ours))
    counted = [word.removeprefix("--ntasks=") for word in words if word.startswith("--ntasks=")]
    counted = counted or [words[words.index("-n") + 1]]

    # Every node of these has eight GPUs where it is not said otherwise.
    assert counted == [str(int(asked.get("nodes", 1)) * int(asked.get("ranks-per-node", 8)))]


@pytest.mark.parametrize("section", sections(), ids=lambda each: each.title)
def test_every_line_of_both_is_in_the_table(section: Section):
    theirs = [left for left, _right, _because in section.rows if left]
    ours = [left if right == "same" else right for left, right, _because in section.rows if right != "left out"]

    assert sorted(theirs) == sorted(section.theirs)
    assert sorted(ours) == sorted(section.ours)


@pytest.mark.parametrize("section", sections(), ids=lambda each: each.title)
def test_every_difference_has_a_reason(section: Section):
    for left, right, because in section.rows:
        assert right == "same" or len(because) >= LEAST_REASON, (left, right)
        assert left or because.startswith("added: "), right


@pytest.mark.parametrize("section", sections(), ids=lambda each: each.title)
def test_theirs_is_what_the_write_up_has(section: Section):
    write_up = next(file for start, file in FILES.items() if section.about.startswith(start))
    if not (WRITE_UPS / write_up).exists():
        pytest.skip(f"{write_up} is not here: the page is not held against the write-up")
    text = words((WRITE_UPS / write_up).read_text(encoding="utf-8"))

    missing = [line for line in section.theirs if line not in text]

    assert not missing


def test_the_page_has_each_write_up_and_each_machine():
    assert len(sections()) >= FEWEST_SECTIONS
    assert {next(start for start in FILES if each.about.startswith(start)) for each in sections()} == set(FILES)
