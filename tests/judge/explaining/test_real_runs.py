"""Runs on four H200 (docs/measurements/2026-11-22-four-gpus.md), judged by what their GPUs are called, and no more."""

from busbw.api.verdicts import judge_results

from .tables import SAMPLES


def test_a_healthy_machine_is_ok_though_nobody_names_it():
    judged = judge_results((str(SAMPLES / "four-h200"),))

    assert judged.verdict.outcome == "ok"
    assert "355.0 GB/s, 100 % of the 353.3 GB/s expected" in judged.verdict.sentence


def test_gpus_that_may_not_use_their_links_are_slow_and_the_setting_is_named():
    judged = judge_results((str(SAMPLES / "four-h200-p2p-off"),))

    assert judged.verdict.outcome == "slow"
    assert "PERF012" in judged.verdict.because
    assert any("NCCL_P2P_DISABLE" in (finding.fix or "") for finding in judged.findings)
