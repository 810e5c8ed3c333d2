"""`busbw platform detect`: one line on standard output, warnings beside it, an exit code for scripts."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from tests.probe.hosts import snapshot_of
from tests.probe.machines import MACHINES
from tests.warm import warm_busbw

from busbw.model import codec
from busbw.model.host import Candidate, Contradiction, Detection, Evidence
from busbw.show.text.host import detection_line, detection_text
from busbw.store.snapshots import write_snapshot

from .machines import answer


def busbw(*arguments: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": str(columns), "NO_COLOR": "1", "HOME": "/nonexistent"}
    return warm_busbw(*arguments, env=environment)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic ND H100 v5 that has lost a GPU, with what its metadata service said."""
    machine = MACHINES["azure-nd-h100-v5"]
    lost = machine.gpus[3]
    snapshot = snapshot_of(replace(machine, functions=tuple(each for each in machine.functions if each is not lost)))
    named = answer("azure", "Standard_ND96isr_H100_v5")
    path = tmp_path_factory.mktemp("hosts") / "host.tar"
    write_snapshot(path, structs.replace(snapshot, answers=(*snapshot.answers, named)))
    return path


def test_a_captured_host_is_known_in_one_line_and_its_damage_is_a_warning(damaged: Path) -> None:
    done = busbw("platform", "detect", str(damaged))
    assert done.returncode == 0
    assert done.stdout == "azure-nd-h100-v5  certain: the metadata service of Azure says Standard_ND96isr_H100_v5\n"
    assert done.stderr == f"warning: 7 of 8 GPUs are here: {MACHINES['azure-nd-h100-v5'].gpus[3].bus_id} is missing\n"


def test_a_captured_host_can_be_looked_at_without_what_its_service_said(damaged: Path) -> None:
    done = busbw("platform", "detect", str(damaged), "--no-metadata")
    assert done.returncode == 4
    assert done.stdout.startswith("unknown  cannot tell: ")
    assert done.stdout.count("\n") == 1
    assert done.stderr == f"hint: busbw platform detect {damaged} --explain\n"


def test_the_ladder_is_explained_with_near_misses(damaged: Path) -> None:
    done = busbw("platform", "detect", str(damaged), "--explain")
    assert done.returncode == 0
    for words in (
        "warn GPU count: 7 of 8 GPUs are here",
        "1 firmware",
        'chassis_asset_tag = "7783-7084-3265-9085-8269-3286-77"',
        "2 metadata service",
        "near misses",
        "- GPU is NVIDIA H100 80GB HBM3, not NVIDIA H200",
    ):
        assert words in done.stdout


def test_the_json_is_the_value(damaged: Path) -> None:
    done = busbw("platform", "detect", str(damaged), "--json")
    found = codec.decode(done.stdout.encode(), Detection, where="stdout")
    assert (found.platform, found.sku) == ("azure-nd-h100-v5", "Standard_ND96isr_H100_v5")
    assert json.loads(done.stdout)["contradictions"][0]["part"] == "GPU count"


def test_this_host_gets_an_answer() -> None:
    done = busbw("platform", "detect", "--no-metadata")
    assert done.returncode in (0, 4)
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"not a tar", b"\x1f\x8b\x08\x00garbage"])
def test_what_is_no_snapshot_is_bad_input(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "host.tar"
    path.write_bytes(content)
    done = busbw("platform", "detect", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert str(path) in done.stderr


HOSTILE = "\x1b[2J\u202e"
DRAWN = Detection(
    platform=None,
    confidence=None,
    because=f"because{HOSTILE}\nof",
    evidence=(Evidence(rung="firmware", seen=f"seen{HOSTILE}", says="x" * 300),),
    candidates=(
        Candidate(platform="a", standing="possible", agrees=(HOSTILE,), unseen=("[red]not markup[/red]",)),
        Candidate(platform="b", standing="near_miss", differs=(HOSTILE,)),
    ),
    contradictions=(Contradiction(part="memory", text=HOSTILE, fix=HOSTILE),),
)


def test_nothing_that_a_host_says_reaches_the_terminal_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    detection_text(DRAWN)
    printed = capsys.readouterr().out + detection_line(DRAWN)
    assert "\x1b[2J" not in printed
    assert "\u202e" not in printed
    assert "[red]not markup[/red]" in printed
    assert "\n" not in detection_line(DRAWN)
