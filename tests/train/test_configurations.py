"""Configurations of other programs become workloads; what they do not say is asked for by name."""

from pathlib import Path

import pytest
from msgspec import structs
from tests.warm import warm_busbw

from busbw.base.errors import InputError
from busbw.train.configurations.registry import read_configuration
from busbw.train.layout import layout_of
from busbw.train.workloads import configuration_for, read_workload, workload_named, workload_toml

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def test_nemos_yaml_of_grok_1_is_the_shipped_workload() -> None:
    found, notes = read_configuration(sample("grok1.yaml"), "grok1.yaml", says=("vocabulary=131072",))
    shipped = workload_named("grok1-314b")
    expected, _ = configuration_for(shipped, 512)
    assert structs.replace(found.model, head_width=128) == shipped.model
    assert found.configuration[0] == structs.replace(expected, printed=None, source=())
    assert found.dtypes == ("bf16",)
    assert notes == ("recompute none: NeMo's default", "expert_ffn 32768: NeMo's default")


def test_megatrons_arguments_are_read_through_plain_variables_and_defaults_are_told() -> None:
    found, notes = read_configuration(sample("megatron-moe.sh"), "train.sh")
    made = found.configuration[0]
    assert (made.gpus, made.sequence, made.parallelism.tp, made.parallelism.pp, made.parallelism.vp) == (
        256,
        4096,
        2,
        4,
        2,
    )
    assert (found.model.key_value_heads, found.model.gated, found.model.tied) == (8, True, False)
    assert found.model.experts is not None
    assert layout_of(found.model, made).accumulation == 32
    assert "cp 1: Megatron-LM's default" in notes


def test_a_recipe_in_python_is_read_without_running_it_and_its_model_is_asked_for() -> None:
    with pytest.raises(InputError) as refused:
        read_configuration(sample("recipe.py"), "recipe.py")
    assert "layers (num_layers)" in refused.value.cause
    assert "--say layers=..." in (refused.value.hint or "")
    assert str(refused.value).count("\n") <= 3
    says = (
        "layers=56",
        "hidden=6144",
        "heads=48",
        "ffn=16384",
        "vocabulary=32768",
        "experts=8",
        "top_k=2",
        "expert_ffn=16384",
        "dtype=bf16",
    )
    found, _ = read_configuration(sample("recipe.py"), "recipe.py", says=says)
    assert (found.configuration[0].gpus, found.configuration[0].parallelism.ep) == (128, 8)


def test_torchtitans_file_takes_the_shape_of_a_flavour_that_is_known() -> None:
    found, notes = read_configuration(sample("titan.toml"), "titan.toml")
    made = found.configuration[0]
    assert found.model == workload_named("llama3-70b").model
    assert (made.gpus, made.global_batch, made.parallelism.zero, made.parallelism.recompute) == (64, 32, 3, "full")
    assert found.dtypes == ("fp8",)
    assert "global_batch 32: torchtitan's default" in notes


def test_what_takes_the_rest_of_the_gpus_leaves_their_number_to_be_said() -> None:
    text = sample("titan.toml").replace("shard_degree = 8", "shard_degree = -1")
    with pytest.raises(InputError, match="gpus"):
        read_configuration(text, "titan.toml")


@pytest.mark.parametrize(
    ("name", "before", "after", "cause"),
    [
        ("megatron-moe.sh", "--num-layers 32", "--num-layers 32 --num-layers 33", "is 33 here and 32 at"),
        ("megatron-moe.sh", "--num-layers 32", "--num-layers 3x", "'3x' is no number for layers"),
        ("megatron-moe.sh", "--num-layers 32", "--num-layers $LAYERS", "not said: layers (--num-layers)"),
        ("megatron-moe.sh", "--num-layers 32", "--num-layers ٣٢", "is no number for layers"),
        ("megatron-moe.sh", "--num-layers 32", "--num-layers " + "9" * 5000, "is no number for layers"),
        ("megatron-moe.sh", "virtual-pipeline-stage 4", "virtual-pipeline-stage 5", "do not divide by 4 stages x 5"),
        ("grok1.yaml", "num_layers: 64", "num_layers: [64", "not valid YAML"),
        ("grok1.yaml", "num_layers: 64", "num_layers: many", "'many' is no number for layers"),
        ("recipe.py", "import llm", "import (llm", "not valid Python"),
        ("titan.toml", "seq_len = 8192", "seq_len = ", "not valid TOML"),
        ("titan.toml", "seq_len = 8192", 'seq_len = "long"', "'long' is no number for sequence"),
        ("titan.toml", "[activation_checkpoint]", "[[activation_checkpoint]]", "activation_checkpoint is no table"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_in_words(name: str, before: str, after: str, cause: str) -> None:
    form = {"sh": "megatron", "yaml": "nemo", "py": "nemo", "toml": "torchtitan"}[name.rpartition(".")[2]]
    with pytest.raises(InputError) as refused:
        read_configuration(sample(name).replace(before, after, 1), name, form, ("vocabulary=131072",))
    assert cause in refused.value.cause
    assert str(refused.value).count("\n") <= 3


@pytest.mark.parametrize(
    "says", [("gpu=4",), ("gpus=four",), ("gpus=4", "gpus=8"), ("gpus",), ("zero=7",), ("tied=maybe",)]
)
def test_what_a_reader_says_is_checked_too(says: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        read_configuration(sample("grok1.yaml"), "grok1.yaml", says=("vocabulary=131072", *says))


def test_a_text_of_none_of_the_programs_is_refused() -> None:
    with pytest.raises(InputError, match="neither arguments of Megatron-LM"):
        read_configuration("hello", "notes.txt")


def test_what_is_made_is_read_back_and_planned(tmp_path: Path) -> None:
    found, notes = read_configuration(sample("megatron-moe.sh"), "train.sh")
    assert read_workload(workload_toml(found, notes), "made.toml") == found
    made = tmp_path / "mine.toml"
    done = warm_busbw("train", "make", str(SAMPLES / "megatron-moe.sh"), "-o", str(made))
    assert (done.returncode, done.stdout) == (0, "")
    planned = warm_busbw("train", "plan", str(made), "--platform", "nvidia-dgx-h100", "--step-time", "9")
    assert planned.stdout.startswith("9.00 s a step of megatron-moe on 256 GPUs")
