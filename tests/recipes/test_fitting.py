"""What fits together is settled before anything is written; what is known not to fit is refused, or said."""

import re

import pytest

from busbw import recipes
from busbw.api.recipes import facts_of_builds, question, recipe, recipe_list
from busbw.base.errors import InputError
from busbw.facts.recipes import recipe_facts, recipe_versions

from .asking import PLATFORMS, machine_of, made


def warnings(name: str, platform: str | None, **asked: object) -> str:
    return "\n".join(note.text for note in made(name, platform, **asked).notes if note.severity == "warning")


@pytest.mark.parametrize(
    ("name", "platform", "asked", "said"),
    [
        ("nccl-wheel", None, {"nccl": "2.24.3", "cuda_arch": "100"}, "Blackwell"),
        ("nccl-wheel", "gb200-nvl72", {"nccl": "2.27.3"}, "GB200"),
        ("nccl-wheel", "azure-ndv2", {"cuda": "13"}, "Volta"),
        ("nccl-wheel", None, {"cuda_arch": "sm_70", "cuda": "13.0"}, "Volta"),
        ("nccl-wheel", None, {"cuda": "11"}, "no wheel of NCCL for CUDA 11"),
        ("nccl-wheel", None, {"nccl": "2.26.4"}, "there is no nvidia-nccl-cu12 2.26.4"),
        ("nccl-wheel", None, {"nccl": "2.26.5", "cuda": "13"}, "there is no nvidia-nccl-cu13 2.26.5"),
        ("nccl-wheel", None, {"release": "1.0"}, "nothing that has releases"),
        ("nccl-wheel", None, {"image": "x"}, "needs no image"),
        ("nccl-wheel", None, {"modules": ("x",)}, "loads no modules"),
        ("nccl-wheel", "azure-nd-mi300x-v5", {}, "no GPUs of NVIDIA"),
        ("nccl-wheel", "azure-hbv4", {}, "no GPUs"),
        ("efa", "isambard-ai-phase2", {}, "Slingshot"),
        ("hpcx", "aws-p5", {}, "InfiniBand and RoCE"),
        ("efa", None, {"release": "1.0.0"}, "nothing is known of the release"),
        ("osu-modules", None, {"release": "99.0"}, "nothing is known of the release"),
        ("apptainer-ngc", None, {"image": "nvcr.io/nvidia/pytorch:25.02-py3", "nccl": "2.28.9"}, "has NCCL 2.25.1"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(
    name: str, platform: str | None, asked: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        made(name, platform, **asked)


@pytest.mark.parametrize(("platform", "said"), [("azure-nd-mi300x-v5", "no GPUs of NVIDIA"), ("isambard-3", "no GPUs")])
def test_there_is_nothing_to_build_for_a_machine_without_gpus_of_nvidia(platform: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        facts_of_builds(platform)


@pytest.mark.parametrize("platform", ["azure-nvv3", "azure-nvads-a10-v5", "oci-bm-gpu-a10-4"])
def test_gpus_of_nvidia_whose_capability_is_not_known_are_not_refused(platform: str) -> None:
    assert made("nccl-wheel", platform).files
    assert facts_of_builds(platform).platform == platform


@pytest.mark.parametrize(("platform", "has_plugin"), [("gcp-a3-mega", False), ("aws-p5", True), ("generic", True)])
def test_what_goes_over_libfabric_is_left_out_where_another_plug_in_is_needed(platform: str, has_plugin: bool) -> None:
    known = facts_of_builds(platform)
    assert any(each.project == "aws-ofi-nccl" for each in known.option) == has_plugin
    assert any(each.name == "libfabric" for each in known.newest) == has_plugin


def test_a_module_that_nobody_has_published_has_to_be_named() -> None:
    with pytest.raises(InputError, match="no module is known for alps-gh200") as told:
        recipe("nccl-module", question(), "alps-gh200")
    assert "--module NAME" in str(told.value)


@pytest.mark.parametrize(
    ("name", "platform", "asked", "said"),
    [
        ("nccl-wheel", "azure-nd-h100-v5", {"nccl": "2.30.3"}, "NCCL_PXN_DISABLE=1"),
        ("nccl-wheel", "aws-p5", {}, "EFA needs aws-ofi-nccl"),
        ("nccl-wheel", "isambard-ai-phase2", {}, "2.32 GB/s instead of 162.69"),
        ("nccl-package", "gcp-a3-mega", {}, "Google's plug-in"),
        ("apptainer-ngc", "isambard-ai-phase2", {}, "older than the one that the plug-in was compiled against"),
        ("apptainer-ngc", "aws-p5", {}, "NCCL_NET_PLUGIN"),
        ("nccl-module", "isambard-ai-phase1", {"nccl": "2.27.7"}, "v1.7.x-aws"),
        ("apptainer-ngc", "azure-ndv4", {}, "/etc/nccl.conf"),
    ],
)
def test_what_may_not_fit_is_said(name: str, platform: str, asked: dict[str, object], said: str) -> None:
    assert said in warnings(name, platform, **asked)


def test_a_release_with_the_repair_is_not_warned_of() -> None:
    assert "NCCL_PXN_DISABLE" not in warnings("nccl-wheel", "azure-nd-h100-v5", nccl="2.30.7")
    assert "NCCL_PXN_DISABLE" not in warnings("nccl-wheel", "azure-nd-h100-v5", nccl="2.29.3")


def test_which_packages_there_are_is_asked_where_they_are_installed() -> None:
    made("nccl-package", None, nccl="2.18.5", cuda="11.8")
    notes = [note.text for note in made("nccl-package", None, nccl="2.30.7").notes]
    assert "NVIDIA has published packages of NCCL 2.30.7 for CUDA 12.9, 13.3" in notes


def test_a_release_newer_than_the_list_is_taken_and_said_to_be() -> None:
    notes = made("nccl-wheel", None, nccl="2.99.1").notes
    assert any("may not exist" in note.text for note in notes)


def test_what_an_image_or_an_installer_brings_is_told_with_its_source() -> None:
    efa = {note.text: note.source for note in made("efa", "aws-p5", release="1.50.0").notes}
    assert "EFA software 1.50.0: libfabric 2.6.0amzn1.0, aws-ofi-nccl 1.21.1" in efa
    assert "aws-ofi-nccl 1.21.1 was tested with NCCL 2.31.2, and works with 2.17.1 and later" in efa
    isambard = [note.text for note in made("nccl-module", "isambard-ai-phase2").notes]
    assert any("NCCL 2.19.3" in text and "162.69" in text for text in isambard)
    unknown = [note.text for note in made("apptainer-ngc", None).notes]
    assert any("is not known here" in text for text in unknown)


def test_nccl_is_one_that_the_plug_in_was_tested_with_where_that_is_known() -> None:
    def chosen(release: str | None, **asked: object) -> str:
        script = next(
            file.text for file in made("efa", "aws-p5", release=release, **asked).files if file.name == "check.sh"
        )
        return re.findall(r"^nccl_version='(.*)'$", script, re.MULTILINE)[0]

    assert chosen("1.50.0") == chosen(None) == "2.31.2"
    assert chosen("1.43.2") == "2.27.7"
    assert chosen("1.51.0") == recipe_versions().wheel[0].versions[-1]
    assert "2.32.3 is newer" in warnings("efa", "aws-p5", release="1.50.0", nccl="2.32.3")
    assert any("not known here" in note.text for note in made("efa", "aws-p5", release="1.51.0").notes)


def test_a_recipe_is_listed_for_the_platforms_that_it_takes_and_for_no_others() -> None:
    assert {each.name for each in recipe_list("azure-hbv4")} == {
        "osu-modules", "osu-cray", "osu-hpcx", "osu-apptainer",
    }  # fmt: skip
    assert "efa" in {each.name for each in recipe_list("aws-p5en")}
    assert "efa" not in {each.name for each in recipe_list("azure-ndv4")}


def test_every_platform_has_a_recipe() -> None:
    assert all(recipes.fitting_machine(machine_of(platform)) for platform in PLATFORMS)


def test_every_fact_has_its_source_and_day_and_every_name_in_it_is_one() -> None:
    known = recipe_versions()
    rows = (
        *known.wheel,
        *known.package,
        *known.release,
        *known.image,
        *known.plugin,
        *known.misfit,
        *known.modules,
        *known.tried,
    )
    for row in (*rows, *recipe_facts()):
        assert row.source, row
        assert re.fullmatch(r"\d{4}-\d{2}", row.checked), row
    names = {each.name for each in recipe_facts()}
    assert {each.recipe for each in known.modules} <= names
    assert {name for misfit in known.misfit for name in misfit.recipes} <= names
    assert all(each.severity == "warning" or each.instead is not None for each in known.misfit)


def test_versions_are_listed_from_the_oldest_to_the_newest() -> None:
    for wheel in recipe_versions().wheel:
        ordered = sorted(wheel.versions, key=lambda version: tuple(map(int, version.split("."))))
        assert list(wheel.versions) == ordered


def test_every_recipe_says_what_to_do_about_versions_without_a_package() -> None:
    for facts in recipe_facts():
        page = next(file for file in made(facts.name, None).files if file.name == "README.md")
        assert "Versions without a package" in page.text
        assert "check.sh" in page.text
