"""How results change with the size of the machine: runs, imports, logs, tables and published results in one figure."""

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from busbw.api.scaling_sources import LogReading, observations_of
from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.facts.applications import application
from busbw.judge.scaling.application import application_view
from busbw.judge.scaling.ceilings import Known
from busbw.judge.scaling.collective import collective_view
from busbw.judge.scaling.conclusion import verdict_of
from busbw.judge.scaling.findings import findings_of
from busbw.judge.scaling.observing import of_platform
from busbw.judge.scaling.places import axis_of
from busbw.judge.scaling.selecting import selected, sizes_of
from busbw.machine.named import platform as platform_called
from busbw.model.platform import Platform
from busbw.model.scaling import Axis, Observation, Scaling, ScalingReport

Form = Literal["in place", "out of place"]
_OF_APPLICATIONS = {"kind": "--weak", "base": "--base", "beyond": "--beyond", "ignored": "--ignore"}
_OF_COLLECTIVES = {
    "platform": "--platform",
    "algorithm": "--algorithm",
    "collective": "--collective",
    "sizes_bytes": "--size",
    "dtype": "--dtype",
    "op": "--op",
    "form": "--form",
    "ranks_per_node": "--ranks-per-node",
}


class ScalingRequest(Value, kw_only=True, frozen=True):
    """What is asked for. None and () leave it to what was read."""

    # Runs and imports by path or name, files of results, "-" for standard input.
    sources: tuple[str, ...] = ()
    # A platform whose published results are a line of their own; the one whose line rates are the limit.
    published: str | None = None
    platform: str | None = None
    algorithm: str | None = None
    collective: str | None = None
    sizes_bytes: tuple[int, ...] = ()
    dtype: str | None = None
    op: str | None = None
    form: Form | None = None
    axis: Axis | None = None
    ranks_per_node: int | None = None
    # Settings that tell lines apart; the line, or the value of such a setting, that others are held against.
    series: tuple[str, ...] | None = None
    against: str | None = None
    # Templates of the lines of a log, an application whose templates are known, and a template of the file's name.
    patterns: tuple[str, ...] = ()
    application: str | None = None
    name_pattern: str | None = None
    # Only the last results of each log; the column of a table with the result.
    last: int | None = None
    result: str | None = None
    kind: Literal["strong", "weak"] = "strong"
    base: int | None = None
    beyond: tuple[int, ...] = ()
    ignored: tuple[str, ...] = ()


def scaling(asked: ScalingRequest) -> ScalingReport:
    """Return the figures of what is asked for.

    Raises InputError for what cannot be read, is not there, or cannot stand on one line.
    """
    if not asked.sources and asked.published is None:
        raise InputError("nothing to draw", hint="busbw scaling RUN..., or a table: busbw scaling times.csv")
    observations = _observations(asked)
    collectives = [each for each in observations if each.busbw_Bps is not None]
    others = [each for each in observations if each.busbw_Bps is None]
    if collectives and others:
        raise InputError(
            "bus bandwidth of a collective and the speed of an application cannot stand in one figure",
            where=f"{collectives[0].source}, {others[0].source}",
            hint="draw them one after the other",
        )
    _check_meant(asked, is_collective=bool(collectives))
    return _collectives(asked, collectives) if collectives else _application(asked, others)


def _check_meant(asked: ScalingRequest, *, is_collective: bool) -> None:
    """Raise InputError for an option that has no meaning here."""
    names = _OF_APPLICATIONS if is_collective else _OF_COLLECTIVES
    for name, option in names.items():
        if getattr(asked, name) not in (None, (), "strong"):
            what, own = ("collectives", "applications") if is_collective else ("applications", "collectives")
            raise InputError(f"{option} is for {own}, and these are results of {what}", hint=f"leave out {option}")


def _application(asked: ScalingRequest, observations: Sequence[Observation]) -> ScalingReport:
    grows = asked.application is not None and application(asked.application).weak
    kind: Literal["strong", "weak"] = "weak" if grows else asked.kind
    if asked.beyond and kind == "weak":
        raise InputError("--beyond goes by Amdahl's law, which is of strong scaling", hint="leave out --beyond")
    view = application_view(
        observations,
        axis=axis_of(observations, asked.axis),
        kind=kind,
        base=asked.base,
        at=asked.beyond,
        series=asked.series,
        ignored=asked.ignored,
        against=asked.against,
    )
    return _report((view,))


def _report(views: tuple[Scaling, ...]) -> ScalingReport:
    findings = tuple(each for view in views for each in findings_of(view))
    return ScalingReport(verdict=verdict_of(views, findings), views=views, findings=findings)


def _collectives(asked: ScalingRequest, observations: Sequence[Observation]) -> ScalingReport:
    wanted = {"collective": asked.collective, "type": asked.dtype, "op": asked.op, "form": asked.form}
    kept, notes = selected(observations, {name: value for name, value in wanted.items() if value is not None})
    known, found = None, None
    if asked.platform is not None:
        found = platform_called(asked.platform).platform
        known = Known(platform=found, name=asked.platform, algorithm=asked.algorithm)
    kept, placed = _placed(kept, asked, found)
    axis = axis_of(kept, asked.axis)
    sizes, sized = sizes_of(kept, asked.sizes_bytes, axis)
    views = tuple(
        collective_view(
            kept,
            axis=axis,
            size_bytes=size_bytes,
            known=known,
            series=asked.series,
            notes=(*placed, *sized, *notes),
            against=asked.against,
        )
        for size_bytes in sizes
    )
    return _report(views)


def _placed(
    observations: Sequence[Observation], asked: ScalingRequest, platform: Platform | None
) -> tuple[tuple[Observation, ...], tuple[str, ...]]:
    """Return the observations with their nodes where ranks tell them, and a note where that is a guess."""
    each_node = asked.ranks_per_node
    notes: tuple[str, ...] = ()
    if all(each.nodes is not None for each in observations):
        return tuple(observations), notes
    if each_node is None and platform is not None and platform.kind == "gpu" and platform.gpu.count:
        each_node = platform.gpu.count
        notes = (f"nodes: ranks over the {each_node} GPUs of a node of {platform.id}; else --ranks-per-node",)
    if each_node is None:
        return tuple(observations), notes
    found = []
    for each in observations:
        if each.nodes is None and each.ranks is not None:
            if each_node < 1 or (each.ranks % each_node and each.ranks > each_node):
                raise InputError(
                    f"{each.ranks} ranks are no whole number of nodes with {each_node}",
                    where=each.source,
                    hint="say how many ranks a node has: --ranks-per-node",
                )
            found.append(replace(each, nodes=max(1, each.ranks // each_node)))
        else:
            found.append(each)
    return tuple(found), notes


def _observations(asked: ScalingRequest) -> tuple[Observation, ...]:
    known = application(asked.application) if asked.application is not None else None
    logs = LogReading.of(known, asked.patterns, name=asked.name_pattern, last=asked.last)
    found = [each for source in asked.sources for each in observations_of(source, logs, wanted=asked.result)]
    if asked.published is not None:
        published = of_platform(platform_called(asked.published).platform)
        if not published:
            raise InputError(f"nobody has published bus bandwidth by the number of nodes for {asked.published}")
        found += published
    return tuple(found)
