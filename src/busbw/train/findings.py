"""What is noticed about a job before it runs: its source's slips, memory, groups that leave NVLink."""

from collections.abc import Iterator

from busbw.base.text import counted, percent
from busbw.base.units import format_time
from busbw.facts.rules import finding
from busbw.model.finding import Finding
from busbw.model.train.plan import StepCollective
from busbw.model.train.workload import Configuration, Workload
from busbw.train.layout import RankLayout


def findings_of_source(workload: Workload, configuration: Configuration, layout: RankLayout) -> Iterator[Finding]:
    """Yield where what a source prints of a configuration does not follow from the rest of it."""
    printed = configuration.printed
    where = ", ".join(configuration.source) or workload.id
    if printed is not None and printed.accumulation not in (None, layout.accumulation):
        yield finding(
            "TRN001",
            what="gradient accumulation",
            printed=printed.accumulation or 0,
            gpus=layout.gpus,
            follows=layout.accumulation,
            evidence=f"{where}: global batch {configuration.global_batch} / (micro-batch {configuration.micro_batch} x "
            f"DP {layout.dp}) = {layout.accumulation}",
            fix="take the global batch, which step times and tokens per second agree with",
        )
    if printed is not None and printed.dp not in (None, layout.dp):
        yield _of_dp(where, printed.dp or 0, layout)
    for words in workload.printed_words:
        yield finding(
            "TRN003",
            column=words.column.upper(),
            said=words.said,
            evidence=f"{words.source}; it is {words.means}",
        )


def _of_dp(where: str, printed: int, layout: RankLayout) -> Finding:
    formula = f"{layout.gpus} GPUs / (TP {layout.tp} x PP {layout.pp} x CP {layout.cp}) = {layout.dp}"
    if printed * layout.ep != layout.dp:
        return finding(
            "TRN001", what="DP", printed=printed, gpus=layout.gpus, follows=layout.dp, evidence=f"{where}: {formula}"
        )
    return finding(
        "TRN002",
        printed=printed,
        gpus=layout.gpus,
        dp=layout.dp,
        evidence=f"{where}: TP x PP x CP x EP x DP = {layout.tp} x {layout.pp} x {layout.cp} x {layout.ep} x {printed} "
        f"= {layout.gpus}; as Megatron counts DP = {formula}, and experts have DP / EP = {layout.expert_dp} replicas",
    )


def findings_of_plan(
    layout: RankLayout,
    collectives: tuple[StepCollective, ...],
    memory_bytes: float,
    gpu_memory_bytes: float | None,
    platform: str,
) -> Iterator[Finding]:
    """Yield what is noticed on a platform."""
    if gpu_memory_bytes is not None and memory_bytes > gpu_memory_bytes:
        yield finding(
            "TRN004",
            share=percent(memory_bytes / gpu_memory_bytes),
            platform=platform,
            evidence=f"{memory_bytes / 1e9:.1f} of {gpu_memory_bytes / 1e9:.0f} GB",
            fix="more of TP, PP or EP, a higher ZeRO stage (zero), or recompute full",
        )
    tensor = next((each for each in collectives if each.group == "TP"), None)
    if tensor is not None and tensor.place.links != "NVLink":
        yield finding(
            "TRN005",
            tp=layout.tp,
            evidence=f"its ranks are on {counted(tensor.place.nodes, 'node')} in the order {layout.order}",
            fix="TP of at most a node's GPUs, first in the order of ranks",
        )
    tokens = next((each for each in collectives if each.group == "EP"), None)
    if tokens is not None and tokens.place.nodes > 1 and tokens.place.links != "NVLink":
        took = f", {format_time(tokens.total_s)} a step" if tokens.total_s is not None else ""
        yield finding(
            "TRN006",
            ranks=layout.ep,
            nodes=tokens.place.nodes,
            evidence=f"{tokens.size_bytes} bytes a call from each GPU, {tokens.calls} calls{took}",
            fix="measure one, with as many ranks on as many nodes, and give it: --measured; what is expected here "
            "rests on other collectives",
        )
