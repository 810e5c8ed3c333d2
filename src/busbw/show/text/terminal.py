"""A run, a plan or a list of runs as text for a terminal."""

import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from busbw.base.collectives import COLLECTIVES
from busbw.base.text import printable
from busbw.base.units import format_size
from busbw.model.fabric import FabricPlan
from busbw.model.finding import Finding, Verdict
from busbw.model.plan import Job, Plan, Sampling
from busbw.model.run import Measurement, Run
from busbw.show.lines import curve_lines, say, say_action
from busbw.show.recommended import layer_lines
from busbw.show.text.autopsy import autopsy_lines
from busbw.show.weighing import conditions_of, weighed
from busbw.show.words import (
    choice_words,
    found_lines,
    gpu_words,
    has_choices,
    interval_percent,
    node_lines,
    placement_words,
    platform_words,
    skew_words,
    starts_words,
)


class TrimmedLines(RenderHook):
    """What a console is given to print everything without blanks at the ends of lines."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Return the same, trimmed."""
        return [_Trimmed(each) for each in renderables]


class _Trimmed:
    def __init__(self, whole: ConsoleRenderable) -> None:
        self._whole = whole

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line: list[Segment] = []
        for segment in _by_line(console.render(self._whole, options)):
            if segment.text == "\n":
                yield from _trimmed(line)
                yield Segment.line()
                line = []
            else:
                line.append(segment)
        yield from line


def _by_line(segments: Iterable[Segment]) -> Iterable[Segment]:
    """Yield the segments with each end of a line alone."""
    for text, style, control in segments:
        if control:
            yield Segment(text, style, control)
            continue
        for place, part in enumerate(text.split("\n")):
            if place:
                yield Segment.line()
            if part:
                yield Segment(part, style)


def _trimmed(line: list[Segment]) -> list[Segment]:
    kept = list(line)
    while kept and not kept[-1].control and not kept[-1].text.strip(" "):
        kept.pop()
    if kept:
        kept[-1] = Segment(kept[-1].text.rstrip(" "), kept[-1].style, kept[-1].control)
    return kept


# Where output is no terminal there is no width to obey, and a cut column would lose data.
_WIDTH_ELSEWHERE = 132
# With fewer columns the 99th percentile is left to --json and the report.
_WIDTH_FOR_P99 = 84
VERDICT_COLOURS = {
    "ok": "bold green",
    "slow": "bold yellow",
    "wrong": "bold red",
    "failed": "bold red",
    "cannot_tell": "bold cyan",
}
SEVERITY_COLOURS = {"note": "cyan", "warn": "yellow", "error": "red"}
_MOST_UNREADABLE = 5
_NO_TIME = ("n/a", "n/a", "n/a")
# nccl-tests' names where they differ from ours.
_TYPE_NAMES = {"float32": "float", "float64": "double", "float16": "half"}


def console() -> Console:
    """Return the console for standard output."""
    made = Console(highlight=False, soft_wrap=False, emoji=False, markup=False)
    if not made.is_terminal:
        made = Console(highlight=False, emoji=False, markup=False, width=_WIDTH_ELSEWHERE)
    made.push_render_hook(TrimmedLines())
    return made


def run_text(run: Run, where: Path) -> None:
    """Print the verdict, what was measured, what was found, and the verdict again, which is what stays in sight."""
    out = console()
    say(out, verdict_line(run.verdict))
    out.print()
    say(out, Text(heading(run.plan)))
    for line in (*found_lines(run), *node_lines(run.nodes)):
        say(out, Text(printable(line)))
    _say_recommended(out, run.plan, run.measurements)
    for _sweep, group in groupby(run.measurements, key=_table_of):
        measurements = list(group)
        out.print()
        out.print(Text(_title(measurements[0])))
        out.print(_table(run, measurements, wide=out.width >= _WIDTH_FOR_P99))
        skew = skew_words(measurements)
        curves = curve_lines(measurements) if out.encoding.startswith("utf") else ()
        for line in (*curves, *(f"# {words}" for words in (skew, starts_words(measurements)) if words)):
            say(out, Text(line))
    out.print()
    if run.autopsy is not None:
        for line in autopsy_lines(run.autopsy):
            out.print(Text(printable(line)), soft_wrap=True)
        out.print()
    for place in run.unreadable[:_MOST_UNREADABLE]:
        out.print(Text(printable(f"not readable: {place}"), style="yellow"), soft_wrap=True)
    if len(run.unreadable) > _MOST_UNREADABLE:
        out.print(Text(f"not readable: {len(run.unreadable) - _MOST_UNREADABLE} more", style="yellow"))
    for finding in weighed(run):
        say_finding(out, finding)
    _say_conditions(out, run)
    say(out, verdict_line(run.verdict))
    if run.plan.fabric is not None and run.outcome is not None and run.unreached is None:
        out.print(Text(f"its tests and views: busbw fabric {printable(where.name)}"), soft_wrap=True)
    out.print(Text(f"run: {printable(str(where))}", style="dim"), soft_wrap=True)


def _say_recommended(out: Console, plan: Plan, measurements: Sequence[Measurement] = ()) -> None:
    if plan.recommended is not None:
        for line in layer_lines(plan.recommended, measurements):
            out.print(Text(printable(line)), soft_wrap=True)


def _say_conditions(out: Console, run: Run) -> None:
    conditions = conditions_of(run)
    if conditions is None:
        return
    text = Text("conditions", style=SEVERITY_COLOURS[conditions.severity])
    text.append(printable(f": {conditions.words}; --json has each"))
    say(out, text)
    if conditions.fix is not None:
        say_action(out, "fix", conditions.fix)


def _table_of(item: Measurement) -> tuple[object, ...]:
    return item.collective, item.in_place, item.group, item.pair, item.within, item.nccl is None


def plan_text(plan: Plan) -> None:
    """Print what would be done."""
    out = console()
    say(out, Text(heading(plan)))
    _say_recommended(out, plan)
    for sweep in plan.sweeps:
        sizes = ", ".join(format_size(size_bytes) for size_bytes in sweep.sizes_bytes)
        form = "in place" if sweep.in_place else "out of place"
        if sweep.pair is not None:
            form += f", ranks {sweep.pair[0]} and {sweep.pair[1]}"
        out.print(Text(f"{sweep.collective} ({sweep.dtype}, {form}): {sizes}"), soft_wrap=True)
    if plan.steps:
        _steps(out, plan)
        return
    if plan.fabric is not None:
        _sweep(out, plan.fabric)
    else:
        _sampled(out, plan.sampling)
    available_bytes = plan.host.memory_available_bytes
    out.print(
        Text(f"memory: {format_size(plan.memory.needed_bytes)} needed, {format_size(available_bytes)} free"),
        soft_wrap=True,
    )
    for note in plan.notes:
        out.print(Text(f"note: {printable(note)}"), soft_wrap=True)
    out.print(Text(_command(plan.job)), soft_wrap=True)


def _sweep(out: Console, plan: FabricPlan) -> None:
    """Print the rounds of a sweep over a fabric, and what each test takes."""
    ends = f"{len(plan.of_rank)} endpoints, seed {plan.asked.seed}"
    leaves = f", below {len(plan.leaf_names)} leaves" if plan.leaf_names else ""
    rounds = f"{len(plan.first[0])} rounds" if plan.first else "every pair once"
    out.print(Text(f"{ends}{leaves}: {rounds}, then up to 3 about what is suspicious"), soft_wrap=True)
    for number, each in enumerate(plan.first[0] if plan.first else ()):
        names = ((plan.seats[one].node, plan.seats[other].node) for one, other in each[:_SHOWN_PAIRS])
        more = f" and {len(each) - _SHOWN_PAIRS} more" if len(each) > _SHOWN_PAIRS else ""
        pairs = ", ".join(f"{one} with {other}" for one, other in names)
        out.print(Text(printable(f"round {number + 1}: {pairs}{more}")), soft_wrap=True)
    out.print(
        Text(
            f"a test takes {plan.asked.pair_s:g} s in each direction, {plan.probes[0].least_samples} samples at "
            f"least; a pair is given up after {plan.asked.limit_s:g} s"
        ),
        soft_wrap=True,
    )


# Pairs of a round that are printed.
_SHOWN_PAIRS = 8


def _sampled(out: Console, sampling: Sampling) -> None:
    """Print when a size has been sampled enough."""
    few = sampling.max_samples < Sampling(mode=sampling.mode, time_limit_s=1).max_samples
    most = f" and at most {sampling.max_samples}" if few else ""
    out.print(
        Text(
            f"each size until the {sampling.confidence:.0%} interval of the median is within "
            f"{sampling.half_width:.0%}, at least {sampling.min_samples}{most} samples,"
            f" {sampling.time_limit_s:g} s in all"
        ),
        soft_wrap=True,
    )


def _steps(out: Console, plan: Plan) -> None:
    """Print what foreign programs are found, and every line that is started, in order."""
    for program in plan.programs:
        version = f" {program.version}" if program.version is not None else ""
        mpi = "with MPI" if program.with_mpi else "one process"
        out.print(
            Text(printable(f"{program.collective}: {program.tool}{version}, {mpi}: {program.path}")), soft_wrap=True
        )
    for note in plan.notes:
        out.print(Text(f"note: {printable(note)}"), soft_wrap=True)
    for step in plan.steps:
        out.print(Text(_command(step.job)), soft_wrap=True)


def _command(job: Job) -> str:
    settings = [f"{name}={shlex.quote(value)}" for name, value in job.env]
    settings += [f'{name}={shlex.quote(directory)}:"${name}"' for name, directory in job.prepend]
    return printable(" ".join([*settings, shlex.join(job.argv)]))


def heading(plan: Plan) -> str:
    """Return what is measured where, and how it was started, in lines."""
    host, mpi = plan.host, plan.mpi
    machine = ", ".join(
        part
        for part in (
            host.cpu_model,
            f"{host.cores} cores",
            f"{host.numa_nodes} NUMA node{'s' if host.numa_nodes > 1 else ''}",
            f"VM ({host.hypervisor})" if host.hypervisor else None,
            f"container ({host.container})" if host.container else None,
        )
        if part
    )
    started = f"{mpi.family} {mpi.version or ''} ({mpi.origin}: {mpi.mpirun})" if mpi is not None else plan.launcher
    lines = [
        f"busbw {plan.busbw_version} on {host.name}: {machine}",
        f"{placement_words(plan.placement)}; {started}; {plan.sampling.mode} mode",
        *((f"platform: {platform}",) if (platform := platform_words(plan)) is not None else ()),
        *gpu_words(plan),
    ]
    return printable("\n".join(lines))


def _title(measurement: Measurement) -> str:
    collective = COLLECTIVES[measurement.collective]
    has_forms = collective.in_place or measurement.in_place
    form = "" if not has_forms else ", in place" if measurement.in_place else ", out of place"
    unit = {
        "latency": ": half a round trip",
        "bandwidth": ": one message of a window of 64",
        "message_rate": ": one message of a window of 64",
        "bibw": ": one message each way of a window of 64; busbw adds both directions",
    }.get(measurement.collective, "")
    who = f"ranks {measurement.pair[0]} and {measurement.pair[1]} of" if measurement.pair is not None else ""
    nodes = f", groups of {measurement.group}" if measurement.group is not None else ""
    nodes += f" of each {measurement.within} group" if measurement.within is not None else ""
    return f"# {measurement.collective}{form}, {who}{' ' if who else ''}{measurement.ranks} ranks{nodes}{unit}"


def _table(run: Run, measurements: Sequence[Measurement], *, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="")
    columns = [
        "size\n(B)",
        "count\n(elem)",
        "type\n",
        "redop\n",
        "root\n",
        "time\n(us)",
        "algbw\n(GB/s)",
        "busbw\n(GB/s)",
        "#wrong\n",
    ]
    rates = measurements[0].collective == "message_rate"
    columns += ["msg/s\n(1e6)"] if rates else []
    over_nccl = measurements[0].nccl is not None
    columns += [] if over_nccl else ["ceil\n(%)"]
    columns += ["±\n(%)", "n\n"]
    columns += ["p99\n(us)"] if wide else []
    chosen = wide and has_choices(measurements)
    columns += ["NCCL used\n"] if chosen else []
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    ceilings = {ceiling.point: ceiling for ceiling in run.ceilings}
    for item in measurements:
        ceiling = ceilings.get(item.point)
        reached = f"{100 * item.busbw_Bps / ceiling.busbw_Bps:.0f}" if ceiling is not None else ""
        cells = [*_cells(item)]
        if rates:
            cells.append(f"{item.ranks // 2 / item.median_s / 1e6:.2f}" if item.median_s > 0 else "n/a")
        cells += [] if over_nccl else [reached]
        cells += [interval_percent(item), str(item.samples)]
        cells += [_p99(item)] if wide else []
        cells += [choice_words(item)] if chosen else []
        table.add_row(*cells)
    return table


def _cells(item: Measurement) -> list[str]:
    collective = COLLECTIVES[item.collective]
    return [
        str(item.size_bytes),
        str(item.count),
        _TYPE_NAMES.get(item.dtype, item.dtype),
        item.op if collective.reduces else "none",
        str(item.root) if collective.rooted else "-1",
        # A wrong result has no time, and 0.00 would look like a very good one.
        *(
            (_us(item.median_s), f"{item.algbw_Bps / 1e9:.2f}", f"{item.busbw_Bps / 1e9:.2f}")
            if item.samples
            else _NO_TIME
        ),
        str(item.wrong.mismatch.wrong) if item.wrong is not None else "0" if item.verified else "N/A",
    ]


def _us(time_s: float) -> str:
    time_us = time_s * 1e6
    if time_us < 1:
        return f"{time_us:.3f}"
    return f"{time_us:.2f}" if time_us < 1000 else f"{time_us:.1f}" if time_us < 100_000 else f"{time_us:.0f}"


def _p99(item: Measurement) -> str:
    value = dict(item.percentiles).get(99)
    return _us(value) if value is not None else "n/a"


def say_finding(out: Console, finding: Finding) -> None:
    """Print a finding, and what to do about it."""
    say(out, finding_text(finding))
    if finding.fix is not None:
        say_action(out, "fix", finding.fix)


def finding_text(finding: Finding) -> Text:
    """Return a finding as one line, its severity coloured."""
    text = Text()
    text.append(f"{finding.severity} {finding.code}", style=SEVERITY_COLOURS[finding.severity])
    text.append(printable(f" {finding.title}: {finding.evidence}"))
    return text


def verdict_line(verdict: Verdict) -> Text:
    """Return a verdict as one line, its first word coloured."""
    word = verdict.outcome.replace("_", " ")
    sentence = printable(verdict.sentence)
    rest = sentence.removeprefix(word)
    # `ok: ...`, and `ok with findings (...): ...`; a sentence that does not begin with the word gets it.
    said = rest != sentence and rest.startswith((":", " "))
    return Text.assemble((word, VERDICT_COLOURS[verdict.outcome]), rest if said else f": {sentence}")
