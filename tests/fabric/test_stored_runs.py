"""Pairs of a stored run: which ranks are which endpoints, which size is taken, and what is refused."""

import re
from itertools import combinations

import msgspec
import pytest
from tests.judge.factories import make_hello, make_measurement, make_plan, make_rates

from busbw.api.sweeping.fabrics import FabricRequest, pairs_of
from busbw.base.errors import InputError
from busbw.fabric.drawing import UNICODE, drawn_lines
from busbw.fabric.procedure import analysed
from busbw.fabric.report import report
from busbw.fabric.table import pairs_text, read_pairs
from busbw.model.finding import Verdict
from busbw.model.record import GpuHello
from busbw.model.run import Run

MiB = 2**20


def run_of(hosts, *measured):
    """Return a run with a rank on each of `hosts`, and a measurement for each (collective, pair, size, time)."""
    return Run(
        plan=make_plan(),
        outcome=None,
        ranks=tuple(make_hello(rank, host=host) for rank, host in enumerate(hosts)),
        rates=make_rates(),
        measurements=tuple(
            make_measurement(collective, size_bytes, time_s, ranks=2, pair=pair)
            for collective, pair, size_bytes, time_s in measured
        ),
        ceilings=(),
        findings=(),
        verdict=Verdict(outcome="cannot_tell", sentence="cannot tell: made."),
        unreadable=(),
    )


def test_a_rank_a_host_is_that_host_and_the_largest_size_counts():
    run = run_of(
        ("n0", "n1", "n2"),
        ("sendrecv", (0, 1), MiB, 1e-4),
        ("sendrecv", (0, 1), 8, 1e-6),
        ("sendrecv", (1, 2), MiB, 2e-4),
    )

    places, tests, metric = pairs_of(run, FabricRequest(source="x"))

    assert [str(each) for each in places.endpoints] == ["n0", "n1", "n2"]
    assert metric in ("bandwidth", "bibandwidth")
    assert [(each.sender, each.receiver) for each in tests] == [(0, 1), (1, 2)]
    assert tests[0].value == pytest.approx(2 * tests[1].value)


def test_a_message_rate_counts_messages_and_its_smallest_size():
    run = run_of(("n0", "n1"), ("message_rate", (0, 1), MiB, 1e-4), ("message_rate", (0, 1), 8, 1e-6))

    _places, tests, metric = pairs_of(run, FabricRequest(source="x"))

    assert metric == "message-rate"
    assert [each.value for each in tests] == [pytest.approx(1e6)]


def test_several_ranks_of_a_host_are_its_rails_and_pairs_within_it_do_not_count():
    run = run_of(
        ("n0", "n0", "n1", "n1"),
        ("latency", (0, 1), 8, 1e-6),
        ("latency", (0, 2), 8, 2e-6),
        ("latency", (1, 3), 8, 3e-6),
    )

    places, tests, metric = pairs_of(run, FabricRequest(source="x"))

    assert metric == "latency"
    assert [(each.node, each.rail) for each in places.endpoints] == [("n0", "0"), ("n1", "0"), ("n0", "1"), ("n1", "1")]
    assert [each.value for each in tests] == [2e-6, 3e-6]


def test_a_run_on_one_host_has_no_pair_of_a_fabric():
    with pytest.raises(InputError, match="lies on two hosts"):
        pairs_of(run_of(("n0", "n0"), ("sendrecv", (0, 1), MiB, 1e-4)), FabricRequest(source="x"))


def test_gpus_of_one_host_are_endpoints_of_their_own_and_called_gpus():
    pairs = [("sendrecv", pair, MiB, 1.4e-4 if 2 in pair else 1e-4) for pair in combinations(range(8), 2)]
    run = run_of(("n0",) * 8, *pairs)
    gpu = GpuHello(
        ordinal=0, model="H100", bus_id="0000:01:00.0", free_bytes=MiB, nccl="2.28.9", nccl_path="/libnccl.so.2",
        driver=13000, driver_path="/libcuda.so.1", nvrtc_path=None, environment=(),
    )  # fmt: skip
    ranks = tuple(msgspec.structs.replace(each, gpu=gpu) for each in run.ranks)

    places, tests, metric = pairs_of(msgspec.structs.replace(run, ranks=ranks), FabricRequest(source="x"))

    assert metric == "bibandwidth"
    assert [str(each) for each in places.endpoints] == [f"n0:gpu{number}" for number in range(8)]
    assert len(tests) == 28
    made = report(analysed(places, tests, metric), metric, "pairs")
    drawn = "\n".join(line.text for line in drawn_lines(made, ("bars",), UNICODE))
    assert [each.place for each in made.answers] == ["GPU n0:gpu2"]
    assert "8 GPUs" in drawn
    assert "GPUs, slowest first" in drawn
    assert not {"node", "nodes", "NIC", "leaf"} & set(re.findall(r"\w+", drawn))
    again, _tests = read_pairs([pairs_text(places, tests, metric).encode()], metric, "pairs.csv")
    assert again.endpoints == places.endpoints


def test_a_run_without_pairs_is_refused():
    with pytest.raises(InputError, match="no pairs were measured"):
        pairs_of(run_of(("n0", "n1")), FabricRequest(source="x"))
