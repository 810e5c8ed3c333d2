"""What a small transformer measured, as text for a terminal. Alone because the verb prints it apart from any plan."""

from rich.text import Text

from busbw.base.text import counted, listed, percent, printable
from busbw.base.units import format_size, precise_time
from busbw.model.train.proxy import ProxyResult
from busbw.model.train.reading import TrainingLog
from busbw.show.lines import say
from busbw.show.text.terminal import console
from busbw.show.text.train import plain_table


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
        ("time a step", "right"), ("of a step", "right"),
    )  # fmt: skip
    for call in result.calls:
        table.add_row(
            call.name, f"{call.group} ({call.ranks})", call.collective, str(call.calls),
            format_size(round(call.size_bytes)), precise_time(call.time_s), percent(call.time_s / result.median_step_s),
        )  # fmt: skip
    out.print(table)
    say(out, Text(printable(
        f"note: of rank 0, medians from step {result.counted_from} on, by {result.clock}; a collective also waits for "
        "late ranks, and nothing computes beside it"
    ), style="dim"))  # fmt: skip
    say(out, Text(printable(f"next: busbw train read {plan.directory}/train.log"), style="dim"))
