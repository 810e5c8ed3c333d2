"""What other tools wrote, read into one form: sources, tables, readings, and the lines nobody could read.

Bandwidths are bytes per second and times seconds, whatever unit the tool printed. None: the tool does not say.
"""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding

IMPORT_SCHEMA = 1

# A parameter of tables whose sizes are not counted as nccl-tests counts them, and what they count.
SIZE_COUNTS = "size counts"


class Source(Value, kw_only=True, frozen=True):
    """One file as it was given; size and digest are of its bytes as they lay there."""

    name: str
    size_bytes: Integer
    sha256: str
    compressed: bool
    # After decompression. Each is a reading's, known, or listed as unread.
    lines: Integer = 0


class Reading(Value, kw_only=True, frozen=True):
    """One row of a tool's table: what was measured, at which size, and what came out."""

    table: Integer
    # From 1, of the text after decompression; of a JSON document the line it begins on.
    line: Integer
    # A collective in nccl-tests' spelling where it is one, else the tool's own name of the test.
    what: str
    size_bytes: Integer | None = None
    # As the tool counts: nccl-tests gives elements per rank and part.
    count: Integer | None = None
    dtype: str | None = None
    op: str | None = None
    root: Integer | None = None
    in_place: bool | None = None
    ranks: Integer | None = None
    # For matrices: the two ends, "host:device" or whatever the tool names them.
    source: str | None = None
    target: str | None = None
    # The tool's headline number; `Table.statistic` says which statistic it is.
    time_s: float | None = None
    algbw_Bps: float | None = None
    busbw_Bps: float | None = None
    bandwidth_Bps: float | None = None
    # The headline rate, busbw where there is one, as the tool printed it: "2.80 GB/s".
    printed: str | None = None
    messages_per_s: float | None = None
    # Elements that were wrong; None when nothing was checked.
    wrong: Integer | None = None
    # Further numbers by name, unit in the name: ("min_s", 8.1e-6), ("p99_s", ...), ("cv", 0.02).
    more: tuple[tuple[str, float], ...] = ()
    # Every sample the tool gave, in order.
    samples_s: tuple[float, ...] = ()


class ListedDevice(Value, kw_only=True, frozen=True):
    """One rank's device as the tool listed it."""

    rank: Integer
    group: Integer | None = None
    process_id: Integer | None = None
    host: str | None = None
    device: Integer | None = None
    bus_id: str | None = None
    model: str | None = None


class Table(Value, kw_only=True, frozen=True):
    """One table of one run of a tool; its readings lie beside it and carry its number."""

    number: Integer
    source: Integer
    first_line: Integer
    last_line: Integer
    # "nccl-tests", "rccl-tests", "osu", "imb", "clusterkit", "nvbandwidth", "param", "perftest", "inspector", ...
    tool: str
    tool_version: str | None = None
    # The program or test as the tool names itself: "all_reduce_perf", "OSU MPI Latency Test".
    program: str | None = None
    format: Literal["text", "json", "csv"] = "text"
    # Which statistic `Reading.time_s` is: "mean over iterations and ranks", "median", ...
    statistic: str
    # As declared by the tool (devices times threads times processes), and as its own rates give away.
    ranks: Integer | None = None
    ranks_from_rates: Integer | None = None
    # Of the libraries below it, by name: NCCL and 2.28.9, CUDA and 13.0.
    versions: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()
    # Parameters the tool printed of itself: ("iters", "20"), ("warmup iters", "1"), ...
    parameters: tuple[tuple[str, str], ...] = ()
    # Only variables of the allow-list, and how many others were left out.
    environment: tuple[tuple[str, str], ...] = ()
    environment_withheld: Integer = 0
    devices: tuple[ListedDevice, ...] = ()
    # What the tool concluded itself: ("Avg bus bandwidth", "128.378"), ("Out of bounds values", "0 OK").
    footer: tuple[tuple[str, str], ...] = ()
    # Whether the tool's own end was seen; a table without one was cut off.
    complete: bool
    # Its own words on what went wrong, with the line.
    failures: tuple[tuple[Integer, str], ...] = ()
    # Rows that cannot be right, with the line: rates that do not follow from size, time and any number of ranks.
    doubts: tuple[tuple[Integer, str], ...] = ()
    # Lines of rows that repeat the one before them, figure by figure.
    repeated: tuple[Integer, ...] = ()
    # What the log lacks and whoever imported it stated: ("collective", "all_gather"), ("nodes", "2"), ...
    stated: tuple[tuple[str, str], ...] = ()
    # Tallies: all readings, those with wrong elements, and those whose result nobody checked.
    readings: Integer = 0
    wrong: Integer = 0
    unchecked: Integer = 0


class UnreadLine(Value, kw_only=True, frozen=True):
    """A line that no reader claimed, or that a table could not take."""

    source: Integer
    line: Integer
    # At most 200 characters of it.
    text: str
    why: str


class StatedFigures(Value, kw_only=True, frozen=True):
    """What whoever imports says of tables that do not say it themselves. None: nothing."""

    collective: str | None = None
    ranks: Integer | None = None
    nodes: Integer | None = None
    platform: str | None = None


class Imported(Value, kw_only=True, frozen=True):
    """Everything one import found. Readings and unread lines lie in files beside it, one JSON value a line."""

    schema: Integer = IMPORT_SCHEMA
    import_id: str
    created: str
    busbw_version: str
    tag: str | None = None
    sources: tuple[Source, ...]
    tables: tuple[Table, ...]
    readings: Integer
    unread: Integer
    # Lines with at least one reading; and lines that are known and carry no reading: log lines, blank ones, banners.
    reading_lines: Integer
    known_lines: Integer
    findings: tuple[Finding, ...] = ()
    # As it was stated; `Table.stated` says for which tables it was needed.
    stated: StatedFigures = StatedFigures()
