"""The CPUs of local ranks as text for a terminal: where each belongs, the forms to paste, and what a binding gives."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from busbw.base.cpus import format_cpu_list
from busbw.model.topology import BindingReading, BoundRank, MaskForms, RankMasks
from busbw.show.plain import printable
from busbw.show.text.terminal import console

_TITLES = {"node": "all CPUs of each rank's NUMA node", "share": "an even share of them"}
_COLOURS = {"right": "green", "partly": "yellow", "wrong": "bold red", "unknown": "cyan"}


def masks_text(masks: RankMasks) -> None:
    """Print where ranks belong, then the forms, or what the binding that was asked about gives."""
    out = console()
    out.print(_places(masks))
    for words in masks.remarks:
        out.print(Text(printable(words)), soft_wrap=not out.is_terminal)
    for words in masks.missing:
        out.print(Text(printable(f"not known: {words}"), style="yellow"), soft_wrap=not out.is_terminal)
    if masks.binding is None:
        # Not wrapped: it is there to be pasted.
        for line in (*(line for form in masks.forms for line in _form_lines(form)), *_sufficient_lines(masks)):
            out.print(Text(line), soft_wrap=True)
    for reading in masks.readings:
        _reading_text(out, masks, reading)


def _reading_text(out: Console, masks: RankMasks, reading: BindingReading) -> None:
    out.print()
    out.print(Text(printable(f"{reading.launcher}, {' '.join((masks.binding or '').split())[:200]}"), style="bold"))
    if reading.cannot_tell is not None:
        out.print(Text(printable(f"cannot tell: {reading.cannot_tell}"), style="cyan"), soft_wrap=True)
    else:
        out.print(_reading(masks, reading))
        for line in _conclusions(masks, reading):
            out.print(Text(printable(line)), soft_wrap=not out.is_terminal)
    for words in (*reading.notes, f"source: {reading.source}"):
        out.print(Text(printable(words), style="dim"), soft_wrap=not out.is_terminal)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, justify="right" if title in ("rank", "NUMA") else "left", overflow="fold")
    return table


def _places(masks: RankMasks) -> Table:
    table = _table("rank", "GPU", "NUMA", "its CPUs", "an even share")
    for place in masks.ranks:
        table.add_row(
            str(place.rank),
            printable(place.gpu or "-"),
            str(place.numa) if place.numa is not None else "?",
            _cpus(place.cpus),
            _cpus(place.share) if place.share != place.cpus else "all",
        )
    return table


def _cpus(cpus: tuple[int, ...] | None) -> str:
    return format_cpu_list(cpus) if cpus else "not known"


def _form_lines(form: MaskForms) -> list[str]:
    options = "".join(f"\n  {launcher}: {text}" for launcher, text in form.rankfile_options)
    rankfile = [f"rankfile of Open MPI, for one node (+n1 is the second node):{options}"] if form.rankfile else []
    return [
        f"\n{_TITLES[form.cpus]}",
        f"srun:\n  {form.srun}",
        "taskset or numactl, for ranks 0, 1, ...:",
        *(
            f"  taskset -c {cpus}  |  numactl {numactl}"
            for cpus, numactl in zip(form.taskset, form.numactl, strict=True)
        ),
        *rankfile,
        *(f"  {line}" for line in form.rankfile),
    ]


def _sufficient_lines(masks: RankMasks) -> list[str]:
    if not masks.forms:
        return []
    lines = [f"  {launcher}: mpirun {text}" for launcher, text in masks.sufficient]
    if not lines:
        return ["\nno --map-by with --bind-to of mpirun is known to give this order"]
    return ["\nsufficient for mpirun:", *lines]


def _reading(masks: RankMasks, reading: BindingReading) -> Table:
    table = _table("rank", "its CPUs", "NUMA", "GPU's", "", "NCCL's threads")
    for place, rank in zip(masks.ranks, reading.ranks, strict=True):
        table.add_row(
            str(rank.rank),
            _cpus(rank.cpus),
            ",".join(map(str, rank.numa)) or "?",
            str(place.numa) if place.numa is not None else "?",
            Text(rank.fit, style=_COLOURS[rank.fit]),
            _nccl(rank),
        )
    return table


def _nccl(rank: BoundRank) -> str:
    if rank.nccl_applies is None:
        return "cannot tell"
    return f"{_cpus(rank.nccl_cpus)}{'' if rank.nccl_applies else ', as they are'}"


def _conclusions(masks: RankMasks, reading: BindingReading) -> list[str]:
    wrong = [rank for rank in reading.ranks if rank.fit == "wrong"]
    partly = [rank for rank in reading.ranks if rank.fit == "partly"]
    stay = [rank for rank in reading.ranks if rank.nccl_applies is False]
    lines = []
    if wrong:
        lines.append(f"{len(wrong)} of {len(reading.ranks)} ranks run on a NUMA node that is not their GPU's")
    if wrong and masks.ignores_affinity:
        lines.append(
            "NCCL_IGNORE_CPU_AFFINITY=1: NCCL moves its own threads to the GPU's node; those of the program stay"
        )
    if stay:
        lines.append(
            "NCCL finds no CPU that both sets share, and leaves its threads where they are: NCCL 2.28 and later log "
            "`Affinity for GPU N is empty, ignoring`, up to 2.27 it says nothing"
        )
    if partly:
        lines.append(
            f"{len(partly)} of {len(reading.ranks)} ranks may also run elsewhere; NCCL keeps its own threads on the "
            "CPUs of the GPU's node that the rank has"
        )
    if not wrong and not partly and all(rank.fit == "right" for rank in reading.ranks):
        lines.append("every rank runs on the NUMA node of its GPU")
    return lines
