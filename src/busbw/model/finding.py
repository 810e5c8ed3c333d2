"""What busbw concludes, with its evidence."""

from typing import Literal

from busbw.base.value import Integer, Value

Severity = Literal["note", "warn", "error"]
# certain: it cannot be otherwise; likely: the evidence has one other explanation; possible: it has several.
Confidence = Literal["certain", "likely", "possible"]
Outcome = Literal["ok", "slow", "wrong", "failed", "cannot_tell"]


class Finding(Value, kw_only=True, frozen=True):
    """One thing a rule found. `code` is for ever and has a page in docs/findings."""

    code: str
    severity: Severity
    title: str
    evidence: str
    fix: str | None = None
    source: str | None = None
    # Number of the measurement it is about; None: the run.
    point: Integer | None = None
    # Where: in a file (`topo.xml:12:5`), or the command that shows it on a host. How sure, and what NCCL makes of it.
    where: str | None = None
    confidence: Confidence | None = None
    effect: str | None = None


class Verdict(Value, kw_only=True, frozen=True):
    """The answer in one sentence, and the codes of the findings it rests on."""

    outcome: Outcome
    sentence: str
    because: tuple[str, ...] = ()


class Ceiling(Value, kw_only=True, frozen=True):
    """What the machine could do at best for one measurement: a measured rate and the formula that applies it."""

    point: Integer
    basis: Literal["memory", "loopback"]
    # Rate of all ranks together while they copied or streamed at once.
    rate_Bps: float
    # How many bytes of that rate one exchange costs, as a factor on its size; and the formula in words.
    moves: float
    formula: str
    busbw_Bps: float
    source: str
