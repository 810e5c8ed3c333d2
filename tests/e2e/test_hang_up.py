"""A terminal that goes away: the run stops as after Ctrl-C, and its result is there."""

import fcntl
import os
import subprocess
import termios

from tests.patience import wait_until

from busbw.base import layout

from .runner import TIMEOUT_S, Busbw, environment_of, left_of, read_run

SIZES = ("-n", "2", "-b", "4K", "-e", "64K", "-i", "4K", "--min-samples", "10")


def on_a_terminal(busbw: Busbw, *words: str) -> "tuple[subprocess.Popen[bytes], int]":
    """Start a command as the leader of a terminal; return it and the other end, whose closing hangs up."""
    outside, terminal = os.openpty()
    process = subprocess.Popen(
        words,
        env=busbw.environment(),
        cwd=busbw.folder,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(terminal)
    return process, outside


def run_words(*more: str) -> tuple[str, ...]:
    return (str(environment_of("Open MPI") / "bin" / "busbw"), "run", "all_reduce", *SIZES, *more)


def measured(busbw: Busbw) -> bool:
    return any(b'"measured"' in path.read_bytes() for path in busbw.runs.glob("*/raw/rank-00000.0.jsonl"))


def test_a_run_whose_terminal_goes_away_stops_and_is_judged(busbw: Busbw):
    process, outside = on_a_terminal(busbw, *run_words("--time-limit", "20"))
    wait_until(lambda: measured(busbw), TIMEOUT_S, "the first size")
    os.close(outside)

    code = process.wait(TIMEOUT_S)

    assert code in {1, 4}
    assert left_of(busbw.folder) == ()
    run = read_run(busbw.directory())
    assert run.outcome is not None
    assert run.outcome.ended == "stopped"
    assert run.measurements
    assert (busbw.directory() / layout.RUN_FILE).is_file()


def test_under_nohup_it_goes_on(busbw: Busbw):
    process, outside = on_a_terminal(busbw, "nohup", *run_words("--time-limit", "2"))
    wait_until(lambda: measured(busbw), TIMEOUT_S, "the first size")
    os.close(outside)

    process.wait(TIMEOUT_S)

    run = read_run(busbw.directory())
    assert run.outcome is not None
    assert run.outcome.ended in {"complete", "time"}
