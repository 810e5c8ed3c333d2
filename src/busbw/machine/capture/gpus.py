"""The GPUs of this host and the libraries that drive them: where they are found, and what they say of themselves."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.model import codec
from busbw.model.machine import GpuHost, Origin

_SURVEY_TIMEOUT_S = 120.0
_DRIVER = "libcuda.so.1"
_NCCL = "libnccl.so.2"
_NO_NCCL_HINT = "name it with --nccl PATH, put its folder into LD_LIBRARY_PATH, or: pip install nvidia-nccl-cu13"
# Tried in this order; the newest that the driver is not older than counts.
_NVRTC_MAJORS = ("13", "12")
_SYSTEM_FOLDERS = ("/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/cuda/lib64")
_NONE = "none"


class Named(Value, kw_only=True, frozen=True):
    """Libraries that the user named by path. None: found by busbw; for NVRTC, "none" is to do without."""

    nccl: str | None = None
    driver: str | None = None
    nvrtc: str | None = None


class _FoundLibraries(Value, frozen=True):
    path: str
    origin: Origin


def gpus(named: Named, python: str) -> GpuHost:
    """Return what this host offers for NCCL, asked in a process of its own: a driver may take it down.

    Raises InputError in one line when something is missing.
    """
    nccl = _first(named.nccl, _NCCL, ("nvidia/nccl/lib",))
    driver = _first(named.driver, _DRIVER, ())
    found = (nccl, driver, *_compilers(named.nvrtc))
    request = [word for library in found for word in (library.path, library.origin)]
    try:
        answer = subprocess.run(
            [python, "-P", "-m", "busbw.rank.survey", *request],
            capture_output=True,
            text=True,
            timeout=_SURVEY_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"the GPUs do not answer: {error}", hint="does nvidia-smi answer?") from error
    if answer.returncode != 0:
        said = (answer.stderr.strip() or f"ended with code {answer.returncode}").splitlines()[-1]
        raise InputError(said, hint=_hint(said))
    return codec.decode(answer.stdout.encode(), GpuHost, where="busbw.rank.survey")


def _hint(said: str) -> str:
    if "has no function" in said:
        return "this file is another library; name the right one with --nccl, --driver or --nvrtc"
    if _NCCL in said or "NCCL" in said:
        return _NO_NCCL_HINT
    if _DRIVER in said:
        return "there is no NVIDIA driver here; MPI needs none: busbw run --backend native-mpi"
    return "does nvidia-smi see the GPUs?"


def _first(named: str | None, name: str, wheel_folders: tuple[str, ...]) -> _FoundLibraries:
    """Return where a library is: named, on LD_LIBRARY_PATH, in a wheel, or left to the dynamic loader."""
    if named is not None:
        if not Path(named).is_file():
            raise InputError("there is no such library", where=named, hint=f"the path of a {name}")
        return _FoundLibraries(str(Path(named).absolute()), "named")
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and (Path(folder) / name).is_file():
            return _FoundLibraries(str((Path(folder) / name).absolute()), "LD_LIBRARY_PATH")
    for packages in package_folders():
        for folder in wheel_folders:
            if (packages / folder / name).is_file():
                return _FoundLibraries(str(packages / folder / name), "wheel")
    return _FoundLibraries(name, "system")


def _compilers(named: str | None) -> list[_FoundLibraries]:
    """Return every NVRTC there is, the newest first; without one the host checks results."""
    if named is not None:
        return [] if named == _NONE else [_first(named, "libnvrtc.so", ())]
    found = []
    for major in _NVRTC_MAJORS:
        name = f"libnvrtc.so.{major}"
        one = _first(None, name, ("nvidia/cuda_nvrtc/lib", f"nvidia/cu{major}/lib"))
        # The toolkit's own folder is often not one of the dynamic loader's: its path is given in full.
        places = [Path(folder) / name for folder in _SYSTEM_FOLDERS] if one.origin == "system" else [Path(one.path)]
        found += [_FoundLibraries(str(place), one.origin) for place in places if place.exists()][:1]
    return found


def package_folders() -> Iterator[Path]:
    """Yield the folders of Python packages: of the activated environment first, then of this interpreter."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            yield from sorted((Path(os.environ[variable]) / "lib").glob("python3*/site-packages"))
    for path in dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path)):
        if path:
            yield Path(path)
