"""What programs print when something is wrong: the lines, what they mean, what to do; from data/log_patterns.toml."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

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
    # What to do with RCCL, where that is something else.
    fix_amd: str | None = None


class LogStage(Value, kw_only=True, frozen=True):
    """What NCCL does in one of its source files, and how to go on without that."""

    file: str
    what: str
    fix: str
    source: str


class _Patterns(Value, kw_only=True, frozen=True):
    pattern: tuple[LogPattern, ...]
    stage: tuple[LogStage, ...]


@cache
def log_patterns() -> tuple[tuple[re.Pattern[str], LogPattern], ...]:
    """Return every pattern with its compiled regex, in the order in which they count."""
    return tuple((re.compile(each.regex, re.ASCII), each) for each in _read().pattern)


@cache
def log_stages() -> Mapping[str, LogStage]:
    """Return what NCCL does in which of its files, by the file's name."""
    return {stage.file: stage for stage in _read().stage}


@cache
def _read() -> _Patterns:
    raw = files("busbw").joinpath("data", "log_patterns.toml").read_bytes()
    return msgspec.toml.decode(raw, type=_Patterns)
