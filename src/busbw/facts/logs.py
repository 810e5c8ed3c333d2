"""What is known of logs: lines that name a fault, and lines of applications that hold a result."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from busbw.base.errors import InputError
from busbw.base.value import Value

Role = Literal["origin", "follower", "death", "timeout", "notice", "aside"]


class LogPattern(Value, kw_only=True, frozen=True):
    """One kind of line. `what` may hold names of groups of `regex`, in braces."""

    id: str
    regex: str
    role: Role
    what: str
    cause: str
    fix: str
    source: str
    # Whether a line of level INFO counts too.
    quiet: bool = False
    # Whether the next warning of the process says more.
    vague: bool = False
    # Whether the text leaves open what NCCL was about, which its source file then tells.
    needs_stage: bool = False
    # Whether NCCL goes on without what failed, although it hands the error up within itself.
    goes_on: bool = False
    # Whether it keeps MPI from starting, or only takes a way from it: a cause where MPI says that it could not start.
    at_start: bool = False
    # Two ends do not fit together: in the sizes of a message, for which four causes are possible, or in the calls of
    # the program, which somebody compared.
    disagree: Literal["sizes", "calls"] | None = None
    # What to do with RCCL, where that is something else.
    fix_amd: str | None = None
    # Whether it is taken for the cause only where no other line is, and something tells that the program ended.
    last_resort: bool = False
    # Whether it only repeats the words of a program that nothing more is known of: a line that names a reason in words
    # of its own (`data/failure_words.toml`) says more.
    repeats: bool = False
    # Whether the last line of its kind counts, as the lowest of a stack does.
    deepest: bool = False
    # It tells only that something was not started ("start") or was lost while it ran ("run"): a line before it that
    # names a cause is why.
    outcome: Literal["start", "run"] | None = None
    # Whether it says nothing of the program's end: a cause only where something else does, or nothing comes after it.
    needs_end: bool = False
    # Whether it shows by itself that traffic takes a slower way than the machine has.
    slows: bool = False


class LogStage(Value, kw_only=True, frozen=True):
    """What NCCL does in one of its source files, and how to go on without that."""

    file: str
    what: str
    fix: str
    source: str


class LogCode(Value, kw_only=True, frozen=True):
    """What a number or name means: a signal, an Xid of NVIDIA's driver, an error of the system, a library."""

    of: Literal["signal", "xid", "errno", "library"]
    numbers: tuple[str, ...]
    what: str
    cause: str
    fix: str
    source: str
    # Whether the fault is in the hardware, so that it can be the first thing that went wrong.
    is_hardware: bool = False
    # The id of the outcome whose causes it has (`data/differentials`).
    outcome: str | None = None


class _Patterns(Value, kw_only=True, frozen=True):
    pattern: tuple[LogPattern, ...] = ()
    stage: tuple[LogStage, ...] = ()
    code: tuple[LogCode, ...] = ()


# In this order they count: what names a cause by itself first, what only tells that a call failed last.
_FILES = ("stack", "slurm", "container", "launchers", "launch", "network", "host", "program", "nccl", "last")


@cache
def log_patterns() -> tuple[LogPattern, ...]:
    """Return every pattern, in the order in which they count."""
    return _read().pattern


@cache
def log_regex(regex: str) -> re.Pattern[str]:
    """Return the regex of a pattern, compiled when it is first tried: most logs need few of them."""
    return re.compile(regex, re.ASCII)


@cache
def log_stages() -> Mapping[str, LogStage]:
    """Return what NCCL does in which of its files, by the file's name."""
    return {stage.file: stage for stage in _read().stage}


@cache
def log_codes() -> Mapping[tuple[str, str], LogCode]:
    """Return what is known of a number, by what it is of and the number as lines write it."""
    return {(code.of, number): code for code in _read().code for number in code.numbers}


@cache
def _read() -> _Patterns:
    folder = files("busbw").joinpath("data", "log_patterns")
    parts = [msgspec.toml.decode(folder.joinpath(f"{name}.toml").read_bytes(), type=_Patterns) for name in _FILES]
    return _Patterns(
        pattern=tuple(pattern for part in parts for pattern in part.pattern),
        stage=tuple(stage for part in parts for stage in part.stage),
        code=tuple(code for part in parts for code in part.code),
    )


class Application(Value, frozen=True, kw_only=True):
    """An application, and templates of the lines of its log that tell its speed."""

    id: str
    name: str
    # Which number it is.
    words: str
    # None: `busbw.formats` has a reader of its own for it.
    templates: tuple[str, ...]
    # The work grows with the machine.
    weak: bool = False
    # Of several results the best counts, not their median.
    best: bool = False
    # A line with this text says that the result before it does not count.
    void: str | None = None
    # Options of its own launcher whose value is options of mpirun.
    mpi_options: tuple[str, ...] = ()
    source: str


class _Applications(Value, frozen=True, kw_only=True):
    application: tuple[Application, ...]


@cache
def applications() -> dict[str, Application]:
    """Return every application by its id."""
    content = files("busbw").joinpath("data", "applications.toml").read_bytes()
    return {each.id: each for each in msgspec.toml.decode(content, type=_Applications).application}


def application(name: str) -> Application:
    """Return the application called `name`. Raises InputError for one whose lines are not known."""
    found = applications().get(name.lower())
    if found is None:
        raise InputError(
            f"what {name!r} prints of its speed is not known",
            hint=f"one of {', '.join(applications())}, or say it with --pattern",
        )
    return found
