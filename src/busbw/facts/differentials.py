"""What an outcome may come from: for each that logs show without its cause, the causes that makers have named."""

import re
from functools import cache
from importlib.resources import files

import msgspec

from busbw.base.value import Value


class Sign(Value, kw_only=True, frozen=True):
    """Something that a log may show beside an outcome. It is there where all that is given of it is."""

    # Any line of the log matches this regex.
    line: str | None = None
    # A variable is set, as NCCL says or as a line gives it; with `value`, to something that this regex matches whole.
    setting: str | None = None
    value: str | None = None
    # A fact that NCCL tells of a rank, such as `GPU` or `network`, matches `value`.
    fact: str | None = None
    # A kind of connection begins so, such as `P2P` or `NET/Socket`.
    way: str | None = None
    # A line of this pattern is there.
    pattern: str | None = None
    # NCCL's version is below, or at least, this.
    below: str | None = None
    since: str | None = None
    # Whether the job runs on several nodes, or on one.
    several_nodes: bool | None = None
    # How much it says for, or against, the cause.
    weight: int = 1


class PossibleCause(Value, kw_only=True, frozen=True):
    """One thing that an outcome may come from, and the test that tells it from the others, or the mend."""

    words: str
    test: str
    signs: tuple[Sign, ...] = ()
    against: tuple[Sign, ...] = ()
    # Told only where a sign of it is there.
    rare: bool = False


class FailureOutcome(Value, kw_only=True, frozen=True):
    """What a log shows without saying why. Its causes stand with those first that are named most often."""

    id: str
    # The patterns of lines that show it, and what of their text must match; none: busbw asks for it by its id.
    patterns: tuple[str, ...] = ()
    text: str | None = None
    # The whole name of NCCL's source file that warns; None: any, or none.
    file: str | None = None
    cause: tuple[PossibleCause, ...]
    # Where the causes are from.
    source: str


class _FailureOutcomes(Value, kw_only=True, frozen=True):
    outcome: tuple[FailureOutcome, ...] = ()


# In this order they count.
_FILES = ("results", "start", "gpus", "transfers", "launch", "waiting")


@cache
def outcomes() -> tuple[FailureOutcome, ...]:
    """Return every outcome, in the order in which they count."""
    folder = files("busbw").joinpath("data", "differentials")
    parts = [
        msgspec.toml.decode(folder.joinpath(f"{name}.toml").read_bytes(), type=_FailureOutcomes) for name in _FILES
    ]
    return tuple(outcome for part in parts for outcome in part.outcome)


@cache
def outcome_called(name: str) -> FailureOutcome:
    """Return the outcome with an id. Raises KeyError where there is none."""
    return {each.id: each for each in outcomes()}[name]


@cache
def sign_regex(regex: str) -> re.Pattern[str]:
    """Return the regex of a sign, compiled when it is first tried."""
    return re.compile(regex, re.ASCII | re.MULTILINE)


def outcome_of(pattern: str, text: str, file: str | None) -> FailureOutcome | None:
    """Return the outcome that a line of a pattern shows; None: it names its own cause. `file`: of NCCL, that warns."""
    for each in outcomes():
        if (
            pattern in each.patterns
            and (each.text is None or sign_regex(each.text).search(text) is not None)
            and (each.file is None or (file is not None and sign_regex(each.file).fullmatch(file) is not None))
        ):
            return each
    return None
