"""A sweep over real hosts, under Intel MPI, keeps the counters of their ports, and tells them beside the slow tests."""

import json
import re
from pathlib import Path

import pytest
from tests.lab.lab import Lab

from busbw.model.record import CountersKept, RetestCounted
from busbw.store.raw import read_records

from .test_hosts import on_n0

pytestmark = pytest.mark.root
# A link of n2 that comes and goes as long as the sweep can take, and at least once before that ends.
_FLAP = (
    "ip link add spare type veth peer name other; ip link set other up; "
    "while sleep 0.1; do ip link set spare up; ip link set spare down; done"
)


def test_a_sweep_keeps_the_counters_of_every_host_and_tells_them_beside_the_slow_tests(
    lab: Lab, tmp_path: Path
) -> None:
    lab.shape("n2", "20mbit")
    flapping = lab.start("n2", ["timeout", "60", "sh", "-c", _FLAP])
    try:
        done = on_n0(
            lab, tmp_path, "fabric", "--hosts", "n[0-3]", "--interface", "eth0", "--metric", "bandwidth", "-b", "8K",
            "--pair-time", "0.05", "--out", tmp_path / "run", "--json", mpi="Intel MPI",
        )  # fmt: skip
    finally:
        flapping.terminate()
        flapping.wait(30)
        lab.run("n2", ["ip", "link", "del", "spare"])
    assert done.returncode == 1, done
    records, _unreadable = read_records(tmp_path / "run")
    kept = [each for rank in sorted(records) for _place, each in records[rank] if isinstance(each, CountersKept)]
    assert [each.moment for each in kept] == ["before", "after"] * 4
    assert all("eth0 rx_bytes" in each.read.counters for each in kept)
    answer = json.loads(done.stdout)["answers"][0]
    assert answer["nodes"] == ["n2"], done.stdout
    assert "n2 spare: carrier changes +" in " ".join(answer["evidence"])
    # Around each of its retests too, with the tests and when they were.
    again = [each for each in answer["evidence"] if " of its " in each]
    form = r"n2 (spare|other): carrier changes \+\d+ in \d of its \d retests: n\d -> n\d \(round \d, [\d:]{8} UTC\).*"
    assert re.fullmatch(form, again[0]), again
    retested = [each for rank in records for _place, each in records[rank] if isinstance(each, RetestCounted)]
    assert all(each.before.unix_s < each.after.unix_s for each in retested)
    assert not any("bytes" in key for each in retested for key in each.after.counters)
