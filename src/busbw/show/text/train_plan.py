"""The plan of a training step as text for a terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from busbw.base.text import counted, listed, percent, printable
from busbw.base.units import format_size, format_time, signed_percent
from busbw.model.train.plan import RankGroup, StepCollective, TrainPlan
from busbw.show.lines import say
from busbw.show.text.terminal import console
from busbw.show.text.train import billions, findings_text, plain_table


def train_plan_text(plan: TrainPlan) -> None:
    """Print a plan: the step first, then what it communicates, where, memory, changes, findings."""
    out = console()
    say(out, _headline(plan))
    for line in _sizes(plan):
        say(out, Text(printable(line)), indent=2)
    for note in plan.notes:
        say(out, Text(printable(f"note: {note}")))
    out.print()
    out.print(_collectives(plan, out.width))
    _basis(out, plan)
    out.print()
    out.print(_groups(plan))
    if any(call.place.spine is None for call in plan.collectives):
        words = "which groups cross the spine cannot be told: say how many nodes share a leaf switch, --leaf-nodes N"
        say(out, Text(words, style="dim"))
    out.print()
    out.print(_memory(plan))
    out.print()
    out.print(_orders(plan))
    out.print()
    out.print(_what_if(plan))
    for each in plan.what_if:
        if each.step_s is None and each.words is not None:
            say(out, Text(printable(f"{each.change}: {each.words}")), indent=2)
    for choice in (each for each in plan.alltoalls if each.basis != "none"):
        out.print()
        say(out, Text(printable(f"{choice.name}, one level or two: {choice.words}")))
        if choice.refuted is not None:
            say(out, Text(printable(choice.refuted), style="dim"), indent=2)
    if plan.published:
        out.print()
    for held in plan.published:
        beside = f", the model {signed_percent(held.residual)}" if held.residual is not None else ""
        own = " (the constant is fitted on it)" if held.fitted else ""
        say(out, Text(printable(f"published: {held.machine} {held.step_s:g} s{beside}{own} ({held.source})")))
    findings_text(out, plan.findings)
    out.print()
    say(out, Text(printable(f"left out: {'; '.join(plan.left_out)}"), style="dim"))


def _headline(plan: TrainPlan) -> Text:
    what = f"{plan.workload} on {plan.gpus} GPUs of {plan.platform}, {plan.dtype}"
    estimate = plan.estimate
    if estimate is None:
        return Text.assemble(("cannot tell", "bold cyan"), printable(f" a step of {what}: {plan.no_estimate}"))
    exposed_s = estimate.inside_s + estimate.outside_s
    least = "at least " if any(call.total_s is None and call.overlaps is None for call in plan.collectives) else ""
    return Text.assemble(
        (f"{estimate.step_s:.2f} s", "bold green"),
        printable(
            f" a step of {what}: {plan.tokens / estimate.step_s:.4g} tokens/s, "
            f"{plan.step_flops / estimate.step_s / plan.gpus / 1e12:.0f} TFLOP/s a GPU; "
            f"{least}{format_time(exposed_s)} ({percent(exposed_s / estimate.step_s)}) communication that nothing "
            f"hides, {format_time(estimate.bubble_s)} bubble"
        ),
    )


def _sizes(plan: TrainPlan) -> list[str]:
    c = plan.configuration
    p = c.parallelism
    experts = f"; EP {p.ep}, so experts have DP / EP = {plan.expert_dp} replicas" if p.ep > 1 else ""
    flops = f"{plan.sequence_flops:.3g} FLOPs a sequence of {c.sequence}, {plan.step_flops:.3g} a step"
    lines = [
        f"{counted(plan.nodes, 'node')}; {plan.gpus} = TP {p.tp} x PP {p.pp} x CP {p.cp} x DP {plan.dp}{experts}",
        f"accumulation {plan.accumulation} = {c.global_batch} / ({c.micro_batch} x {plan.dp}); VP {p.vp}",
        f"{plan.layers} layers, {billions(plan.parameters)} parameters; {flops}",
    ]
    if plan.estimate is not None:
        rate = f"{plan.estimate.rate_flops / 1e12:.0f} TFLOP/s a GPU in layers, with what they communicate"
        lines.append(f"the step by a model with one constant, {rate}, {plan.estimate.fitted_on}")
    return lines


# With fewer columns a call's name and its time alone are left to --json.
_WIDTH_FOR_NAMES = 110


def _collectives(plan: TrainPlan, width: int) -> Table:
    columns = [("collective", "left"), ("of", "left"), ("size", "right"), ("calls", "right")]
    columns += [("a step", "right"), ("exposed", "right")]
    wide = width >= _WIDTH_FOR_NAMES
    table = plain_table(*columns, *((("a call", "right"), ("what", "left")) if wide else ()))
    for each in sorted(plan.collectives, key=_weight, reverse=True):
        call, step, exposed = _times(each)
        more = (call, printable(each.name)) if wide else ()
        table.add_row(each.collective, each.group, format_size(each.size_bytes), str(each.calls), step, exposed, *more)
    return table


def _weight(call: StepCollective) -> float:
    known = call.total_s if call.total_s is not None else (call.time.least_s or 0.0) * call.calls
    return call.exposed_s or known / 1e3


def _times(call: StepCollective) -> tuple[str, str, str]:
    if call.time.time_s is not None and call.total_s is not None:
        exposed = "?" if call.exposed_s is None else format_time(call.exposed_s) if call.exposed_s else "hidden"
        return format_time(call.time.time_s), format_time(call.total_s), exposed
    if call.time.least_s is None:
        return "cannot tell", "", ""
    return f"> {format_time(call.time.least_s)}", f"> {format_time(call.time.least_s * call.calls)}", "cannot tell"


def _basis(out: Console, plan: TrainPlan) -> None:
    """Say what times rest on, each kind of words once."""
    for basis in ("measured", "expected", "predicted"):
        named = [call.name for call in plan.collectives if call.time.basis == basis]
        if named:
            say(out, Text(printable(f"times {basis}: {listed(named, 12)}"), style="dim"))
    for call in plan.collectives:
        if call.time.time_s is None:
            say(out, Text(printable(f"{call.name}: {call.time.words}"), style="dim"))
    say(out, Text("--json has each formula and source, and who says what is expected", style="dim"))


def _groups(plan: TrainPlan) -> Table:
    table = plain_table(("group", "left"), ("size", "right"), ("groups", "right"), ("links", "left"), ("ranks", "wrap"))
    places = {call.group: call.place for call in plan.collectives}
    for each in plan.groups:
        place = places[each.kind]
        nodes = f", {counted(place.nodes, 'node')}" if place.nodes > 1 else ""
        spine = ", over the spine" if place.spine else ""
        table.add_row(each.kind, str(each.size), str(each.groups), f"{place.links}{nodes}{spine}", _ranks(each))
    return table


def _ranks(group: RankGroup) -> str:
    shown = [", ".join(map(str, ranks)) + (", ..." if group.size > len(ranks) else "") for ranks in group.examples]
    return shown[0] if len(shown) == 1 else f"{shown[0]}; the last: {shown[-1]}"


def _memory(plan: TrainPlan) -> Table:
    table = plain_table(("memory of a GPU", "left"), ("GB", "right"), ("formula", "wrap"))
    for each in plan.memory:
        table.add_row(each.name, f"{each.size_bytes / 1e9:.1f}", printable(each.formula))
    has = f"of {plan.gpu_memory_bytes / 1e9:.0f} GB" if plan.gpu_memory_bytes is not None else ""
    table.add_row("together", f"{plan.memory_bytes / 1e9:.1f}", has)
    return table


def _orders(plan: TrainPlan) -> Table:
    table = plain_table(
        ("order of ranks", "left"), ("TP on", "left"), ("EP on", "left"), ("exposed", "right"), ("against", "right")
    )
    for each in plan.orders:
        own = each.order == plan.order
        table.add_row(
            each.order, each.tp_links, each.ep_links, format_time(each.exposed_s), "" if own else _signed(each.change_s)
        )
    return table


def _signed(change_s: float) -> str:
    return "same" if abs(change_s) < 1e-6 else f"{'+' if change_s > 0 else '-'}{format_time(abs(change_s))}"


def _what_if(plan: TrainPlan) -> Table:
    table = plain_table(("what if", "left"), ("step", "right"), ("change", "right"), ("exposed", "right"))
    for each in plan.what_if:
        before = f"{format_time(each.exposed_before_s)} -> " if each.exposed_before_s is not None else ""
        table.add_row(
            printable(each.change),
            f"{each.step_s:.2f} s" if each.step_s is not None else "cannot tell",
            signed_percent(each.change_share) if each.change_share is not None else "",
            f"{before}{format_time(each.exposed_s)}" if each.exposed_s is not None else "",
        )
    return table
