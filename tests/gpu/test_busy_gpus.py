"""A GPU that another process loads is named, and the run is not judged by it."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator

import pytest

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


def test_the_gpu_that_runs_other_work_is_named_and_no_other(run, loaded: int) -> None:
    found = run("all_reduce", "--ranks", "2", "-b", "1K", "-e", "1K", "--time-limit", "3", "--min-samples", "30")
    named = [one for one in found.run["findings"] if one["code"] == "RUN027"]
    assert len(named) == 1
    assert f"GPU {loaded} on " in named[0]["title"]
    assert f"GPU {1 - loaded} on " not in named[0]["title"]
    assert found.run["verdict"]["outcome"] == "cannot_tell"
    assert found.run["verdict"]["sentence"].startswith(f"cannot tell: GPU {loaded} on ")


def test_idle_gpus_are_not_accused(run) -> None:
    found = run("all_reduce", "--ranks", "2", "-b", "1K", "-e", "1K", "--time-limit", "2", "--min-samples", "30")
    assert [one for one in found.run["findings"] if one["code"] == "RUN027"] == []
