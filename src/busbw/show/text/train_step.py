"""A step that was measured, replayed or trained by a small transformer, as text for a terminal."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from busbw.base.text import counted, listed, percent, printable
from busbw.base.units import format_rate, format_size, format_time, precise_time
from busbw.model.plan import Plan
from busbw.model.run import Run
from busbw.model.train.proxy import ProxyResult
from busbw.model.train.reading import TrainingLog
from busbw.model.train.replay import CallResult, ReplayedStep, StepPlan
from busbw.show.lines import say
from busbw.show.text.terminal import console, heading, say_finding, verdict_line
from busbw.show.text.train import plain_table
from busbw.show.weighing import weighed


def replay_text(run: Run, where: Path) -> None:
    """Print the verdict, the step with its parts, each collective alone and in the step, and what is left out."""
    out, plan = console(), run.plan.step
    assert plan is not None, "looked at by the caller"
    say(out, verdict_line(run.verdict))
    out.print()
    say(out, Text(heading(run.plan)))
    _laid_out(out, run.plan, plan)
    if run.step is not None:
        _parts(out, run.step, plan)
        out.print()
        out.print(_calls(run.step, out.width))
        out.print()
        out.print(_groups(run.step))
    out.print()
    for place in run.unreadable:
        out.print(Text(printable(f"not readable: {place}"), style="yellow"), soft_wrap=True)
    for each in weighed(run):
        say_finding(out, each)
    say(out, Text(printable(f"left out: {'; '.join(plan.left_out)}"), style="dim"))
    say(out, verdict_line(run.verdict))
    out.print(Text(f"run: {printable(str(where))}", style="dim"), soft_wrap=True)


def step_lines(plan: Plan) -> None:
    """Print what a planned step replays, below the plan of its run."""
    out, step = console(), plan.step
    assert step is not None, "looked at by the caller"
    _laid_out(out, plan, step)
    table = plain_table(
        ("of", "left"), ("collective", "left"), ("ranks", "right"), ("groups", "right"), ("size", "right"),
        ("calls", "right"), ("beside", "left"),
    )  # fmt: skip
    for each in step.calls:
        table.add_row(
            each.group, each.collective, str(each.ranks), str(each.groups), format_size(each.size_bytes),
            str(each.calls), printable(each.overlaps or "nothing, waited for"),
        )  # fmt: skip
    out.print(table)
    say(out, Text(printable(f"left out: {'; '.join(step.left_out)}"), style="dim"))


def _laid_out(out: Console, plan: Plan, step: StepPlan) -> None:
    experts = f"; EP {step.ep}, so experts have {counted(step.expert_dp, 'replica')}" if step.ep > 1 else ""
    ranks = plan.placement.ranks
    batches = "1 micro-batch" if step.accumulation == 1 else f"{step.accumulation} micro-batches"
    layout = f"{ranks} ranks = TP {step.tp} x PP {step.pp} x CP {step.cp} x DP {step.dp}{experts}; {batches} a step"
    lines = [
        f"{step.workload}, {step.dtype}: {layout}",
        f"computing: {step.flops:.3g} FLOPs of a rank in a step at {step.rate_flops / 1e12:.3g} TFLOP/s "
        f"({step.rate_words}), {format_time(step.compute_s)}"
        + (f" scaled down by {step.asked.scale_down}" if step.asked.scale_down > 1 else ""),
        "computing is matrix products" if plan.gpus is not None else "computing is a wait by the clock",
    ]
    for line in lines:
        say(out, Text(printable(line)))


def _parts(out: Console, step: ReplayedStep, plan: StepPlan) -> None:
    out.print()
    say(
        out,
        Text.assemble(
            (format_time(step.step_s), "bold"),
            f" a step ({format_time(step.low_s)} to {format_time(step.high_s)}, {counted(step.steps, 'step')}): "
            f"computing {format_time(step.compute_s)} ({percent(step.compute_s / step.step_s)}), communication that "
            f"nothing hides {format_time(step.exposed_s)} ({percent(step.exposed_s / step.step_s)}), rest "
            f"{format_time(step.rest_s)}",
        ),
    )
    late = step.compute_s / plan.compute_s - 1 if plan.compute_s > 0 else 0.0
    if abs(late) > _LATE_SHARE:
        way = "longer" if late > 0 else "less"
        cause = "waits for the host to start it are in it" if step.product_s is not None else "processors were shared"
        say(out, Text(f"computing took {percent(abs(late))} {way} than planned, possibly as {cause}"))
    if step.product_s is not None:
        say(out, Text(f"one matrix product takes {format_time(step.product_s)} alone"))


# From here on a step's computing is not the one that was planned.
_LATE_SHARE = 0.05
# With fewer columns the name of a call is left to --json.
_WIDTH_FOR_NAMES = 110
_WIDTH_FOR_RATES = 92


def _calls(step: ReplayedStep, width: int) -> Table:
    columns = [("of", "left"), ("collective", "left"), ("size", "right"), ("calls", "right"), ("alone", "right")]
    columns += [("in step", "right"), ("exposed", "right"), ("busbw alone", "right")]
    # Figures are never cut: of a narrow terminal the last rate is left out, whose time is there.
    with_rate, wide = width >= _WIDTH_FOR_RATES, width >= _WIDTH_FOR_NAMES
    columns += [("in step", "right")] if with_rate else []
    table = plain_table(*columns, *((("what", "wrap"),) if wide else ()))
    for each in sorted(step.calls, key=lambda call: -call.busy_s):
        table.add_row(
            each.group, each.collective, format_size(each.size_bytes), str(each.calls),
            format_time(each.alone_s) if each.alone_s is not None else "?", format_time(each.in_step_s),
            format_time(each.exposed_s),
            format_rate(each.alone_busbw_Bps) if each.alone_busbw_Bps is not None else "?",
            *((format_rate(each.in_step_busbw_Bps),) if with_rate else ()),
            *((printable(each.name),) if wide else ()),
        )  # fmt: skip
    return table


def _groups(step: ReplayedStep) -> Table:
    table = plain_table(
        ("group", "left"), ("ranks", "right"), ("groups", "right"), ("calls", "right"), ("bytes", "right"),
        ("a step", "right"), ("exposed", "right"), ("of step", "right"),
    )  # fmt: skip
    by_group: dict[str, list[CallResult]] = {}
    for each in step.calls:
        by_group.setdefault(each.group, []).append(each)
    for name, calls in by_group.items():
        exposed_s = sum(call.exposed_s for call in calls)
        table.add_row(
            name, str(calls[0].ranks), str(calls[0].groups), str(sum(call.calls for call in calls)),
            format_size(sum(call.calls * call.size_bytes for call in calls)),
            format_time(sum(call.busy_s for call in calls)), format_time(exposed_s),
            percent(exposed_s / step.step_s),
        )  # fmt: skip
    return table


def proxy_text(result: ProxyResult, log: TrainingLog) -> None:
    """Print the step, what communication takes of it, and each kind of call."""
    out, plan = console(), result.plan
    share = percent(result.communication)
    say(
        out,
        Text.assemble((f"communication takes {share} of a step", "bold"), f" ({precise_time(result.median_step_s)})"),
    )
    layout = f"TP {plan.tp} x DP {plan.dp}, EP {plan.ep}, ZeRO {plan.zero}"
    devices = [f"{result.devices.count(name)} x {name}" for name in dict.fromkeys(result.devices)]
    say(out, Text(printable(f"{plan.workload}, {plan.dtype}, {layout}; {listed(devices)}; PyTorch {result.torch}, "
                            f"{result.backend}")), indent=2)  # fmt: skip
    loss = f"loss {result.losses[0]:.3f} to {result.losses[-1]:.3f} in {counted(plan.steps, 'step')}"
    say(out, Text(printable(f"{loss}; the log: {log.sentence}")), indent=2)
    out.print()
    table = plain_table(
        ("call", "wrap"), ("group", "left"), ("collective", "left"), ("calls", "right"), ("size", "right"),
        ("time a step", "right"), ("transfer", "right"), ("of a step", "right"),
    )  # fmt: skip
    for call in result.calls:
        table.add_row(
            call.name, f"{call.group} ({call.ranks})", call.collective, str(call.calls),
            format_size(round(call.size_bytes)), precise_time(call.time_s),
            precise_time(call.transfer_s) if call.transfer_s is not None else "-",
            percent(call.time_s / result.median_step_s),
        )  # fmt: skip
    out.print(table)
    say(out, Text(printable(
        f"note: of rank 0, medians from step {result.counted_from} on, by {result.clock}; a collective also waits for "
        "late ranks, and nothing computes beside it; transfer: without that wait, the shortest time of the group's "
        "ranks, call by call"
    ), style="dim"))  # fmt: skip
    say(out, Text(printable(f"next: busbw train read {plan.directory}/train.log"), style="dim"))
