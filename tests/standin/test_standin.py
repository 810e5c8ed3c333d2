import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .build import NCCL_VERSIONS, StandIn, build, link_against

ROOT = Path(__file__).resolve().parents[2]
CHECKS = Path(__file__).with_name("checks")
TIMEOUT_S = 200.0

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="the stand-ins are built with g++"),
]


@pytest.fixture(scope="session")
def standin() -> StandIn:
    return build(ROOT / "build" / "standin")


@pytest.fixture(scope="session")
def programs(standin: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checks")
    for source in sorted(CHECKS.glob("*.cpp")):
        link_against(standin, source, folder / source.stem)
    return folder


def start(
    argv: list[str | Path], cache: Path, timeout_s: float = TIMEOUT_S, **settings: str
) -> subprocess.CompletedProcess[str]:
    foreign = ("STANDIN_", "NCCL_", "CUDA_", "LD_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment |= {"STANDIN_CACHE": str(cache), "STANDIN_PATIENCE_S": "20"} | settings
    return subprocess.run(
        [str(each) for each in argv], env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def test_the_driver_and_its_compiler_do_what_a_program_expects_of_them(programs: Path, tmp_path: Path) -> None:
    done = start(
        [programs / "driver"], tmp_path, STANDIN_GPUS="4", CUDA_VISIBLE_DEVICES="2,1", STANDIN_MEMORY_BYTES=str(1 << 24)
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("ranks_are", ["devices", "processes"])
def test_collectives_move_what_they_should_between_four_ranks(programs: Path, tmp_path: Path, ranks_are: str) -> None:
    done = start([programs / "nccl", ranks_are], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_faults_strike_the_call_and_the_rank_that_they_name(programs: Path, tmp_path: Path) -> None:
    faults = "kind=wrong,rank=1,call=2,element=3;kind=sleep,rank=2,call=3,us=50000;kind=error,rank=3,call=4;"
    done = start([programs / "nccl", "faults"], tmp_path, STANDIN_FAULT=faults + "kind=gpuhang,rank=0,call=5")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("fault", "exit_code"),
    [("kind=exit,rank=2,call=1,code=7", 7), ("kind=signal,rank=0,signal=9", -9), ("kind=nonsense", -6)],
)
def test_a_fault_ends_the_process(programs: Path, tmp_path: Path, fault: str, exit_code: int) -> None:
    done = start([programs / "nccl", "pace"], tmp_path, STANDIN_LATENCY_US="7000", STANDIN_FAULT=fault)
    assert done.returncode == exit_code
    done = start([programs / "nccl", "pace"], tmp_path, STANDIN_LATENCY_US="7000", STANDIN_FAULT="kind=exit,every=2")
    assert done.returncode == 0, "no rank makes a second call"


def test_a_fault_hangs_the_call(programs: Path, tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        start([programs / "nccl", "pace"], tmp_path, timeout_s=2.0, STANDIN_FAULT="kind=hang,rank=3")


def test_a_collective_takes_as_long_as_it_is_told_to(programs: Path, tmp_path: Path) -> None:
    done = start([programs / "nccl", "pace"], tmp_path, STANDIN_GBPS="1", STANDIN_LATENCY_US="5000")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("version", "answers"),
    [
        (21803, {"48:21803:1": "0 then 0", "80:22809:1": "4 then 4", "40:21803:1": "4 then 4"}),
        (22203, {"48:22203:0": "7 then 0", "48:21700:1": "0 then 0", "48:22203:2": "4 then 4"}),
        (22809, {"80:22809:1": "0 then 0", "48:22809:1": "4 then 4", "48:22203:1": "0 then 0"}),
        (22809, {"120:23203:1": "4 then 4", "112:22809:1": "4 then 4", "80:22809:0": "7 then 0"}),
        (23203, {"120:23203:0": "7 then 0", "96:23007:1": "0 then 0", "112:23203:1": "4 then 4"}),
    ],
)  # fmt: skip
def test_a_configuration_needs_the_size_that_its_version_has(
    standin: StandIn, programs: Path, tmp_path: Path, version: int, answers: dict[str, str]
) -> None:
    done = start([programs / "config", standin.nccl(version), *answers], tmp_path)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, list(answers.values()), "")


SINCE = {"ncclCommSplit": 21801, "ncclMemAlloc": 21903, "ncclCommWindowRegister": 22703, "ncclAlltoAll": 22803}


@pytest.mark.parametrize("version", NCCL_VERSIONS)
def test_a_version_has_the_functions_that_it_had(standin: StandIn, version: int) -> None:
    listed = subprocess.run(["nm", "-D", str(standin.nccl(version))], capture_output=True, text=True, check=True).stdout
    found = {line.split()[-1] for line in listed.splitlines() if " T " in line}
    assert {name for name in SINCE if name in found} == {name for name, since in SINCE.items() if since <= version}


@pytest.mark.parametrize("older", [False, True])
def test_a_profiler_plugin_hears_of_every_collective(
    standin: StandIn, programs: Path, tmp_path: Path, older: bool
) -> None:
    plugin = tmp_path / "libnccl-profiler-recorder.so"
    options = ["-std=c++20", "-shared", "-fPIC", *(["-DOLDER"] if older else [])]
    subprocess.run(["g++", *options, str(CHECKS / "plugin" / "recorder.cpp"), "-o", str(plugin)], check=True)
    found = {"LD_LIBRARY_PATH": f"{tmp_path}:{standin.nccl(23203).parent}", "NCCL_PROFILER_PLUGIN": "recorder"}
    done = start([programs / "nccl", "pace"], tmp_path, NCCL_PROTO="Simple", STANDIN_LATENCY_US="7000", **found)
    lines = sorted(done.stdout.splitlines())
    calls = [f"rank {rank} AllReduce 262144 ncclInt32 RING SIMPLE 4" for rank in range(4)]
    # A group is told to those that want what is in it.
    assert lines == sorted(
        [f"init rank {rank} of 4" for rank in range(4)]
        + calls
        + ["event 1"] * 4
        + (["event 256", "event 512"] * 4 if not older else [])
        + [f"stop {handle}" for handle in range(1, 9 if older else 17)]
    )


def test_the_version_is_printed_as_nccl_prints_it(standin: StandIn, programs: Path, tmp_path: Path) -> None:
    newest = {"LD_LIBRARY_PATH": str(standin.nccl(23203).parent)}
    done = start([programs / "nccl", "pace"], tmp_path, NCCL_DEBUG="VERSION", STANDIN_LATENCY_US="7000", **newest)
    assert done.stdout == "NCCL version 2.32.3+cuda13.0\n"
    done = start([programs / "nccl", "pace"], tmp_path, NCCL_DEBUG="INFO", STANDIN_LATENCY_US="7000")
    assert " NCCL INFO NCCL version 2.28.9+cuda13.0\n" in done.stdout
    assert done.stdout.count("Init COMPLETE") == 4
