"""Programs of others on this host: where they are, what they say, and what a container would need of the host."""

import contextlib
import mmap
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

from busbw.base.errors import InputError
from busbw.facts.containers import FabricName
from busbw.model.plan import Program

_USAGE_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 3.0
_MOST_USAGE_BYTES = 2**20
_MOST_FOLDERS = 5_000
_DEEPEST = 6
# Entries of a string table: every program that uses MPI starts it, whether its library is linked in or loaded.
_MPI_SYMBOLS = (b"\0MPI_Init\0", b"\0MPI_Init_thread\0")
_GPU_SYMBOLS = {"cuda": b"\0cudaMalloc\0", "rocm": b"\0hipMalloc\0"}


def is_one_file(path: str) -> bool:
    """Whether a path is a file, not a folder."""
    return Path(path).is_file()


def find(names: tuple[str, ...], where: str | None) -> str:
    """Return the program of one of these names, the first first: at or below `where`, else on PATH.

    `where` may be the program itself, whatever its name. Raises InputError when there is none.
    """
    if where is not None and Path(where).is_file():
        return _executable(where)
    if where is not None:
        found = _below(Path(where), names)
        if found is None:
            raise InputError(f"no {' or '.join(names)} here", where=where, hint="--bin FOLDER of these programs")
        return found
    for name in names:
        on_path = shutil.which(name)
        if on_path is not None:
            return str(Path(on_path).absolute())
    raise InputError(f"no {' or '.join(names)} on PATH", hint="name the folder it is in: --bin FOLDER")


def _executable(path: str) -> str:
    if not os.access(path, os.X_OK):
        raise InputError("this file is not executable", where=path, hint=f"chmod +x {path}")
    return str(Path(path).absolute())


def _below(folder: Path, names: tuple[str, ...]) -> str | None:
    if not folder.is_dir():
        raise InputError("no such file or folder", where=str(folder), hint="--bin FOLDER of the programs")
    found: dict[str, str] = {}
    depth = len(folder.parts)
    for visited, (path, folders, files) in enumerate(os.walk(folder)):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if len(Path(path).parts) - depth >= _DEEPEST or visited > _MOST_FOLDERS:
            folders.clear()
        for name in names:
            if name in files and name not in found and os.access(Path(path, name), os.X_OK):
                found[name] = str(Path(path, name).absolute())
    return next((found[name] for name in names if name in found), None)


def usage(program: str, *, asked: str = "-h", started_by: tuple[str, ...] = ()) -> str:
    """Return what a program prints when it is asked for its options; `started_by` is the command of a launcher.

    Raises InputError when it cannot be started or does not answer.
    """
    try:
        process = subprocess.Popen(
            [*started_by, program, asked],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise InputError(f"cannot start it: {error.strerror or error}", where=program) from error
    with process:
        try:
            answer, _ = process.communicate(timeout=_USAGE_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            # A launcher that is asked to end takes along what it started elsewhere than in its own group.
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_TIMEOUT_S)
            raise InputError(
                f"it does not answer {asked} within {_USAGE_TIMEOUT_S:.0f} s",
                where=program,
                hint=f"try: {program} {asked}",
            ) from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return answer[:_MOST_USAGE_BYTES].decode("utf-8", errors="replace")


def uses_mpi(program: str) -> bool | None:
    """Whether a compiled program starts MPI, by the names in its file; None for scripts and what cannot be read."""
    found = _names_among(program, _MPI_SYMBOLS)
    return None if found is None else bool(found)


def gpus_of(program: str) -> str | None:
    """Return "cuda" or "rocm" for a compiled program that takes memory of such GPUs; None for all others."""
    found = _names_among(program, tuple(_GPU_SYMBOLS.values())) or ()
    return next((kind for kind, symbol in _GPU_SYMBOLS.items() if symbol in found), None)


def _names_among(program: str, symbols: tuple[bytes, ...]) -> tuple[bytes, ...] | None:
    """Return those of `symbols` that stand in a compiled program; None when it is none, or cannot be read."""
    try:
        with Path(program).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content[:4] != b"\x7fELF":
                return None
            return tuple(symbol for symbol in symbols if content.find(symbol) >= 0)
    except (OSError, ValueError):
        return None


def gpu_count() -> int | None:
    """Return how many GPUs a program sees, without opening a driver; None when that cannot be told."""
    for variable in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        listed = os.environ.get(variable)
        if listed is not None:
            return len([entry for entry in listed.split(",") if entry.strip() and not entry.strip().startswith("-")])
    try:
        devices = [entry for entry in Path("/dev").iterdir() if re.fullmatch(r"nvidia\d+", entry.name)]
        if devices:
            return len(devices)
        nodes = Path("/sys/class/kfd/kfd/topology/nodes").glob("*/gpu_id")
        return sum(node.read_text(encoding="ascii").strip() not in ("", "0") for node in nodes) or None
    except OSError:
        return None


# An image may have to be unpacked before it starts the first time.
_ANSWER_TIMEOUT_S = 300.0
_MOST_BYTES = 2**20


def present(paths: Iterable[str]) -> frozenset[str]:
    """Return those paths that exist here."""
    return frozenset(path for path in paths if os.path.lexists(path))


def fabric() -> tuple[FabricName | None, tuple[str, ...]]:
    """Return the fabric whose device nodes are here, and the nodes; (None, ()) without one."""
    cxi = tuple(sorted(str(path) for path in Path("/dev").glob("cxi[0-9]*")))
    if cxi:
        return "Slingshot", cxi
    if Path("/dev/infiniband").is_dir():
        return ("EFA" if any(Path("/sys/class/infiniband").glob("efa*")) else "InfiniBand"), ()
    return None, ()


def program_path(name: str) -> str:
    """Return the absolute path of a runtime's program. Raises InputError where it is not on PATH."""
    found = shutil.which(name)
    if found is None:
        raise InputError(f"there is no {name} on PATH", hint="load its module, or choose another --container")
    return found


def answer(program: Program) -> tuple[str, int]:
    """Return what a program prints, its standard error behind it, and its exit code. Raises InputError."""
    try:
        done = subprocess.run(
            program.argv,
            env={**os.environ, **dict(program.env)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_TIMEOUT_S,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"the image does not answer within {_ANSWER_TIMEOUT_S:.0f} s", where=program.argv[0]
        ) from error
    except OSError as error:
        raise InputError(f"cannot start it: {error.strerror or error}", where=program.argv[0]) from error
    text = done.stdout[-_MOST_BYTES:] + done.stderr[-_MOST_BYTES:]
    return text.decode("utf-8", errors="replace"), done.returncode
