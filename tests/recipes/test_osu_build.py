"""The OSU benchmarks are built from an archive whose sum is right and no other, with the compilers of the recipe."""

import hashlib
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.cli.command import busbw

# What a release of theirs is to the script: a configure that makes a Makefile.
CONFIGURE = r"""#!/bin/bash
prefix=$(printf '%s\n' "$@" | sed -n 's/^--prefix=//p')
printf '%s\n' "$@" >"$OLDPWD/configured"
printf 'all:\n\t@true\ninstall:\n\tmkdir -p "%s/libexec/osu-micro-benchmarks/mpi/pt2pt"\n' "$prefix" >Makefile
"""


def archive(folder: Path) -> str:
    """Put an archive into the folder, under the name of the release, and return its sum."""
    source = folder / "osu-source"
    source.mkdir()
    (source / "configure").write_text(CONFIGURE)
    (source / "configure").chmod(0o755)
    path = folder / "osu-micro-benchmarks-7.5.2.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        packed.add(source, "osu-micro-benchmarks-7.5.2")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def written(folder: Path, *words: str) -> Path:
    CliRunner().invoke(busbw, ["recipe", "write", *words, "-o", str(folder)])
    return folder


def build(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "CUDA_HOME"}
    return subprocess.run(
        ["bash", folder / "build.sh"], env={**kept, **more}, text=True, capture_output=True, check=False, timeout=60
    )


def test_an_archive_with_another_sum_is_not_unpacked(tmp_path: Path) -> None:
    folder = written(tmp_path / "x", "osu-modules")
    archive(folder)
    done = build(folder)
    assert done.returncode != 0
    assert "FAILED" in done.stdout
    assert not (folder / "source").exists()


@pytest.mark.parametrize(
    ("name", "compilers", "cuda_home", "extra"),
    [
        ("osu-modules", ["CC=mpicc", "CXX=mpicxx"], "", []),
        ("osu-cray", ["CC=cc", "CXX=CC"], "", []),
        (
            "osu-modules",
            ["CC=mpicc", "CXX=mpicxx"],
            "/opt/cu da",
            ["--enable-cuda", "--with-cuda=/opt/cu da", "NVCCFLAGS=-gencode=arch=compute_90,code=sm_90"],
        ),
    ],
)
def test_the_benchmarks_are_configured_with_the_compilers_of_the_recipe(
    name: str, compilers: list[str], cuda_home: str, extra: list[str], tmp_path: Path
) -> None:
    words = ("--module", "loaded/already") if name == "osu-cray" else ()
    folder = written(tmp_path / "a folder", name, "--cuda-arch", "90", *words)
    sum_ = archive(folder)
    script = folder / "build.sh"
    script.write_text(re.sub(r"^sha256='.*'$", f"sha256='{sum_}'", script.read_text(), flags=re.MULTILINE))

    # A function that a shell above has exported, as module systems do.
    done = build(folder, CUDA_HOME=cuda_home, **{"BASH_FUNC_module%%": "() {  LOADEDMODULES=$2; }"})

    assert done.returncode == 0, done.stderr
    assert (folder / "configured").read_text().splitlines() == [*compilers, f"--prefix={folder}/osu", *extra]
    assert (folder / "osu" / "libexec" / "osu-micro-benchmarks" / "mpi" / "pt2pt").is_dir()
