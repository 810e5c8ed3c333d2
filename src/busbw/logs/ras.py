"""Reports of NCCL's monitor (RAS, since 2.24), as `ncclras` prints them: which processes and ranks do not keep up."""

import re
from dataclasses import dataclass, field

_NEW = re.compile(r"Communicators\.\.\. \(\d", re.ASCII)
_HEADING = re.compile(r"(?:#(?P<group>\d+-\d+) \((?P<hash>\w+)\) )?(?P<kinds>[A-Z]+(?:,[A-Z]+)*)$", re.ASCII)
_OPERATION = re.compile(r" +Communicator ranks have different (?P<name>\w+) (?:\w+ )?counts$", re.ASCII)
_MANY = re.compile(
    r" +(?P<ranks>\d{1,9}) ranks have (?:launched up to operation (?P<count>\d{1,18})|not launched any)", re.ASCII
)
_ONE = re.compile(
    r" +Rank (?P<rank>\d{1,9})(?: has (?:launched up to operation (?P<count>\d{1,18})|not launched any operations?))?"
    r" -- GPU (?P<gpu>\S{1,40}) managed by process (?P<pid>\d{1,10}) on node (?P<node>[^\s]{1,255})",
    re.ASCII,
)
_PROCESS = re.compile(
    r" +Process (?P<pid>\d{1,10}) on node (?P<node>\S{1,255}) managing GPUs? (?P<gpu>[\d,]{1,200})", re.ASCII
)
_MISSING = re.compile(r" +The missing ranks?: (?P<ranks>[\d, -]{1,400})$", re.ASCII)
_LOST = frozenset({"DEAD", "INCOMPLETE"})
_MOST_LINES = 64
_MOST_KEYS = 4096


@dataclass(frozen=True, slots=True)
class OperationLevel:
    """Ranks that have launched equally many operations; `named` is empty where the report only counts them."""

    count: int
    ranks: int
    named: tuple[tuple[int, str], ...] = ()


@dataclass(slots=True)
class RasReport:
    """One report."""

    source: int
    line: int
    is_dead: bool = False
    # Processes and ranks that the monitor does not reach, as it words them.
    lost: list[str] = field(default_factory=list)
    # By communicator and operation.
    levels: dict[tuple[str, str], list[OperationLevel]] = field(default_factory=dict)


@dataclass(slots=True)
class RasReports:
    """The latest report and the one before it."""

    latest: RasReport | None = None
    before: RasReport | None = None
    _kinds: frozenset[str] = frozenset()
    _communicator: str = ""
    _operation: str = ""

    def read(self, text: str, source: int, line: int) -> bool:
        """Keep what a line says, and say whether it is one of a report."""
        if _NEW.match(text):
            self.before, self.latest = self.latest, RasReport(source, line)
            self._kinds = frozenset()
            return True
        report = self.latest
        if report is None:
            return False
        heading = _HEADING.match(text)
        if heading is not None:
            self._kinds = frozenset(heading["kinds"].split(","))
            self._communicator, self._operation = heading["hash"] or "", ""
            report.is_dead = report.is_dead or "DEAD" in self._kinds
            return True
        operation = _OPERATION.match(text)
        if operation is not None:
            self._operation = operation["name"]
            return True
        return self._level(report, text) or (bool(self._kinds & _LOST) and _loss(report, text))

    def _level(self, report: RasReport, text: str) -> bool:
        if "MISMATCH" not in self._kinds or not self._operation:
            return False
        key = (self._communicator, self._operation)
        # What is too many for any job goes into a list that nobody keeps.
        levels = report.levels.setdefault(key, []) if len(report.levels) < _MOST_KEYS else report.levels.get(key, [])
        many, one = _MANY.match(text), _ONE.match(text)
        if many is not None and len(levels) < _MOST_LINES:
            levels.append(OperationLevel(int(many["count"] or 0), int(many["ranks"])))
        elif one is not None and " has " in text and len(levels) < _MOST_LINES:
            levels.append(OperationLevel(int(one["count"] or 0), 1, ((int(one["rank"]), one["node"]),)))
        elif one is not None and levels and len(levels[-1].named) < _MOST_LINES:
            last = levels[-1]
            levels[-1] = OperationLevel(last.count, last.ranks, (*last.named, (int(one["rank"]), one["node"])))
        return many is not None or one is not None


def is_of_report(text: str) -> bool:
    """Whether a line may be one of a report."""
    return any(regex.match(text) for regex in (_NEW, _HEADING, _OPERATION, _MANY, _ONE, _PROCESS, _MISSING))


def _loss(report: RasReport, text: str) -> bool:
    process, one, missing = _PROCESS.match(text), _ONE.match(text), _MISSING.match(text)
    if process is not None:
        said = f"process {process['pid']} on {process['node']}, GPU {process['gpu']}"
    elif one is not None:
        said = f"rank {one['rank']} (process {one['pid']} on {one['node']})"
    elif missing is not None:
        said = f"rank {missing['ranks'].strip()}"
    else:
        return False
    if said not in report.lost and len(report.lost) < _MOST_LINES:
        report.lost.append(said)
    return True
