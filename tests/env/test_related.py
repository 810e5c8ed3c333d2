"""The registry beside NCCL's own variables: what recipes and platforms set is in it."""

import re
from pathlib import Path

import pytest

from busbw.env.values import read_value
from busbw.facts.envvars import misspellings, variables
from busbw.facts.platforms import all_platforms

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
# Names in capitals that the write-ups set for their own scripts, or that are no variables.
NOT_SETTINGS = {"NCCL_NVLS_ENABLE1"}
FIELD = re.compile(
    r"\b(?:NCCL|UCX|FI|OFI_NCCL|SHARP|HCOLL|CUDA|OMPI|PMIX|PRTE|MPICH|I_MPI|MV2|SLURM|SBATCH|SINGULARITY|APPTAINER)_\w+"
)


def test_what_platforms_are_published_to_set_is_known() -> None:
    names = {setting.name for each in all_platforms() for setting in each.settings}

    assert names - set(variables()) - set(misspellings()) == set()


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the write-ups are not beside the repository: shared/seeds")
def test_what_the_write_ups_set_is_known() -> None:
    names = {name for path in sorted(SEEDS.glob("*.txt")) for name in FIELD.findall(path.read_text(encoding="utf-8"))}
    settings = {name for name in names if not name.endswith("_v5") and "_NCCL_" not in name} - NOT_SETTINGS

    assert len(settings) > 40
    assert settings - set(variables()) - set(misspellings()) == set()


def test_every_reader_s_variables_have_its_prefix() -> None:
    prefixes = {
        "UCX": "UCX_",
        "libfabric": "FI_",
        "libfabric CXI": "FI_CXI_",
        "libfabric EFA": "FI_EFA_",
        "aws-ofi-nccl": "OFI_NCCL_",
        "HCOLL": "HCOLL_",
        "SHARP": "SHARP_",
        "Intel MPI": "I_MPI_",
        "NCCL": "NCCL_",
        "RCCL": "RCCL_",
    }
    odd = {
        name
        for name, each in variables().items()
        if each.owner in prefixes and not name.startswith(prefixes[each.owner])
    }

    assert odd == set()


def test_a_default_is_among_the_choices_and_within_the_limits() -> None:
    odd = set()
    for name, each in variables().items():
        plain = each.default not in (None, "auto", "unset", "none", "", "default")
        if plain and each.choices and each.kind in ("enum", "bool") and each.default not in each.choices:
            odd.add(name)
        if plain and each.default is not None and re.fullmatch(r"-?\d+", each.default):
            low, high = each.least, each.most
            value = int(each.default)
            if each.owner != "NCCL" and ((low is not None and value < low) or (high is not None and value > high)):
                odd.add(name)

    assert odd == set()


def test_a_replacement_is_known() -> None:
    named = {other for each in variables().values() for other in (each.replaced_by, each.same_as) if other is not None}

    assert named - set(variables()) == set()


def test_every_meaning_is_a_sentence() -> None:
    odd = {name for name, each in variables().items() if not each.meaning.endswith(".") or len(each.meaning) > 200}

    assert odd == set()


@pytest.mark.parametrize("version", [(2, 18, 3), (2, 24, 3), (2, 28, 9), None])
def test_what_platforms_are_published_to_set_is_understood_as_meant(version: tuple[int, ...] | None) -> None:
    read = [
        (each.id, setting.name, read_value(variables()[setting.name], setting.value, version).problem)
        for each in all_platforms()
        for setting in each.settings
        if setting.value is not None and setting.name in variables()
    ]

    assert len(read) > 100
    assert [entry for entry in read if entry[2] is not None] == []
