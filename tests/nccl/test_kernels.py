"""What runs on the GPU beside NCCL: the kernels find what the host's check finds, and NVIDIA's compiler takes them."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.standin.build import StandIn

from .compiled import KERNELS
from .harness import ROOT, without
from .planted import TYPES
from .together import cache_of

PLANTED = 2051
CAPABILITIES = (80, 120)


def test_kernels_and_host_find_the_same_wrong_element(standin: StandIn):
    fault = {"STANDIN_FAULT": f"kind=wrong,rank=1,element={PLANTED}"}

    done = subprocess.run(
        [sys.executable, "-m", "tests.nccl.planted", str(standin.folder)],
        cwd=ROOT, env={**os.environ, **cache_of(ROOT), **fault}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 2 * len(TYPES)
    for line in lines:
        right, (wrong, index, got, expected) = line["kernels"]
        assert line["host"] == line["kernels"], line
        assert (right[0], wrong, index) == (0, 1, PLANTED), line
        assert got != expected, line


@pytest.fixture(scope="module")
def nvrtc() -> Path:
    """Return NVIDIA's compiler of this environment."""
    wheels = [Path(folder, "nvidia").glob("*/lib/libnvrtc.so.1?") for folder in sys.path]
    paths = sorted(path for found in wheels for path in found)
    return paths[-1] if paths else without("nvidia-cuda-nvrtc is not installed")


def compiled(nvrtc: Path, capability: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.nccl.compiled", str(nvrtc), str(capability)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_nvidias_compiler_takes_the_kernels_for_every_architecture(nvrtc: Path):
    with ThreadPoolExecutor(2) as workers:
        done = list(workers.map(lambda capability: compiled(nvrtc, capability), CAPABILITIES))

    assert [one.stderr for one in done] == [""] * len(CAPABILITIES)
    # A file for EM_CUDA, with a kernel for each type.
    expected = {"machine": 190, "kernels": [name.decode() for name in KERNELS]}
    assert [json.loads(one.stdout) for one in done] == [expected] * len(CAPABILITIES)


def test_an_architecture_that_the_compiler_does_not_know_is_told(nvrtc: Path):
    assert "RuntimeError: nvrtcCompileProgram: NVRTC_ERROR" in compiled(nvrtc, 11).stderr
