"""The figures of the write-ups, each with the verdict it deserves."""

import pytest

from busbw.api.verdicts import judge_results, stated_facts

from .tables import SAMPLES, GiB, article_table, codes, judged, largest, nccl_table

H100 = "azure-nd-h100-v5"
ISAMBARD = "isambard-ai-phase2"


def applying(size, basis):
    return [each for each in size.expected if each.applies == "yes" and each.basis == basis]


class TestTable1:
    """Azure: one node with NVLink SHARP, and the same node through its NICs."""

    def figures(self):
        _, (nvls, loopback) = article_table("azure-table-1.txt")
        return nvls, loopback

    def test_the_article_says_what_is_known_of_it(self):
        assert self.figures() == (481.42, 48.69)

    def test_nvls_is_ok_and_known_by_physics(self, tmp_path):
        explained = judged(tmp_path, nccl_table([(16 * GiB, self.figures()[0])], 8), H100)
        size = largest(explained)
        assert explained.verdict.outcome == "ok"
        # A ring is bounded by 450 GB/s: nothing but NVLS is left.
        assert (size.algorithm, size.algorithm_from) == ("nvls", "physics")
        assert size.ceiling_Bps == pytest.approx(700e9)
        assert pytest.approx(481.42e9) in [each.busbw_Bps for each in applying(size, "measured")]

    def test_loopback_is_slow_where_nobody_meant_it_and_its_cause_is_named(self, tmp_path):
        explained = judged(tmp_path, nccl_table([(16 * GiB, self.figures()[1])], 8), H100)
        assert explained.verdict.outcome == "slow"
        assert explained.verdict.because == ("PERF012",)
        assert "through its NICs" in next(each.title for each in explained.findings if each.code == "PERF012")
        assert "--network loopback" in explained.next_steps[0]

    def test_loopback_is_ok_where_it_was_meant(self, tmp_path):
        explained = judged(tmp_path, nccl_table([(16 * GiB, self.figures()[1])], 8), H100, network="loopback")
        size = largest(explained)
        assert explained.verdict.outcome == "ok"
        # Eight NICs for eight GPUs: 50 GB/s for each.
        assert size.ceiling_Bps == pytest.approx(50e9)
        assert [each.busbw_Bps for each in applying(size, "measured")] == [pytest.approx(48.69e9)]


class TestTable2:
    """Azure: 4 to 128 nodes of eight H100."""

    def test_the_article_says_what_is_known_of_it(self):
        gpus, figures = article_table("azure-table-2.txt")
        assert gpus == [32, 64, 128, 256, 512, 1024]
        assert figures == [361.06, 366.12, 367.39, 365.51, 366.63, 354.2]

    @pytest.mark.parametrize("column", range(6))
    def test_each_is_ok_and_below_the_ceiling_of_a_tree(self, tmp_path, column):
        gpus, figures = article_table("azure-table-2.txt")
        ranks, busbw = gpus[column], figures[column]
        table = nccl_table([(16 * GiB, busbw)], ranks)
        explained = judged(tmp_path, table, H100, nodes=ranks // 8, gpus_per_node=8, algorithm="nvlstree")
        size = largest(explained)
        assert explained.verdict.outcome == "ok"
        # From four nodes on a tree sends 2S out of its busiest node: busbw <= (n-1)/n x 400 GB/s.
        assert size.ceiling_Bps == pytest.approx((ranks - 1) / ranks * 400e9)
        assert [each.busbw_Bps for each in applying(size, "measured")] == [pytest.approx(busbw * 1e9)]
        assert size.limited_by == "NICs of a node"

    def test_a_figure_of_other_nodes_does_not_apply(self, tmp_path):
        explained = judged(
            tmp_path, nccl_table([(16 * GiB, 361.06)], 32), H100, nodes=4, gpus_per_node=8, algorithm="nvlstree"
        )
        other = next(each for each in largest(explained).expected if each.busbw_Bps == pytest.approx(366.12e9))
        assert other.applies == "no"
        assert {held.name for held in other.conditions if held.outcome == "differs"} == {"nodes", "GPUs"}

    def test_half_of_it_is_slow(self, tmp_path):
        explained = judged(tmp_path, nccl_table([(16 * GiB, 180.0)], 32), H100)
        assert explained.verdict.outcome == "slow"
        assert "PERF011" in codes(explained)
        assert "--pairs rail" in explained.next_steps[0]


class TestOracle:
    """The limit of 1600 Gb/s that the figure stands under."""

    def test_1600_gigabits_is_the_ceiling_of_rings_on_64_nodes(self, tmp_path):
        table = nccl_table([(8 * GiB, 189.6)], 512)
        explained = judged(tmp_path, table, "oci-bm-gpu4-8", nodes=64, gpus_per_node=8, algorithm="ring")
        size = largest(explained)
        assert size.ceiling_Bps * 8 == pytest.approx(1600e9)
        assert explained.verdict.outcome == "ok"

    def test_189_6_on_two_nodes_is_ok_by_the_figure_published_for_rings(self, tmp_path):
        explained = judged(tmp_path, nccl_table([(8 * GiB, 189.6)], 16), "oci-bm-gpu-b4-8", algorithm="ring")
        assert explained.verdict.outcome == "ok"
        assert [each.busbw_Bps for each in applying(largest(explained), "measured")] == [pytest.approx(189.6e9)]

    def test_the_averaged_threshold_is_no_expectation_of_a_size(self, tmp_path):
        explained = judged(tmp_path, nccl_table([(8 * GiB, 189.6)], 16), "oci-bm-gpu-b4-8", algorithm="ring")
        averaged = [each for each in largest(explained).expected if each.basis == "threshold"]
        assert {each.applies for each in averaged} == {"no"}
        assert all("average over several sizes" in each.doubt for each in averaged)


class TestIsambard:
    """Two nodes with and without the plug-in, as the guide prints them."""

    def judged(self, name, **stated):
        return judge_results((str(SAMPLES / name),), platform_name=ISAMBARD, stated=stated_facts(**stated))

    def test_without_the_plug_in_it_is_slow_and_tcp_is_named(self):
        explained = self.judged("isambard-without-plugin.log")
        assert explained.verdict.outcome == "slow"
        assert explained.verdict.because == ("PERF012",)
        cause = next(each for each in explained.findings if each.code == "PERF012")
        assert "TCP in place of the fabric" in cause.title
        assert "aws-ofi-nccl" in cause.fix
        assert largest(explained).limited_by == "something that is not explained"

    def test_tcp_that_was_asked_for_is_still_explained_as_such(self):
        explained = self.judged("isambard-without-plugin.log", network="fallback")
        measured = applying(largest(explained), "measured")
        assert [each.busbw_Bps for each in measured] == [pytest.approx(2.32e9)]
        assert explained.verdict.outcome == "ok"

    def test_with_the_plug_in_it_is_ok_and_it_is_said_why_it_may_exceed_the_nics(self):
        explained = self.judged("isambard-with-plugin.log")
        size = largest(explained)
        assert explained.verdict.outcome == "ok"
        assert size.busbw_Bps == pytest.approx(162.69e9, rel=1e-3)
        # 4 x 25 GB/s: a ring could not, so it was a tree over exactly two nodes, 2(n-1)/n of which is 175 GB/s.
        assert (size.algorithm, size.algorithm_from) == ("tree", "only")
        assert size.ceiling_Bps == pytest.approx(175e9)
        why = next(each for each in explained.findings if each.code == "PERF015")
        assert why.severity == "note"
        assert "4 x 200 Gb/s = 100.0 GB/s" in why.evidence
        assert "93.0 GB/s, 93 % of them" in why.evidence

    def test_more_than_a_tree_can_carry_is_no_result(self, tmp_path):
        explained = judged(tmp_path, nccl_table([(8 * GiB, 180.0)], 8), ISAMBARD)
        assert explained.verdict.outcome == "cannot_tell"
        assert explained.verdict.because == ("PERF010",)
        assert "PERF010" in codes(explained)


def test_a_platform_alone_has_its_impossible_thresholds_called_by_name():
    explained = judge_results((), platform_name="aws-p5")
    found = {each.code: each for each in explained.findings}
    assert "check 5 (all_reduce, best busbw, 2 nodes or more) asks for 800 GB/s" in found["PUB001"].title
    assert "750.0 GB/s at most" in found["PUB001"].evidence
    # One node: 500 asked at 256 MiB, 481 seen of the largest messages.
    assert "500 GB/s" in found["PUB002"].title
    assert "80 %" in found["PUB004"].title
    assert {each.severity for each in explained.findings} == {"note"}


@pytest.mark.parametrize(
    ("platform", "code", "words"),
    [
        ("aws-p4d", "PUB001", "asks for 300 GB/s"),
        ("oci-bm-gpu4-8", "PUB001", "asks for 52 GB/s"),
        ("oci-bm-gpu4-8", "PUB003", "average over several sizes"),
        ("oci-bm-gpu4-8", "PUB004", "has lost 21 % of its bandwidth"),
        ("oci-bm-gpu-h100-8", "PUB005", "exactly two nodes alone"),
        ("gcp-a3-ultra", "PUB003", "average over several sizes"),
    ],
)
def test_thresholds_that_contradict_physics_or_average_are_called_out(platform, code, words):
    explained = judge_results((), platform_name=platform)
    assert any(each.code == code and words in each.title for each in explained.findings)


@pytest.mark.parametrize("platform", ["azure-nd-h100-v5", "azure-ndv4"])
def test_nothing_is_said_against_sound_thresholds(platform):
    explained = judge_results((), platform_name=platform)
    assert codes(explained) == set()
    assert explained.verdict.outcome == "ok"


def test_a_sound_sweep_over_four_nodes_has_no_slow_size(tmp_path):
    """Curves of all_reduce follow a Hill curve from 1 MiB on; half of 361 GB/s at 60 MB is usual between nodes."""
    rows = []
    for power in range(10, 35):
        size_bytes = 2**power
        time_s = 40e-6 + 2 * 31 / 32 * size_bytes / (361.06e9 / (1 + (60e6 / size_bytes) ** 0.7))
        rows.append((size_bytes, 2 * 31 / 32 * size_bytes / time_s / 1e9))
    explained = judged(tmp_path, nccl_table(rows, 32), H100, algorithm="nvlstree")
    outcomes = {size.verdict.outcome for size in explained.series[0].sizes}
    assert outcomes <= {"ok", "cannot_tell"}
    assert explained.verdict.outcome == "ok"


def test_a_result_of_other_gpus_is_not_judged():
    explained = judge_results((str(SAMPLES / "isambard-with-plugin.log"),), platform_name=H100)
    assert explained.verdict.outcome == "cannot_tell"
    assert "NVIDIA GH200 120GB, and azure-nd-h100-v5 has NVIDIA H100 80GB HBM3" in explained.verdict.sentence


def test_a_result_of_more_gpus_than_a_node_has_is_not_judged(tmp_path):
    explained = judged(tmp_path, nccl_table([(GiB, 100.0)], 8), ISAMBARD, nodes=1)
    assert explained.verdict.outcome == "cannot_tell"
    assert "8 GPUs a node, and isambard-ai-phase2 has 4" in explained.verdict.sentence
