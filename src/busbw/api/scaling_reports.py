"""How results change with the size of the machine: runs, imports, logs, tables and published results in one figure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, Self

from msgspec.structs import replace

from busbw.api.loading import read
from busbw.api.predicting.lines import AskedBands, with_predictions
from busbw.api.stored import find, import_directories, is_import
from busbw.base import layout
from busbw.base.collectives import collective_named
from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.facts.logs import Application, application
from busbw.facts.platforms import gains
from busbw.formats.application_log import LogLines, read_log, read_starccm
from busbw.formats.lines.driver import Reader
from busbw.formats.registry import FORMATS
from busbw.formats.scaling_table import MOST_BYTES, Template, count, is_table, match, read_table, template
from busbw.judge.scaling.application import application_view
from busbw.judge.scaling.collective import KnownPlatform, collective_view
from busbw.judge.scaling.conclusion import findings_of, verdict_of
from busbw.judge.scaling.lines import condition, selected, sizes_of
from busbw.judge.scaling.observing import of_import, of_platform, of_readings, of_run
from busbw.judge.scaling.places import axis_of
from busbw.machine.named import platform as platform_called
from busbw.model.imported import Reading, Table
from busbw.model.platform import Platform
from busbw.model.scaling import Axis, Observation, Scaling, ScalingReport
from busbw.store import directory as directories
from busbw.store import imports, sources
from busbw.store.files import exists, is_file, is_folder

_HEAD_BYTES = 65_536
_LONGEST_LINE_BYTES = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class LogReading:
    """How the logs of applications are read."""

    # None: with the templates of the user alone, and without any the file is no such log.
    application: Application | None
    templates: tuple[Template, ...]
    # Of the file's name: `run-{nodes}n`.
    name: Template | None
    # Only so many of the last results of a file and place.
    last: int | None

    @classmethod
    def of(
        cls, application: Application | None, patterns: Sequence[str], *, name: str | None, last: int | None
    ) -> Self:
        """Return it from templates as they are written. Raises InputError for one that cannot be matched."""
        if last is not None and last < 1:
            raise InputError(f"the last {last} results", hint="one or more")
        own = application.templates if application is not None else ()
        return cls(
            application=application,
            templates=tuple(template(text) for text in (*patterns, *own)),
            name=template(name) if name is not None else None,
            last=last,
        )

    def read(self, lines: Iterator[str], source: str) -> tuple[Observation, ...]:
        """Return what a log holds. Raises InputError."""
        known = self.counts_of(source)
        if not self.templates:
            return read_starccm(lines, source, known=known, last=self.last)
        wanted = LogLines(
            templates=self.templates,
            known=tuple(known.items()),
            last=self.last,
            best=self.application is not None and self.application.best,
            void=self.application.void if self.application is not None else None,
        )
        return read_log(lines, source, wanted)

    def counts_of(self, source: str) -> dict[str, int]:
        """Return what a file's name says of the machine. Raises InputError where it does not fit its template."""
        if self.name is None:
            return {}
        found = match(self.name, Path(source).name)
        if found is None:
            raise InputError(f"its name does not fit {self.name.text!r}", where=source)
        return {field.axis: count(text, source) for field, text in found if field.axis is not None}


def observations_of(source: str, logs: LogReading, *, wanted: str | None) -> tuple[Observation, ...]:
    """Return what a source holds. `wanted`: the column of a table with the result.

    Raises InputError for what is not there, cannot be read, or holds no result.
    """
    path = Path(source)
    if source != sources.STDIN and not is_file(path):
        found = [each for where in _stored(path, source) for each in _of_stored(where)]
    elif path.name in (layout.PLAN_FILE, layout.RUN_FILE, imports.IMPORT_FILE) and is_file(path):
        found = list(_of_stored(path.parent))
    else:
        found = list(_of_file(source, logs, wanted))
    if not found:
        raise InputError(
            "no result of a collective in it",
            where=source,
            hint="of an application's log say where the numbers are: --pattern 'wall time: {time_s} s'",
        )
    return tuple(found)


def _stored(path: Path, name: str) -> list[Path]:
    """Return the runs and imports that a name means: one, or those in a folder of them."""
    if is_folder(path) and not is_import(path) and not exists(path / layout.PLAN_FILE):
        return [*directories.directories(path), *import_directories(path)]
    if not exists(path) and (path.suffix or len(path.parts) > 1):
        raise InputError(f"there is no {name}", where=name)
    return [find(name)]


def _of_stored(where: Path) -> tuple[Observation, ...]:
    if is_import(where):
        return of_import(imports.read(where), imports.readings(where))
    return of_run(read(where))


def _of_file(source: str, logs: LogReading, wanted: str | None) -> tuple[Observation, ...]:
    path = Path(source)
    with sources.opened(source) as file:
        blocks = file.blocks()
        first = next(blocks, b"")
        if logs.templates or logs.application is not None:
            found = logs.read(_lines(first, blocks), source)
        elif is_table(first[:_HEAD_BYTES].decode("utf-8", "replace")):
            rows = read_table(_whole(first, blocks, source), source, wanted=wanted)
            # Tables that meet at one size of the machine are two lines, and this is what tells them apart.
            found = tuple(replace(row, settings=(*row.settings, ("table", path.stem))) for row in rows)
        else:
            found = _of_log(file, first, blocks, logs.counts_of(source))
        if file.problem is not None:
            raise InputError(file.problem, where=source)
    return found


def _of_log(
    file: sources.OpenSource, first: bytes, blocks: Iterator[bytes], known: dict[str, int]
) -> tuple[Observation, ...]:
    """Return the rows of other tools' tables in a log. `known`: what the file's name says of the machine."""
    reader = Reader(FORMATS, source=0, first_table=0)
    events = reader.feed(first)
    for block in blocks:
        events += reader.feed(block)
    events += reader.finish()
    tables = {event.number: event for event in events if isinstance(event, Table)}
    rows = [event for event in events if isinstance(event, Reading)]
    where = file.source(reader.lines)
    found = of_readings((where,), tables, None, rows, known)
    if rows and not found:
        raise InputError(
            "over how many ranks this was measured is not told, or it is not a collective with a bus bandwidth",
            where=where.name,
            hint="take the ranks from the file's name: --name 'osu-{ranks}'",
        )
    return found


def _whole(first: bytes, blocks: Iterator[bytes], where: str) -> str:
    content = first
    for block in blocks:
        content += block
        if len(content) > MOST_BYTES:
            raise InputError(f"a table of more than {MOST_BYTES // 2**20} MiB", where=where)
    return content.decode("utf-8", "replace")


def _lines(first: bytes, blocks: Iterator[bytes]) -> Iterator[str]:
    """Yield the lines of a file; of one that is too long only its end."""
    rest = b""
    for block in chain((first,), blocks):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
        rest = rest[-_LONGEST_LINE_BYTES:]
    if rest:
        yield rest.decode("utf-8", "replace")


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
    "predict": "--predict",
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
    # Lay what is predicted beside each point.
    predict: bool = False
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
        if getattr(asked, name) not in (None, (), "strong", False):
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
    name = asked.collective
    # What a result calls by the same word goes first.
    if name is not None and all(condition(each, "collective") != name for each in observations):
        name = collective_named(name) or name
    wanted = {"collective": name, "type": asked.dtype, "op": asked.op, "form": asked.form}
    kept, notes = selected(observations, {name: value for name, value in wanted.items() if value is not None})
    known, found = None, None
    if asked.platform is not None:
        found = platform_called(asked.platform).platform
        known = KnownPlatform(platform=found, name=asked.platform, algorithm=asked.algorithm)
    beside = _gains(kept, found)
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
            notes=(*placed, *sized, *notes, *beside),
            against=asked.against,
        )
        for size_bytes in sizes
    )
    report = _report(views)
    if not asked.predict:
        return report
    beside_of = AskedBands(platform=found, name=asked.platform, algorithm=asked.algorithm)
    # After the verdict, which does not rest on it.
    return replace(report, views=tuple(with_predictions(view, kept, beside_of) for view in views))


def _gains(observations: Sequence[Observation], platform: Platform | None) -> tuple[str, ...]:
    """Return what is published of faster ways to do the same on a platform."""
    if platform is None:
        return ()
    collectives = dict.fromkeys(dict(each.conditions).get("collective", "") for each in observations)
    return tuple(dict.fromkeys(words for collective in collectives for words in gains(platform, collective)))


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
            raise InputError(f"no bus bandwidth by number of nodes is published for {asked.published}")
        found += published
    return tuple(found)
