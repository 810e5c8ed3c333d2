"""A training step over NCCL's stand-in: communicators of each kind of group on one stream each, products between."""

import pytest
from tests.train.stepping import EIGHT

from busbw.judge.explaining.series import StatedFacts
from busbw.judge.explaining.sources import series_of_run

from .harness import NcclBusbw, assert_refused

FOUR = EIGHT.replace('id = "eight"', 'id = "four"').replace("gpus = 8", "gpus = 4").replace("pp = 2, ", "")
FOUR = FOUR.replace("sequence_parallel = true, zero = 1, ", "")
BRIEF = ("--min-samples", 1, "--time-limit", 2, "--steps", 2, "--launcher", "processes", "--stall-timeout", 60)


def test_four_gpus_replay_groups_of_two_and_of_all(busbw: NcclBusbw) -> None:
    (busbw.folder / "four.toml").write_text(FOUR)

    done = busbw(
        "train", "run", "./four.toml", "--ranks", 4, "--backend", "native-nccl", "--rate", 0.01, "--scale-down", 4,
        *BRIEF, *busbw.libraries(),
    )  # fmt: skip

    run = busbw.run_of()
    assert run.step is not None, done
    assert {(call.group, call.ranks, call.groups) for call in run.step.calls} == {
        ("TP", 2, 2), ("EP", 2, 2), ("DP", 2, 2), ("all", 4, 1),
    }  # fmt: skip
    assert all(call.verified and call.busy_s > 0 for call in run.step.calls), done
    assert run.plan.step is not None
    assert {call.group for call in run.plan.step.calls if call.hidden_by is not None} == {"TP", "DP"}
    assert run.step.product_s is not None
    assert run.step.compute_s > 0
    assert "computing is matrix products" in done.out
    # A plan takes them for what groups of so many ranks take.
    series = series_of_run(run, StatedFacts())
    assert {(each.ranks, each.nodes, each.gpus_per_node) for each in series} <= {(2, 1, 2), (4, 1, 4)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("--ranks", 8), "8 GPUs asked for, 4 here"), (("--ranks", 2), "a Stand-in GPU computes is not published")],
)
def test_more_gpus_than_there_are_and_unknown_ones_are_refused(
    busbw: NcclBusbw, arguments: tuple[object, ...], words: str
) -> None:
    done = busbw("train", "run", "toy-moe", *arguments, "--backend", "native-nccl", *BRIEF, *busbw.libraries())

    assert_refused(done, words)
