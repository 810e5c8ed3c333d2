"""`busbw probe` as a user meets it: a page, JSON, a file; this host and captured ones."""

import json
import os
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.warm import warm_busbw

from busbw.model import codec
from busbw.model.host import Probe
from busbw.store.snapshots import read_snapshot, write_snapshot

from .hosts import snapshot_of
from .machines import MACHINES


def probe(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return warm_busbw("probe", *arguments, env={**os.environ, **environment}, timeout=110)


@pytest.fixture
def captured(tmp_path: Path):
    def write(name: str) -> Path:
        path = tmp_path / f"{name}.tar"
        write_snapshot(path, snapshot_of(MACHINES[name]))
        return path

    return write


def test_this_host_is_printed_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "host.tar.gz"
    done = probe("-o", path)
    assert done.returncode == 0
    assert "CPUs" in done.stdout
    assert f"wrote {path}" in done.stderr
    assert "hint: it names this host" in done.stderr
    again = probe(path)
    assert again.stdout == done.stdout
    assert again.stderr == ""


def test_standard_output_is_json_and_nothing_else(tmp_path: Path) -> None:
    done = probe("--json", "--anonymous", "-o", tmp_path / "host.tar")
    assert codec.decode(done.stdout.encode(), Probe, where="stdout").anonymous
    assert json.loads(done.stdout)["hardware"]["hostname"] == "host1"
    assert "hint" not in done.stderr


def test_a_captured_host_can_be_made_anonymous_later(captured, tmp_path: Path) -> None:
    done = probe(captured("aws-p5"), "--anonymous", "-o", tmp_path / "public.tar")
    assert done.returncode == 0
    assert read_snapshot(tmp_path / "public.tar").anonymous
    assert done.stdout.startswith("host1: Amazon EC2")


@pytest.mark.parametrize("name", MACHINES)
def test_a_page_fits_eighty_columns(name: str, captured) -> None:
    done = probe(captured(name), COLUMNS="80", TTY_COMPATIBLE="1", NO_COLOR="1")
    tables = done.stdout.split("\n\n")[1:]
    lines = [line for table in tables if table.startswith(("NUMA", "GPU", "NIC")) for line in table.splitlines()]
    assert lines
    assert [line for line in lines if len(line.rstrip()) > 80] == []
    # No row is broken over two lines: each begins with what it is of.
    assert not [line for line in lines if line.startswith(" ") and "(GB/s)" not in line]


def test_gpus_are_printed_with_their_links_and_nearest_nic(captured) -> None:
    said = probe(captured("oci-bm-gpu4-8")).stdout
    assert "0   0000:0f:00.0 A100-SXM4-40GB 3    gen 4 x16 12 (300) mlx5_0 +3 (PIX)" in said
    assert "mlx5_17 rdma15    0000:d1:00.1 RoCE 5    100 Gb/s up    16.0 GT/s x16" in said


def test_settings_are_quoted_with_their_file(captured) -> None:
    said = probe(captured("azure-nd-h100-v5")).stdout
    assert '  NCCL_IGNORE_CPU_AFFINITY = "1"  (/etc/nccl.conf)' in said
    assert '  NCCL_DEBUG = "INFO"  (environment)' in said


def test_names_from_a_snapshot_do_not_reach_the_terminal_as_controls(tmp_path: Path) -> None:
    machine = snapshot_of(MACHINES["azure-hbv4"])
    path = tmp_path / "host.tar"
    write_snapshot(path, msgspec.structs.replace(machine, hostname="evil\x1b[2Jhost\u202e"))
    done = probe(path)
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout


@pytest.mark.parametrize("arguments", [["no-such-file.tar"], ["/dev/null"], ["-o", "/proc/none/x.tar"], ["/dev"]])
def test_bad_input_is_one_error_and_a_code(arguments: list[str]) -> None:
    done = probe(*arguments)
    assert done.returncode in (2, 3)
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
