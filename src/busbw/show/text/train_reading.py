"""What logs and traces of training jobs say, as text for a terminal: the answer first, then what it rests on."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from busbw.base.text import counted, listed, percent, printable
from busbw.base.units import format_rate, format_size, format_time, precise_time
from busbw.model.scaling import ScalingEstimate
from busbw.model.train.reading import SteadyWindow, TrainingLog
from busbw.model.train.trace import InspectorLog, TraceShare, TrainReadReport
from busbw.show.lines import say, spark
from busbw.show.text.terminal import console, say_finding

_COLOURS = {"steady": "bold green", "unsteady": "bold yellow", "cannot_tell": "bold cyan"}
_SPARKS = 60
_MOST_ROWS = 12


def train_reading_text(report: TrainReadReport) -> None:
    """Print each log, trace and file of records."""
    out = console()
    parts: list[TrainingLog | TraceShare | InspectorLog] = [*report.logs, *report.traces, *report.records]
    for number, part in enumerate(parts):
        if number:
            out.print()
        if isinstance(part, TrainingLog):
            _log(out, part)
        elif isinstance(part, TraceShare):
            _trace(out, part)
        else:
            _records(out, part)


def _log(out: Console, log: TrainingLog) -> None:
    word = log.outcome.replace("_", " ")
    say(out, Text.assemble((word, _COLOURS[log.outcome]), printable(f": {log.sentence}")))
    out.print()
    _rows(out, _facts(log))
    if out.encoding.startswith("utf") and len(log.columns.times_s) > 1:
        say(out, Text(f"steps     {spark(_thinned(log.columns.times_s))}"))
    for line in _told(log):
        say(out, Text(printable(line)))
    for line in _network(log):
        say(out, Text(printable(line)))
    for missing in log.throughput.missing:
        say(out, Text(printable(f"cannot tell: {missing}")))
    for note in log.notes:
        say(out, Text(printable(f"note: {note}"), style="dim"))
    for finding in log.findings:
        say_finding(out, finding)


def _rows(out: Console, rows: Iterator[tuple[str, str, str]]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for cells in rows:
        table.add_row(*(Text(printable(cell)) for cell in cells))
    out.print(table)


def _facts(log: TrainingLog) -> Iterator[tuple[str, str, str]]:
    yield "log", log.source, f"{log.program}; {log.basis_words}"
    if log.window is not None:
        yield from _window(log.window, log)
    if log.mean_step_s is not None:
        yield "mean step", format_time(log.mean_step_s.value), ""
    through = log.throughput
    if through.tokens_per_s is not None:
        yield "tokens/s", _whole(through.tokens_per_s), _tokens_words(log)
    if through.tokens_per_s_per_gpu is not None:
        yield "tokens/s/GPU", _whole(through.tokens_per_s_per_gpu), f"{log.work.gpus} GPUs"
    if through.printed_flops_per_gpu is not None:
        yield "FLOP/s/GPU", f"{through.printed_flops_per_gpu / 1e12:.1f} TFLOP/s", "as the program printed it"
    if through.printed_mfu is not None:
        yield "MFU printed", f"{100 * through.printed_mfu:.1f} %", "by the program's own peak and formula"
    if through.mfu is not None:
        yield "MFU", _share(through.mfu), through.mfu_formula or ""
    if log.exposed is not None:
        yield "exposed", _share(log.exposed), "of a step waited for collectives, as the program printed it"


def _window(window: SteadyWindow, log: TrainingLog) -> Iterator[tuple[str, str, str]]:
    step = window.step_s
    yield "step", precise_time(step.value), f"median, {_between(step)}"
    yield "mean", precise_time(window.mean_s), "of the same steps, long ones with them"
    warm = f"after {counted(window.warmup_steps, 'line')} of warm-up" if window.warmup_steps else "no warm-up is seen"
    if window.warmup_s is not None:
        warm += f", median {format_time(window.warmup_s)}"
    each = f", a line the mean of {log.averaged_over}" if log.averaged_over > 1 else ""
    yield "window", f"{window.first_step} to {window.last_step}", f"{counted(window.steps, 'line')}{each}, {warm}"
    yield "spread", percent(window.spread), "half of the middle half, over the median"
    if window.drift is not None:
        yield "drift", f"{100 * window.drift:+.1f} %", "second half of the window against the first"


def _between(step: ScalingEstimate) -> str:
    if step.low is None or step.high is None:
        return "no interval"
    return f"95 % interval {precise_time(step.low)} to {precise_time(step.high)}"


def _whole(estimate: ScalingEstimate) -> str:
    return f"{estimate.value:,.0f}"


def _share(estimate: ScalingEstimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{100 * estimate.value:.1f} %"
    return f"{100 * estimate.value:.1f} % ({100 * estimate.low:.1f} to {100 * estimate.high:.1f})"


def _tokens_words(log: TrainingLog) -> str:
    work = log.work
    if work.tokens_per_step is not None:
        return f"{work.tokens_per_step:,} tokens a step"
    where = dict(work.sources)
    names = (("sequence_length", work.sequence_length), ("global_batch", work.global_batch))
    parts = [f"{value} ({where[name]})" if name in where else f"{value}" for name, value in names]
    return " x ".join(parts)


def _thinned(values: tuple[float, ...]) -> list[float]:
    """Return at most so many values that a line shows: of each stretch the largest."""
    each = -(-len(values) // _SPARKS)
    return [max(values[at : at + each]) for at in range(0, len(values), each)]


def _network(log: TrainingLog) -> Iterator[str]:
    """Yield what the plan of the job says of the network, the answer first."""
    share = log.network
    if share is None:
        return
    without = f": without it {100 * share.mfu_without:.1f} % MFU" if share.mfu_without is not None else ""
    yield (
        f"the network: {percent(share.exposed)} of this step is communication that nothing hides, by the plan of "
        f"{share.workload} on {share.platform}{without}"
    )
    if share.largest is not None and share.largest_s is not None:
        yield f"  most of it: {share.largest} ({share.largest_group}), {precise_time(share.largest_s)} a step"
    if share.bubble > 0:
        yield f"  the pipeline's bubble: {percent(share.bubble)}"
    told = [f"{change} {100 * part:+.1f} %" for change, part in share.changes]
    if told:
        yield f"  a step with {', with '.join(told)}"
    if share.bounds:
        yield f"  only bounds are known of {listed(share.bounds)}: more may be exposed"
    yield "  expected, not measured: --measured of busbw train plan, or a trace, says what it is"


def _told(log: TrainingLog) -> Iterator[str]:
    if log.long_steps is not None:
        slow = log.long_steps
        when = f", every {slow.period} steps" if slow.period is not None else ""
        yield (
            f"long steps: {slow.count}{when}, up to {format_time(slow.longest_s)}, {percent(slow.lost)} of the time: "
            f"{listed([str(each) for each in slow.numbers], 8)}"
        )
    for again in log.restarts[:_MOST_ROWS]:
        yield f"restart: line {again.line}, from step {again.last_step} back to {again.first_step}"
    if log.ranks:
        slowest = max(log.ranks, key=lambda each: each.step_s)
        fastest = min(log.ranks, key=lambda each: each.step_s)
        ends = [f"{precise_time(each.step_s)} (rank {each.rank})" for each in (fastest, slowest)]
        span = " to ".join(ends)
        alike = fastest.step_s == slowest.step_s
        yield f"ranks: {len(log.ranks)} print steps, {'all with the same median' if alike else f'medians {span}'}"


def _trace(out: Console, trace: TraceShare) -> None:
    say(out, Text(printable(trace.sentence), style="bold"))
    out.print()
    who = f"rank {trace.rank} of {trace.gpus}" if trace.rank is not None and trace.gpus else "one GPU"
    shares = (
        ("compute", trace.compute, "kernels that compute"),
        ("exposed", trace.exposed, "communication that nothing computes beside"),
        ("hidden", trace.hidden, "communication beside compute, not counted again"),
        ("idle", trace.idle, "no kernel of either"),
    )
    _rows(out, iter([("trace", trace.source, f"{who}, {counted(len(trace.steps), 'step')}, {trace.kernels} kernels")]))
    _rows(out, ((name, percent(value), words) for name, value, words in shares))
    if trace.groups:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        for heading in ("group", "collectives", "busy", "exposed", "of a step"):
            table.add_column(heading, justify="left" if heading in ("group", "collectives") else "right")
        for group in trace.groups[:_MOST_ROWS]:
            names = listed([f"{name} x{count}" for name, count in group.collectives], 3)
            of_step = percent(group.exposed_s / trace.step_s.value) if trace.step_s.value > 0 else ""
            cells = (group.group, names, format_time(group.busy_s), format_time(group.exposed_s), of_step)
            table.add_row(*(Text(printable(cell)) for cell in cells))
        out.print(table)
    for note in trace.notes:
        say(out, Text(printable(f"note: {note}"), style="dim"))
    for finding in trace.findings:
        say_finding(out, finding)


def _records(out: Console, log: InspectorLog) -> None:
    say(out, Text(printable(log.sentence), style="bold"))
    out.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for heading in ("collective", "size", "ranks", "records", "time", "median", "busbw"):
        table.add_column(heading, justify="left" if heading == "collective" else "right")
    for each in log.shares[:_MOST_ROWS]:
        rate = format_rate(each.busbw_Bps) if each.busbw_Bps is not None else ""
        numbers = (str(each.ranks), str(each.records), format_time(each.time_s), format_time(each.median_s), rate)
        table.add_row(Text(printable(each.collective)), format_size(each.size_bytes), *numbers)
    out.print(table)
    if len(log.shares) > _MOST_ROWS:
        say(out, Text(f"and {len(log.shares) - _MOST_ROWS} more with --json"))
    if log.garbled:
        say(out, Text(f"note: {counted(log.garbled, 'line')} could not be read", style="dim"))
    for note in log.notes:
        say(out, Text(printable(f"note: {note}"), style="dim"))
