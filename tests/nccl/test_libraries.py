"""Which NCCL, driver and NVRTC are used and who chose them; and what is said where one is missing."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.e2e.runner import Result

from busbw.base import layout
from busbw.model import codec
from busbw.model.machine import GpuHost
from busbw.model.plan import Plan

from .by_hand import ByHand, torchrun
from .harness import BRIEF, NcclBusbw, assert_all_right, assert_refused

ONE = ("all_reduce", *BRIEF, "--ranks", 2, "-b", "1K", "-e", "1K", "--time-limit", 0.5)
PLANNED = ("run", *ONE, "--backend", "nccl", "--launcher", "processes", "--plan", "--json")
MULTICAST_OFF = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}


def found(result: Result) -> GpuHost:
    """Return the libraries and GPUs of a plan that was printed."""
    assert result.code == 0, result
    gpus = codec.decode(result.out.encode(), Plan, where="--plan").gpus
    assert gpus is not None
    return gpus


def wheel_environment(folder: Path, nccl: Path) -> Path:
    """Make an environment of Python with a wheel of NCCL in it."""
    lib = folder / "venv" / "lib" / "python3.12" / "site-packages" / "nvidia" / "nccl" / "lib"
    lib.mkdir(parents=True)
    (lib / "libnccl.so.2").symlink_to(nccl)
    return folder / "venv"


def test_libraries_on_ld_library_path_are_taken_and_named(busbw: NcclBusbw):
    folder = busbw.standin.folder
    path = f"/nowhere::{folder}:{folder / 'nccl-2.22.3'}:{folder / 'nccl-2.32.3'}"

    gpus = found(busbw(*PLANNED, env={"LD_LIBRARY_PATH": path}))

    assert (gpus.nccl.version, gpus.nccl.origin) == ("2.22.3", "LD_LIBRARY_PATH")
    assert gpus.nccl.path == str(busbw.standin.nccl(22203))
    assert (gpus.driver.version, gpus.driver.origin) == ("13.0", "LD_LIBRARY_PATH")
    assert gpus.nvrtc is not None
    assert (gpus.nvrtc.version, gpus.nvrtc.origin) == ("13.0", "LD_LIBRARY_PATH")
    assert [(one.ordinal, one.capability, one.model) for one in gpus.devices] == [
        (number, 90, "Stand-in GPU") for number in range(4)
    ]


def test_a_named_library_comes_before_the_path_the_path_before_a_wheel(busbw: NcclBusbw):
    standin, named = busbw.standin, busbw.standin.nccl(23203)
    venv = {"VIRTUAL_ENV": str(wheel_environment(busbw.folder, standin.nccl(21803)))}
    wheel = {**venv, "LD_LIBRARY_PATH": str(standin.folder)}
    path = {**venv, "LD_LIBRARY_PATH": f"{standin.folder}:{standin.folder / 'nccl-2.22.3'}"}

    origins = [
        (gpus.nccl.version, gpus.nccl.origin)
        for gpus in (
            found(busbw(*PLANNED, "--nccl", named, env=path)),
            found(busbw(*PLANNED, env=path)),
            found(busbw(*PLANNED, env=wheel)),
        )
    ]

    assert origins == [("2.32.3", "named"), ("2.22.3", "LD_LIBRARY_PATH"), ("2.18.3", "wheel")]


def test_a_run_uses_the_libraries_of_its_plan_whatever_the_environment_says_later(busbw: NcclBusbw):
    run = ByHand(busbw, *ONE)
    for rank in range(2):
        run.start({**torchrun(rank, 2), "LD_LIBRARY_PATH": str(busbw.standin.folder / "nccl-2.18.3")})

    assert [left.code for left in run.finish()] == [0, 0]
    run.assert_complete()
    assert run.plan.gpus is not None
    assert run.plan.gpus.nccl.version == "2.28.9"


def test_a_broken_compiler_leaves_the_checking_to_the_host(busbw: NcclBusbw):
    broken = busbw.folder / "broken"
    broken.mkdir()
    for major in (12, 13):
        (broken / f"libnvrtc.so.{major}").write_text("not a library")
    named = ("--nccl", busbw.standin.nccl(), "--driver", busbw.standin.cuda)

    gpus = found(busbw(*PLANNED, *named, env={"LD_LIBRARY_PATH": str(broken)}))

    assert gpus.nvrtc is None


def test_multicast_is_off_in_every_rank_that_is_told_so(busbw: NcclBusbw):
    result = busbw.nccl(*ONE, "--no-multicast")

    assert_all_right(busbw, result)
    for hello in busbw.run_of().ranks:
        assert hello.gpu is not None
        assert dict(hello.gpu.environment).items() >= MULTICAST_OFF.items()


@pytest.mark.parametrize("missing", MULTICAST_OFF)
def test_a_rank_whose_multicast_is_not_off_opens_no_nccl(busbw: NcclBusbw, missing: str):
    run = ByHand(busbw, *ONE, "--ranks", 2, "-g", 2, "--no-multicast")
    kept = {name: value for name, value in MULTICAST_OFF.items() if name != missing}
    # What would be opened is not there: a rank that came to it would say so.
    assert run.plan.gpus is not None
    nowhere = replace(run.plan.gpus, nccl=replace(run.plan.gpus.nccl, path="/nowhere/libnccl.so.2"))
    (run.directory / layout.PLAN_FILE).write_bytes(codec.encode(replace(run.plan, gpus=nowhere)))
    run.start({**torchrun(0, 1), **kept})

    (left,) = run.finish()

    assert left.code == 3
    assert "NVLink multicast must be off in every rank" in left.err
    assert f"{missing} is not set, not {MULTICAST_OFF[missing]}" in left.err
    assert "/nowhere" not in left.err


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        (("--nccl", "/nowhere/libnccl.so.2"), {}, ("there is no such library", "--> /nowhere/libnccl.so.2")),
        (("--nvrtc", "/nowhere/libnvrtc.so"), {}, ("there is no such library",)),
        (("--driver", "/bin/sh"), {}, ("/bin/sh",)),
        ((), {"STANDIN_GPUS": "0"}, ("no CUDA-capable device",)),
        ((), {"CUDA_VISIBLE_DEVICES": ""}, ("no CUDA-capable device",)),
        ((), {"CUDA_VISIBLE_DEVICES": "2"}, ("2 GPUs asked for, 1 here", "CUDA_VISIBLE_DEVICES")),
        (("--ranks", 5), {}, ("5 GPUs asked for, 4 here",)),
        (("--ranks", 1), {}, ("one GPU has no peer to exchange with",)),
        (("--ranks", 3, "-g", 2), {}, ("3 GPUs are not equal parts of 2",)),
        (("-g", 0), {}, ("not equal parts of 0",)),
        (("-e", "1G"), {"STANDIN_MEMORY_BYTES": "9999999"}, ("each GPU needs", "free of", "a smaller -e")),
        (("--mode", "loaded", "--nvrtc", "none"), {}, ("compiled by NVRTC", "pip install nvidia-cuda-nvrtc")),
        (("--mode", "loaded", "--load-side", 63), {}, ("a multiple of 4",)),
        (("--launcher", "lsf"), {}, ("'lsf'",)),
    ],
)
def test_what_cannot_be_measured_here_is_told_in_one_line(
    busbw: NcclBusbw, arguments: tuple[object, ...], env: dict[str, str], words: tuple[str, ...]
):
    result = busbw(*busbw.nccl_arguments(*ONE), *arguments, env=env)

    assert_refused(result, *words)


def test_another_library_in_the_place_of_nccl_is_told(busbw: NcclBusbw):
    result = busbw(*busbw.nccl_arguments(*ONE), "--nccl", busbw.standin.cuda)

    assert_refused(result, "has no function ncclGetVersion", "this file is another library")


def test_without_nccl_or_driver_the_other_verbs_work_and_run_says_what_is_missing(busbw: NcclBusbw):
    assert_all_right(busbw, busbw.nccl(*ONE))
    for verb in (("show",), ("runs",), ("load", "last"), ("export", "last", "--format", "csv"), ("report", "last")):
        result = busbw(*verb)
        assert result.code in {0, 1, 4}, (verb, result)
        assert "error:" not in result.err

    result = busbw(
        "run", *ONE, "--backend", "nccl", "--nccl", busbw.standin.nccl(), "--driver", "/nowhere/libcuda.so.1"
    )

    assert_refused(result, "/nowhere/libcuda.so.1")
