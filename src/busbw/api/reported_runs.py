"""Runs as a report is about them: with every setting, the node they were on, and each size explained."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from busbw.api.judge import grounds_of, judge_run
from busbw.api.loading import read
from busbw.base.errors import InputError
from busbw.env.layers import layers
from busbw.judge.explaining.grounds import Grounds
from busbw.judge.explaining.told import Told
from busbw.machine.named import node_view, platforms
from busbw.model.run import Run
from busbw.model.settings import Setting, Settings
from busbw.show.page.subject import Picture, Subject, labels_of
from busbw.store.node_files import source_kind


def run_subjects(folders: Sequence[Path], machine: str | None, named: Picture | None) -> tuple[Subject, ...]:
    """Return runs for a report, in their order. `machine`: what they are held against; `named`: the node to draw.

    None for either: the platform that a run stored, if it did.
    """
    runs = tuple(read(folder) for folder in folders)
    grounds = _grounds(runs, machine)
    return tuple(
        Subject(
            run=run,
            label=label,
            settings=settings_of(run),
            unseen=_unseen(run),
            picture=named or _platform_picture(run),
            explained=judge_run(run, grounds(run), Told()),
        )
        for run, label in zip(runs, labels_of(runs), strict=True)
    )


def settings_of(run: Run) -> Settings | None:
    """Return every choice that the ranks met, weakest first; None: the run did not store them.

    Weakest first: NCCL's settings files and the environment of whoever started it, what busbw set for the job, and what
    rank 0 had that none of them explains.
    """
    plan = run.plan
    if plan.surroundings is None and not plan.job.env:
        return None
    found = layers(plan.surroundings) if plan.surroundings is not None else Settings()
    planned = "the plan of this run"
    found = found.then(
        *(Setting(name=name, value=None, layer="command_line", source=planned) for name in plan.job.unset),
        *(Setting(name=name, value=value, layer="command_line", source=planned) for name, value in plan.job.env),
    )
    first = next((rank for rank in run.ranks if rank.gpu is not None), None)
    if first is None or first.gpu is None:
        return found
    known = found.env()
    return found.then(
        *(
            Setting(name=name, value=value, layer="shell", source=f"as rank {first.rank} found it when it started")
            for name, value in first.gpu.environment
            if known.get(name) != value
        )
    )


def _grounds(runs: Iterable[Run], machine: str | None) -> Callable[[Run], Grounds]:
    """Return what each run is held against: the machine that is named, else the platform it stored."""
    if machine is not None:
        named = named_grounds(machine)
        return lambda _run: named
    # A platform of another site is not known here.
    known = {each.platform.id for each in platforms()}
    stored = {name for name in map(_platform_of, runs) if name in known}
    by_name = {name: grounds_of(name) for name in (None, *stored)}
    return lambda run: by_name.get(_platform_of(run), by_name[None])


def named_grounds(machine: str | None) -> Grounds:
    """Return what results are held against: a platform or a snapshot that is named, or nothing."""
    kind = source_kind(machine) if machine is not None else None
    return grounds_of(
        machine if kind == "absent" else None, Path(machine) if machine is not None and kind == "snapshot" else None
    )


def _platform_of(run: Run) -> str | None:
    start = run.plan.surroundings
    return start.platform if start is not None else None


def _unseen(run: Run) -> tuple[str, ...]:
    start = run.plan.surroundings
    others = len(run.plan.placement.hosts) - 1
    elsewhere = (f"settings files of the other {others} hosts",) if others > 0 else ()
    if start is None:
        return ("the environment of whoever started it, which was not stored", *elsewhere)
    return (*start.unseen, *elsewhere)


def _platform_picture(run: Run) -> Picture | None:
    """Return the published node of the platform that a run was found to be on; None: it was not."""
    name = _platform_of(run)
    if name is None:
        return None
    try:
        view = node_view(name)
    except InputError:
        # A platform of another site: its file is not here.
        return None
    return Picture(view=view, whose=f"as published of platform {name}; this host's own may differ")
