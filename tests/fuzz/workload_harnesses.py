"""Harnesses of what training jobs are read from: workloads, configurations of other programs, changes."""

from collections.abc import Callable
from pathlib import Path

from busbw.facts.platforms import find_platform
from busbw.facts.workloads import shipped_workloads
from busbw.train.configurations.registry import read_configuration
from busbw.train.layout import group_of, layout_of
from busbw.train.planning import shown
from busbw.train.what_if import read_change
from busbw.train.workloads import read_workload, workload_named, workload_toml

_SAMPLES = Path(__file__).parents[1] / "train" / "samples"
_PLATFORM = find_platform("nvidia-dgx-h100").platform
_GROK = workload_named("grok1-314b").configuration[6]
_SAYS = ("vocabulary=131072", "gpus=64", "dtype=bf16")


def _workload(data: bytes) -> object:
    """Read a text as a workload; what is taken is written, read back the same, and its sizes are told."""
    found = read_workload(data.decode("utf-8", "surrogateescape"), "fuzz")
    assert read_workload(workload_toml(found), "again") == found
    return shown(found)


def _configuration(form: str, name: str) -> Callable[[bytes], object]:
    def harness(data: bytes) -> object:
        found, notes = read_configuration(data.decode("utf-8", "surrogateescape"), name, form, _SAYS)
        assert read_workload(workload_toml(found, notes), "again") == found
        return group_of(layout_of(found.model, found.configuration[0]), "DP x CP")

    return harness


WORKLOAD_HARNESSES: dict[str, Callable[[bytes], object]] = {
    "workload": _workload,
    "megatron": _configuration("megatron", "train.sh"),
    "nemo_yaml": _configuration("nemo", "model.yaml"),
    "nemo_recipe": _configuration("nemo", "recipe.py"),
    "nemo_overrides": _configuration("nemo", "configure.sh"),
    "torchtitan": _configuration("torchtitan", "job.toml"),
    "what_if": lambda data: read_change(data.decode("utf-8", "surrogateescape"), _GROK, _PLATFORM),
}
WORKLOAD_SEEDS = (
    *(path.read_bytes() for path in sorted(_SAMPLES.iterdir())),
    *(shipped_workloads()[name].encode() for name in ("toy-moe", "deepseek-v3-like")),
    b"export X+=' model.num_layers=$L trainer.num_nodes=8 model.hidden_size=6144'\n",
    b"nic=800G,nvlink=2x,tp=8,pp=4,global_batch=2048",
)
