"""The pages on write-ups: every item has a row, every output is what the command prints, the index counts right."""

import os
import re
import shlex
import shutil
from pathlib import Path

import click
import pytest
from tests.e2e.runner import NO_DEVICES
from tests.warm import warm_busbw

from busbw.cli.command import busbw

from .tree import ROOT

FOLDER = ROOT / "docs" / "write-ups"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name != "README.md")
# Beside the checkout, where there is one: the write-ups as text.
SEEDS = ROOT.parent / "shared" / "seeds"
TEXTS = {
    "azure-interconnects.md": "azure-interconnects.txt",
    "azure-cpu-pinning.md": "azure-cpu-pinning.txt",
    "isambard-nccl.md": "isambard-nccl.txt",
    "mvapich2-at-azure.md": "mvapich2-at-azure.txt",
    "oci-a100.md": "oci-nccl.txt",
}
ROW = re.compile(r"^\| (?P<item>.+?) \| (?P<command>.+?) \| (?P<result>.+?) \|$", re.MULTILINE)
HEAD = "| item of the "
SHOWN = re.compile(r"^```console\n\$ (?P<command>[^\n]+)\n```\n\n```text\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"\s*#\s*exits (\d+)\s*$")
# A command of a row, and where it is not 0 the code that it exits with.
COMMAND = re.compile(r"`(?P<command>busbw [^`]+)`(?: \(exits (?P<code>\d)\))?")
# A word that stands for something of the reader's own.
PLACEHOLDER = re.compile(r"\b(?:FILE|LOG|LOGS|PREFIX|IMAGE|RESULTS|RUN)\b")
MEASURING = {"run", "compare"}
# What a reader looks for: settings, tables, figures, numbers with decimals, how many times faster.
ITEMS = (
    re.compile(r"\b(?:NCCL|UCX|FI|SHARP|CUDA|OMPI|MV2)_[A-Z0-9_]{2,}\b"),
    re.compile(r"\b(?:Table|Figure) \d\b"),
    re.compile(r"(?<![\d.\w])\d{1,4}\.\d{1,2}(?![\d.\w])"),
    re.compile(r"\b\d\.\d(?=x)"),
)
# Of installing, not of measuring: versions that the pages leave to `busbw recipe show`, and variables of builds.
LEFT = {
    "azure-interconnects.md": {"22.04", "12.6", "25.01", "3.1", "4.0", "NCCL_NVLS_ENABLE1"},
    "azure-cpu-pinning.md": {"NCCL_BENCHMARK", "2.0", "2.18", "2.24", "2.25"},
    "mvapich2-at-azure.md": {"4.0", "1.8"},
    "isambard-nccl.md": {"12.3", "26.01", "2.13", "12.23", "CUDA_HOME", "NCCL_HOME", "NCCL_WARN"},
    "oci-a100.md": set(),
}


# Where the write-ups err, S1 to S18 by number, and what the page says of it.
ERRORS = [
    (1, "oci-a100.md", "has the two lists the wrong way round"),
    (2, "azure-cpu-pinning.md", "NCCL_MIN_CTAS or NCCL_MIN_NCHANNELS is meant"),
    (3, "azure-cpu-pinning.md", "other settings of Azure have 2097152. The default is 131072"),
    (4, "azure-interconnects.md", "it is NVLink SHARP; 0 leaves NVLink on"),
    (5, "azure-interconnects.md", "not over two nodes, where a tree sends half"),
    (6, "azure-interconnects.md", "Table 2 ends at 128 machines"),
    (7, "azure-interconnects.md", "files are named by family"),
    (8, "azure-interconnects.md", "ranks are bound in launch order"),
    (9, "azure-cpu-pinning.md", "on NDv4 they are on 1 1 0 0 3 3 2 2"),
    (10, "azure-cpu-pinning.md", "five weeks before the post; older images still have it"),
    (11, "oci-a100.md", "the default is -1"),
    (12, "oci-a100.md", "the shape is called BM.GPU.A100-v2.8 today"),
    (13, "oci-a100.md", "the write-up prints no number"),
    (14, "isambard-nccl.md", "a row of 8 GiB is of another run than this head"),
    (15, "isambard-nccl.md", "the node has 100 GB/s of NICs, of which 93 % are used"),
    (16, "isambard-nccl.md", "a means against hangs at CSCS, set always here"),
    (16, "isambard-nccl.md", "2048 is the guide's, 16384 that of CSCS"),
    (16, "isambard-nccl.md", "FI_CXI_RX_MATCH_MODE is `software` there, `hybrid` here"),
    (17, "mvapich2-at-azure.md", "768 GB by the product page"),
    (18, "mvapich2-at-azure.md", "the partition is the host's, the guest has 96 cores"),
]


def rows(page: Path) -> list[re.Match[str]]:
    text = page.read_text(encoding="utf-8")
    table = text[text.index(HEAD) :].split("\n\n", 1)[0]
    return [row for row in ROW.finditer(table) if not row["item"].startswith(("item of", "---"))]


def kind_of(result: str) -> str:
    return result.split(maxsplit=1)[0].rstrip(":,;")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_row_says_whether_it_is_the_same_or_why_it_is_corrected(page: Path) -> None:
    found = rows(page)
    assert len(found) >= 10
    for row in found:
        kind = kind_of(row["result"])
        assert kind in {"same", "corrected", "left"}, row[0]
        if kind == "corrected":
            assert len(row["result"]) > len("corrected: ") + 10, row[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_of_a_write_up_is_without_a_word(page: Path) -> None:
    seed = SEEDS / TEXTS[page.name]
    if not seed.is_file():
        pytest.skip(f"{seed} is not here: the write-up's text is compared only where it is")
    text = seed.read_text(encoding="utf-8")
    items = {match for pattern in ITEMS for match in pattern.findall(text)} - LEFT[page.name]
    data = "".join(file.read_text(encoding="utf-8") for file in (FOLDER / "data").iterdir())
    said = page.read_text(encoding="utf-8") + data
    assert sorted(item for item in items if item not in said) == []


def test_every_error_that_is_known_is_said_on_its_page() -> None:
    unsaid = [each for each in ERRORS if each[2] not in (FOLDER / each[1]).read_text(encoding="utf-8")]

    assert unsaid == []
    assert {number for number, _page, _words in ERRORS} == set(range(1, 19))


def test_every_conclusion_has_one_command_whose_answer_a_page_shows() -> None:
    """What a page shows is run and held against what is printed, below."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    conclusions = [row for row in ROW.finditer(text[text.index("| conclusion |") :]) if row["command"].startswith("`")]
    printed = {
        EXIT.sub("", match["command"]): match["text"]
        for page in PAGES
        for match in SHOWN.finditer(page.read_text(encoding="utf-8"))
    }

    assert len(conclusions) == 13
    for row in conclusions:
        shown = " ".join(printed[row["command"].strip("`")].split())
        assert row["result"] in shown, row[0]


def test_every_write_up_has_its_page() -> None:
    assert {page.name for page in PAGES} == set(TEXTS)


def test_the_index_counts_the_rows_of_each_page() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    for page in PAGES:
        kinds = [kind_of(row["result"]) for row in rows(page)]
        counts = [len(kinds), *(kinds.count(kind) for kind in ("same", "corrected"))]
        counts.append(counts[0] - sum(counts[1:]))
        line = next(line for line in index.splitlines() if f"({page.name})" in line)
        assert [int(cell) for cell in line.split("|")[2:6]] == counts, page.name


def commands() -> list[tuple[str, int]]:
    """Return the commands of all rows, each once, with the code that it is to exit with."""
    found = {
        (match["command"], int(match["code"] or 0))
        for page in PAGES
        for row in rows(page)
        for match in COMMAND.finditer(row["command"])
    }
    # What a page shows is run for its own sake.
    already = {EXIT.sub("", match["command"]) for page in PAGES for match in SHOWN.finditer(page.read_text("utf-8"))}
    return sorted(each for each in found if each[0] not in already)


def is_for_hardware(argv: list[str]) -> bool:
    return argv[1] in MEASURING or any(PLACEHOLDER.search(word) for word in argv)


@pytest.mark.parametrize(("command", "code"), [each for each in commands() if is_for_hardware(shlex.split(each[0]))])
def test_the_options_of_a_command_that_needs_machines_are_known(command: str, code: int) -> None:
    argv = shlex.split(command)

    assert code == 0
    verb: click.Command = busbw
    context = click.Context(busbw)
    words = argv[1:]
    while isinstance(verb, click.Group):
        verb = verb.get_command(context, words.pop(0)) or pytest.fail(command)
    verb.make_context(argv[1], words, resilient_parsing=False)


@pytest.mark.parametrize(
    ("command", "code"), [each for each in commands() if not is_for_hardware(shlex.split(each[0]))]
)
def test_a_command_of_a_row_works(command: str, code: int, tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "data", tmp_path / "data")
    environment = {**os.environ, "NO_COLOR": "1", "XDG_DATA_HOME": str(tmp_path / "own")}

    done = warm_busbw(*shlex.split(command)[1:], cwd=tmp_path, env=environment | NO_DEVICES, timeout=60)

    assert done.returncode == code, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def test_no_row_is_without_a_command() -> None:
    without = [row["item"] for page in PAGES for row in rows(page) if COMMAND.search(row[0]) is None]

    # Pages of their own, with commands that the tests of documentation run.
    assert sorted(without) == [
        "CycleCloud, Lustre, NetApp",
        "CycleCloud, images, deployment",
    ]


def shown() -> list[object]:
    return [
        pytest.param(page, match, id=f"{page.stem}:{match['command'][:60]}")
        for page in PAGES
        for match in SHOWN.finditer(page.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(("page", "match"), shown())
def test_what_a_page_shows_is_what_the_command_prints(page: Path, match: re.Match[str], tmp_path: Path) -> None:
    shutil.copytree(page.parent / "data", tmp_path / "data")
    argv = shlex.split(EXIT.sub("", match["command"]))
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "250", "XDG_DATA_HOME": str(tmp_path / "own")}
    done = warm_busbw(*argv[1:], cwd=tmp_path, env=environment | NO_DEVICES, timeout=60)
    printed = " ".join((done.stdout + done.stderr).split())
    for line in match["text"].splitlines():
        assert " ".join(line.split()) in printed, f"{line}\n\n{done.stdout}\n{done.stderr}"
