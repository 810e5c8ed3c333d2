"""The page of command lines: held against the write-ups, and against what the launchers give."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from busbw.measure.launchers.command_line import command_line

from .write_ups import LINES

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
    r"^## (.+?)\n(.+?)\n.*?^Theirs:\n\n```sh\n(.+?)\n```\n\nOurs:\n\n```sh\n(.+?)\n```\n(.+?)(?=^## |\Z)",
    re.MULTILINE | re.DOTALL,
)
BREAK = " \\\n    "
LEAST_REASON = 5


@dataclass(frozen=True)
class Section:
    title: str
    about: str
    theirs: list[str]
    ours: list[str]
    rows: list[tuple[str, str, str]]


def sections() -> list[Section]:
    found = []
    for title, about, theirs, ours, table in SECTION.findall(PAGE.read_text(encoding="utf-8")):
        rows = []
        for line in table.splitlines():
            if line.startswith("| ") and not line.startswith("| theirs"):
                left, right, because = (cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1])
                rows.append((unquoted(left), unquoted(right), because))
        found.append(Section(title, about, theirs.split(BREAK), ours.split(BREAK), rows))
    return found


def unquoted(cell: str) -> str:
    return cell[1:-1] if cell.startswith("`") else cell


def words(text: str) -> str:
    """Return a text without the breaks of its command lines."""
    return " ".join(re.sub(r"\\\s", " ", text).split())


@pytest.mark.parametrize("title", LINES)
def test_the_page_shows_what_the_launcher_gives(title: str):
    section = next(each for each in sections() if each.title == title)

    assert BREAK.join(section.ours) == command_line(LINES[title][0]())


@pytest.mark.parametrize("title", LINES)
def test_a_job_starts_as_many_processes_as_were_asked_for(title: str):
    make, processes = LINES[title]
    argv = make().argv

    counted = [argv[place + 1] for place, word in enumerate(argv) if word == "-n" and not argv[0].endswith("srun")][:1]
    counted += [word.removeprefix("--ntasks=") for word in argv if word.startswith("--ntasks=")]
    assert counted == [str(processes)]


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


def test_the_page_has_every_line():
    assert [section.title for section in sections()] == list(LINES)
