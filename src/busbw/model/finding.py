"""What busbw concludes, with its evidence: findings, and what is checked for them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from busbw.base.value import Integer, Value
from busbw.model.settings import masked

Severity = Literal["note", "warn", "error"]
# certain: it cannot be otherwise; likely: the evidence has one other explanation; possible: it has several.
Confidence = Literal["certain", "likely", "possible"]
Outcome = Literal["ok", "slow", "wrong", "failed", "cannot_tell"]
# The code of a finding that names what stands in a text of which nothing was checked.
_NOTHING_READ = "ENV018"
# Of a line that is quoted: it is long enough for every place in it that a file should have.
_LONGEST_LINE = 2_000


class FilePlace(Value, kw_only=True, frozen=True):
    """A place in a file. Lines and columns count from 1."""

    file: str
    line: Integer
    # None: the whole line.
    column: Integer | None = None

    def __str__(self) -> str:
        """Return the place as people and editors write it: `job.sh:12:5`."""
        return f"{self.file}:{self.line}" if self.column is None else f"{self.file}:{self.line}:{self.column}"


class RankedCause(Value, kw_only=True, frozen=True):
    """One of several things that may be why."""

    words: str
    # What speaks for it here; (): nothing does, and nothing against it.
    shown: tuple[str, ...] = ()
    # What tells it from the others, or mends it; None: it is ruled out.
    test: str | None = None


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
    # In a file; stored runs name it `where`, which they leave empty.
    place: FilePlace | None = msgspec.field(default=None, name="where")
    # The command that shows it on a host.
    look: str | None = None
    # How sure, and what NCCL makes of it.
    confidence: Confidence | None = None
    effect: str | None = None
    # Where it may have several causes, each; the likeliest by what is known here first.
    causes: tuple[RankedCause, ...] = ()

    @property
    def is_serious(self) -> bool:
        """Whether it is more than a note: it decides about exit codes and verdicts."""
        return self.severity != "note"


def by_place(found: Finding) -> tuple[str, int, int, str]:
    """Return what findings are sorted by: file, line, column, code; those without a place come first."""
    place = found.place
    return (place.file, place.line, place.column or 0, found.code) if place is not None else ("", 0, 0, found.code)


class FindingCounts(Value, kw_only=True, frozen=True):
    """How many findings there are of each severity."""

    errors: Integer
    warnings: Integer
    notes: Integer


def counts_of(findings: Iterable[Finding]) -> FindingCounts:
    """Return how many findings there are of each severity."""
    counts = Counter(each.severity for each in findings)
    return FindingCounts(errors=counts["error"], warnings=counts["warn"], notes=counts["note"])


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


# skipped: there is nothing here that it is about.
CheckOutcome = Literal["ok", "found", "cannot_tell", "skipped"]


class HostCheck(Value, kw_only=True, frozen=True):
    """One thing that was looked at."""

    name: str
    outcome: CheckOutcome
    # What is fine, why it cannot be told, or why it does not matter here; None where findings say it.
    because: str | None = None
    # The command that shows it.
    look: str
    findings: tuple[Finding, ...] = ()


class Told(Value, kw_only=True, frozen=True):
    """An answer, and the file, command or setting that it rests on."""

    answer: Literal["yes", "no", "cannot_tell"]
    because: str


class NetworkFeature(Value, kw_only=True, frozen=True):
    """One thing that the network can do for a job."""

    # As in data/network.toml: `dct`, `sharp`.
    id: str
    name: str
    means: str
    # Whether adapter and fabric can, whether it is set up here, whether a job would use it, or did by its log.
    available: Told
    switched_on: Told
    used: Told
    # Commands that measure what it is worth; () where no setting of a job switches it.
    compare: tuple[str, ...] = ()
    # What only the administrator of the fabric can tell.
    ask: str | None = None
    source: str


class HostDiagnosis(Value, kw_only=True, frozen=True):
    """All checks of one host, in their order."""

    hostname: str
    captured: str
    root: bool
    container: str | None
    # Its id; None: unknown.
    platform: str | None
    checks: tuple[HostCheck, ...]
    counts: FindingCounts
    # () on a host without a port of a fabric.
    network: tuple[NetworkFeature, ...] = ()


class HeldAgainst(Value, kw_only=True, frozen=True):
    """The machine that something was held against."""

    name: str
    # resembles: nobody named it; the addresses in the file are like its addresses.
    kind: Literal["platform", "host", "resembles"]
    # Why it was taken, in words, where nobody named it; and what fits as well.
    reason: str | None = None
    also: tuple[str, ...] = ()


class QuotedLine(Value, kw_only=True, frozen=True):
    """A line that a finding is about, cut where it is very long."""

    file: str
    number: Integer
    text: str


def quoted_lines(findings: Iterable[Finding], texts: Mapping[str, Sequence[str]]) -> tuple[QuotedLine, ...]:
    """Return the lines that findings are about, each once, in their order, without the secrets on them.

    `texts`: the lines of each file.
    """
    places = dict.fromkeys((each.place.file, each.place.line) for each in findings if each.place is not None)
    return tuple(
        QuotedLine(file=file, number=number, text=masked(texts[file][number - 1].rstrip("\r")[:_LONGEST_LINE]))
        for file, number in places
        if 0 < number <= len(texts.get(file, ()))
    )


class CheckedSettings(Value, kw_only=True, frozen=True):
    """What settings were checked, and as what."""

    count: Integer
    # How each file was read: shell, nccl.conf, kubernetes...
    languages: tuple[str, ...]
    # The version of NCCL that was meant, and whether somebody asked for it.
    nccl: str
    nccl_asked: bool


class Checked(Value, kw_only=True, frozen=True):
    """What a check of settings or of a topology file found, in the order of the files."""

    # What was read, of settings the strongest first: names of files, `environment`.
    files: tuple[str, ...]
    # None: nobody said what they are for, and nothing tells.
    held_against: HeldAgainst | None = None
    # None: it was a topology file.
    settings: CheckedSettings | None = None
    findings: tuple[Finding, ...]
    counts: FindingCounts
    lines: tuple[QuotedLine, ...] = ()
    # What makes more of the check, or of the file: naming the platform, writing a right file.
    hints: tuple[str, ...] = ()

    @property
    def tells_nothing(self) -> bool:
        """Whether settings stand in the text of which none was read: that nothing is found says nothing."""
        return any(each.code == _NOTHING_READ for each in self.findings)


class SettingsFix(Value, kw_only=True, frozen=True):
    """What to change in a file."""

    file: str
    # A unified diff, empty where nothing can be corrected with certainty.
    diff: str
    # Findings before, and what is left of them.
    findings: Integer
    left: Integer


class HeldValue(Value, kw_only=True, frozen=True):
    """A value, and the ranks that have it, as `0-7` or, where ranks are not known, processes as `host:pid`."""

    value: str
    who: str
    count: Integer


class LoggedFact(Value, kw_only=True, frozen=True):
    """One thing that NCCL says, with each value that somebody has; most common first."""

    name: str
    values: tuple[HeldValue, ...]


class LoggedTraffic(Value, kw_only=True, frozen=True):
    """One kind of connection between ranks, as NCCL made it."""

    # As NCCL writes it: `P2P/CUMEM/read`, `NET/IB/GDRDMA`; without the number of the NIC.
    via: str
    # unknown: nothing tells which node the peer is on.
    place: Literal["within nodes", "between nodes", "unknown"]
    # `Channel ...` lines, and pairs of ranks they name.
    lines: Integer
    pairs: Integer
    ranks: str
    # The numbers of the NICs, where it is a network.
    nics: tuple[Integer, ...] = ()


class LoggedChoice(Value, kw_only=True, frozen=True):
    """What NCCL chose for one size of one collective."""

    collective: str
    size_bytes: Integer
    algorithm: str
    protocol: str
    lines: Integer


class Trouble(Value, kw_only=True, frozen=True):
    """A kind of line that tells of a problem, and the first of them."""

    what: str
    # Id of the pattern in data/log_patterns; None: nobody knows this warning.
    pattern: str | None
    role: Literal["origin", "follower", "death", "timeout", "notice", "aside", "unknown"]
    text: str
    place: FilePlace = msgspec.field(name="where")
    # As logged; None: the line has no time.
    time: str | None = None
    host: str | None = None
    rank: Integer | None = None
    # How many lines, from how many processes.
    lines: Integer
    processes: Integer
    who: str


class Diagnosis(Value, kw_only=True, frozen=True):
    """What the logs of one job say."""

    sources: tuple[str, ...]
    lines: Integer
    nccl_lines: Integer
    # What could not be read of them, and why.
    unread: tuple[str, ...] = ()
    platform: str | None = None
    hosts: Integer
    processes: Integer
    # Ranks of the largest communicator, those of them that logged, and nodes as NCCL counts them; None: not said.
    ranks: Integer | None = None
    ranks_seen: Integer
    nodes: Integer | None = None
    communicators: Integer
    facts: tuple[LoggedFact, ...] = ()
    environment: tuple[LoggedFact, ...] = ()
    traffic: tuple[LoggedTraffic, ...] = ()
    choices: tuple[LoggedChoice, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    findings: tuple[Finding, ...] = ()
    verdict: Verdict
