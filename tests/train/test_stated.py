"""A log beside the workload that its job ran, and what a loss of efficiency is made of."""

import json
from pathlib import Path

import pytest
from tests.warm import warm_busbw

from busbw.api.training.reading import TrainReadRequest, train_read
from busbw.api.training.scaling import TrainScaleRequest, train_scale
from busbw.base.errors import InputError
from busbw.model.train.reading import TrainingLog
from busbw.train.shape import sequence_flops
from busbw.train.workloads import read_workload

from .reading import megatron, read_log, read_text
from .test_traces import trace_of

DATA = Path(__file__).parents[2] / "docs" / "data"
LOG, WORKLOAD = DATA / "job-64-gpus.log", DATA / "job-64-gpus.toml"
AZURE = "azure-nd-h100-v5"


def test_utilisation_follows_from_the_log_the_workload_and_the_platform() -> None:
    log = read_log(LOG, workload=str(WORKLOAD), platform=AZURE)
    model = read_workload(WORKLOAD.read_text(), "here").model

    assert log.window is not None
    flops = sequence_flops(model, 44, 8192) * 512
    assert log.throughput.mfu is not None
    assert log.throughput.mfu.value == pytest.approx(flops / (log.window.step_s.value * 64 * 989e12), rel=1e-3)
    assert dict(log.work.sources)["flops_per_step"] == str(WORKLOAD)
    # The log's own words go first.
    assert dict(log.work.sources)["global_batch"].startswith(str(LOG))


def test_the_networks_share_is_of_the_measured_step() -> None:
    log = read_log(LOG, workload=str(WORKLOAD), platform=AZURE)

    share = log.network
    assert share is not None
    assert log.window is not None
    assert log.throughput.mfu is not None
    assert share.exposed == pytest.approx(share.exposed_s / log.window.step_s.value)
    assert 0 < share.exposed < 1
    assert share.mfu_without == pytest.approx(log.throughput.mfu.value / (1 - share.exposed))
    # TP stays in the node, gradients are hidden: NVLink counts, the NICs do not.
    changes = dict(share.changes)
    assert changes["nvlink=2x"] < -0.05
    assert abs(changes["nic=2x"]) < 0.01
    assert share.largest_group == "TP, NVLink"


def test_a_log_that_says_nothing_is_filled_by_a_workload_of_one_configuration(tmp_path: Path) -> None:
    text = "".join(megatron(step, 18400, batch=512) for step in range(1, 20))
    log = read_text(tmp_path, text.replace("consumed samples", "samples"), workload=str(WORKLOAD))

    assert (log.work.sequence_length, log.work.gpus) == (8192, 64)
    assert log.throughput.tokens_per_s is not None
    assert log.network is None
    assert any("--peak-tflops" in words for words in log.throughput.missing)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"workload": "toy-moe"}, "the log is of 64 GPUs, and toy-moe has no configuration of them"),
        ({"platform": AZURE}, "without a workload"),
        ({"workload": "toy-moe", "dtype": "fp16"}, "has no fp16"),
        ({"workload": str(WORKLOAD), "platform": "nowhere"}, "nowhere"),
    ],
)
def test_what_does_not_fit_is_refused(asked: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        read_log(LOG, **asked)
    assert len(str(error.value).splitlines()) <= 4


def proxy_log(path: Path, gpus: int, step_ms: float, waited_ms: float) -> Path:
    """Write what `busbw train proxy` prints of a job."""
    steps = "".join(
        f"busbw proxy step {step}/20 | step time (ms): {step_ms:.6f} | communication (ms): {waited_ms:.6f} | loss: 5\n"
        for step in range(1, 21)
    )
    path.write_text(f"  seq_length .... 64\n  global_batch_size .... 8\n  world_size .... {gpus}\n{steps}")
    return path


def test_a_loss_is_split_into_exposed_communication_and_the_rest(tmp_path: Path) -> None:
    one = proxy_log(tmp_path / "one.log", 1, 100.0, 0.0)
    two = proxy_log(tmp_path / "two.log", 2, 60.0, 9.0)

    (view,) = train_scale(TrainScaleRequest(sources=(str(one), str(two)))).views

    # A token costs 120 in place of 100; of the 20 more, 18 are waited for.
    (loss,) = view.losses
    assert (loss.at, loss.base) == (2, 1)
    assert (loss.more, loss.communication, loss.rest) == pytest.approx((0.20, 0.18, 0.02))
    assert "+18.0 % exposed communication, +2.0 % everything else" in view.notes[0]


def test_traces_of_two_sizes_say_what_is_lost(tmp_path: Path) -> None:
    paths = []
    for gpus in (64, 128):
        trace = trace_of()
        trace["distributedInfo"] = {"backend": "nccl", "rank": 0, "world_size": gpus}
        paths.append(tmp_path / f"{gpus}.json")
        paths[-1].write_text(json.dumps(trace))

    asked = TrainScaleRequest(sources=tuple(map(str, paths)), sequence_length=64, global_batch=512, kind="strong")
    (view,) = train_scale(asked).views

    # The same step on twice the GPUs: a token costs twice as much, and the trace exposes a fifth of either.
    (loss,) = view.losses
    assert loss.more == pytest.approx(1.0)
    assert loss.communication == pytest.approx(0.2, abs=0.01)


def test_a_trace_has_no_network_of_a_plan() -> None:
    (trace,) = train_read(
        TrainReadRequest(sources=(str(DATA / "rank0.pt.trace.json.gz"),), workload=str(WORKLOAD))
    ).traces
    assert not isinstance(trace, TrainingLog)


def test_the_verb_answers_in_its_first_lines() -> None:
    done = warm_busbw("train", "read", str(LOG), "--workload", str(WORKLOAD), "--platform", AZURE)
    assert done.returncode == 0, done.stderr
    assert "37.9 % MFU" in done.stdout.splitlines()[0]
    assert "the network: " in done.stdout
