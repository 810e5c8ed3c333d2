"""Files come from disk in bounded memory, and `topo make` and `topo diff` answer as they say."""

import io
import json
import os
import socket
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cost import check_cost

from busbw.base.errors import ExitCode, InputError
from busbw.cli.topo import topo
from busbw.store.sources import read_topology_file

LIMIT = 8 * 2**20


def run(*arguments: str) -> Result:
    return CliRunner().invoke(topo, list(arguments))


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "topo.xml"
    path.write_bytes(b"x" * LIMIT)
    assert len(read_topology_file(path)) == LIMIT


def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "topo.xml"
    with path.open("wb") as file:
        file.truncate(2**40)

    def refuse() -> None:
        with pytest.raises(InputError, match="over 8 MiB"):
            read_topology_file(path)

    check_cost(refuse, most_s=1)


def test_standard_input_is_read_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<system/>")))
    assert read_topology_file(Path("-")) == b"<system/>"
    with Path("/dev/zero").open("rb") as endless:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(endless))
        with pytest.raises(InputError, match="standard input is over"):
            read_topology_file(Path("-"))


def test_what_is_no_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        # The path of a socket may not be long.
        monkeypatch.chdir(tmp_path)
        server.bind("socket")
        (tmp_path / "loop").symlink_to("loop")
        cases = {
            tmp_path: "a directory", tmp_path / "pipe": "a pipe", tmp_path / "socket": "a socket",
            Path("/dev/zero"): "a device", tmp_path / "loop": "cannot read", tmp_path / "absent": "No such file",
            Path("a\0b"): "cannot read",
        }  # fmt: skip
        for path, cause in cases.items():
            with pytest.raises(InputError, match=cause):
                read_topology_file(path)


def test_a_made_file_is_the_same_each_time_and_says_where_it_is_from(tmp_path: Path) -> None:
    path = tmp_path / "topo.xml"
    first = run("make", "azure-ndv4")
    assert first.exit_code == ExitCode.OK
    assert run("make", "azure-ndv4", "-o", str(path)).exit_code == ExitCode.OK
    assert path.read_text() == first.stdout
    assert "azure-ndv4 -->" in first.stdout.splitlines()[0]


def test_a_made_file_equals_what_it_was_made_from(tmp_path: Path) -> None:
    path = tmp_path / "topo.xml"
    run("make", "azure-ndv4", "-o", str(path))
    result = run("diff", str(path), "azure-ndv4")
    assert result.exit_code == ExitCode.OK
    assert "equal" in result.stdout


def test_a_difference_is_told_with_both_values_and_exits_with_1(tmp_path: Path) -> None:
    path = tmp_path / "topo.xml"
    run("make", "azure-nd-h100-v5", "-o", str(path))
    text = path.read_text()
    path.write_text(text.replace("00000000,0000ffff,ffffffff", "ffffffff,ffff0000,00000000", 1))
    result = run("diff", str(path), "azure-nd-h100-v5")
    assert result.exit_code == ExitCode.FINDINGS
    assert "48-95" in result.stdout
    assert "0-47" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if "topo.xml" not in line and "json" not in line)


def test_json_holds_what_counts_and_what_is_left_to_detection() -> None:
    result = run("diff", "--json", "azure-ndv4", "azure-ndm-a100-v4")
    document = json.loads(result.stdout)
    assert result.exit_code == ExitCode.OK
    assert set(document) >= {"first", "second", "differences", "detected", "unused", "notes"}
    assert document["differences"] == []


@pytest.mark.parametrize("arguments", [("diff", "absent.xml", "azure-ndv4"), ("make", "azure-hbv4"), ("make",)])
def test_what_cannot_be_read_or_made_is_an_input_error(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, InputError)


def test_a_machine_without_a_map_says_how_to_get_a_file() -> None:
    result = run("make", "nvidia-dgx-h100")
    assert isinstance(result.exception, InputError)
    assert "no PCI map" in str(result.exception)
    assert "--here" in str(result.exception)


@pytest.mark.parametrize(
    ("written", "broken"),
    [
        ("\n    <pci", "\n\t<pci"),
        ('<system version="1"', '<?xml version="1.0"?>\n<system version="1"'),
        ('version="1"', 'version="2"'),
        ("000d:00:00.0", "000D:00:00.0"),
        ("system", "System"),
    ],
)
def test_a_file_that_nccl_does_not_take_differs_and_can_be_made_anew(tmp_path: Path, written: str, broken: str) -> None:
    path, repaired = tmp_path / "topo.xml", tmp_path / "new.xml"
    path.write_text(run("make", "azure-ndv4").stdout.replace(written, broken))
    result = run("diff", str(path), "azure-ndv4")
    assert result.exit_code == ExitCode.FINDINGS
    assert "files" in result.stdout
    made = run("make", str(path), "-o", str(repaired))
    assert "what was meant" in made.stderr
    assert run("diff", str(repaired), "azure-ndv4").exit_code == ExitCode.OK
