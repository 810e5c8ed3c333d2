"""Runs of the real command on real GPUs. Skipped where there are fewer than two; started by scripts/gpu_check.sh."""

import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

GUARDS = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
FAULTS = Path(__file__).parent / "faults.c"


def gpu_count() -> int:
    """Return how many GPUs the driver sees; 0 without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here, and skip it with the reason where there is nothing to run it on."""
    found = gpu_count()
    lies_here = {path: Path(__file__).parent in path.parents for path in {item.path for item in items}}
    for item in items:
        if lies_here[item.path]:
            item.add_marker(pytest.mark.gpu)
            if found < 2:
                item.add_marker(pytest.mark.skip(reason=f"needs two GPUs of one host, {found} here"))


@dataclass
class Ran:
    """What a run left."""

    code: int
    stderr: str
    folder: Path
    run: dict = field(default_factory=dict)

    @property
    def points(self) -> list[dict]:
        """The measurements."""
        return self.run["measurements"]


@pytest.fixture
def run(tmp_path: Path):
    """Start `busbw run` with multicast off and return what came of it."""

    def start(*arguments: str, code: tuple[int, ...] = (0, 1, 4), limit_s: float = 100, **environment: str) -> Ran:
        folder = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        argv = [
            sys.executable,
            "-c",
            "from busbw.cli import main; main()",
            "run",
            "--backend",
            "native-nccl",
            "--no-multicast",
        ]
        argv += ["--out", str(folder), "--json", *arguments]
        answer = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
            env={**os.environ, **GUARDS, **environment},
        )
        assert answer.returncode in code, f"{answer.returncode}\n{answer.stdout[-3000:]}\n{answer.stderr[-3000:]}"
        content = json.loads(answer.stdout) if answer.stdout.strip() else {}
        for hello in content.get("ranks", ()):
            seen = dict(hello["gpu"]["environment"])
            assert {name: seen.get(name) for name in GUARDS} == GUARDS
        return Ran(code=answer.returncode, stderr=answer.stderr, folder=folder, run=content)

    return start


@pytest.fixture(scope="session")
def nccl() -> Path:
    """Return the libnccl.so.2 of this Python environment, or the one that NCCL_LIBRARY names."""
    if "NCCL_LIBRARY" in os.environ:
        return Path(os.environ["NCCL_LIBRARY"])
    environments = [Path(sysconfig.get_path("purelib"))]
    if "VIRTUAL_ENV" in os.environ:
        environments += sorted((Path(os.environ["VIRTUAL_ENV"]) / "lib").glob("python3*/site-packages"))
    found = [path / "nvidia/nccl/lib/libnccl.so.2" for path in environments]
    there = [path for path in found if path.is_file()]
    if not there:
        pytest.skip("no libnccl.so.2 of a wheel here: name one with NCCL_LIBRARY")
    return there[0]


@pytest.fixture(scope="session")
def faulty_nccl(nccl: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the library with the planted faults in front of the real one."""
    built = tmp_path_factory.mktemp("faults") / "libnccl.so.2"
    argv = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", f'-DREAL="{nccl}"', "-o", str(built), str(FAULTS)]
    argv += ["-Wl,--no-as-needed", str(nccl), f"-Wl,-rpath,{nccl.parent}", "-ldl", "-Wl,-soname,libnccl_faults.so"]
    subprocess.run(argv, check=True, timeout=60)
    return built


# Multiplies matrices without a pause, and says when it has begun.
LOAD = """
import sys, torch
torch.cuda.set_device(int(sys.argv[1]))
matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
print("begun", flush=True)
while True:
    for _ in range(50):
        product = matrix @ matrix
    torch.cuda.synchronize()
"""


@pytest.fixture(params=[0, 1])
def loaded(request: pytest.FixtureRequest) -> Iterator[int]:
    """Load one GPU for as long as the test takes; its number."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no PyTorch to load a GPU with")
    process = subprocess.Popen([sys.executable, "-c", LOAD, str(request.param)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield request.param
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
