"""Sizes of which nothing measured applies are held against a prediction: inside its interval ok, and never slow."""

from dataclasses import replace
from functools import cache

import pytest
from click.testing import CliRunner

from busbw.cli.command import busbw
from busbw.facts.platforms import all_platforms, facts_of_gpus
from busbw.judge.explaining.expecting import Knowledge
from busbw.judge.explaining.explain import explain
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.judge.explaining.outcome import Judged, is_below_model, verdict_of
from busbw.judge.explaining.predicting import predictions
from busbw.judge.explaining.scenarios import bounds, scenarios
from busbw.predict.closed import predicted
from busbw.predict.machines import machine_of

from .made_series import make_series
from .tables import nccl_table

MiB, GiB = 2**20, 2**30
PLATFORMS = {platform.id: platform for platform in all_platforms()}
# Nobody has published an all_gather of four GPUs of one such node.
GH200 = "isambard-ai-phase2"


@cache
def known_machine(name=GH200):
    return KnownMachine(platform=PLATFORMS[name], gpus=facts_of_gpus(tuple(PLATFORMS.values())))


@cache
def call(size_bytes=128 * MiB, collective="all_gather"):
    return predicted(machine_of(PLATFORMS[GH200]), nodes=1, collective=collective, size_bytes=size_bytes)[0]


def series_of(rate_Bps, size_bytes=128 * MiB, **said):
    return make_series([(size_bytes, rate_Bps)], **{"collective": "all_gather", "ranks": 4, **said})


def size_of(series, machine=None):
    return explain("s", (series,), machine or known_machine()).series[0].sizes[0]


def models(size):
    return [each for each in size.expected if each.basis == "model" and each.title.startswith("by a model")]


@pytest.mark.parametrize("times", [1.001, 1.2, 1.9])
def test_inside_the_interval_and_above_it_is_ok_and_names_the_model_and_its_interval(times):
    size = size_of(series_of(times * call().low_Bps))
    assert size.verdict.outcome == "ok"
    assert "(by a model: ring, in family, 90 % within 231.1 GB/s to 371.3 GB/s)" in size.verdict.sentence
    assert "no loss would be called slow" in size.verdict.sentence
    assert size.next_step is None
    (expected,) = models(size)
    assert (expected.busbw_Bps, expected.least_Bps) == pytest.approx((call().busbw_Bps, call().low_Bps))
    assert "fitted" in expected.source[0]


@pytest.mark.parametrize("times", [0.999, 0.5, 0.001])
def test_below_the_interval_it_cannot_tell_and_names_the_tests_that_would(times):
    size = size_of(series_of(times * call().low_Bps))
    assert size.verdict.outcome == "cannot_tell"
    assert size.verdict.sentence.startswith("cannot tell: all_gather 128 MiB: less than the model expects: ")
    assert size.verdict.because == ()
    for command in (
        "busbw compare all_gather --backend native-nccl --ranks 4 -b 128M -e 128M",
        "busbw run sendrecv --backend native-nccl -b 64M -e 64M --pairs all",
        "busbw compare SOUND THIS",
    ):
        assert command in size.next_step


def test_a_small_message_is_told_as_a_time():
    high_s = call(8).time_s * call(8).busbw_Bps / call(8).low_Bps
    for times, outcome in ((0.9, "ok"), (1.1, "cannot_tell")):
        size = size_of(series_of(call(8).low_Bps / times, 8))
        assert size.verdict.outcome == outcome
        assert models(size)[0].most_s == pytest.approx(high_s)
        assert "90 % within 4.78 us to 14.8 us" in size.verdict.sentence
    assert "--mode graph" in size.next_step


@pytest.mark.parametrize(
    "said",
    [{"detour": "shm"}, {"network": "fallback"}, {"network": "loopback"}, {"sharp": True}, {"library": "mpi"}],
    ids=str,
)
def test_nothing_is_predicted_of_a_way_that_is_not_modelled(said):
    assert models(size_of(series_of(call().low_Bps)))
    size = size_of(series_of(call().low_Bps, **said))
    assert not models(size)
    assert "model" not in size.verdict.sentence


def of_algorithm(series, algorithm):
    return replace(series, samples=tuple(replace(each, algorithm=algorithm) for each in series.samples))


def test_nothing_is_predicted_of_a_symmetric_kernel():
    assert models(size_of(of_algorithm(series_of(200e9), "ring")))
    assert not models(size_of(of_algorithm(series_of(200e9), "symmetric")))


def test_a_few_bytes_are_predicted_through_adding_switches_only_where_nccl_says_so():
    series = make_series([(8, 1e6)], nvls=True)
    assert not models(size_of(series, known_machine("aws-p6-b200")))
    assert models(size_of(of_algorithm(series, "nvls"), known_machine("aws-p6-b200")))


def test_what_was_measured_goes_before_a_model():
    # Sweeps of eight H100 in one node; the rate that was seen of NICs between nodes.
    for series in (
        make_series([(8 * GiB, 100e9)], nvls=True),
        make_series([(8 * GiB, 100e9)], ranks=32, nodes=4, collective="all_gather"),
    ):
        size = size_of(series, known_machine("azure-nd-h100-v5"))
        assert size.verdict.outcome == "slow"
        assert not models(size)


def judged(rate_Bps, low_share):
    """Return one size whose predicted interval begins at so much of its ceiling."""
    series, machine = series_of(rate_Bps), known_machine()
    rates, _ = machine.rates(series)
    sample = series.samples[0]
    possible = scenarios(series, sample, rates, bounds(rates, series)[0])
    known = Knowledge(series=series, known_machine=machine, rates=rates, references=(), empty=None)
    (found,) = predictions(known, sample, possible)
    low_Bps = low_share * possible[0].ceiling_Bps
    found = replace(found, sound_Bps=low_Bps, busbw_Bps=possible[0].ceiling_Bps)
    return Judged(series=series, sample=sample, scenarios=possible, expected=[found], published=(), no_bound=None)


def test_near_its_ceiling_a_size_is_ok_whatever_a_model_says():
    near, far = judged(0.9 * 450e9, 0.95), judged(0.8 * 450e9, 0.95)
    verdict = verdict_of(near)
    assert verdict.outcome == "ok"
    assert "model" not in verdict.sentence
    assert "90 % of the 450.0 GB/s that is possible" in verdict.sentence
    assert not is_below_model(near)
    assert verdict_of(far).outcome == "cannot_tell"
    assert is_below_model(far)


def test_no_platform_calls_a_size_slow_by_a_model():
    held = 0
    for platform in PLATFORMS.values():
        if platform.kind == "gpu" and platform.gpu.count > 1:
            points = [(size_bytes, 1.0) for size_bytes in (8, MiB, 64 * MiB)]
            series = make_series(points, collective="broadcast", ranks=platform.gpu.count)
            (found,) = explain("s", (series,), known_machine(platform.id)).series
            of_models = [size for size in found.sizes if models(size)]
            assert {size.verdict.outcome for size in of_models} <= {"cannot_tell"}
            held += len(of_models)
    assert held >= 10


def test_a_gpu_that_is_known_by_its_name_alone_is_predicted_within_a_node():
    by_name = KnownMachine(gpus=facts_of_gpus(tuple(PLATFORMS.values())))
    for gpu, is_told in (("NVIDIA GH200 120GB", True), ("NVIDIA Nothing", False)):
        series = replace(series_of(1.2 * call().low_Bps), gpu_name=gpu)
        assert bool(models(size_of(series, by_name))) is is_told


def test_the_command_prints_the_interval_and_what_to_do(tmp_path):
    log = tmp_path / "all_gather.log"
    for rate_GBps, code, words in ((250.0, 0, "by a model: ring"), (100.0, 4, "less than the model expects")):
        log.write_text(nccl_table([(128 * MiB, rate_GBps)], 4, "all_gather"))
        said = CliRunner().invoke(busbw, ["judge", str(log), "--platform", GH200, "--nodes", "1"])
        assert said.exit_code == code, said.output
        assert words in said.stdout
    assert "next: cannot tell why from a collective alone; compare settings" in said.stdout


def test_an_interval_that_would_pass_nearly_everything_holds_nothing():
    # Two nodes over a network of which one document tells little: 8 bytes take 0.8 to 3.8 ms, it is predicted.
    machine = machine_of(PLATFORMS["gcp-a3-high"])
    wide = predicted(machine, nodes=2, collective="all_reduce", size_bytes=8)[0]
    assert wide.low_Bps < 0.5 * wide.busbw_Bps
    series = make_series([(8, wide.busbw_Bps)], collective="all_reduce", ranks=16, nodes=2)
    assert models(size_of(series, known_machine("gcp-a3-high"))) == []


@pytest.mark.parametrize("times", [1.01, 0.99, 0.3, 0.001])
def test_sends_and_receives_are_held_against_a_model_that_calls_nothing_slow(times):
    low_Bps = call(GiB, "alltoall").low_Bps
    size = size_of(series_of(times * low_Bps, GiB, collective="alltoall"))
    assert size.verdict.outcome == ("ok" if times > 1 else "cannot_tell")
    assert "by a model: linear, in family" in size.verdict.sentence
    (expected,) = models(size)
    assert expected.least_Bps == pytest.approx(low_Bps)
