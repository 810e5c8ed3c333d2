"""Words of the report: verdicts, names of measurements, numbers with their unit."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from busbw.base.collectives import COLLECTIVES
from busbw.base.cpus import format_cpu_list
from busbw.base.hostlist import compressed
from busbw.base.text import listed
from busbw.base.units import format_size, format_time
from busbw.model.comparison import ComparedBand
from busbw.model.finding import Ceiling, Verdict
from busbw.model.machine import GpuHost
from busbw.model.plan import Placement, Plan
from busbw.model.preflight import differences
from busbw.model.record import NcclChoice, Node
from busbw.model.run import Measurement, Run


@dataclass(frozen=True, kw_only=True, slots=True)
class OutcomeWords:
    """How an outcome is shown: never by colour alone."""

    outcome: str
    word: str
    symbol: str
    meaning: str


OUTCOMES: dict[str, OutcomeWords] = {
    words.outcome: words
    for words in (
        OutcomeWords(
            outcome="ok", word="ok", symbol="✓",
            meaning="Every result was right, and everything that could be judged is as fast as this machine allows.",
        ),
        OutcomeWords(
            outcome="slow", word="slow", symbol="▲",
            meaning="Results were right, and there is solid evidence that the machine could do better; "
            "the findings say what to change.",
        ),
        OutcomeWords(
            outcome="wrong", word="wrong", symbol="✗",
            meaning="At least one exchange gave a wrong result. Its speed does not matter.",
        ),
        OutcomeWords(
            outcome="failed", word="failed", symbol="■",
            meaning="The run did not come to its end. What was measured before may stand.",
        ),
        OutcomeWords(
            outcome="cannot_tell", word="cannot tell", symbol="?",
            meaning="Data are missing, too few, or were disturbed: neither a pass nor a fail.",
        ),
    )
}  # fmt: skip

ENDED_WORDS = {
    "complete": "came to its end",
    "time": "was ended by its time limit",
    "stopped": "was stopped",
    "failed": "failed",
}

_UNITS = {
    "latency": "half a round trip",
    "bandwidth": "one message of a window of 64",
    "message_rate": "one message of a window of 64",
    "bibw": "one message each way of a window of 64; busbw adds both directions",
}


def verdict_rest(verdict: Verdict) -> str:
    """Return the verdict's sentence without the word of its outcome, which is shown apart."""
    return verdict.sentence.removeprefix(OUTCOMES[verdict.outcome].word).removeprefix(":").strip()


def form_of(measurement: Measurement) -> str:
    """Return "in place" or "out of place"; "" for exchanges that know no such forms."""
    collective = COLLECTIVES.get(measurement.collective)
    if collective is not None and not collective.in_place:
        return ""
    return "in place" if measurement.in_place else "out of place"


def series_name(measurement: Measurement) -> str:
    """Return what the sizes of one sweep have in common: `all_reduce, in place`."""
    parts = [f"{measurement.collective}{pair_words(measurement)}", form_of(measurement)]
    parts += [f"groups of {measurement.group}"] if measurement.group is not None else []
    return ", ".join(part for part in parts if part)


def pair_words(measurement: Measurement) -> str:
    """Return " 0-1" where only two ranks exchange, else nothing."""
    return f" {measurement.pair[0]}-{measurement.pair[1]}" if measurement.pair is not None else ""


def series_note(measurement: Measurement) -> str:
    """Return type, operation, ranks, and what a time is the time of."""
    collective = COLLECTIVES.get(measurement.collective)
    parts = [
        f"{measurement.ranks} ranks",
        measurement.dtype,
        measurement.op if collective is not None and collective.reduces else "",
        f"root {measurement.root}" if collective is not None and collective.rooted else "",
        f"time of {_UNITS[measurement.collective]}" if measurement.collective in _UNITS else "",
    ]
    return ", ".join(part for part in parts if part)


def point_name(measurement: Measurement) -> str:
    """Return how a measurement is called: `all_reduce in place 4 MiB`."""
    place = " in place" if measurement.in_place else ""
    return f"{measurement.collective}{pair_words(measurement)}{place} {format_size(measurement.size_bytes)}"


def interval_words(measurement: Measurement) -> str:
    """Return the interval of the median: `12.1 us to 12.5 us (95 %)`."""
    low, high = format_time(measurement.low_s), format_time(measurement.high_s)
    return f"{low} to {high} ({100 * measurement.confidence:g} %)"


def interval_share(measurement: Measurement) -> float | None:
    """Return how far the interval of the median reaches, as a share of it; None where one sample has no spread."""
    median_s = measurement.median_s
    if median_s <= 0 or measurement.samples < 2:
        return None
    return max(measurement.high_s - median_s, median_s - measurement.low_s) / median_s


def interval_percent(measurement: Measurement) -> str:
    """Return `interval_share` as a cell of a table, in percent."""
    share = interval_share(measurement)
    if share is None:
        return "n/a"
    return f"{100 * share:.1f}" if share < 1 else ">99"


def percentile_s(measurement: Measurement, percentile: float) -> float | None:
    """Return a percentile of the time; None when too few samples lie beyond it."""
    return dict(measurement.percentiles).get(percentile)


def tail_weight(measurement: Measurement) -> tuple[float, float]:
    """Return what orders measurements by their tail: what slow samples add to the mean sample, then the longest one."""
    median_s = measurement.median_s
    if median_s <= 0 or measurement.samples <= 0:
        return (0.0, 0.0)
    share = measurement.slow_samples / measurement.samples
    return (share * (measurement.slow_excess_s or 0.0) / median_s, measurement.max_s / median_s)


def tail_words(measurement: Measurement) -> str:
    """Return how heavy the tail is: `12 of 800 samples slow, by 40.1 us in the median`."""
    if measurement.slow_samples == 0:
        return f"none of {measurement.samples} samples slow"
    excess = measurement.slow_excess_s
    by = f", by {format_time(excess)} in the median" if excess is not None else ""
    return f"{measurement.slow_samples} of {measurement.samples} samples slow{by}"


def numbers_words(numbers: tuple[int, ...]) -> str:
    """Return CPU numbers with runs shortened: `0-3, 8`."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


# NCCL shows a call among two ranks as these; there is no algorithm to choose.
_MESSAGES = ("Send", "Recv", "SendRecv")


def choice_words(measurement: Measurement) -> str:
    """Return what NCCL chose: "ring simple 24", "p2p 8"; "" where it does not say."""
    if measurement.nccl is None:
        return ""
    return choices_words(measurement.nccl.choices)


def choices_words(choices: Sequence[NcclChoice]) -> str:
    """Return choices as `choice_words` does: "ring simple 24"."""
    return ", ".join(dict.fromkeys(_words(choice) for choice in choices))


def _words(choice: NcclChoice) -> str:
    channels = [] if choice.channels is None else [str(choice.channels)]
    if choice.function in _MESSAGES:
        return " ".join(["p2p", *channels])
    named = [part.lower() for part in (choice.algorithm, choice.protocol) if part is not None]
    return " ".join([*named, *channels]) if named else choice.function


def used_words(band: ComparedBand) -> str:
    """Return algorithm and protocol that NCCL used in a band, on both sides where they differ: `tree ll -> ring ll`."""
    first, other = (_used(choices) for choices in (band.first_choices, band.other_choices))
    return first if first == other else f"{first or '?'} -> {other or '?'}"


def _used(choices: Sequence[NcclChoice]) -> str:
    named = (_words(structs.replace(choice, channels=None)) for choice in choices)
    return ", ".join(dict.fromkeys(named))


def bounds_words(bands: Sequence[ComparedBand]) -> str:
    """Return what small, medium and large mean in a comparison."""
    kinds = {band.by for band in bands if band.band != "small"}
    by_protocol = "medium with NCCL's protocols LL and LL128, large with Simple"
    by_size = "medium below 8 MiB, large from there on"
    told = {frozenset({"protocol"}): by_protocol, frozenset({"size"}): by_size}
    mixed = f"{by_protocol}; where NCCL does not say, {by_size}"
    return f"small: below 64 KiB; {told.get(frozenset(kinds), mixed) if kinds else by_size}"


def gpu_words(plan: Plan) -> tuple[str, ...]:
    """Return lines on the GPUs of a plan, their libraries and how they are used; none where it has no GPUs."""
    host, setup = plan.gpus, plan.gpu_setup
    if host is None or setup is None:
        return ()
    libraries = [
        f"NCCL {host.nccl.version} ({host.nccl.origin}: {host.nccl.path})",
        f"CUDA driver {host.driver.version}",
    ]
    libraries += [f"NVRTC {host.nvrtc.version}" if host.nvrtc is not None else "no NVRTC: the host checks results"]
    uses = [f"{setup.buffers} buffers{' of ncclMemAlloc' if setup.nccl_memory else ''}", f"{setup.cache} cache"]
    uses += [f"{setup.per_process} GPUs a process"] if setup.per_process > 1 else []
    uses += [f"{name}={value}" for name, value in setup.config]
    uses += ["NVLink multicast off"] if setup.multicast_off else []
    return (f"{_models(host, plan.placement.ranks)}; {', '.join(libraries)}", ", ".join(uses))


def _models(host: GpuHost, ranks: int) -> str:
    models = [device.model for device in host.devices]
    there = ", ".join(f"{models.count(model)} x {model}" for model in dict.fromkeys(models))
    return there if ranks == len(models) else f"{ranks} of {there}"


def has_choices(measurements: Sequence[Measurement]) -> bool:
    """Whether NCCL said of any of them what it chose."""
    return any(choice_words(measurement) for measurement in measurements)


def starts_words(measurements: Sequence[Measurement]) -> str:
    """Return from where to where the starts of each small size lie, in a line under a table; "" for one start."""
    repeated = [item for item in measurements if item.starts]
    if not repeated:
        return ""
    ranges = []
    for item in repeated:
        times_s = [start.median_s for start in item.starts]
        ranges.append(f"{format_size(item.size_bytes)} {format_time(min(times_s))} to {format_time(max(times_s))}")
    return f"the middle of {max(len(item.starts) for item in repeated)} starts: {', '.join(ranges)}"


_MOST_ROWS = 8
_LONGEST = 60


def node_lines(nodes: tuple[Node, ...]) -> tuple[str, ...]:
    """Return what there is to say of several hosts, a line each; () of one."""
    if len(nodes) < 2:  # one has nothing to be compared with
        return ()
    names = _short(compressed([node.host for node in nodes]))
    found = differences(nodes)
    if not found:
        first = nodes[0]
        parts = (first.cpu_model, f"{first.cpus} CPUs", f"{len(first.gpus)} GPUs" if first.gpus else None, first.kernel)
        return (f"{len(nodes)} hosts alike, {names}: {', '.join(part for part in parts if part)}",)
    rows = [
        f"  {difference.what}: "
        + ", ".join(f"{value} on {_short(compressed(hosts))}" for value, hosts in difference.values)
        for difference in found[:_MOST_ROWS]
    ]
    more = [f"  and {len(found) - _MOST_ROWS} more"] if len(found) > _MOST_ROWS else []
    return (f"{len(nodes)} hosts, {names}, that differ in:", *rows, *more)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def skew_words(measurements: Sequence[Measurement]) -> str:
    """Return the rank whose median is longest most often, and the largest distance to the fastest; "" for one rank.

    Ranks that take no part in a size (a pair among many) are left out.
    """
    slowest: Counter[int] = Counter()
    widest: tuple[float, Measurement, float] | None = None
    for item in measurements:
        taking = [view for view in item.per_rank if view.median_s > 0 and _takes_part(item, view.rank)]
        if len(taking) < 2 or item.wrong is not None:
            continue
        last, first = max(taking, key=lambda view: view.median_s), min(taking, key=lambda view: view.median_s)
        slowest[last.rank] += 1
        share = last.median_s / first.median_s - 1
        if widest is None or share > widest[0]:
            widest = (share, item, last.median_s - first.median_s)
    if widest is None:
        return ""
    (rank, times), share, item, gap_s = *slowest.most_common(1), *widest
    return (
        f"slowest rank: {rank} at {times} of {sum(slowest.values())} sizes; widest gap between ranks "
        f"{format_time(gap_s)} ({100 * share:.1f} %) at {format_size(item.size_bytes)}"
    )


def _takes_part(item: Measurement, rank: int) -> bool:
    return item.pair is None or rank in item.pair


_BOUND = {
    "core": "one core each",
    "numa": "one NUMA node each",
    "masks": "each on the CPUs given to it",
    "none": "not bound",
    "default": "bound as the launcher does when it is told nothing",
}


def placement_words(placement: Placement) -> str:
    """Return for example `8 ranks on 4 hosts, n[0-3], 2 on each; one core each`."""
    counts = set(placement.ranks_of_hosts)
    where = ""
    if counts:
        hosts = "1 host" if len(placement.hosts) == 1 else f"{len(placement.hosts)} hosts"
        each = f"{min(counts)} on each" if len(counts) == 1 else f"{min(counts)} to {max(counts)} on each"
        where = f" on {hosts}, {compressed(placement.hosts)}, {each}"
    separator = ";" if where else ","
    crowded = ", more ranks than cores" if placement.oversubscribed else ""
    return f"{placement.ranks} ranks{where}{separator} {_BOUND[placement.binding]}{crowded}"


_MOST_FOUND = 8


def found_lines(run: Run) -> tuple[str, ...]:
    """Return which CPUs the ranks found themselves on, where that was left to the launcher."""
    if run.plan.placement.binding != "default" or not run.ranks:
        return ()
    groups: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for each in run.ranks:
        groups.setdefault((each.host, each.cpus), []).append(each.rank)
    several = len({host for host, _cpus in groups}) > 1
    said = (
        f"rank {format_cpu_list(tuple(ranks))} on CPU {format_cpu_list(cpus)}{f' of {host}' if several else ''}"
        for (host, cpus), ranks in groups.items()
    )
    return (f"found: {listed(said, _MOST_FOUND, between='; ')}",)


_FROM = {
    "asked": "as asked for",
    "firmware": "by the firmware of the planning host",
    "metadata": "by the cloud's metadata service",
    "hardware": "by the hardware of the planning host",
}


def platform_words(plan: Plan) -> str | None:
    """Return the platform of a run with how it is known; None: it is not."""
    start = plan.surroundings
    if start is None or start.platform is None:
        return None
    return f"{start.platform}, {_FROM[start.platform_from]}" if start.platform_from is not None else start.platform


# nccl-tests' names where they differ from ours.
_TYPE_NAMES = {"float32": "float", "float64": "double", "float16": "half"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A heading: its word, its unit, and what it means in a sentence."""

    name: str
    unit: str
    meaning: str


_SHARED = (
    Column(name="size", unit="B", meaning="bytes, the larger of what a rank sends and receives"),
    Column(name="count", unit="elem", meaning="elements"),
    Column(name="type", unit="", meaning="data type"),
    Column(name="redop", unit="", meaning="operation of a reduction"),
    Column(name="root", unit="", meaning="root rank, -1 without one"),
    Column(name="time", unit="us", meaning="median time of one exchange"),
    Column(name="algbw", unit="GB/s", meaning="size / time"),
    Column(name="busbw", unit="GB/s", meaning="algbw times the factor of the collective"),
    Column(name="#wrong", unit="", meaning="wrong elements; N/A: not verified"),
)
_MESSAGE_COLUMNS = Column(name="msg/s", unit="1e6", meaning="messages a second, all pairs together")
_CEILING = Column(name="ceil", unit="%", meaning="busbw as a share of its ceiling")
_CHOICE = Column(name="NCCL used", unit="", meaning="algorithm, protocol and channels, by NCCL's own word")
_OWN = (
    Column(name="±", unit="%", meaning="how far the interval of the median reaches"),
    Column(name="n", unit="", meaning="samples"),
    Column(name="p99", unit="us", meaning="99th percentile of the time; n/a: too few samples for it"),
)


def columns_of(item: Measurement) -> tuple[Column, ...]:
    """Return the columns of the table that `item` stands in."""
    messages = (_MESSAGE_COLUMNS,) if item.collective == "message_rate" else ()
    if item.nccl is not None:
        return (*_SHARED, *messages, *_OWN, _CHOICE)
    return (*_SHARED, *messages, _CEILING, *_OWN)


def cells_of(item: Measurement, ceiling: Ceiling | None) -> tuple[str, ...]:
    """Return the cells of one row, one for each of its collective's columns."""
    collective = COLLECTIVES.get(item.collective)
    reduces = collective is not None and collective.reduces
    rooted = collective is not None and collective.rooted
    p99_s = percentile_s(item, 99.0)
    rate = (f"{item.ranks // 2 / item.median_s / 1e6:.2f}" if item.median_s > 0 else "",)
    return (
        str(item.size_bytes),
        str(item.count),
        _TYPE_NAMES.get(item.dtype, item.dtype),
        item.op if reduces else "none",
        str(item.root) if rooted else "-1",
        us(item.median_s),
        f"{item.algbw_Bps / 1e9:.2f}",
        f"{item.busbw_Bps / 1e9:.2f}",
        str(item.wrong.mismatch.wrong) if item.wrong is not None else "0" if item.verified else "N/A",
        *(rate if item.collective == "message_rate" else ()),
        *(() if item.nccl is not None else (share_percent(item, ceiling),)),
        interval_percent(item),
        str(item.samples),
        us(p99_s) if p99_s is not None else "n/a",
        *((choice_words(item),) if item.nccl is not None else ()),
    )


def us(time_s: float) -> str:
    """Return microseconds with as many decimals as they deserve."""
    time_us = time_s * 1e6
    return f"{time_us:.2f}" if time_us < 1000 else f"{time_us:.1f}" if time_us < 100_000 else f"{time_us:.0f}"


def share_percent(item: Measurement, ceiling: Ceiling | None) -> str:
    """Return the share of the ceiling that was reached, in percent; "" without one."""
    if ceiling is None or ceiling.busbw_Bps <= 0:
        return ""
    return f"{100 * item.busbw_Bps / ceiling.busbw_Bps:.0f}"
