"""A sweep that does not come to its end keeps what it measured, is judged, and goes on."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.e2e.runner import read_records, read_run
from tests.e2e.test_disk import fill

from busbw.model.record import RoundMeasured

from .network import ALL, SMALL, Fabric

pytestmark = [pytest.mark.root, pytest.mark.slow]


def rounds_in(run: Path, attempt: int = 0) -> list[int]:
    """Return the numbers of the rounds that one start wrote down."""
    return [each.round for each in read_records(run, 0, attempt) if isinstance(each, RoundMeasured)]


def test_a_rank_that_dies_ends_the_start_and_the_sweep_goes_on_without_its_host(fabric: Fabric) -> None:
    started = fabric.start("--hosts", ALL, *SMALL, "--out", fabric.run)
    fabric.wait_for_round(2)
    os.kill(fabric.rank_of("n5"), signal.SIGKILL)
    assert started.wait(120) in (1, 3)

    stored = read_run(fabric.run)
    before = rounds_in(fabric.run)
    err = (fabric.folder / "err").read_text(encoding="utf-8")
    assert stored.outcome is not None
    assert stored.outcome.culprit is not None
    assert (stored.outcome.ended, stored.outcome.culprit.host) == ("failed", "n5")
    assert "the sweep did not come to its end: rank 5 on n5" in err
    assert "busbw fabric --resume" in err
    assert before == list(range(len(before)))

    done = fabric("--resume", fabric.run, "--json")

    report = json.loads(done.stdout)
    again = fabric.run.with_name("run.again")
    assert [each["place"] for each in report["answers"]] == ["node n5, which does not answer"], done
    assert rounds_in(again)[0] == len(before)
    assert read_run(again).plan.placement.hosts == ("n0", "n1", "n2", "n3", "n4", "n6", "n7")


def test_ctrl_c_is_judged_as_far_as_measured_and_gone_on_with_in_place(fabric: Fabric) -> None:
    started = fabric.start("--hosts", ALL, *SMALL, "--out", fabric.run)
    fabric.wait_for_round(1)
    started.send_signal(signal.SIGINT)
    assert started.wait(120) in (0, 1, 4)
    before = rounds_in(fabric.run)

    other = fabric("--resume", fabric.run, "--hosts", "n[0-3]")
    done = fabric("--resume", fabric.run, "--json")
    judged = fabric(fabric.run, "--json")

    assert other.returncode == 2
    assert "this run belongs to n[0-7], and --hosts names n[0-3]" in other.stderr
    assert rounds_in(fabric.run, 1)[0] == len(before)
    assert json.loads(done.stdout)["rounds"] >= 5
    # A stored sweep is judged again word for word.
    assert judged.stdout == done.stdout
    assert "nothing is missing" in fabric("--resume", fabric.run).stderr


def test_on_a_disk_that_is_full_what_was_measured_is_judged(fabric: Fabric) -> None:
    with fabric.lab.small_file_system(2**20) as disk:
        fabric.run = disk / "run"
        started = fabric.start("--hosts", ALL, *SMALL, "--out", fabric.run)
        fabric.wait_for_round(2)
        fill(disk)
        code = started.wait(120)
        # The last line is torn where the disk was full.
        whole = (fabric.run / "raw" / "rank-00000.0.jsonl").read_bytes().split(b"\n")[:-1]
        measured = sum(b'"type":"round"' in line for line in whole)
    err = (fabric.folder / "err").read_text(encoding="utf-8")
    assert code == 3, err
    assert "No space left on device" in err
    assert "busbw fabric --resume" in err
    assert f"8 nodes, {measured} rounds" in (fabric.folder / "out").read_text(encoding="utf-8")
