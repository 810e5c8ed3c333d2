"""Runs of our own loops: over NCCL by the links of their GPUs, over MPI by the memory of their host."""

from itertools import combinations

import pytest
from msgspec import structs
from tests.judge.factories import MiB, make_hello, make_measurement, make_outcome, make_plan, make_rates, make_wrong

from busbw.api.verdicts import judge_results, stated_facts
from busbw.facts.platforms import all_platforms, facts_of_gpus, find_platform
from busbw.judge import judge
from busbw.judge.explaining.explain import explain, judged_by_links
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.judge.explaining.series import Series, SizeSample, StatedFacts, rates_of, stated_by_settings
from busbw.judge.explaining.slow_ends import pair_findings_of_run
from busbw.judge.explaining.sources import series_of_run
from busbw.model.finding import Verdict
from busbw.model.record import NcclChoice
from busbw.model.run import Run
from busbw.model.settings import JobEnvironment

from .gpu_runs import make_gpu_run, make_point
from .tables import HOST, SAMPLES, codes

# docs/measurements/2026-11-21-nccl-four-h200.md: size, seconds, what NCCL said that it used.
FOUR_H200 = (
    (2**10, 9.65e-6, ("RING", "LL")),
    (64 * 2**10, 11.20e-6, ("RING", "LL")),
    (MiB, 19.76e-6, ("RING", "LL")),
    (16 * MiB, 100.54e-6, ("RING", "SIMPLE")),
    (256 * MiB, 1184.2e-6, ("RING", "SIMPLE")),
    (2**33, 35370e-6, ("RING", "SIMPLE")),
)
PLATFORMS = all_platforms()


def four_h200(slower=1.0):
    points = [
        make_point(number, size, time_s * slower, chosen=chosen)
        for number, (size, time_s, chosen) in enumerate(FOUR_H200)
    ]
    return make_gpu_run(points)


def explained(run, known_machine=None, stated=None):
    known_machine = known_machine or KnownMachine()
    return explain(
        "run",
        series_of_run(run, stated or StatedFacts()),
        known_machine,
        run=run,
        findings=pair_findings_of_run(run, known_machine),
    )


class TestFourH200:
    """Without a platform: the name of the GPU tells its links."""

    def test_the_run_is_ok_and_not_cannot_tell(self):
        before = four_h200()
        assert before.verdict.outcome == "cannot_tell"
        run = judged_by_links(before, PLATFORMS)
        assert run.verdict.outcome == "ok"
        assert "364.3 GB/s, 100 % of the 363.3 GB/s expected (measured: " in run.verdict.sentence
        assert "RUN021" not in {found.code for found in run.findings}

    def test_the_algorithm_is_the_own_word_and_the_protocol_a_step_of_the_budget(self):
        run = four_h200()
        sizes = explained(run, KnownMachine(gpus=facts())).series[0].sizes
        assert {(size.algorithm, size.algorithm_from) for size in sizes} == {("ring", "nccl")}
        assert "protocol" in {step.name for step in sizes[2].budget}
        assert next(step for step in sizes[2].budget if step.name == "protocol").busbw_Bps == pytest.approx(225e9)
        assert "protocol" not in {step.name for step in sizes[-1].budget}

    def test_nvls_being_off_is_known(self):
        series = explained(four_h200(), KnownMachine(gpus=facts())).series[0]
        assert ("NVLS", "off") in series.settings

    def test_twice_as_slow_is_slow(self):
        run = judged_by_links(four_h200(slower=2.0), PLATFORMS)
        assert run.verdict.outcome == "slow"
        assert run.verdict.because == ("PERF011",)

    def test_small_messages_that_take_four_times_as_long_are_slow(self):
        points = [make_point(number, 2**number * 1024, 45e-6, chosen=("RING", "LL")) for number in range(6)]
        run = judged_by_links(make_gpu_run(points), PLATFORMS)
        assert run.verdict.outcome == "slow"
        assert run.verdict.because == ("PERF014",)

    def test_more_than_the_links_carry_is_no_result(self):
        run = make_gpu_run([make_point(0, 2**33, 2**33 * 1.5 / 500e9)])
        found = explained(run, KnownMachine(gpus=facts()))
        assert found.verdict.outcome == "cannot_tell"
        assert found.verdict.because == ("PERF010",)

    def test_a_gpu_that_nobody_knows_leaves_the_run_as_it_is(self):
        run = make_gpu_run([make_point(0, 2**33, 35370e-6)], model="Stand-in GPU")
        assert judged_by_links(run, PLATFORMS) == run

    def test_a_wrong_result_stays_wrong(self):
        point = structs.replace(make_point(0, MiB, 2e-5), wrong=make_wrong())
        run = judged_by_links(make_gpu_run([point]), PLATFORMS)
        assert run.verdict.outcome == "wrong"

    def test_symmetric_kernels_are_bounded_by_the_links_alone(self):
        run = make_gpu_run([make_point(0, 2**30, 5498e-6, chosen=None)])
        point = run.measurements[0]
        choice = make_choice("AGxLL_R")
        nccl = structs.replace(point.nccl, choices=(choice,))
        run = structs.replace(run, measurements=(structs.replace(point, nccl=nccl),))
        size = explained(run, KnownMachine(gpus=facts())).series[0].sizes[0]
        assert size.algorithm == "symmetric"
        assert size.ceiling_Bps == pytest.approx(450e9)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (NcclChoice(function="AGxLL_R", algorithm=None, protocol=None, channels=7), "plain buffers (-R 0)"),
        (NcclChoice(function="AllReduce", algorithm="RING", protocol="LL", channels=24), "unset NCCL_PROTO"),
        (NcclChoice(function="AllReduce", algorithm="RING", protocol="SIMPLE", channels=1), "it used 1 "),
        (NcclChoice(function="AllReduce", algorithm="RING", protocol="SIMPLE", channels=24), "NCCL_MIN_NCHANNELS=32"),
    ],
)
def test_the_next_step_follows_what_nccl_chose(choice, words):
    point = make_point(0, 2**31, 2**31 * 1.5 / 150e9)
    point = structs.replace(point, nccl=structs.replace(point.nccl, choices=(choice,)))
    found = explained(make_gpu_run([point]), KnownMachine(gpus=facts()))
    assert found.verdict.outcome == "slow"
    assert words in found.next_steps[0]


def make_choice(function):
    return NcclChoice(function=function, algorithm=None, protocol=None, channels=7)


def facts():
    return facts_of_gpus(PLATFORMS)


class TestFourH200OfNcclTests:
    """The same host through nccl-tests, six collectives, held against a captured host."""

    def judged(self):
        return judge_results((str(SAMPLES / "four-h200.log"),), host=HOST, stated=stated_facts(nvls="off"))

    def test_every_table_is_ok_or_says_why_it_cannot_tell(self):
        assert {series.verdict.outcome for series in self.judged().series} == {"ok"}

    def test_no_size_is_slow(self):
        slow = [
            (series.title, size.size_bytes)
            for series in self.judged().series
            for size in series.sizes
            if size.verdict.outcome == "slow"
        ]
        assert slow == []

    def test_links_come_from_the_capture(self):
        found = self.judged()
        assert found.machine == "host1"
        wire = found.series[0].sizes[-1].budget[0]
        assert wire.busbw_Bps == pytest.approx(450e9)
        assert "18 links up x 25 GB/s" in wire.words

    def test_the_knee_lies_between_latency_and_bandwidth(self):
        curve = self.judged().series[0].curve
        assert curve.whole.latency_s.low < 10.5e-6 < curve.whole.latency_s.high
        assert curve.hill.busbw_Bps.low < 365e9 < curve.hill.busbw_Bps.high
        assert curve.latency_to_bytes < curve.hill.half_bytes.value < curve.bandwidth_from_bytes


def test_steps_of_a_budget_lead_from_the_wire_to_what_was_measured():
    for series in TestFourH200OfNcclTests().judged().series:
        for size in series.sizes:
            steps = size.budget
            assert steps[0].name == "wire"
            assert steps[-1].busbw_Bps == pytest.approx(size.busbw_Bps)
            left_Bps = steps[0].busbw_Bps
            for step in steps[1:]:
                left_Bps += step.change_Bps
                assert left_Bps == pytest.approx(step.busbw_Bps)


class TestPairs:
    """Rates of every two GPUs name the slow one, and the NIC next to it."""

    def run_of_pairs(self, hosts=("a", "b"), slow=13, each=8):
        ranks = each * len(hosts)
        points = [
            make_point(
                number,
                64 * MiB,
                64 * MiB / (370e9 if pair[0] // each == pair[1] // each else 24e9 if slow in pair else 48e9),
                collective="sendrecv",
                ranks=2,
                pair=pair,
            )
            for number, pair in enumerate(combinations(range(ranks), 2))
        ]
        return make_gpu_run(points, ranks=ranks, hosts=hosts, model="NVIDIA H100 80GB HBM3")

    def test_the_gpu_and_its_nic_are_named(self):
        platform = find_platform("azure-nd-h100-v5").platform
        found = explained(self.run_of_pairs(), KnownMachine(platform=platform))
        assert found.verdict.outcome == "slow"
        assert found.verdict.because == ("PERF013",)
        assert "GPU 5 on b (rank 13) over NIC mlx5_ib5 reaches 50 % of what the others reach" in found.verdict.sentence

    def test_without_a_platform_the_gpu_is_named_alone(self):
        run = judged_by_links(self.run_of_pairs(), PLATFORMS)
        assert run.verdict.because == ("PERF013",)
        assert "GPU 5 on b (rank 13)" in run.verdict.sentence

    def test_sound_pairs_are_no_finding(self):
        assert "PERF013" not in codes(explained(self.run_of_pairs(slow=99)))


class TestMpi:
    """One host: its own memory, measured in the run."""

    def mpi_run(self, time_s):
        plan = make_plan()
        measurements = (make_measurement("all_reduce", 16 * MiB, time_s),)
        hellos = tuple(make_hello(rank) for rank in range(4))
        judgement = judge(plan, make_outcome(), hellos, make_rates(), measurements)
        return Run(
            plan=plan,
            outcome=make_outcome(),
            ranks=hellos,
            rates=make_rates(),
            measurements=measurements,
            ceilings=judgement.ceilings,
            findings=judgement.findings,
            verdict=judgement.verdict,
            unreadable=(),
        )

    @pytest.mark.parametrize(("time_s", "outcome"), [(4e-3, "ok"), (60e-3, "slow")])
    def test_it_says_what_the_run_itself_says(self, time_s, outcome):
        run = self.mpi_run(time_s)
        found = explained(run)
        assert run.verdict.outcome == found.verdict.outcome == outcome

    def test_the_budget_begins_with_the_rate_of_memory(self):
        (size,) = explained(self.mpi_run(4e-3)).series[0].sizes
        assert [step.name for step in size.budget] == ["wire", "algorithm", "seen", "unexplained"]
        assert size.budget[0].busbw_Bps == pytest.approx(40e9)
        assert {each.basis for each in size.expected} == {"here"}


def test_settings_decide_what_applies():
    stated = stated_by_settings(
        [
            ("NCCL_NVLS_ENABLE", "0"),
            ("NCCL_ALGO", "Ring,NVLSTree"),
            ("NCCL_NET", "Socket"),
            ("NCCL_COLLNET_ENABLE", "1"),
        ]
    )
    assert stated == StatedFacts(nvls=False, sharp=True, algorithms=("ring", "nvlstree"), detour="sockets")
    # Exclusions and lists by function are left to NCCL.
    assert stated_by_settings([("NCCL_ALGO", "^Ring")]).algorithms == ()
    assert stated_by_settings([("NCCL_ALGO", "allreduce:tree")]).algorithms == ()
    assert stated_by_settings([("NCCL_P2P_DISABLE", "1"), ("NCCL_SHM_DISABLE", "1")]).network == "loopback"
    assert stated_by_settings([("NCCL_P2P_DISABLE", "1")]).detour == "shm"
    assert stated_by_settings([]) == StatedFacts()


class TestLogs:
    """NCCL's log around the rows: three jobs on four H200, as they were logged."""

    LOGS = SAMPLES.parents[2] / "doctor" / "logs"

    def judged(self, name, platform=None):
        return judge_results((str(self.LOGS / name),), platform_name=platform)

    def test_a_sound_job_is_ok_without_anything_said(self):
        found = self.judged("healthy.log")
        assert found.verdict.outcome == "ok"
        assert ("NVLS", "off") in found.series[0].settings
        sizes = found.series[0].sizes
        assert {size.algorithm_from for size in sizes} == {"nccl"}
        assert (sizes[0].algorithm, sizes[0].protocol) == ("ring", "LL")
        assert (sizes[-1].algorithm, sizes[-1].protocol) == ("ring", "SIMPLE")

    @pytest.mark.parametrize(
        ("name", "platform", "words", "step"),
        [
            ("p2p-off.log", None, "the memory of the host in place of its links", "unset NCCL_P2P_DISABLE"),
            ("sockets.log", "azure-nd-h100-v5", "TCP in place of the fabric", "make NCCL find the fabric"),
        ],
    )
    def test_a_detour_that_the_log_shows_is_named_as_the_cause(self, name, platform, words, step):
        found = self.judged(name, platform)
        assert found.verdict.outcome == "slow"
        assert found.verdict.because == ("PERF012",)
        assert words in next(each.title for each in found.findings if each.code == "PERF012")
        assert any(step in each for each in found.next_steps)

    def test_tcp_between_nodes_whose_network_nobody_knows_is_no_fault(self):
        assert self.judged("sockets.log").verdict.outcome == "cannot_tell"

    def test_a_log_says_nothing_of_several_files(self):
        names = (str(self.LOGS / "healthy.log"), str(self.LOGS / "p2p-off.log"))
        assert {series.settings for series in judge_results(names).series} == {()}


@pytest.mark.parametrize("platform", ["azure-nd-h100-v5", "oci-bm-gpu-h100-8", "aws-p5"])
def test_small_messages_between_nodes_are_never_slow_by_a_model_alone(platform):
    point = make_point(0, 8, 150e-6, ranks=16, chosen=("TREE", "LL"))
    points = [structs.replace(point, point=number, size_bytes=8 * 2**number) for number in range(7)]
    run = make_gpu_run(points, ranks=16, hosts=("a", "b"))
    found = explained(run, KnownMachine(platform=find_platform(platform).platform))
    assert found.verdict.outcome == "cannot_tell"


def test_a_slow_rail_is_named_by_both_its_ends():
    points = [
        make_point(
            rank,
            64 * MiB,
            64 * MiB / (24e9 if rank == 5 else 48e9),
            collective="sendrecv",
            ranks=2,
            pair=(rank, rank + 8),
        )
        for rank in range(8)
    ]
    run = make_gpu_run(points, ranks=16, hosts=("a", "b"), model="NVIDIA H100 80GB HBM3")
    found = explained(run, KnownMachine(platform=find_platform("azure-nd-h100-v5").platform))
    assert found.verdict.outcome == "slow"
    assert "GPU 5 on a (rank 5) over NIC mlx5_ib5 and GPU 5 on b (rank 13) over NIC mlx5_ib5" in found.verdict.sentence


@pytest.mark.parametrize(
    ("algorithm", "busbw", "outcome"),
    [("NVLS", 480e9, "ok"), ("NVLS", 360e9, "slow"), ("RING", 365e9, "ok"), ("NVLS_TREE", 365e9, "cannot_tell")],
)
def test_what_is_expected_of_eight_h100_depends_on_what_nccl_chose(algorithm, busbw, outcome):
    point = make_point(0, 2**34, 2**34 * 1.75 / busbw, ranks=8, chosen=(algorithm, "SIMPLE"))
    run = make_gpu_run([point], ranks=8, model="NVIDIA H100 80GB HBM3")
    assert explained(run, KnownMachine(gpus=facts())).verdict.outcome == outcome


@pytest.mark.parametrize("text", ["", "=", "Ring,", ",,", "Ring;Tree", "\x00", "ring" * 10_000, "^", "1", "Ring Tree"])
@pytest.mark.parametrize("name", ["NCCL_ALGO", "NCCL_NET", "NCCL_NVLS_ENABLE", "NCCL_COLLNET_ENABLE"])
def test_any_value_of_a_setting_is_read_or_left_out(name, text):
    stated = stated_by_settings([(name, text)])
    assert set(stated.algorithms) <= {"ring"}
    assert stated.sharp in (None, True)


@pytest.mark.parametrize(("share", "outcome"), [(0.91, "ok"), (0.89, "slow"), (1.2, "ok")])
def test_large_messages_must_reach_90_percent_where_two_sources_agree(share, outcome):
    point = make_point(0, 2**33, 2**33 * 1.5 / (share * 363.3e9))
    run = make_gpu_run([structs.replace(point, low_s=point.median_s)])
    assert explained(run, KnownMachine(gpus=facts())).verdict.outcome == outcome


@pytest.mark.parametrize(("times", "outcome"), [(1.9, "ok"), (2.5, "cannot_tell"), (3.2, "slow")])
def test_small_messages_may_take_twice_what_was_measured_with_this_nccl(times, outcome):
    points = [make_point(number, 2**number, times * 9.65e-6, chosen=("RING", "LL")) for number in range(3, 10)]
    run = make_gpu_run([structs.replace(point, low_s=point.median_s) for point in points])
    assert {size.verdict.outcome for size in explained(run, KnownMachine(gpus=facts())).series[0].sizes} == {outcome}


def test_the_favourable_end_of_an_interval_counts():
    point = make_point(0, 2**33, 2**33 * 1.5 / (0.7 * 367.2e9))
    sure = make_gpu_run([structs.replace(point, low_s=point.median_s * 0.99)])
    unsure = make_gpu_run([structs.replace(point, low_s=point.median_s * 0.7)])
    assert explained(sure, KnownMachine(gpus=facts())).verdict.outcome == "slow"
    assert explained(unsure, KnownMachine(gpus=facts())).verdict.outcome == "ok"


@pytest.mark.parametrize("changes", [{"verified": False}, {"samples": 3}], ids=["unchecked", "few samples"])
def test_speed_that_says_nothing_is_not_judged(changes):
    point = structs.replace(make_point(0, 2**33, 35e-3), **changes)
    assert explained(make_gpu_run([point]), KnownMachine(gpus=facts())).series[0].verdict.outcome == "cannot_tell"


def test_a_run_that_is_slow_for_another_reason_stays_slow():
    run = structs.replace(four_h200(), verdict=Verdict(outcome="slow", sentence="slow: rank 1.", because=("PERF004",)))
    assert judged_by_links(run, PLATFORMS).verdict == run.verdict


@pytest.mark.parametrize("code", ["RUN003", "RUN007", "RUN023"])
def test_a_run_under_conditions_that_spoil_it_stays_untold(code):
    verdict = Verdict(outcome="cannot_tell", sentence="cannot tell: this.", because=(code, "RUN021"))
    run = structs.replace(four_h200(), verdict=verdict)
    assert judged_by_links(run, PLATFORMS) == run


@pytest.mark.parametrize(("ranks", "ceiling_Bps"), [(2, 50e9), (352, 2 * 351 / 352 * 50e9)])
def test_mpi_between_nodes_is_bounded_by_the_ranks_that_there_are(ranks, ceiling_Bps):
    busbw_Bps, algbw_Bps = rates_of("all_reduce", ranks, 2**30, 0.1)
    series = Series(
        title="t",
        collective="all_reduce",
        dtype="float32",
        op="sum",
        in_place=False,
        ranks=ranks,
        nodes=2,
        gpus_per_node=None,
        gpu_name=None,
        library="mpi",
        statistic="s",
        samples=(SizeSample(size_bytes=2**30, time_s=0.1, busbw_Bps=busbw_Bps, algbw_Bps=algbw_Bps),),
    )
    found = explain("s", (series,), KnownMachine(platform=find_platform("azure-hbv4").platform))
    assert found.series[0].sizes[0].ceiling_Bps == pytest.approx(ceiling_Bps)


class TestLoopback:
    """One node that sends to itself through its NICs, as the goal nic-check has it."""

    # Azure's article on interconnects: 8 x H100, 16 GiB, P2P, SHM and NVLS off.
    PUBLISHED_Bps = 48.69e9
    OFF = (("NCCL_P2P_DISABLE", "1"), ("NCCL_SHM_DISABLE", "1"), ("NCCL_NVLS_ENABLE", "0"))

    def of(self, busbw_Bps, settings=OFF, platform="azure-nd-h100-v5"):
        size_bytes = 2**34
        time_s = size_bytes * 2 * 7 / 8 / busbw_Bps
        point = make_point(0, size_bytes, time_s, ranks=8, chosen=("RING", "SIMPLE"))
        run = make_gpu_run([point], ranks=8, model="NVIDIA H100 80GB HBM3")
        hellos = tuple(structs.replace(each, gpu=structs.replace(each.gpu, environment=settings)) for each in run.ranks)
        start = JobEnvironment(where="this host", environment=dict(settings), platform=platform)
        return judged_by_links(
            structs.replace(run, ranks=hellos, plan=structs.replace(run.plan, surroundings=start)), PLATFORMS
        )

    def test_what_was_published_is_ok_though_nvlink_would_carry_ten_times_as_much(self):
        found = self.of(self.PUBLISHED_Bps)
        assert found.verdict.outcome == "ok", found.verdict.sentence

    def test_a_nic_with_half_its_rate_is_slow(self):
        found = self.of(self.PUBLISHED_Bps / 2)
        assert found.verdict.outcome == "slow", found.verdict.sentence
        assert "50.0 GB/s" in found.verdict.sentence or "48.7 GB/s" in found.verdict.sentence

    def test_the_same_figure_over_nvlink_is_slow(self):
        found = self.of(self.PUBLISHED_Bps, settings=(("NCCL_NVLS_ENABLE", "0"),))
        assert found.verdict.outcome == "slow", found.verdict.sentence

    def test_where_the_platform_is_not_known_nothing_is_said_of_its_nics(self):
        found = self.of(self.PUBLISHED_Bps / 2, platform=None)
        assert found.verdict.outcome == "cannot_tell", found.verdict.sentence

    def test_a_level_that_never_lets_gpus_reach_each_other_is_the_same(self):
        found = self.of(self.PUBLISHED_Bps, settings=(("NCCL_P2P_LEVEL", "LOC"), ("NCCL_SHM_DISABLE", "1")))
        assert found.verdict.outcome == "ok", found.verdict.sentence
        near = stated_by_settings((("NCCL_P2P_LEVEL", "PIX"), ("NCCL_SHM_DISABLE", "1")))
        assert near.network is None
