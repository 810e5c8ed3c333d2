"""The table of the write-ups' recipes: held against the write-ups, and against what is recommended."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from busbw.api.recommendations import recommendation
from busbw.model.recommendation import Recommendation
from busbw.show.text.recommendation import assigned

ROOT = Path(__file__).resolve().parents[3]
TABLES = ROOT / "docs" / "env-recipes.md"
WRITE_UPS = ROOT.parent / "shared" / "seeds"
# As a section names its write-up.
FILES = {
    '"Performance at Scale': "azure-interconnects.txt",
    '"Optimizing AI Workloads': "azure-cpu-pinning.txt",
    '"Massively parallel': "oci-nccl.txt",
    "Isambard-AI's guide": "isambard-nccl.txt",
}
SECTION = re.compile(
    r"^## (.+?)\n(.+?)\n```console\n\$ busbw env recommend (.+?)\n```\n(.+?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
CODE = re.compile(r"`([^`]+)`")
ASSIGNED = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="(.*)"')
# -x NAME=value, export NAME=value, "Variable | Value |" in one line or two, and a variable of a script.
IN_COMMANDS = re.compile(r"(?:-x |export |var_)([A-Z][A-Z0-9_]+)= ?(\"[^\"]*\"|[^\s\\\"]+)")
IN_TABLES = re.compile(r"^([A-Z]+_[A-Z0-9_]+) \|\s*([^|\n]+?) \|", re.MULTILINE)
OPTIONS = re.compile(
    r"(-mca coll_hcoll_enable[ =]0|--bind-to numa|--map-by ppr:8:node|--network=disable_rdzv_get|--mca pml ucx)"
)
COMPUTED = re.compile(r"\$\(|\$\{var_|\$sharp")
LEAST_REASON = 10


@dataclass(frozen=True)
class Row:
    theirs: str
    ours: str
    because: str


@dataclass(frozen=True)
class Section:
    title: str
    write_up: str | None
    argv: tuple[str, ...]
    rows: tuple[Row, ...]

    def recommended(self) -> Recommendation:
        given = dict(zip(self.argv[::2], self.argv[1::2], strict=True))
        return recommendation(
            given["--platform"],
            nodes=int(given.get("--nodes", "2")),
            collective=given.get("--collective"),
            goal=given.get("--goal", "bandwidth"),
            follow=given.get("--follow"),
            nccl=given.get("--nccl"),
        )


def sections() -> list[Section]:
    found = []
    for title, about, arguments, body in SECTION.findall(TABLES.read_text(encoding="utf-8")):
        lines = [line for line in body.splitlines() if line.startswith("| ")][1:]
        rows = [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]
        write_up = next((file for words, file in FILES.items() if about.strip().startswith(words)), None)
        found.append(Section(title, write_up, tuple(shlex.split(arguments)), tuple(rows)))
    return found


def set_in(text: str) -> set[tuple[str, str]]:
    """Return what a write-up sets, by name and value as the shell would have them."""
    found = [*IN_COMMANDS.findall(text), *IN_TABLES.findall(text)]
    values = {(name, value.strip().strip('"')) for name, value in found}
    return {(name, value) for name, value in values if not COMPUTED.search(value)}


@pytest.mark.parametrize("section", sections(), ids=lambda each: each.title)
def test_a_table_says_what_is_recommended(section: Section):
    found = section.recommended()
    wanted = {assigned(each.name, each.value) for each in found.settings}

    named = set()
    for row in section.rows:
        theirs = row.theirs.strip("`")
        if row.ours == "same" and not theirs.startswith("-"):
            named.add(assigned(*theirs.split("=", 1)))
        elif row.ours == "left out" and "=" in theirs and not theirs.startswith("-"):
            assert assigned(*theirs.split("=", 1)) not in wanted, row
        elif match := ASSIGNED.fullmatch(row.ours.strip("`")):
            named.add(match[0])

    assert named == wanted


@pytest.mark.parametrize("section", sections(), ids=lambda each: each.title)
def test_every_difference_has_a_reason(section: Section):
    for row in section.rows:
        assert row.ours, row
        assert row.theirs or row.because.startswith("added: "), row
        assert row.ours == "same" or row.because == "the same" or len(row.because) >= LEAST_REASON, row


@pytest.mark.parametrize("write_up", sorted(set(FILES.values())))
def test_every_line_of_a_write_up_is_in_its_tables(write_up: str):
    file = WRITE_UPS / write_up
    if not file.exists():
        pytest.skip(f"{file} is not here: the tables are not held against the write-up")
    text = file.read_text(encoding="utf-8")
    rows = [row for section in sections() if section.write_up == write_up for row in section.rows]
    theirs = {each for row in rows for cell in (row.theirs, row.because) for each in CODE.findall(cell)}
    mentioned = set(CODE.findall(TABLES.read_text(encoding="utf-8")))

    missing = {
        f"{name}={value}" for name, value in set_in(text) if f"{name}={value}" not in theirs and name not in mentioned
    }
    missing |= {option for option in OPTIONS.findall(text) if option not in theirs and f"-{option}" not in theirs}

    assert set_in(text)
    assert not missing


def test_what_write_ups_set_is_found_in_every_form():
    text = 'mpirun -x A_B=1 \\\n-x C_D="x y" \\\nexport E_F="g"\n var_G_H= "=m0,m1"\nI_J | 512K |\nK_L |\n/opt/x |\n'

    assert set_in(text) == {
        ("A_B", "1"),
        ("C_D", "x y"),
        ("E_F", "g"),
        ("G_H", "=m0,m1"),
        ("I_J", "512K"),
        ("K_L", "/opt/x"),
    }
