"""Every metric is measured in one start, each in its unit and with its directions."""

import json

import pytest
from tests.e2e.runner import read_records

from busbw.model.record import RoundMeasured

from .network import ALL, Fabric

pytestmark = [pytest.mark.root, pytest.mark.slow]


def test_all_metrics_of_chosen_pairs_are_measured_in_one_start(fabric: Fabric) -> None:
    chosen = fabric.folder / "pairs"
    chosen.write_text("n0,n1\nn2 n3  # below two leaves\n", encoding="ascii")
    words = ("--hosts", ALL, "--metric", "all", "-b", "8K", "--pair-time", "0.05", "--pair-limit", "4")

    done = fabric(*words, "--pairs", chosen, "--out", fabric.run, "--json", "--expect", "3M/s")

    reports = {each["metric"]: each for each in json.loads(done.stdout)}
    units = {metric: each["unit"] for metric, each in reports.items()}
    rounds = [each for each in read_records(fabric.run, 0, 0) if isinstance(each, RoundMeasured) and each.round == 0]
    first = {each.metric: [(test.sender, test.receiver) for test in each.tests] for each in rounds}
    expected = {metric: each.get("expected") for metric, each in reports.items()}
    assert units == {"latency": "s", "bandwidth": "B/s", "bibandwidth": "B/s", "message-rate": "msg/s"}
    assert first["latency"] == first["bibandwidth"] == [(0, 1), (2, 3)]
    assert first["bandwidth"] == first["message-rate"] == [(0, 1), (2, 3), (1, 0), (3, 2)]
    assert all(each["unanswered"] == 0 and each["median"] > 0 for each in reports.values())
    assert expected["bandwidth"] is None
    assert expected["message-rate"]["value"] == 3e6
