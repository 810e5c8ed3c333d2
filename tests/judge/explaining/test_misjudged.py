"""Results that were once judged wrongly: sound machines called slow, lossy ones ok, and expectations out of reach."""

from dataclasses import replace

import pytest

from busbw.facts.platforms import all_platforms, facts_of_gpus
from busbw.judge.explaining.explain import explain
from busbw.judge.explaining.known_machine import KnownMachine

from .tables import GiB, codes, judged, nccl_table
from .test_laws import make_series

MiB = 2**20
ORDER = ("slow", "cannot_tell", "ok")


def osu_latency(us):
    return f"# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n8   {us:.2f}\n"


def test_a_sweep_that_starts_large_is_not_taken_for_latency(tmp_path):
    rows = [(512 * MiB, 586.06), (GiB, 681.17), (2 * GiB, 757.78), (4 * GiB, 839.16), (8 * GiB, 834.57)]
    explained = judged(tmp_path, nccl_table(rows, 72), "gb200-nvl72", nodes=18)
    assert explained.verdict.outcome == "ok"
    for size in explained.series[0].sizes:
        assert size.regime != "latency"
        assert size.band_high_Bps <= size.ceiling_Bps


def test_sixteen_trays_of_a_rack_get_no_worse_verdict_for_more_bandwidth(tmp_path):
    outcomes = [
        judged(tmp_path, nccl_table([(8 * GiB, rate)], 64), "gb200-nvl72", nodes=16).verdict.outcome
        for rate in (400, 560, 640, 700, 817, 890, 934)
    ]
    assert [ORDER.index(each) for each in outcomes] == sorted(ORDER.index(each) for each in outcomes)
    assert outcomes[0] == "slow"
    assert outcomes[-1] == "ok"


def test_twenty_racks_are_not_held_against_a_ceiling_that_nobody_approached(tmp_path):
    rows = [(512 * MiB, 150.95), (4 * GiB, 346.38), (16 * GiB, 405.74)]
    assert judged(tmp_path, nccl_table(rows, 1440), "gb200-nvl72", nodes=360).verdict.outcome == "ok"


def test_a_small_all_gather_between_two_sound_nodes_is_not_slow(tmp_path):
    rows = [(MiB, 12.33), (8 * GiB, 328.85)]
    explained = judged(tmp_path, nccl_table(rows, 16, "all_gather"), "gcp-a3-ultra", nodes=2)
    assert {size.verdict.outcome for size in explained.series[0].sizes} == {"ok"}


def test_small_messages_of_a_machine_that_nobody_measured_are_never_slow(tmp_path):
    """Eight A100: NCCL's cost model is three times too fast for them; 8 GiB is what is published."""
    rows = [(64 * 2**10, 1.9), (MiB, 24.5), (8 * GiB, 237.0)]
    explained = judged(tmp_path, nccl_table(rows, 8), "azure-ndv4", nodes=1)
    assert explained.verdict.outcome == "ok"
    assert "8 GiB" in explained.verdict.sentence
    assert "slow" not in {size.verdict.outcome for size in explained.series[0].sizes}


def test_two_nodes_at_a_gibibyte_are_held_against_two_nodes_of_the_kind(tmp_path):
    assert judged(tmp_path, nccl_table([(GiB, 76.79)], 16), "aws-p4de", nodes=2).verdict.outcome == "ok"


def test_what_nccl_takes_by_default_on_two_nodes_is_known(tmp_path):
    """0.6 of it is below what a ring of two nodes could carry, and slow all the same: no ring was asked for."""
    table = nccl_table([(2 * GiB, 0.6 * 78.33)], 16)
    assert judged(tmp_path, table, "aws-p4de", nodes=2).verdict.outcome == "slow"
    assert judged(tmp_path, table, "aws-p4de", nodes=2, algorithm="ring").verdict.outcome == "ok"


def test_a_name_does_not_say_what_joins_several_hosts():
    """GB200 by its name alone: whether the trays are of one rack, and what is between racks, is not in it."""
    series = make_series([(8 * GiB, 40e9)], ranks=16, nodes=4)
    known_machine = KnownMachine(gpus=facts_of_gpus(all_platforms()))
    found = explain("s", (replace(series, gpu_name="NVIDIA GB200"),), known_machine)
    assert found.verdict.outcome == "cannot_tell"
    assert "PERF011" not in codes(found)


@pytest.mark.parametrize(("us", "outcome", "band"), [(1.65, "ok", "two"), (2.25, "ok", "four"), (3.90, "slow", "four")])
def test_a_latency_is_held_against_the_band_of_its_hops(tmp_path, us, outcome, band):
    verdict = judged(tmp_path, osu_latency(us), "azure-hbv4", nodes=2).verdict
    assert verdict.outcome == outcome
    assert f"pairs {band} switches apart" in verdict.sentence


@pytest.mark.parametrize(("share", "outcome"), [(1.0, "ok"), (0.875, "slow")])
def test_one_nic_of_eight_is_seen_where_references_agree(tmp_path, share, outcome):
    verdict = judged(
        tmp_path, nccl_table([(16 * GiB, share * 366.63)], 512), "azure-nd-h100-v5", nodes=64, nvls="on"
    ).verdict
    assert verdict.outcome == outcome
    assert ("as if 1 of 8 NICs were lost" in verdict.sentence) is (outcome == "slow")


def test_one_nic_of_eight_is_not_seen_where_there_is_one_source_and_it_says_so(tmp_path):
    verdict = judged(tmp_path, nccl_table([(16 * GiB, 0.875 * 471.22)], 16), "oci-bm-gpu-h100-8", nodes=2).verdict
    assert verdict.outcome == "ok"
    assert "losses below 20 % would not be seen" in verdict.sentence


@pytest.mark.parametrize("rate", [20.0, 45.0, 60.0])
def test_an_alltoall_between_nodes_is_never_slow_by_the_rates_of_rings(tmp_path, rate):
    """Nobody has published one of this machine; bounds and rings promise 91 GB/s."""
    verdict = judged(tmp_path, nccl_table([(8 * GiB, rate)], 16, "alltoall"), "azure-nd-h100-v5", nodes=2).verdict
    assert verdict.outcome == "cannot_tell"


def test_a_table_whose_ranks_are_not_known_says_so(tmp_path):
    """Of 512 ranks the rates tell no number; nothing else in the table does."""
    verdict = judged(tmp_path, nccl_table([(16 * GiB, 365.0)], 512), "aws-p5en").verdict
    assert verdict.outcome == "cannot_tell"
    assert "how many ranks took part is not known: say --nodes and --gpus-per-node" in verdict.sentence


def test_a_slow_collective_accuses_no_gpu(tmp_path):
    explained = judged(tmp_path, nccl_table([(16 * GiB, 200.0)], 8), "azure-nd-h100-v5", nodes=1, nvls="on")
    assert explained.verdict.outcome == "slow"
    words = " ".join([explained.verdict.sentence, *explained.next_steps, *(each.title for each in explained.findings)])
    assert "slow GPU" not in words
    assert "slow rail" not in words
    assert "--set default --set NCCL_MIN_NCHANNELS=32" in explained.next_steps[0]


@pytest.mark.parametrize(
    ("collective", "platform", "told"),
    [
        ("alltoall", "azure-ndm-a100-v4", ["6.7 x", "1.9 x"]),
        ("all_reduce", "azure-ndm-a100-v4", []),
        ("alltoall", "azure-ndv4", []),
        ("sendrecv", "azure-nd-h100-v5", ["10 GB/s"]),
    ],
)
def test_a_published_gain_is_told_and_changes_no_verdict(tmp_path, collective, platform, told):
    table = nccl_table([(GiB // 4, 20.0), (8 * GiB, 20.0)], 16, collective)

    explained = judged(tmp_path, table, platform, nodes=2)

    assert [next(each for each in told if each in words) for words in explained.gains] == told
    assert all(words.startswith(f"published, for information: {collective}") for words in explained.gains)
    references = [name for size in explained.series[0].sizes for name in (str(size.verdict.sentence), str(size.regime))]
    assert not any("6.7" in words or "Tutel" in words for words in references)
