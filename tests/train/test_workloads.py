"""Workloads as data: sizes that are known from elsewhere, sizes that follow, and files that cannot be."""

import pytest
from msgspec import structs

from busbw.base.errors import InputError
from busbw.facts.workloads import shipped_workloads
from busbw.model.train.workload import Configuration, Workload
from busbw.train.layout import layout_of
from busbw.train.planning import shown
from busbw.train.shape import active_parameters, parameters, sequence_flops
from busbw.train.step import stage_weights, stages_of
from busbw.train.workloads import configuration_for, read_workload, workload_named

GROK = "grok1-314b"


def configuration(workload: Workload, gpus: int) -> Configuration:
    return next(each for each in workload.configuration if each.gpus == gpus)


def test_a_grok_1_sequence_takes_the_flops_that_its_benchmark_states() -> None:
    model = workload_named(GROK).model
    assert f"{sequence_flops(model, model.layers, 8192):.2e}" == "4.27e+15"


@pytest.mark.parametrize(
    ("name", "whole", "active"),
    [("llama3-70b", 70.6, None), ("llama3-405b", 405.9, None), ("deepseek-v3-like", 671.0, 36.6), (GROK, 316.5, 83.8)],
)
def test_models_have_the_parameters_that_they_are_named_for(name: str, whole: float, active: float | None) -> None:
    model = workload_named(name).model
    assert parameters(model, model.layers) / 1e9 == pytest.approx(whole, abs=0.06)
    if active is not None:
        assert active_parameters(model, model.layers) / 1e9 == pytest.approx(active, abs=0.06)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("llama3-70b", 70_553_706_496),
        ("llama3-405b", 405_853_388_800),
        # What its checkpoint holds, less 256 biases of each of 58 routers, which no gradient moves.
        ("deepseek-v3-like", 671_026_419_200 - 58 * 256),
    ],
)
def test_parameters_are_those_of_the_published_checkpoint(name: str, published: int) -> None:
    model = workload_named(name).model
    assert parameters(model, model.layers) == published


@pytest.mark.parametrize(("name", "pp"), [("llama3-70b", 4), ("deepseek-v3-like", 1), (GROK, 4)])
def test_the_stages_of_a_pipeline_hold_all_parameters(name: str, pp: int) -> None:
    workload = workload_named(name)
    asked = workload.configuration[0]
    alone = structs.replace(asked.parallelism, tp=1, cp=1, ep=1, vp=1, pp=pp, stage_layers=())
    layout = layout_of(workload.model, structs.replace(asked, gpus=pp, layers=None, parallelism=alone))
    stages = [stage_weights(workload.model, layout, stage) for stage in stages_of(workload.model, layout)]
    held = sum(each.shared + each.experts for each in stages)
    assert held == parameters(workload.model, workload.model.layers)


def test_every_shipped_configuration_can_be() -> None:
    for name in shipped_workloads():
        found = shown(workload_named(name))
        for each in found.configurations:
            p = each.configuration.parallelism
            assert p.tp * p.pp * p.cp * each.dp == each.configuration.gpus
            assert each.expert_dp * p.ep == each.dp
            assert each.accumulation * each.dp * each.configuration.micro_batch == each.configuration.global_batch


def test_table_3_prints_an_accumulation_that_does_not_follow_at_8_and_16_gpus_alone() -> None:
    found = shown(workload_named(GROK))
    wrong = [each.title for each in found.findings if each.code == "TRN001"]
    assert [title.partition(" for ")[2] for title in wrong] == ["8 GPUs, and is 512", "16 GPUs, and is 256"]
    assert [each.accumulation for each in found.configurations] == [512, 256, *[128] * 7]


def test_table_3_counts_experts_apart_and_glosses_context_parallelism() -> None:
    found = shown(workload_named(GROK)).findings
    both = [each for each in found if each.code == "TRN002"]
    assert len(both) == 9
    assert "4 x 8 x 2 x 8 x 2 = 1024" in both[7].evidence
    assert "= 16" in both[7].evidence
    assert [each.title for each in found if each.code == "TRN003"] == ["the source calls CP CheckPointing"]


def test_all_16_throughputs_of_tables_5_and_6_follow_from_the_printed_steps() -> None:
    printed = {
        "fp8": (216201, 246724, 499917, 505338, 493448, 499322, 468637, 911805),
        "bf16": (174038, 191521, 391991, 399458, 395689, 403298, 381300, 748983),
    }
    workload = workload_named(GROK)
    for dtype, expected in printed.items():
        rows = [row for row in workload.published if row.dtype == dtype and row.platform == "azure-nd-h100-v5"]
        jobs = [configuration(workload, row.gpus) for row in rows]
        found = [job.sequence * job.global_batch / row.step_s for job, row in zip(jobs, rows, strict=True)]
        assert tuple(int(each + 0.5) for each in found) == expected


@pytest.mark.parametrize(
    ("changes", "cause", "hint"),
    [
        ({"tp": 5}, "512 GPUs do not divide by 80", "480 or 560"),
        ({"ep": 3}, "experts 8 do not divide by EP 3", "ep = 2 or 4"),
        ({"pp": 4, "vp": 3}, "64 layers do not divide by PP 4 x VP 3", "pp = 4, vp = 2"),
        ({"pp": 1}, "VP 8 with one pipeline stage", "vp = 1"),
        ({"tp": 1, "pp": 64, "vp": 1, "ep": 8}, "EP 8 does not divide DP 4", "ep = 4"),
        ({"stage_layers": (8,) * 8}, "stage_layers has 8 stages", "vp = 1"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused_with_the_nearest_that_can(
    changes: dict[str, object], cause: str, hint: str
) -> None:
    workload = workload_named(GROK)
    base = configuration(workload, 512)
    parallelism = structs.replace(base.parallelism, **changes)
    with pytest.raises(InputError) as refused:
        layout_of(workload.model, structs.replace(base, parallelism=parallelism))
    assert cause in refused.value.cause
    assert hint in (refused.value.hint or "")
    assert str(refused.value).count("\n") <= 3


def test_a_batch_that_does_not_divide_is_refused() -> None:
    workload = workload_named(GROK)
    base = structs.replace(configuration(workload, 512), global_batch=1020)
    with pytest.raises(InputError, match="1020 sequences") as refused:
        layout_of(workload.model, base)
    assert "1016 or 1024" in (refused.value.hint or "")


def test_the_nearest_that_can_does_run() -> None:
    workload = workload_named(GROK)
    base = configuration(workload, 512)
    for gpus in (480, 560):
        other = structs.replace(base, gpus=gpus, global_batch=gpus, parallelism=structs.replace(base.parallelism, tp=5))
        with pytest.raises(InputError, match="heads 48 do not divide by TP 5"):
            layout_of(workload.model, other)


def test_a_number_of_gpus_that_nobody_published_is_the_nearest_smaller_with_more_data() -> None:
    workload = workload_named(GROK)
    found, said = configuration_for(workload, 4096)
    assert (found.gpus, found.global_batch, found.parallelism) == (
        4096, 8192, configuration(workload, 2048).parallelism,
    )  # fmt: skip
    assert "that of 2048" in said[0]


TOY = """id = "mine"
title = "mine"
dtypes = ["bf16"]
[model]
layers = 2
hidden = 128
heads = 4
key_value_heads = 2
ffn = 256
vocabulary = 512
[[configuration]]
gpus = 2
sequence = 64
micro_batch = 1
global_batch = 8
parallelism = { tp = 2 }
"""


def test_a_file_of_ones_own_is_read() -> None:
    found = read_workload(TOY, "mine.toml")
    assert layout_of(found.model, found.configuration[0]).accumulation == 8


@pytest.mark.parametrize(
    ("before", "after", "cause", "line"),
    [
        ("hidden = 128", "hiden = 128", "unknown key 'hiden' in [model]; maybe: hidden", 6),
        ("heads = 4", 'heads = "four"', "expected `int`, got `str` in model.heads", 7),
        ("layers = 2", "layers = -2", "expected `int` >= 1 in model.layers", 5),
        ("{ tp = 2 }", "{ tq = 2 }", "unknown key 'tq' in [parallelism]", 16),
        ("gpus = 2\n", "", "object missing required field `gpus` in configuration", None),
        ("hidden = 128", "hidden = 127", "hidden 127 does not divide by 4 heads", None),
        ("key_value_heads = 2", "key_value_heads = 3", "4 heads do not divide by 3 key_value_heads", None),
        ("global_batch = 8", "global_batch = 8\nsource = ['x']", "no [[source]] has the id 'x'", None),
        ("[model]", "[model", "not valid TOML", None),
        ("layers = 2", "layers = " + "9" * 30, "model.layers", 5),
    ],
)
def test_a_bad_file_is_refused_where_it_is_bad(before: str, after: str, cause: str, line: int | None) -> None:
    with pytest.raises(InputError) as refused:
        read_workload(TOY.replace(before, after, 1), "mine.toml")
    assert cause in refused.value.cause
    assert refused.value.where is not None
    assert line is None or refused.value.where == f"mine.toml:{line}"
    assert str(refused.value).count("\n") <= 3


def test_a_line_of_many_dots_is_refused_before_it_is_read() -> None:
    with pytest.raises(InputError, match="dots"):
        read_workload("a." * 100_000 + " = 1", "mine.toml")
