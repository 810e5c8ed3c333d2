"""The small transformer: in every layout the gradients and losses of one process, its calls those of the plan, its log
what it measured, and what it refuses.
"""

import dataclasses
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from msgspec.structs import replace
from tests.warm import warm_busbw

from busbw.api.training.scaling import TrainScaleRequest, train_scale
from busbw.base.errors import InputError
from busbw.measure.execute.training import ranks_of_launcher
from busbw.model import codec
from busbw.model.train.proxy import ProxyResult
from busbw.rank.socket_world import RankIdentity
from busbw.rank.training.program import _address, _place
from busbw.train.layout import layout_of
from busbw.train.planning import job_of
from busbw.train.proxying import proxy_plan
from busbw.train.step import slowest, step_calls
from busbw.train.what_if import changed_layout
from busbw.train.workloads import workload_named

from .reading import read_log
from .torch_here import need_torch, toy

LAYOUTS = ("tp=2,ep=1", "tp=1,ep=2", "tp=1,ep=1", "tp=1,ep=1,zero=1")
# float32 sums in another order.
ROUNDING = 2e-4


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of both processes' gradients, and of a run for each layout."""
    need_torch()
    folder = tmp_path_factory.mktemp("proxy")
    plans = [toy(2, layout, directory=folder / f"run-{at}") for at, layout in enumerate(LAYOUTS)]
    plans.append(replace(toy(2, "tp=1,ep=2"), graph=True))
    texts = [codec.encode(plan).decode() for plan in plans]
    python = (sys.executable, "-m", "busbw.rank.start", "2", sys.executable, "-m", "tests.train.two_ranks")
    done = subprocess.run(
        [*python, str(folder / "meeting"), str(folder), *texts],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[float, dict[str, Any], ProxyResult]:
    """Return loss, gradients and a run of one process."""
    need_torch()
    import torch.distributed as dist
    from torch import device, set_num_threads

    from busbw.rank.training import steps

    from .two_ranks import gradients

    # Threads that wait for each other by turning take minutes on cores that others use.
    set_num_threads(1)
    folder = tmp_path_factory.mktemp("alone")
    plan = toy(1, "tp=1,ep=1", directory=folder / "run")
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
    try:
        loss, found = gradients(plan, 0)
        steps.train(plan, 0, device("cpu"), "CPU")
    finally:
        dist.destroy_process_group()
    return loss, found, _result(folder / "run")


def _result(folder: Path) -> ProxyResult:
    return codec.decode((folder / "result.json").read_bytes(), ProxyResult, where=str(folder))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_gradients_of_two_ranks_are_those_of_one(
    number: int, runs: Path, alone: tuple[float, dict[str, Any], ProxyResult]
) -> None:
    loss, whole, _ = alone
    _same_gradients(runs, number, loss, whole)


def test_gradients_with_evenly_loaded_experts_are_those_of_one_rank_too(runs: Path) -> None:
    from .two_ranks import gradients

    loss, whole = gradients(replace(toy(1, "tp=1,ep=1"), graph=True), 0)
    _same_gradients(runs, len(LAYOUTS), loss, whole)
    experts = [float(found.abs().max()) for name, found in whole.items() if ".expert." in name]
    assert min(experts) > 0, "each expert has tokens"


def _same_gradients(runs: Path, number: int, loss: float, whole: dict[str, Any]) -> None:
    import torch

    parts = [torch.load(runs / f"gradients-{number}-{rank}.pt") for rank in (0, 1)]
    assert sum(part[0] for part in parts) == pytest.approx(loss, rel=1e-5)
    seen = set()
    for rank, (_, found) in enumerate(parts):
        for name, gradient in found.items():
            expected = whole[name]
            for side in (0, 1):
                if gradient.shape[side % gradient.dim()] < expected.shape[side % gradient.dim()]:
                    expected = expected.chunk(2, dim=side)[rank]
            assert gradient.shape == expected.shape, name
            scale = float(whole[name].abs().max())
            assert scale > 0, f"{name}: nothing to compare"
            assert float((gradient - expected).abs().max()) <= ROUNDING * scale, name
            seen.add(name)
    assert seen == whole.keys()


@pytest.mark.parametrize("number", range(len(LAYOUTS)))
def test_steps_of_two_ranks_are_those_of_one(
    number: int, runs: Path, alone: tuple[float, dict[str, Any], ProxyResult]
) -> None:
    result = _result(runs / f"run-{number}")
    assert result.losses == pytest.approx(alone[2].losses, rel=1e-5)
    assert result.gradient_norms == pytest.approx(alone[2].gradient_norms, rel=1e-3)
    assert result.losses[-1] < result.losses[0]


@pytest.mark.parametrize("number", range(len(LAYOUTS)))
def test_the_program_calls_what_the_plan_lists(number: int, runs: Path) -> None:
    workload = workload_named("toy-moe")
    configuration = changed_layout(f"{LAYOUTS[number]},global_batch=8", job_of(workload, 2, "fp32").configuration)
    layout = layout_of(workload.model, configuration)
    stage = slowest(workload.model, configuration, layout)
    planned = {call.name: call for call in step_calls(workload.model, configuration, layout, "fp32", stage)}
    measured = {call.name: call for call in _result(runs / f"run-{number}").calls}
    # Known not to be in the plan.
    left_out = {"how many tokens go where", "gradients of routers"}
    assert measured.keys() - left_out == planned.keys()
    for name, call in planned.items():
        found = measured[name]
        assert (found.calls, found.collective, found.group, found.ranks) == (
            call.calls, call.collective, call.group, call.ranks,
        ), name  # fmt: skip
        # Norms, and with TP routers, which every rank has whole.
        assert found.size_bytes == pytest.approx(call.size_bytes, rel=0.02), name


def test_what_is_read_from_the_log_is_what_was_measured(runs: Path) -> None:
    for number in range(len(LAYOUTS)):
        result = _result(runs / f"run-{number}")
        log = read_log(runs / f"run-{number}" / "train.log")
        assert log.program == "busbw train proxy"
        assert log.columns.times_s == pytest.approx(result.step_s, rel=1e-9)
        assert (log.work.sequence_length, log.work.global_batch, log.work.gpus) == (64, 8, 2)
        assert log.window is not None
        assert log.exposed is not None
        shares = [part / whole for part, whole in zip(result.communication_s, result.step_s, strict=True)]
        steady = shares[log.window.first_step - 1 : log.window.last_step]
        assert log.exposed.value == pytest.approx(median(steady), rel=1e-6)
        assert sum(call.time_s for call in result.calls) > 0
        assert all(0 < call.transfer_s <= call.time_s for call in result.calls if call.transfer_s is not None)
        assert all(call.transfer_s is not None for call in result.calls)


def test_trained_jobs_of_one_and_two_ranks_stand_in_a_figure_that_says_what_the_second_costs(
    runs: Path, alone: tuple[float, dict[str, Any], ProxyResult]
) -> None:
    logs = [Path(alone[2].plan.directory) / "train.log", runs / "run-2" / "train.log"]
    report = train_scale(TrainScaleRequest(sources=tuple(map(str, logs))))
    (view,) = report.views
    (loss,) = view.losses
    assert (loss.base, loss.at) == (1, 2)
    assert loss.communication > 0
    assert loss.communication + loss.rest == pytest.approx(loss.more)


def test_products_in_fp8_are_those_of_the_values_within_their_digits() -> None:
    need_torch()
    import torch

    from busbw.rank.training.products import product

    generator = torch.Generator().manual_seed(5)
    values = torch.randn(24, 32, generator=generator).bfloat16().requires_grad_()
    weight = torch.randn(48, 32, generator=generator).bfloat16().requires_grad_()
    gradient = torch.randn(24, 48, generator=generator).bfloat16()
    found = product(values, weight, in_fp8=True)
    found.backward(gradient)
    for got, exact in (
        (found, values.float() @ weight.float().t()),
        (values.grad, gradient.float() @ weight.float()),
        (weight.grad, gradient.float().t() @ values.float()),
    ):
        assert got is not None
        # Three bits of mantissa and two for gradients: single elements are off, not the whole.
        error = float((got.detach().float() - exact.detach()).norm() / exact.detach().norm())
        assert 1e-4 < error < 0.12
    assert product(values[:0], weight, in_fp8=True).shape == (0, 48)


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ("pp=2,tp=1,ep=1", "the proxy does not do PP 2"),
        ("tp=1,ep=2,zero=3", "the proxy does not do ZeRO 3"),
        ("tp=1,ep=3", "do not divide by EP 3"),
        ("tq=2", "is no layout"),
    ],
)
def test_a_layout_that_it_does_not_do_is_refused(layout: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        toy(2, layout)


@pytest.mark.parametrize(
    ("steps", "layout", "device", "words"),
    [
        (20, "tp=1,ep=2", "cpu", "CPUs have no CUDA graphs"),
        (4, "tp=1,ep=2", None, "the first 3 are not launched as a graph"),
        (20, "tp=1,ep=2,micro_batch=1", None, None),
    ],
)
def test_what_cannot_be_one_graph_is_refused(steps: int, layout: str, device: Any, words: str | None) -> None:
    job = job_of(workload_named("toy-moe"), 2, "fp32")
    job = dataclasses.replace(job, configuration=changed_layout(f"{layout},global_batch=8", job.configuration))
    if words is None:
        assert proxy_plan(job, steps=steps, device=device, directory="/none", graph=True).graph
        return
    with pytest.raises(InputError, match=words):
        proxy_plan(job, steps=steps, device=device, directory="/none", graph=True)


def test_each_rank_is_in_one_group_of_a_kind() -> None:
    plan = toy(8, "tp=2,ep=2")
    kinds = {each.kind: each.ranks for each in plan.groups}
    assert kinds["TP"] == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert kinds["EP"] == ((0, 2), (1, 3), (4, 6), (5, 7))
    assert kinds["expert-DP"] == ((0, 4), (1, 5), (2, 6), (3, 7))
    for groups in kinds.values():
        assert Counter(rank for ranks in groups for rank in ranks) == Counter(range(8))


def test_a_cpu_without_fp8_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    done = warm_busbw("train", "proxy", "toy-moe", "--dtype", "fp8", "--device", "cpu", "-o", str(tmp_path / "x"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: CPUs do not multiply in FP8\n  --> --dtype fp8\nhint: --dtype bf16\n"
    assert not (tmp_path / "x").exists()


def test_a_process_without_a_gpu_for_fp8_says_so() -> None:
    need_torch()
    import torch

    if torch.cuda.device_count():
        pytest.skip("there are GPUs here: tests/gpu has them multiply in FP8")
    plan = replace(toy(2, "ep=2"), device=None, dtype="fp8")
    with pytest.raises(InputError, match="no GPU is seen, and CPUs do not multiply in FP8"):
        _place(plan, RankIdentity(0, 2, 0), torch)
    with pytest.raises(InputError, match="process 1 of this host has no GPU"):
        _place(replace(plan, device="gpu"), RankIdentity(1, 2, 1), torch)


def test_the_whole_way_from_a_plan_to_a_report(
    tmp_path: Path, alone: tuple[float, dict[str, Any], ProxyResult]
) -> None:
    planned = warm_busbw("train", "plan", "toy-moe", "--platform", "nvidia-dgx-h100", "--json")
    trained = warm_busbw(
        "train", "proxy", "toy-moe", "--dtype", "bf16", "--steps", "8", "--device", "cpu", "-o", str(tmp_path / "two"),
        timeout=250,
    )  # fmt: skip
    log = str(tmp_path / "two" / "train.log")
    read = warm_busbw("train", "read", log, "--workload", "toy-moe", "--peak-tflops", "0.1")
    scaled = warm_busbw("train", "scale", f"{alone[2].plan.directory}/train.log", log, "--json")
    (tmp_path / "scale.json").write_text(scaled.stdout)
    report = warm_busbw("report", "--scaling", str(tmp_path / "scale.json"), "-o", str(tmp_path / "report.html"))

    assert planned.returncode == 0, planned.stderr
    assert "tokens to experts and back" in planned.stdout
    assert trained.returncode == 0, trained.stderr
    assert "communication takes" in trained.stdout
    assert "tokens to experts and back" in trained.stdout
    assert "busbw proxy step 8/8" in trained.stderr
    assert "% MFU" in read.stdout, read.stderr
    assert "waited for collectives" in read.stdout
    assert "exposed communication" in scaled.stdout, scaled.stderr
    assert report.returncode == 0, report.stderr
    assert "everything else" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("environment", "ranks"),
    [
        ({"RANK": "1", "WORLD_SIZE": "4"}, 4),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "8"}, 8),
        # A batch script is a task of its job too, and no process of a program.
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, 2),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, 2),
        ({"RANK": "x", "WORLD_SIZE": "4"}, None),
        ({}, None),
    ],
)
def test_a_launcher_is_known_by_what_it_sets(environment: dict[str, str], ranks: int | None) -> None:
    assert ranks_of_launcher(environment) == ranks


def test_where_processes_meet_is_said_or_on_one_host() -> None:
    plan = toy(2, "tp=1,ep=2")
    assert _address({"MASTER_ADDR": "node1"}, plan) == "node1"
    assert _address({"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, plan) == "127.0.0.1"
    with pytest.raises(InputError, match="where the processes meet is not said"):
        _address({"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "2"}, plan)


def test_more_processes_than_the_job_has_are_refused(tmp_path: Path) -> None:
    done = warm_busbw(
        "train", "proxy", "toy-moe", "--gpus", "2", "-o", str(tmp_path / "x"),
        env={**os.environ, "RANK": "0", "WORLD_SIZE": "3", "LOCAL_RANK": "0"}, timeout=200,
    )  # fmt: skip
    assert done.returncode == 2
    assert "3 processes were started, and the job has 2" in done.stderr
    assert not (tmp_path / "x").exists()
