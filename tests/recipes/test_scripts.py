"""The scripts of every recipe: bash reads them, shellcheck finds nothing, and a value is a value whatever is in it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import busbw
from busbw.cli.command import busbw as command
from busbw.facts.recipes import adopting_facts, recipe_facts, recipe_text
from busbw.model.recommendation import Recipe, RecipeFile
from busbw.recipes.making import assignment

from .asking import everywhere, made

OPTIONS: tuple[tuple[str, dict[str, object]], ...] = (
    ("nccl-wheel", {"nccl": "2.27.7", "cuda": "13", "cuda_arch": "sm_90"}),
    ("nccl-module", {"modules": ("a/b", "c+d@1"), "nccl": "2.28.9"}),
    ("nccl-package", {"nccl": "v2.28.9-1", "cuda": "12.9"}),
    ("efa", {"release": "1.50.0"}),
    ("hpcx", {"modules": ("hpcx/2.24",)}),
    ("apptainer-ngc", {"image": "nvcr.io/nvidia/pytorch:25.02-py3"}),
    ("osu-modules", {"release": "7.4", "cuda_arch": "100", "modules": ("gcc", "openmpi")}),
    ("osu-cray", {"modules": ("PrgEnv-gnu",)}),
    ("osu-apptainer", {"image": "registry.example/mpi:1"}),
)
# What a shell would act on, and what a line or a quote could end in.
HOSTILE = st.text(
    st.one_of(st.sampled_from("'\"\\$`(){};&|<>*?~#! \n\t-="), st.characters(exclude_categories=("Cs", "Cc"))),
    max_size=40,
)


def scripts(recipe: Recipe) -> list[RecipeFile]:
    return [file for file in recipe.files if file.name.endswith(".sh") and file.name != "env_vars.sh"]


def shape(text: str) -> str:
    """Return a script with its values masked: what is within quotes at its head, and numbers in directives."""
    head, body = text.split("\n\n", 1) if "\n\n" in text else (text, "")
    values, _, rest = body.partition("\n\n")
    comments = re.sub(r"^# .*|(?<=#SBATCH --)(.*?)=.*", r"\1", head, flags=re.MULTILINE)
    return comments + re.sub(r"'[^']+'", "'x'", values) + rest


def checked(recipes: tuple[Recipe, ...], folder: Path) -> list[Path]:
    """Write every script that differs from the others in more than its values."""
    shapes = {(file.name, shape(file.text)): file.text for recipe in recipes for file in scripts(recipe)}
    paths = []
    for number, ((name, _), text) in enumerate(sorted(shapes.items())):
        path = folder / f"{number}-{name}"
        path.write_text(text)
        paths.append(path)
    return paths


@pytest.fixture(scope="module")
def with_options() -> tuple[Recipe, ...]:
    return tuple(made(name, None, **asked) for name, asked in OPTIONS)


def test_bash_reads_every_script_on_every_platform() -> None:
    texts = {file.text for recipe in everywhere() for file in scripts(recipe)}
    # A function is read and not run, so that one bash reads them all.
    assert len(texts) > 100
    joined = "".join(f"script_{number}() {{\n{text}\n}}\n" for number, text in enumerate(sorted(texts)))
    done = subprocess.run(["bash", "-n"], input=joined, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_shellcheck_finds_nothing(with_options: tuple[Recipe, ...], tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here: apt-get install shellcheck")
    paths = checked((*everywhere(), *with_options), tmp_path)
    assert len(paths) > 20

    done = subprocess.run(["shellcheck", *paths], capture_output=True, text=True, check=False)

    assert (done.stdout, done.returncode) == ("", 0)


def test_shellcheck_can_find_something(tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here: apt-get install shellcheck")
    path = tmp_path / "x.sh"
    path.write_text(made("nccl-wheel", None).files[1].text.replace('"$wheel==$nccl_version"', "$ARCH"))
    assert "SC2034" in subprocess.run(["shellcheck", path], capture_output=True, text=True, check=False).stdout


def test_started_scripts_stop_at_the_first_failure_and_are_programs() -> None:
    for recipe in everywhere():
        for file in scripts(recipe):
            is_started = file.text.startswith("#!/bin/bash\n")
            assert is_started == file.executable == (file.name != "load.sh"), file.name
            assert not is_started or "\nset -euo pipefail\n" in file.text.split("\n\n")[0] + "\n"


def test_every_script_and_definition_that_is_shipped_is_of_some_recipe() -> None:
    folder = Path(busbw.__file__).parent / "data" / "recipes" / "scripts"
    every = (*recipe_facts(), *adopting_facts())
    used = {body for facts in every for part in facts.scripts for body in part.bodies}
    used |= {text for facts in every for text in (facts.definition, *facts.definition_of_fabric.values()) if text}
    assert {path.name for path in folder.iterdir()} == used


def test_nothing_of_nccl_or_of_its_plug_in_is_compiled() -> None:
    """What their makers publish is installed; the OSU benchmarks and busbw are all that a recipe compiles."""
    for recipe in everywhere():
        for file in recipe.files:
            # Words, and what `busbw env export` writes.
            if file.name in ("README.md", "env_vars.sh", "nccl.conf"):
                continue
            assert re.search(r"git (clone|fetch)|\bcmake\b|\bspack\b|autogen|github|nccl-tests", file.text) is None, (
                file.name
            )
            compiles = re.search(r"^\s*(?:\./configure|make)\b", file.text, re.MULTILINE) is not None
            assert not compiles or recipe.name.startswith("osu-"), (recipe.name, file.name)


@settings(max_examples=25)
@given(values=st.lists(HOSTILE, min_size=1, max_size=8))
def test_a_value_arrives_as_it_is(values: list[str]) -> None:
    script = f"{assignment('one', values[0])}\n{assignment('many', tuple(values))}\n"
    script += 'printf \'%s\\0\' "$one" "${many[@]}"\n'

    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})

    assert done.stdout.decode().split("\0")[:-1] == [values[0], *values]


def test_an_array_may_be_empty() -> None:
    script = assignment("none", ()) + '\nprintf "%d" "${#none[@]}"'
    assert subprocess.run(["bash", "-uc", script], capture_output=True, text=True, check=True).stdout == "0"


def test_the_pieces_of_a_platform_s_settings_are_those_of_env_export() -> None:
    for name, form in (("env_vars.sh", "sh"), ("nccl.conf", "nccl.conf")):
        exported = CliRunner().invoke(command, ["env", "export", "--format", form, "--platform", "isambard-ai-phase2"])
        files = {file.name: file.text for file in made("nccl-module", "isambard-ai-phase2").files}
        assert files[name] == exported.stdout


def test_a_definition_on_slingshot_mends_the_loader_s_cache_and_takes_the_host_s_libfabric() -> None:
    files = {file.name: file.text for file in made("apptainer-ngc", "isambard-ai-phase2").files}
    assert files["image.def"].startswith("Bootstrap: docker\nFrom: nvcr.io/nvidia/pytorch:26.01-py3\n")
    assert "/etc/ld.so.conf.d/efa.conf" in files["image.def"]
    assert "/host/usr/lib64" in files["image.def"]
    azure = {file.name: file.text for file in made("apptainer-ngc", "azure-nd-h100-v5").files}
    assert "/etc/ld.so.conf.d" not in azure["image.def"]
    assert "'--launcher-option=--network=disable_rdzv_get'" in files["check.sh"]


def test_a_program_is_started_in_the_image_as_the_guide_of_isambard_ai_does() -> None:
    run = next(file.text for file in made("apptainer-ngc", "isambard-ai-phase2").files if file.name == "run.sh")
    assert "srun_options=('--network=disable_rdzv_get')" in run
    assert (
        "binds=('--bind' '/opt/cray/libfabric:/host/opt/cray/libfabric:ro' '--bind' '/usr/lib64:/host/usr/lib64:ro')"
        in run
    )
    assert "#SBATCH --nodes=2\n" in run
    assert "binds=()" in next(file.text for file in made("apptainer-ngc", "azure-ndv4").files if file.name == "run.sh")


def test_sections_of_definitions_are_shell_that_dash_and_bash_read(tmp_path: Path) -> None:
    for facts in recipe_facts():
        for name in filter(None, (facts.definition, *facts.definition_of_fabric.values())):
            sections = re.split(r"^%(\w+)\n", recipe_text(name), flags=re.MULTILINE)[1:]
            for title, text in zip(sections[::2], sections[1::2], strict=True):
                if title in ("setup", "post", "environment"):
                    path = tmp_path / f"{name}.{title}"
                    path.write_text("#!/bin/sh\n" + text)
                    subprocess.run(["sh", "-n", path], check=True)
                    if shutil.which("shellcheck") is not None:
                        done = subprocess.run(
                            ["shellcheck", "--exclude=SC1091,SC2155,SC2012", path],
                            capture_output=True,
                            text=True,
                            check=False,
                        )
                        assert done.stdout == "", done.stdout
