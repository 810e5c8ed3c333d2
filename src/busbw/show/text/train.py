"""Training workloads as text for a terminal: a list, and one with its configurations."""

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from busbw.base.text import counted, listed, printable
from busbw.model.finding import Finding
from busbw.model.train.plan import ShownWorkload
from busbw.model.train.script import TrainScript
from busbw.model.train.workload import ModelShape, Workload
from busbw.show.lines import say, say_action
from busbw.show.text.terminal import SEVERITY_COLOURS, console


def billions(number: float) -> str:
    """Return a number of parameters: `316.5e9`, `1.02e6`."""
    unit, power = (1e9, 9) if number >= 1e8 else (1e6, 6)
    value = number / unit
    return f"{value:.1f}e{power}" if value >= 10 else f"{value:.2f}e{power}"


def plain_table(*columns: tuple[str, str], gap: int = 2) -> Table:
    """Return a table without lines; columns by name and side, and the blanks between them."""
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, gap, 0, 0))
    for name, side in columns:
        table.add_column(name, justify="right" if side == "right" else "left", no_wrap=side != "wrap")
    return table


def workloads_text(workloads: Sequence[Workload]) -> None:
    """Print the workloads, a line each."""
    table = plain_table(("workload", "left"), ("GPUs", "left"), ("types", "left"), ("title", "wrap"))
    for each in workloads:
        counts = sorted(configuration.gpus for configuration in each.configuration)
        span = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        table.add_row(each.id, span, ", ".join(each.dtypes), printable(each.title))
    console().print(table)


def workload_text(shown: ShownWorkload) -> None:
    """Print one workload: its model, its configurations, what was found."""
    out, workload = console(), shown.workload
    say(out, Text.assemble((workload.id, "bold"), printable(f": {workload.title}")))
    for line in model_lines(workload.model):
        say(out, Text(line), indent=2)
    active = f", {billions(shown.active_parameters)} of them for each token" if workload.model.experts else ""
    say(out, Text(f"parameters: {billions(shown.parameters)}{active}"), indent=2)
    out.print()
    out.print(_configurations(shown))
    findings_text(out, shown.findings)
    if workload.note:
        out.print()
    for note in workload.note:
        say(out, Text(printable(f"note: {note}")))
    out.print()
    for source in workload.source:
        say(out, Text(printable(f"{source.id}: {source.words} ({source.checked})"), style="dim"))


def model_lines(model: ModelShape) -> tuple[str, ...]:
    """Return a model in words."""
    lines = [
        f"{model.layers} layers of width {model.hidden}; {model.heads} heads, {model.key_value_heads} of keys, values",
        f"vocabulary {model.vocabulary}",
    ]
    if model.experts is None:
        lines.append(f"block of width {model.ffn}{', gated' if model.gated else ''}")
    else:
        e = model.experts
        more = [f"{e.shared_ffn} wide for every token"] if e.shared_ffn else []
        more += [f"the first {e.dense_layers} layers dense ({model.ffn} wide)"] if e.dense_layers else []
        tail = f"; {'; '.join(more)}" if more else ""
        lines.append(f"{e.number} experts of width {e.ffn}, {e.top_k} for each token{tail}")
    return tuple(lines)


def _configurations(shown: ShownWorkload) -> Table:
    right = ("GPUs", "layers", "seq", "TP", "PP", "CP", "EP", "DP", "eDP", "VP", "MBS", "GBS", "GA", "FLOPs/seq", "GB")
    table = plain_table(*((name, "right") for name in right), gap=1)
    for each in shown.configurations:
        c = each.configuration
        p = c.parallelism
        numbers = (
            c.gpus, each.layers, c.sequence, p.tp, p.pp, p.cp, p.ep, each.dp, each.expert_dp, p.vp, c.micro_batch,
            c.global_batch, each.accumulation,
        )  # fmt: skip
        table.add_row(*map(str, numbers), f"{each.sequence_flops:.3g}", f"{each.memory_bytes / 1e9:.1f}")
    return table


def findings_text(out: Console, findings: Sequence[Finding]) -> None:
    """Print findings; of one rule the first whole, the others a line each."""
    order = {"error": 0, "warn": 1, "note": 2}
    for _code, group in groupby(sorted(findings, key=lambda each: (order[each.severity], each.code)), lambda e: e.code):
        first, *others = group
        out.print()
        head = Text(f"{first.severity} {first.code}", style=SEVERITY_COLOURS[first.severity])
        head.append(printable(f": {first.title}"), style="bold")
        say(out, head)
        say(out, Text(printable(f"seen: {first.evidence}")), indent=2)
        if first.fix is not None:
            say_action(out, "fix", first.fix)
        if others:
            say(out, Text(printable(f"also: {listed([each.title for each in others], 3, between='; ')}")), indent=2)


def script_text(script: TrainScript) -> None:
    """Print where a job was written, the CPUs of its processes in both ways, and what was found in it."""
    out = console()
    what = f"{script.workload} on {script.gpus} GPUs, {script.nodes} nodes of {script.platform}, {script.dtype}"
    say(out, Text.assemble(("written", "bold green"), printable(f": {what}: {script.directory}")))
    say(out, Text(printable(f"submit it with {script.directory}/{script.submit}; job.sh beside it is the whole job")))
    out.print()
    for way in script.masks:
        chosen = ", used here" if way.chosen else f"; --cpus {way.sharing} takes it"
        say(out, Text(printable(f"{way.cpus_each} CPUs a process, {way.why}{chosen}:")))
        out.print(Text(f"  mask_cpu:{','.join(way.masks)}"), soft_wrap=True)
    out.print()
    for name, value in script.environment:
        say(out, Text(printable(f"{name}={value}")), indent=2)
    findings_text(out, script.checked.findings)
    counts = script.checked.counts
    out.print()
    each = (counted(counts.errors, "error"), counted(counts.warnings, "warning"), counted(counts.notes, "note"))
    say(out, Text(f"busbw env lint: {', '.join(each)}"))
