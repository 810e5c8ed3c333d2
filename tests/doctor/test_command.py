"""`busbw doctor LOG`: exit codes, standard input, compressed logs, and what is not a log."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.warm import warm_busbw

from .made import Job

HEALTHY = Job().text()
SOCKETS = Job(network="Socket", between="NET/Socket/0").text()


def doctor(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    if not stdin:
        return warm_busbw("doctor", *arguments, text=False)
    command = [sys.executable, "-c", "from busbw.cli import main; main()", "doctor", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=60)


def test_a_healthy_log_exits_with_0_and_the_answer_last(tmp_path: Path):
    log = tmp_path / "job.log"
    log.write_text(HEALTHY)

    done = doctor(str(log))

    assert done.returncode == 0
    assert done.stderr == b""
    assert done.stdout.decode().splitlines()[-1].startswith("ok: nothing is wrong")


def test_findings_exit_with_1_and_stand_in_the_json():
    done = doctor("--json", "-", stdin=SOCKETS.encode())

    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert [finding["code"] for finding in document["findings"]] == ["LOG001"]
    assert document["sources"] == ["standard input"]


def test_files_of_single_ranks_and_compressed_ones_are_one_job(tmp_path: Path):
    job = Job()
    for rank in range(4):
        text = "\n".join(job.of(rank)) + "\n"
        (tmp_path / f"rank{rank}.log.gz").write_bytes(gzip.compress(text.encode()))

    done = doctor("--json", str(tmp_path))

    assert done.returncode == 0
    assert json.loads(done.stdout)["ranks_seen"] == 4


def test_a_compressed_log_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path):
    log = tmp_path / "job.log.gz"
    whole = gzip.compress(HEALTHY.encode())
    log.write_bytes(whole[:-12])

    done = doctor("--json", str(log))

    codes = [finding["code"] for finding in json.loads(done.stdout)["findings"]]
    assert done.returncode == 0
    assert codes == ["LOG042"]


def test_a_log_of_warnings_only_exits_with_4():
    assert doctor("-", stdin=b"NCCL version 2.28.9+cuda12.9\n").returncode == 4


def test_a_sentence_that_shows_no_failure_exits_with_4():
    assert doctor("-", stdin=b"start\nacme: error: device /dev/acme0 is busy\n").returncode == 4


_PAGE = b"""# Fast fabrics

Set `NCCL_DEBUG` as the [guide](guide.md) says. **Do not** set it in production.

## Where to begin

Read the [notes](notes.md) first.
"""


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "it is empty"),
        (b"hello\nworld\n", "none of its 2 lines is of NCCL"),
        (_PAGE, "it is a page of text, and no log stands in it"),
        (b"\0\1\2" * 1000, "not text"),
        (gzip.compress(b"x" * 100_000, mtime=0)[:40], "cut off"),
        (b"\x1f\x8bnonsense", "damaged"),
        (b"x" * 3_000_000, "none of its 1 lines is of NCCL"),
    ],
)
def test_what_is_no_log_gives_one_error(content: bytes, cause: str, tmp_path: Path):
    log = tmp_path / "job.log"
    log.write_bytes(content)

    done = doctor(str(log))

    assert done.returncode == 2
    assert done.stdout == b""
    assert cause in done.stderr.decode()
    assert len(done.stderr.decode().splitlines()) <= 4


@pytest.mark.parametrize(
    "arguments", [(), ("--here", "missing.tar", "job.log"), ("--platform", "nonsense-x", "job.log"), ("missing.log",)]
)
def test_arguments_that_do_not_fit_are_refused(arguments: tuple[str, ...]):
    done = doctor(*arguments)

    assert done.returncode == 2
    assert done.stderr.decode().startswith("error: ")
