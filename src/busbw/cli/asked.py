"""From the options of `busbw run` to a request: letters that mean one thing to nccl-tests and another to mpirun."""

import shlex
from pathlib import Path
from typing import Any, Literal

from busbw.base.collectives import Matrix
from busbw.base.errors import InputError
from busbw.cli.options import container_of
from busbw.measure.plan.request import Request, read_matrix
from busbw.model.machine import Buffers
from busbw.store.files import read_whole

# Short names, and the backends whose users know nccl-tests' letters.
_BACKENDS = {"mpi": "native-mpi", "nccl": "native-nccl"}
NCCL_BACKENDS = ("native-nccl", "nccl-tests")
_BUFFERS: dict[str, Buffers] = {"0": "plain", "1": "registered", "2": "symmetric"}
_MOST_MATRIX_BYTES = 64 * 2**20


def request_of(asked: dict[str, Any]) -> tuple[Request, Path | None]:
    """Return the request and the folder asked for. `asked`: the options of the command by name. Raises InputError."""
    backend = _BACKENDS.get(asked["backend"], asked["backend"])
    of_nccl = backend in NCCL_BACKENDS
    number, word = asked["letter_n"], asked["letter_o"]
    directory = _one(asked["directory"], None if of_nccl or word is None else Path(word), "--out", "-o")
    calls = _one(asked["calls"], number if of_nccl else None, "--calls", "-n")
    for option, value in (("--calls", calls), ("--warmup", asked["warmup"])):
        if value is not None and value < 1:
            raise InputError(f"{option} must be at least 1", where=f"{option} {value}")
    return (
        Request(
            collectives=asked["collectives"],
            suite=asked["suite"],
            ranks=_one(asked["ranks"], None if of_nccl else number, "--ranks", "-n"),
            smallest_bytes=asked["smallest"],
            largest_bytes=asked["largest"],
            factor=asked["factor"],
            step_bytes=asked["step"],
            dtype=asked["dtype"],
            op=_one(asked["op"], word if of_nccl else None, "--op", "-o") or "sum",
            root=_root(asked["root"]),
            placement=asked["placement"],
            mode=_mode(asked["mode"], asked["graph"]),
            calls=calls,
            warmup_calls=asked["warmup"],
            verify=asked["check"] != 0,
            time_limit_s=asked["time_limit"],
            stall_s=asked["stall_timeout"],
            min_samples=asked["min_samples"],
            mpirun=asked["mpirun"],
            backend=backend,
            gpus_per_process=asked["gpus"],
            buffers=_BUFFERS[asked["register"]],
            memory=asked["memory"],
            cache=asked["cache"],
            config=asked["config"],
            pairs=asked["pairs"],
            group=asked["group"],
            unaligned=asked["unaligned"],
            matrix=_matrix(asked["matrix"], asked["ranks"]),
            multicast_off=asked["multicast_off"],
            load_side=asked["load_side"],
            nccl=asked["nccl"],
            driver=asked["driver"],
            nvrtc=asked["nvrtc"],
            programs=asked["programs"],
            launches=asked["launches"],
            graphs=max(asked["graph"] or 0, 0),
            gpu_buffers=asked["gpu_buffers"],
            tag=asked["tag"],
            platform=asked["platform"],
            **_started(asked),
        ),
        directory,
    )


def _started(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that say where, by whom and in what ranks are started. Raises InputError."""
    where = ("hosts", "nodes", "ranks_per_node", "binding")
    how = ("launcher_options", "interface", "allow_mixed", "image_python")
    return {
        **{name: asked[name] for name in (*where, *how)},
        "launcher": None if asked["launcher"] == "auto" else asked["launcher"],
        "remote_shell": _words(asked["remote_shell"]),
        "container": container_of(asked),
    }


def _one(named: Any, lettered: Any, name: str, letter: str) -> Any:  # noqa: ANN401 - as click gives them
    if named is not None and lettered is not None:
        raise InputError(f"{name} and {letter} say the same thing here", hint="leave one out")
    return named if named is not None else lettered


def _words(text: str | None) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text or ""))
    except ValueError as error:
        raise InputError(f"this command cannot be read: {error}", where="--remote-shell") from error


def _root(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or len(text) > 9:
        raise InputError(f"{text!r} is not a rank", where="-r", hint="-r 0, or -r all")
    return int(text)


def _mode(named: str | None, graph: int | None) -> Literal["stream", "isolated", "graph", "loaded"] | None:
    if graph is not None and graph > 0:
        if named not in (None, "graph"):
            raise InputError(f"-G asks for graphs, and --mode for {named}", hint="leave one out")
        return "graph"
    modes: dict[str | None, Literal["stream", "isolated", "graph", "loaded"] | None] = {
        None: None, "stream": "stream", "isolated": "isolated", "graph": "graph", "loaded": "loaded",
    }  # fmt: skip
    return modes[named]


def _matrix(path: Path | None, ranks: int | None) -> Matrix | None:
    if path is None:
        return None
    if ranks is None:
        raise InputError("a matrix needs the number of ranks", where="--matrix", hint="--ranks 8")
    return read_matrix(read_whole(path, _MOST_MATRIX_BYTES), str(path), ranks)
