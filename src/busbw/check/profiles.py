"""A profile: what a site checks its nodes for, with which limits, and what of it is an error. A file in TOML."""

import math
import re
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from busbw.base.collectives import COLLECTIVES, not_a_collective
from busbw.base.errors import InputError
from busbw.base.hostlist import expand
from busbw.base.text import maybe
from busbw.base.toml import check_key_lengths
from busbw.base.units import parse_size
from busbw.base.value import Integer, Value
from busbw.facts.rules import rules
from busbw.judge.gates.expression import RATE_UNITS
from busbw.model.check.report import StageName
from busbw.model.check.screening import Measure, Part, Screening, Seconds
from busbw.model.fabric import FabricMetric

MOST_BYTES = 2**20
MOST_THRESHOLDS = 200
_NUMBER = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([A-Za-z]{1,3}/s|[A-Za-z]{1,3}ps)")
_SHARES = ("noise",)
_OVER_PCIE = ("to_gpu", "from_gpu")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_PERCENT = Annotated[float, msgspec.Meta(gt=0, lt=100)]
_Severity = Literal["error", "warn"]


class ScreeningTable(Value, kw_only=True, frozen=True):
    """`[screening]`: what each node is asked to do."""

    parts: tuple[Part, ...]
    # None: the profile's own limit.
    time_limit_s: Seconds | None = None
    # Parts without which a node cannot be told, also where it has nothing of them; of the others it is noted what was
    # not screened. None: whatever the node has.
    required: tuple[Part, ...] | None = None
    noise_s: Seconds = 1.0
    memory_s: Seconds = 1.0
    # Of each GPU in each direction, and of each NIC.
    pcie_s: Annotated[float, msgspec.Meta(gt=0, le=60)] = 0.2
    nics_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 2.0


class TransferTable(Value, kw_only=True, frozen=True):
    """`[transfer]`: whom a node sends to and takes from."""

    # A list such as n[0-3]; a node leaves itself out.
    partners: str = ""
    most_partners: Annotated[int, msgspec.Meta(ge=1, le=16)] = 3
    seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 0.5
    # The words that start a program on another host.
    remote_shell: tuple[str, ...] = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=3")


class HealthTable(Value, kw_only=True, frozen=True):
    """`[health]`: codes of `busbw doctor --here` that weigh otherwise at this site."""

    error: tuple[str, ...] = ()
    warn: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


class FabricTable(Value, kw_only=True, frozen=True):
    """`[fabric]`: what is measured between nodes."""

    metrics: tuple[FabricMetric, ...] = ("bandwidth",)
    # all: every pair once; sparse: a few rounds, then what is still open.
    pairs: Literal["sparse", "all"] = "sparse"
    # What sound pairs reach, as 380Gb/s or 1.7us, one of each metric; without it the platform's published figures.
    expect: tuple[str, ...] = ()
    # NICs that are measured one by one.
    nics: tuple[str, ...] = ()
    # Of a message of bandwidth, as "4M", and seconds of one test; without them what `busbw fabric` takes.
    size: str | None = None
    pair_s: Annotated[float, msgspec.Meta(gt=0, le=60)] | None = None
    # What a part that is named weighs; an error drains its node.
    severity: _Severity = "warn"


class SuiteTable(Value, kw_only=True, frozen=True):
    """`[suite]`: collectives over all nodes."""

    collectives: tuple[str, ...] = ("all_reduce",)
    backend: Literal["mpi", "nccl"] = "mpi"
    time_limit_s: Seconds = 60.0
    ranks_per_node: Annotated[int, msgspec.Meta(ge=1, le=4096)] | None = None
    largest_bytes: Integer | None = None


class NodeThreshold(Value, kw_only=True, frozen=True):
    """`[[threshold]]`: what a measure must reach, and who says so."""

    measure: Measure
    # A rate such as "12GB/s" or "200Gb/s".
    at_least: str | None = None
    # Of the time, for noise.
    at_most_percent: _PERCENT | None = None
    # Against the median of the other nodes of the same kind; against the median of its own earlier checks.
    below_peers_percent: _PERCENT | None = None
    below_own_past_percent: _PERCENT | None = None
    # Against what the PCIe link could carry, for copies between host and GPU.
    below_link_percent: _PERCENT | None = None
    severity: _Severity = "error"
    source: str

    @property
    def at_least_Bps(self) -> float | None:
        """Return the least rate in bytes per second. Raises InputError for what is no rate."""
        return rate_Bps(self.at_least) if self.at_least is not None else None


class Profile(Value, kw_only=True, frozen=True):
    """Everything a profile says."""

    title: str
    stages: tuple[StageName, ...]
    time_limit_s: Seconds
    # The least severity that makes the exit code 1.
    fail_on: _Severity = "error"
    # Whether "cannot tell" exits with 0 or with 4.
    when_cannot_tell: Literal["pass", "stop"] = "stop"
    screening: ScreeningTable
    transfer: TransferTable = TransferTable()
    health: HealthTable = HealthTable()
    threshold: tuple[NodeThreshold, ...] = ()
    fabric: FabricTable = FabricTable()
    suite: SuiteTable = SuiteTable()


_TABLES: dict[str, type[Value]] = {
    "": Profile, "screening": ScreeningTable, "transfer": TransferTable, "health": HealthTable,
    "threshold": NodeThreshold, "fabric": FabricTable, "suite": SuiteTable,
}  # fmt: skip


def read_profile(text: str, where: str) -> Profile:
    """Return what a profile says. Raises InputError, with the line where it is known, for anything it may not say."""
    if len(text) > MOST_BYTES:
        raise InputError(f"{len(text)} characters; a profile has at most {MOST_BYTES}", where=where)
    check_key_lengths(text, where)
    try:
        profile = msgspec.toml.decode(text.encode("utf-8", "replace"), type=Profile)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), text, where) from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"not valid TOML: {error}", where=where) from error
    _check(profile, text, where)
    return profile


def _invalid(said: str, text: str, where: str) -> InputError:
    """Return what the schema refuses, with the line, and the name that may have been meant."""
    cause, _, path = said.partition(" - at `$")
    table = re.match(r"\.?([a-z]*)", path)
    name = table[1] if table is not None and table[1] in _TABLES else ""
    unknown = _UNKNOWN.search(cause)
    known = [each.name for each in msgspec.structs.fields(_TABLES[name])]
    if unknown is None:
        place = path.removesuffix("`").lstrip(".").partition("[")[0] or None
        return InputError(
            f"{cause[:1].lower()}{cause[1:]}" + (f" in {place}" if place else ""),
            where=_line(where, text, (place or "").rpartition(".")[2]),
            hint=f"keys of {f'[{name}]' if name else 'a profile'}: {', '.join(known)}",
        )
    key = unknown[1][:80]
    inside = f" in [{name}]" if name else ""
    return InputError(
        f"unknown key {key!r}{inside}{maybe(key, known)}",
        where=_line(where, text, key),
        hint=f"known here: {', '.join(known)}",
    )


def _line(where: str, text: str, key: str) -> str:
    """Return the place where a key stands first."""
    if key:
        for number, line in enumerate(text.split("\n"), 1):
            if re.match(rf"\s*\[*\s*{re.escape(key)}\b", line):
                return f"{where}:{number}"
    return where


def _check(profile: Profile, text: str, where: str) -> None:
    """Raise InputError for values that fit the schema and mean nothing."""
    if not profile.stages:
        raise InputError("no stage", where=_line(where, text, "stages"), hint='stages = ["screening"]')
    _check_lists(profile, text, where)
    if "judge" in profile.stages and "suite" not in profile.stages:
        hint = 'stages = ["screening", "suite", "judge"]'
        raise InputError("judge needs what the suite measures", where=_line(where, text, "stages"), hint=hint)
    if len(profile.threshold) > MOST_THRESHOLDS:
        raise InputError(f"{len(profile.threshold)} thresholds; {MOST_THRESHOLDS} are the most", where=where)
    expand(profile.transfer.partners, where=_line(where, text, "partners"))
    if not profile.transfer.remote_shell:
        raise InputError("remote_shell is empty", where=_line(where, text, "remote_shell"), hint='["ssh"]')
    _check_codes(profile.health, text, where)
    if profile.fabric.size is not None:
        try:
            parse_size(profile.fabric.size)
        except InputError as error:
            raise InputError(error.cause, where=_line(where, text, "size"), hint=error.hint) from error
    for name in profile.suite.collectives:
        if name not in COLLECTIVES:
            wrong = not_a_collective(name)
            raise InputError(wrong.cause, where=_line(where, text, "collectives"), hint=wrong.hint)
    for number, each in enumerate(profile.threshold):
        _check_threshold(each, _of_threshold(where, text, number))


def _check_lists(profile: Profile, text: str, where: str) -> None:
    required = profile.screening.required or ()
    for listed, name in ((profile.stages, "stages"), (profile.screening.parts, "parts"), (required, "required")):
        if len(set(listed)) < len(listed):
            raise InputError(f"{name} names something twice", where=_line(where, text, name))
    if unasked := [each for each in required if each not in profile.screening.parts]:
        raise InputError(
            f"{unasked[0]} is required and not among the parts",
            where=_line(where, text, "required"),
            hint="write it into parts, too",
        )


def _check_codes(health: HealthTable, text: str, where: str) -> None:
    known = [code for code in rules() if code.startswith("HOST")]
    for name in ("error", "warn", "ignore"):
        for code in getattr(health, name):
            if code not in known:
                raise InputError(f"{code[:40]!r} is no code of a host's health{maybe(code, known)}",
                                 where=_line(where, text, name), hint="docs/doctor-here.md lists them")  # fmt: skip
    twice = set(health.error) & set(health.warn) | set(health.error + health.warn) & set(health.ignore)
    if twice:
        raise InputError(f"{min(twice)} stands in two lists of [health]", where=_line(where, text, "health"))


def _of_threshold(where: str, text: str, number: int) -> str:
    lines = [at for at, line in enumerate(text.split("\n"), 1) if line.strip().startswith("[[threshold]]")]
    return f"{where}:{lines[number]}" if number < len(lines) else where


def _check_threshold(given: NodeThreshold, where: str) -> None:
    bounds = (
        given.at_least, given.at_most_percent, given.below_peers_percent, given.below_own_past_percent,
        given.below_link_percent,
    )  # fmt: skip
    if all(each is None for each in bounds):
        raise InputError(
            f"a threshold of {given.measure} without a bound",
            where=where,
            hint='at_least = "12GB/s", below_peers_percent = 15, below_own_past_percent = 15',
        )
    if not given.source.strip():
        raise InputError("a threshold needs a source", where=where, hint='source = "contract 2026-17, annex 3"')
    if given.measure in _SHARES and given.at_least is not None:
        raise InputError(f"{given.measure} is bounded from above", where=where, hint="at_most_percent = 5")
    if given.measure not in _SHARES and given.at_most_percent is not None:
        raise InputError(f"{given.measure} is bounded from below", where=where, hint='at_least = "12GB/s"')
    if given.measure in ("send", "receive") and given.below_peers_percent is not None:
        raise InputError(
            f"{given.measure} depends on the partner: other nodes have others", where=where, hint='at_least = "80Gb/s"'
        )
    if given.measure not in _OVER_PCIE and given.below_link_percent is not None:
        raise InputError(
            f"{given.measure} is not bounded by a PCIe link",
            where=where,
            hint=f"below_link_percent is for {', '.join(_OVER_PCIE)}",
        )
    try:
        _ = given.at_least_Bps
    except InputError as error:
        raise InputError(error.cause, where=where, hint=error.hint) from error


def rate_Bps(text: str) -> float:
    """Return a rate such as `12GB/s` or `200Gb/s` in bytes per second. Raises InputError."""
    match = _NUMBER.fullmatch(text.strip())
    unit = match[2].replace("ps", "/s") if match is not None else ""
    value = float(match[1]) * RATE_UNITS[unit] if match is not None and unit in RATE_UNITS else math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{text[:40]!r} is not a rate", hint=f"one of {', '.join(RATE_UNITS)}, as in 12GB/s, 200Gb/s")
    return value


def screening_of(profile: Profile, platform: str | None, partners: Sequence[str] = ()) -> Screening:
    """Return what each node is asked to do. `partners`: in place of the profile's."""
    asked = profile.transfer
    named = tuple(partners) or expand(asked.partners, where="partners")
    rates = [
        each.at_least_Bps for each in profile.threshold
        if each.measure in ("send", "receive") and each.at_least_Bps is not None
    ]  # fmt: skip
    return Screening(
        parts=profile.screening.parts,
        time_limit_s=min(profile.screening.time_limit_s or profile.time_limit_s, profile.time_limit_s),
        platform=platform,
        noise_s=profile.screening.noise_s,
        memory_s=profile.screening.memory_s,
        pcie_s=profile.screening.pcie_s,
        nics_s=profile.screening.nics_s,
        partners=tuple(dict.fromkeys(named)),
        most_partners=asked.most_partners,
        transfer_s=asked.seconds,
        enough_Bps=max(rates, default=None),
        remote_shell=asked.remote_shell,
    )
