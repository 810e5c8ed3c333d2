"""What nccl-tests prints around its rows: version, parameters, devices, conclusions, failures."""

import re
from dataclasses import dataclass, field

from busbw.formats.arithmetic import PrintedNumber
from busbw.formats.form import Taken, TextLine
from busbw.model.imported import ListedDevice

# Lines that a run of a program begins with, first to last; one of them may be missing or cut off.
STARTS = (
    r"\s*(?:#\s*(?:Writing JSON output to |[nr]ccl-tests version |Collective test starting:|nThread \d+ nGpus \d|"
    r"busbw(?: \S+ wrote this|: )|Using devices|"
    r"out-of-place\s+in-place\s*$|NCCL Tests compiled with NCCL)|(?:#\s*)?(?:size|bytes) +(?:count|N) +type\b|"
    r"nThread \d+ nGpus \d+ minBytes|rccl-tests: Version )"
)
# Each failure has one of these in it. They are looked for first: most lines are another program's.
_FAILURE_WORDS = ("failure ", "Test timeout (", "Invalid number of GPUs")
MAY_BE_FAILURE = "(?:" + "|".join(f"(?=.*{re.escape(words)})" for words in _FAILURE_WORDS) + ")"
FAILURE = re.compile(
    r"Test (?:CUDA|NCCL|HIP) failure \S+:\d+|Test timeout \(\d+s\)|(?:^| )\.\. \S+(?: pid \d+)?: Test failure \S+:\d+|"
    r"Invalid number of GPUs: \d+ requested|^(?:Cuda|NCCL) failure \S+:\d+ '",
    re.ASCII,
)
_MARKS = (
    ("busbw", re.compile(r"# busbw (?P<version>\S{1,40}) wrote this in the format of [^;]*; measured by (?P<by>.+)")),
    (
        "version",
        re.compile(
            r"# (?P<tool>[nr]ccl-tests) version (?P<version>\S+)(?: [nr]ccl-headers=(?P<headers>\d{1,9}))?"
            r"(?: [nr]ccl-library=(?P<library>\d{1,9}))?"
        ),
    ),
    ("program", re.compile(r"# Collective test starting: *(?P<program>\S+)")),
    ("parameters", re.compile(r"#? ?nThread \d+ nGpus \d")),
    ("rccl", re.compile(r"#? ?rccl-tests: Version (?P<version>\S+)")),
    ("devices", re.compile(r"# Using devices\b")),
    ("compiled", re.compile(r"# NCCL Tests compiled with NCCL (?P<headers>[\d.]+)")),
    ("json", re.compile(r"# Writing JSON output to (?P<path>.+)")),
)
_PARAMETER = re.compile(r"([A-Za-z][A-Za-z ]{0,30}?):? (\d{1,20}(?:\(\w{1,10}\))?)(?= |$)")
_DEVICE = re.compile(
    r"#\s+Rank\s+(?P<rank>\d{1,7})(?:\s+Group\s+(?P<group>-?\d{1,7}))?(?:\s+Pid\s+(?P<pid>\d{1,10}))?"
    # The tests of NCCL 1 name no host.
    r"(?:\s+on\s+(?P<host>\S{1,255})|\s+uses)\s+device\s+(?P<device>\d{1,6})\s+\[(?P<bus>[^\]\s]{1,20})\]\s*(?P<model>.{0,120})",
    re.ASCII,
)
_FOOTER = re.compile(r"#? ?(?P<name>Out of bounds values|Avg bus bandwidth|GPU memory usage)\s*:\s*(?P<value>.{1,300})")
_CONCLUDED = re.compile(r"# Collective test concluded:")
_ERROR = re.compile(r"# error: (?P<error>.+)")
# What busbw says of itself where it writes this format.
_OURS = re.compile(r"# busbw: (?:column time: (?P<statistic>.{1,300}?)(?:; nan: there is none)?$)?")
_COMMENT = re.compile(
    r"#?\s*(?:(?:Blocking|Parallel Init|Swap Comms) Enabled|Per-Iteration Report|Reducing maxBytes to \d|"
    r"Testing \d+ cycle|Errors with asterisks|skipping json output|\(B\)\s+\(elements\)|out-of-place\b|in-place\s*$|"
    r"Option -\w .*not supported)|#\s*$"
)
# How every line begins that is neither a row nor a header nor a failure.
_BEGINNINGS = (
    "#", "nThread ", "rccl-tests: ", "Out of bounds ", "Avg bus ", "GPU memory ", "Blocking ", "Parallel ", "Swap ",
    "Per-Iteration ", "Reducing ", "Testing ", "Errors ", "skipping ", "(B)", "out-of-place", "in-place", "Option -",
)  # fmt: skip
# A parameter of tables that several processes printed line by line into one another.
COPIES = "runs printed into one another"
# A parameter of tables whose rows show another collective than was stated.
SEEMS = "rows look like"
# A parameter of tables out of which somebody left lines, and said so: `[...]`.
LEFT_OUT = "left out of the text"
_LONGEST_FAILURE = 300
_MOST_FAILURES = 50
_MOST_PARAMETERS = 40
_MOST_DEVICES = 65_536


@dataclass(slots=True)
class Head:
    """Everything about a run that is not a row."""

    tool: str = "nccl-tests"
    tool_version: str | None = None
    program: str | None = None
    versions: tuple[tuple[str, str], ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    # Of a table that busbw wrote: who measured. There `nan` stands for what was not measured.
    origin: tuple[tuple[str, str], ...] = ()
    devices: list[ListedDevice] = field(default_factory=list)
    lacks_devices: bool = False
    footer: dict[str, str] = field(default_factory=dict)
    # The line of the average, until somebody has looked at it.
    footer_lines: dict[str, int] = field(default_factory=dict)
    failures: list[tuple[int, str]] = field(default_factory=list)
    complete: bool = False
    copies: int = 1
    # What a time is, where a table that busbw wrote says so.
    statistic: str | None = None
    # Of each mark how often it came, and the one that came last.
    _seen: dict[str, int] = field(default_factory=dict)
    _last: tuple[str, str] = ("", "")
    _beginning: set[tuple[str, str]] = field(default_factory=set)

    def take(self, line: TextLine, *, has_header: bool) -> Taken:
        """Return what a line is. A beginning that was there before, or comes after the header, is another run's."""
        text = line.text.strip()
        if text.startswith(_BEGINNINGS) or any(words in text for words in _FAILURE_WORDS):
            return self._read(line, text, has_header=has_header)
        return "foreign"

    def _read(self, line: TextLine, text: str, *, has_header: bool) -> Taken:
        for name, pattern in _MARKS:
            if match := pattern.match(text):
                return self._mark(name, match, text, has_header=has_header)
        if match := _FOOTER.match(text):
            return self._foot(line.number, match["name"], match["value"].strip())
        if match := _DEVICE.match(text):
            self._device(match)
        elif match := _ERROR.match(text) or FAILURE.search(line.text):
            self._fail(line.number, match["error"] if match.re is _ERROR else text)
        elif _CONCLUDED.match(text):
            self.complete = True
        elif match := _OURS.match(text):
            self.statistic = match["statistic"] or self.statistic
        elif not _COMMENT.match(text):
            return "foreign"
        return "known"

    def ranks(self) -> int | None:
        """Return the ranks of the group that the first device belongs to; None without a whole list of devices."""
        if not self.devices or self.lacks_devices:
            return None
        first = self.devices[0].group
        ranks = {device.rank for device in self.devices if device.group == first}
        return None if self.has_gaps() else len(ranks)

    def has_gaps(self) -> bool:
        """Whether numbers are absent between the ranks of an only group: somebody left lines out without a mark."""
        ranks = {device.rank for device in self.devices}
        is_one_group = len({device.group for device in self.devices}) == 1
        return is_one_group and max(ranks) - len(ranks) + 1 > 0

    def _mark(self, name: str, match: re.Match[str], text: str, *, has_header: bool) -> Taken:
        if has_header or (name in self._seen and not self._is_copy(name, text)):
            return "foreign"
        self._last = (name, text)
        self._beginning.add((name, text))
        self._seen[name] = self._seen.get(name, 0) + 1
        self.copies = max(self.copies, self._seen[name])
        found = match.groupdict()
        if name == "busbw":
            self.origin = (("written by", f"busbw {found['version']}"), ("measured by", found["by"][:200]))
        elif name == "version":
            self.tool, self.tool_version = found["tool"], found["version"]
            library = "RCCL" if self.tool == "rccl-tests" else "NCCL"
            pairs = ((f"{library} headers", found["headers"]), (library, found["library"]))
            self.versions = tuple((name, version_of(int(code))) for name, code in pairs if code)
        elif name == "rccl":
            self.tool, self.tool_version = "rccl-tests", found["version"]
        elif name == "compiled":
            self.versions = (("NCCL headers", found["headers"]),)
        elif name == "program":
            self.program = found["program"]
        elif name == "parameters":
            settings = _PARAMETER.findall(text.lstrip("# "))[:_MOST_PARAMETERS]
            self.parameters = tuple((key.strip(), value) for key, value in settings)
        return "known"

    def _is_copy(self, name: str, text: str) -> bool:
        """Whether a line that was there before is that of a run beside this one, not of a run after it.

        Several that were not joined print the same beginning, line by line or one whole beginning after the other.
        """
        return self._last == (name, text) or (
            (name, text) in self._beginning and not self.devices and not self.failures
        )

    def _device(self, match: re.Match[str]) -> None:
        if len(self.devices) < _MOST_DEVICES:
            self.devices.append(
                ListedDevice(
                    rank=int(match["rank"]),
                    group=int(match["group"]) if match["group"] else None,
                    process_id=int(match["pid"]) if match["pid"] else None,
                    host=match["host"],
                    device=int(match["device"]),
                    bus_id=match["bus"],
                    model=match["model"].strip() or None,
                )
            )

    def _foot(self, line: int, name: str, value: str) -> Taken:
        if name in self.footer:
            return "known" if self.copies > 1 and self.footer[name] == value else "foreign"
        self.footer[name] = value
        if name == "Avg bus bandwidth":
            self.complete = True
            self.footer_lines["average"] = line
        return "known"

    def _fail(self, line: int, text: str) -> None:
        if len(self.failures) < _MOST_FAILURES:
            self.failures.append((line, text[:_LONGEST_FAILURE]))


def version_of(code: int) -> str:
    """Return NCCL's version from its number: 22809 is 2.28.9, and before 2.9 2708 was 2.7.8."""
    if code < 10_000:
        return f"{code // 1000}.{code // 100 % 10}.{code % 100}"
    return f"{code // 10_000}.{code // 100 % 100}.{code % 100}"


DTYPES = {
    "float": "float32", "half": "float16", "double": "float64", "char": "int8", "int": "int32",
    "fp8_e4m3": "f8e4m3", "fp8_e5m2": "f8e5m2",
}  # fmt: skip
# More than any factor of sendrecv, less than any of all_reduce on more than two ranks.
_ONCE = 1.1
_BYTES = {
    "int8": 1, "uint8": 1, "char": 1, "int32": 4, "int": 4, "uint32": 4, "int64": 8, "uint64": 8, "half": 2, "float": 4,
    "double": 8, "bfloat16": 2, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1,
}  # fmt: skip
_PROGRAM = re.compile(r"(?:^|/)(\w+?)_perf\w*(?:\.exe)?$", re.ASCII)


def collective_of_program(program: str) -> str | None:
    """Return the collective of `all_reduce_perf`, with any path before it and any suffix after it."""
    match = _PROGRAM.search(program)
    return match[1] if match is not None else None


def parts(size_bytes: int, count: int, dtype: str) -> int | None:
    """Return how many times the count makes the size: 1, or the ranks where the size counts all parts."""
    element_bytes = _BYTES.get(dtype)
    if element_bytes is None or count <= 0 or size_bytes % (count * element_bytes):
        return None
    return size_bytes // (count * element_bytes)


def collective_of_row(
    *,
    redop: str | None,
    root: int | None,
    has_redop: bool,
    parts: int,
    ranks: int | None,
    in_place_alone_unchecked: bool,
    factor: PrintedNumber | None,
) -> str:
    """Return the collective that a row must be of; "A or B" where rows of two look the same.

    For tables that do not name their program: all before 2.16.7. `has_redop` tells whether the table has that column,
    `factor` is busbw over algbw.
    """
    if redop not in (None, "none"):
        return _reduction(root, parts, ranks, factor, is_ring=in_place_alone_unchecked)
    if root is not None and root >= 0:
        return "gather or scatter" if parts > 1 else "broadcast"
    if not has_redop:
        return "sendrecv" if parts == 1 else "all_gather"
    if redop is None:
        # hypercube has a root column beside its blank operation, alltoall before 2.13 had none.
        return "hypercube" if root is not None else "alltoall"
    return "alltoall" if in_place_alone_unchecked else "all_gather or alltoall"


# Rows of size 0 alone leave more open than any other.
_OF_NOTHING = {"all_reduce": "all_reduce or reduce_scatter", "broadcast": "broadcast, gather or scatter"}


def nothing_moved(what: str, *, has_redop: bool) -> str:
    """Return what a row of size 0 may be of that seems to be of `what`."""
    if what == "sendrecv" and not has_redop:
        return "sendrecv or all_gather"
    return _OF_NOTHING.get(what, what)


def is_open(what: str, factor: PrintedNumber, ranks: int | None) -> bool:
    """Whether the digits of a row's rates fit both all_reduce and sendrecv, which only their factor tells apart."""
    return what in {"all_reduce", "sendrecv"} and ranks is not None and ranks > 2 and factor.low < _ONCE < factor.high


def may_be(seems: str, stated: str | None, ranks: int | None) -> bool:
    """Whether rows that seem to be of one collective may be of the stated one: two look the same on two ranks."""
    alike = {"all_reduce", "sendrecv"}
    return stated in seems.split(" or ") or ((ranks or 0) <= 2 and {seems, stated} == alike)


def _reduction(root: int | None, parts: int, ranks: int | None, factor: PrintedNumber | None, *, is_ring: bool) -> str:
    if root is not None and root >= 0:
        return "reduce"
    if parts > 1:
        return "reduce_scatter"
    # sendrecv shows an operation too, and both count a size once; the factor of all_reduce is 1 for two ranks only.
    once = factor is not None and factor.low > 0 and factor.high < _ONCE and ranks is not None and ranks > 2
    return "sendrecv" if is_ring or once else "all_reduce"
