"""What this site measured before on the same hosts, with the same libraries and settings."""

from collections.abc import Iterable

from busbw.api.history import opened
from busbw.judge.explaining.references import Reference
from busbw.model.history import PointKind, PointSelection, Selection, Strand, Strands
from busbw.model.run import Run
from busbw.store import directory as directories
from busbw.store.selecting import strands

# Fewer runs do not tell how far runs of one machine lie apart.
_ENOUGH = 5
# The latest say most of the machine as it is.
_MOST = 50
# Runs that were found slow or wrong are no reference.
_SOUND = ("ok", "cannot_tell")


def own_references(run: Run) -> tuple[Reference, ...]:
    """Return what earlier runs reached, for each point that this run has too, where there were enough of them.

    Raises RunError where the history cannot be kept.
    """
    mine = {(item.collective, item.dtype, item.in_place, item.mode, item.ranks) for item in run.measurements}
    if not mine:
        return ()
    selection = Selection(kind="run", outcomes=_SOUND, backend=run.plan.backend)
    with opened(directories.root(), lambda _line: None) as history:
        found = strands(history, selection, PointSelection(ranks=run.plan.placement.ranks), "busbw_Bps")
    here = next((strand.kind for strand in found.strands if _has(found, strand, run.plan.run_id)), None)
    hosts = ",".join(sorted(run.plan.placement.hosts))
    return tuple(
        reference
        for strand in found.strands
        if _key(strand.kind) in mine and _is_same(strand.kind, hosts, here)
        for reference in _references(found, strand, run)
    )


def _key(kind: PointKind) -> tuple[str, str | None, bool | None, str | None, int | None]:
    return kind.collective, kind.dtype, kind.in_place, kind.mode, kind.ranks


def _has(found: Strands, strand: Strand, run_id: str) -> bool:
    return any(found.runs[place].run_id == run_id for place in strand.runs)


def _is_same(kind: PointKind, hosts: str, here: PointKind | None) -> bool:
    """Whether a point was measured on these hosts, and with the libraries of this run where they are known."""
    if ",".join(sorted(kind.hosts.split(","))) != hosts or kind.source is not None:
        return False
    return here is None or kind.libraries == here.libraries


def _references(found: Strands, strand: Strand, run: Run) -> Iterable[Reference]:
    size_bytes = strand.kind.size_bytes
    if not size_bytes:
        return
    settings = next((each.settings for each in found.runs if each.run_id == run.plan.run_id), None)
    values = {
        found.runs[place].run_id: value
        for place, value in sorted(zip(strand.runs, strand.values, strict=True))
        if found.runs[place].run_id != run.plan.run_id and (settings is None or found.runs[place].settings == settings)
    }
    if len(values) < _ENOUGH:
        return
    nodes = len(run.plan.placement.hosts)
    for run_id, value in list(values.items())[-_MOST:]:
        yield Reference(
            collective=strand.kind.collective,
            kind="here",
            nodes=nodes,
            gpus=strand.kind.ranks,
            document=run_id,
            words=f"run {run_id}",
            source=(run_id,),
            points=((size_bytes, value),),
        )
