"""`busbw recipe show from-source`: facts with sources, and no command that builds other projects."""

import json
import re

import pytest
from click.testing import CliRunner, Result

from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.facts.recipes import from_source, recipe_versions
from busbw.machine.named import platforms


def show(*words: str) -> Result:
    return CliRunner().invoke(busbw, ["recipe", "show", "from-source", *words])


def test_what_goes_together_on_isambard_ai_is_told_bare_and_in_an_image() -> None:
    told = " ".join(show("--platform", "isambard-ai-phase2").stdout.split())
    for words in (
        "bare: NCCL 2.27.7-1, aws-ofi-nccl v1.7.x-aws (1.7.4), libfabric 1.22.0",
        "gcc-12",
        "Cray MPICH 8.1.32",
        "in NVIDIA's image (pytorch:26.01-py3): NCCL 2.29.2, aws-ofi-nccl 1.18.0, hwloc 2.13",
        "modules: PrgEnv-gnu, cudatoolkit",
        "code=sm_90 for compute_90",
        "then: busbw recipe adopt PREFIX... --platform isambard-ai-phase2",
    ):
        assert words in told


def test_each_platform_is_told_what_is_its_own_and_nothing_of_others() -> None:
    aws = show("--platform", "aws-p5").stdout
    assert "/opt/amazon/efa" in aws
    assert "PrgEnv-gnu" not in aws
    azure = json.loads(show("--platform", "azure-nd-h100-v5", "--json").stdout)
    assert (azure["fabric"], azure["set"], azure["sm"], azure["fabric_kind"]) == ([], [], 90, "InfiniBand")
    assert [each["value"][:19] for each in azure["toolchain"]] == ["the module mpi/hpcx"]
    for each in platforms():
        is_for_nccl = each.platform.kind == "gpu" and "Instinct" not in (each.platform.gpu.model or "")
        assert (show("--platform", each.platform.id).exit_code == 0) == is_for_nccl, each.platform.id
    assert show().exit_code == 0


@pytest.mark.parametrize(
    ("platform", "says", "is_silent_of"),
    [
        (
            "alps-gh200",
            ("uenv prgenv-gnu", "provider cxi", "docs.cscs.ch"),
            ("PrgEnv-gnu, cudatoolkit",),
        ),
        ("azure-nd-h100-v5", ("mpi/hpcx", "InfiniBand: NCCL goes over verbs itself"), ("--with-libfabric", "hwloc")),
        ("oci-bm-gpu-h100-8", ("/opt/openmpi", "RoCE: NCCL goes over verbs itself"), ("aws-ofi-nccl", "hwloc")),
        ("aws-p5", ("/opt/amazon/efa", "--with-libfabric"), ("goes over verbs itself", "uenv")),
        ("nvidia-dgx-h100", ("not known of nvidia-dgx-h100: ask the site",), ("/opt/openmpi",)),
    ],
)
def test_what_the_fabric_and_the_platform_bring_is_told(
    platform: str, says: tuple[str, ...], is_silent_of: tuple[str, ...]
) -> None:
    told = " ".join(show("--platform", platform).stdout.split())
    assert [each for each in says if each not in told] == []
    assert [each for each in is_silent_of if each in told] == []


def test_every_fact_has_a_source_and_a_day() -> None:
    known = from_source()
    rows = (
        *known.fabric, *known.set, *known.newest, *known.interface, *known.toolchain, *known.option, *known.pitfall,
    )  # fmt: skip
    for row in rows:
        assert row.source, row
        assert re.fullmatch(r"\d{4}-\d{2}", row.checked), row
    ids = {each.platform.id for each in platforms()}
    for each in (*known.set, *known.toolchain):
        assert any(re.fullmatch(glob.replace("*", ".*"), id_) for glob in each.platforms for id_ in ids), each


def test_the_pairs_that_somebody_put_together_have_an_interface_in_common() -> None:
    span = {(each.of, each.releases): range(each.least, each.most + 1) for each in from_source().interface}
    for nccl, plugin, newest in (("2.26 and 2.27", "1.7", 6), ("2.28 and 2.29", "1.17 and 1.18", 11)):
        common = set(span["NCCL", nccl]) & set(span["aws-ofi-nccl", plugin])
        assert max(common) == newest


def test_it_has_no_command_that_builds_anything() -> None:
    told = show().stdout + "".join(each.text for each in recipe_versions().misfit)
    assert re.search(r"git clone|\./configure|autogen\.sh|\bmake -|cmake|spack install|eb --", told) is None


def test_it_has_no_files_to_write() -> None:
    refused = CliRunner().invoke(busbw, ["recipe", "write", "from-source"]).exception
    assert isinstance(refused, InputError)
    assert "no recipe builds other projects" in str(refused)
    assert "busbw recipe adopt" in str(refused)
