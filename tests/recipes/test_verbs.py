"""`busbw recipe` from its command line, and its files from bash."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.e2e.runner import NO_DEVICES

from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.facts.recipes import recipe_facts
from busbw.recipes import making

# What Environment Modules and Lmod are to a script: a function that keeps a list.
MODULE = """
module() { [[ $2 == site/* ]] && LOADEDMODULES=${LOADEDMODULES:+$LOADEDMODULES:}$2/1.0; return 0; }
"""


def recipe(*words: object) -> Result:
    return CliRunner().invoke(busbw, ["recipe", *map(str, words)])


def bash(script: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    return subprocess.run(
        ["bash", "-c", script], env={**environment, **more}, text=True, capture_output=True, check=False, timeout=120
    )


def test_the_list_names_every_recipe_also_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    listed = recipe("list")
    assert listed.exit_code == 0
    assert all(any(line.startswith(each.name) for line in listed.stdout.splitlines()) for each in recipe_facts())
    assert [each["name"] for each in json.loads(recipe("list", "--json").stdout)] == [
        each.name for each in recipe_facts()
    ]


def test_show_tells_steps_files_what_to_know_and_sources() -> None:
    shown = recipe("show", "nccl-module", "--platform", "isambard-ai-phase2")
    assert shown.stdout.startswith("nccl-module for isambard-ai-phase2: ")
    assert recipe("show", "nccl-wheel").stdout.startswith("nccl-wheel: ")
    assert shown.exit_code == 0
    for word in ("steps", "to know", "files", "versions without a package", "sources", "162.69 GB/s", "check.sh"):
        assert word in shown.stdout
    assert json.loads(recipe("show", "nccl-wheel", "--json").stdout)["files"][0]["name"] == "README.md"


def test_versions_tell_every_fact_with_its_source() -> None:
    told = " ".join(recipe("versions").stdout.split())
    assert "EFA software 1.50.0: libfabric 2.6.0amzn1.0, aws-ofi-nccl 1.21.1 (AWS, EC2 User Guide" in told
    assert "NCCL 2.19.3, CUDA 12.3, aws-ofi-nccl 1.7.x-aws, libfabric 1.22.0, isambard-ai-*: 162.69 GB/s" in told
    assert "refused, gb200-nvl72" in told
    assert "None" not in told
    assert set(json.loads(recipe("versions", "--json").stdout)) >= {"wheel", "misfit", "tried"}


def test_write_makes_a_folder_and_says_what_comes_next(tmp_path: Path) -> None:
    written = recipe("write", "nccl-wheel", "--nccl", "2.28.9", "-o", tmp_path / "a b")
    assert written.exit_code == 0
    assert written.stdout == ""
    assert "bash install.sh" in written.stderr
    assert sorted(path.name for path in (tmp_path / "a b").iterdir()) == [
        "README.md", "check.sh", "fetch.sh", "install.sh", "load.sh",
    ]  # fmt: skip
    assert "nccl_version='2.28.9'" in (tmp_path / "a b" / "install.sh").read_text()

    again = recipe("write", "nccl-wheel", "-o", tmp_path / "a b")
    assert isinstance(again.exception, InputError)
    assert "is there already" in str(again.exception)


@pytest.mark.parametrize(
    "words",
    [
        ("write", "nccl-wheel", "--nccl", "2.27;rm"),
        ("write", "nccl-wheel", "--platform", "$(id)"),
        ("write", "nccl-weel"),
        ("show", "\x1b[31m"),
        ("write", "nccl-module", "--module", "a b"),
        ("write", "apptainer-ngc", "--image", "a\nb"),
    ],
)
def test_bad_input_is_refused_and_writes_nothing(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = recipe(*words)
    assert isinstance(refused.exception, InputError)
    assert "\x1b" not in str(refused.exception)
    assert list(tmp_path.iterdir()) == []


def test_modules_are_loaded_in_order_and_a_strict_shell_stays_strict(tmp_path: Path) -> None:
    folder = tmp_path / "it's $(here)"
    recipe("write", "nccl-module", "--module", "site/gcc", "--module", "site/nccl", "-o", folder)
    loaded = f'{MODULE}\nset -eu; cd "$FOLDER"; . ./load.sh; printf "%s %s" "$LOADEDMODULES" "$-"'
    done = bash(loaded, FOLDER=str(folder))
    modules, options = done.stdout.split()
    assert modules == "site/gcc/1.0:site/nccl/1.0"
    assert {"e", "u"} <= set(options)


def test_a_module_that_is_not_loaded_ends_the_script(tmp_path: Path) -> None:
    recipe("write", "nccl-module", "--module", "other/nccl", "-o", tmp_path / "x")
    done = bash(f'{MODULE}\nset -eu; cd "$FOLDER"; . ./load.sh; echo went on', FOLDER=str(tmp_path / "x"))
    assert done.returncode == 1
    assert "other/nccl was not loaded" in done.stderr
    assert "went on" not in done.stdout


def test_settings_reach_the_shell_that_sources_them(tmp_path: Path) -> None:
    recipe("write", "nccl-package", "--platform", "azure-nd-h100-v5", "-o", tmp_path / "x")
    done = bash('cd "$FOLDER"; . ./load.sh; printf %s "$NCCL_TOPO_FILE"', FOLDER=str(tmp_path / "x"))
    assert done.stdout == "/opt/microsoft/ndv5/topo.xml"


def test_settings_are_for_the_nccl_that_is_installed() -> None:
    shown = json.loads(recipe("show", "efa", "--platform", "aws-p5", "--release", "1.43.2", "--json").stdout)
    settings = next(file["text"] for file in shown["files"] if file["name"] == "env_vars.sh")
    assert "NCCL 2.27.7\n" in settings.splitlines(keepends=True)[0]


def test_nccl_that_is_not_installed_is_said_with_the_command(tmp_path: Path) -> None:
    recipe("write", "nccl-wheel", "-o", tmp_path / "x")
    done = bash('cd "$FOLDER"; . ./load.sh', FOLDER=str(tmp_path / "x"))
    assert done.returncode == 1
    assert "hint: bash install.sh" in done.stderr


def test_a_check_without_gpus_proves_nothing_and_says_so(tmp_path: Path) -> None:
    recipe("write", "nccl-package", "-o", tmp_path / "x y")
    done = bash('bash "$FOLDER/check.sh"', FOLDER=str(tmp_path / "x y"), NODES="1", **NO_DEVICES)
    assert done.returncode == 1
    assert done.stdout.endswith("not proven:\n  all_reduce runs\n")


def test_what_was_not_proven_is_listed_and_what_was_is_not(tmp_path: Path) -> None:
    recipe("write", "nccl-package", "-o", tmp_path / "x")
    text = (tmp_path / "x" / "check.sh").read_text()
    proving = text[text.index("unproven=()") : text.index("# Proves what the recipe promises")]
    some = bash(
        f"set -euo pipefail\n{proving}\nprove good true\nprove bad false\nprove worse exit_code_5 || true\nconclude"
    )
    assert some.returncode == 1
    assert some.stdout.endswith("not proven:\n  bad\n  worse\n")
    assert bash(f"set -euo pipefail\n{proving}\nprove good true\nconclude").returncode == 0


@pytest.mark.parametrize(
    ("line", "network", "is_proven"),
    [
        ("NCCL INFO Using network AWS Libfabric", "(AWS )?Libfabric", True),
        ("NCCL INFO Using network Libfabric", "(AWS )?Libfabric", True),
        ("NCCL INFO Using network Socket", "(AWS )?Libfabric", False),
        ("NCCL INFO Using network IBext_v8", "g?IB", True),
        ("NCCL INFO Using network gIB", "g?IB", True),
        ("NCCL INFO Using network Socket", "g?IB", False),
    ],
)
def test_the_network_that_nccl_names_is_held_against_the_platform_s(line: str, network: str, is_proven: bool) -> None:
    assert network in making._NETWORK.values()
    done = subprocess.run(["grep", "-E", "-q", "-e", f"Using network {network}"], input=line, text=True, check=False)
    assert (done.returncode == 0) is is_proven


APT = """ libnccl2 | 2.29.2-1+cuda13.1 | https://repository.example Packages
  libnccl2 | 2.28.9-1+cuda13.0 | https://repository.example Packages
  libnccl2 | 2.28.9-1+cuda12.9 | https://repository.example Packages
  libnccl2 | 2.28.9-1+cuda12.2 | https://repository.example Packages
"""
DNF = """Available Packages
libnccl.x86_64    2.28.9-1+cuda12.9    cuda-rhel9-x86_64
libnccl.x86_64    2.28.9-1+cuda13.0    cuda-rhel9-x86_64
"""


def package_managers(folder: Path, **answers: str) -> str:
    """Make programs that answer as package managers do, and print what they are told to install; return a PATH."""
    folder.mkdir()
    for name, answer in answers.items():
        program = folder / name.replace("_", "-")
        program.write_text(f"#!/bin/bash\nif [[ $1 == *install* ]]; then echo \"$@\"; else cat <<'E'\n{answer}E\nfi\n")
        program.chmod(0o755)
    for name in ("bash", "grep", "sort", "tail", "cut", "tr", "cat", "env"):
        (folder / name).symlink_to(shutil.which(name) or name)
    return str(folder)


@pytest.mark.parametrize(
    ("asked", "managers", "installed"),
    [
        (("--nccl", "2.28.9", "--cuda", "12"), {"apt_get": "", "apt_cache": APT}, "libnccl2=2.28.9-1+cuda12.9"),
        (("--nccl", "2.28.9", "--cuda", "12.2"), {"apt_get": "", "apt_cache": APT}, "libnccl2=2.28.9-1+cuda12.2"),
        (("--nccl", "2.28.9", "--cuda", "13"), {"dnf": DNF}, "libnccl-2.28.9-1+cuda13.0"),
    ],
)
def test_the_package_of_the_release_and_cuda_is_installed(
    asked: tuple[str, ...], managers: dict[str, str], installed: str, tmp_path: Path
) -> None:
    recipe("write", "nccl-package", *asked, "-o", tmp_path / "x")
    done = bash(
        'exec bash "$FOLDER/install.sh"',
        FOLDER=str(tmp_path / "x"),
        PATH=package_managers(tmp_path / "bin", **managers),
    )
    assert done.stdout.split()[-1] == installed, done.stderr


@pytest.mark.parametrize("asked", [("--nccl", "2.28.7"), ("--nccl", "2.28.9", "--cuda", "12.1")])
def test_a_package_that_is_not_there_is_said_with_those_that_are(asked: tuple[str, ...], tmp_path: Path) -> None:
    recipe("write", "nccl-package", *asked, "-o", tmp_path / "x")
    path = package_managers(tmp_path / "bin", apt_get="", apt_cache=APT)
    done = bash('exec bash "$FOLDER/install.sh"', FOLDER=str(tmp_path / "x"), PATH=path)
    assert done.returncode == 1
    assert "no repository has NCCL" in done.stderr
    assert "2.28.9-1+cuda12.2" in done.stderr


def test_a_batch_script_finds_its_folder_though_slurm_starts_a_copy_of_it(tmp_path: Path) -> None:
    recipe("write", "nccl-package", "-o", tmp_path / "x")
    (tmp_path / "spool").mkdir()
    shutil.copy(tmp_path / "x" / "check.sh", tmp_path / "spool" / "slurm_script")
    done = bash(
        'cd /; exec bash "$SPOOL/slurm_script"',
        SPOOL=str(tmp_path / "spool"),
        SLURM_SUBMIT_DIR=str(tmp_path / "x"),
        NODES="1",
        **NO_DEVICES,
    )
    assert "not proven" in done.stdout, done.stderr
    assert len(list((tmp_path / "x").glob("check.*"))) == 2


def test_what_is_started_in_an_image_gets_its_arguments_as_they_are(tmp_path: Path) -> None:
    recipe("write", "apptainer-ngc", "--platform", "isambard-ai-phase2", "-o", tmp_path / "x y")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("srun", "apptainer"):
        (programs / name).write_text('#!/bin/bash\nprintf "%s\\0" "$@"\n')
        (programs / name).chmod(0o755)
    arguments = ("a b", "$(id)", "'", "*")
    done = subprocess.run(
        ["bash", tmp_path / "x y" / "run.sh", *arguments],
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        text=True,
        capture_output=True,
        check=True,
    )
    words = done.stdout.split("\0")[:-1]
    assert words[-4:] == list(arguments)
    assert words[:2] == ["--ntasks-per-node=1", "--network=disable_rdzv_get"]
    assert words[-5] == f"{tmp_path / 'x y'}/busbw.sif"


def test_an_image_that_is_there_is_not_built_over(tmp_path: Path) -> None:
    recipe("write", "apptainer-ngc", "-o", tmp_path / "x")
    (tmp_path / "x" / "busbw.sif").write_text("mine")
    done = bash('exec bash "$FOLDER/build.sh"', FOLDER=str(tmp_path / "x"), BUSBW_SOURCE="/nowhere")
    assert done.returncode == 1
    assert "is there already" in done.stderr
