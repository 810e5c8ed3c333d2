"""What a job would find of settings: on this host, on a captured one, or where a run or an import was made."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from busbw.api.loading import read
from busbw.api.locating import find, is_import
from busbw.base.errors import InputError
from busbw.env.explained import explain
from busbw.env.lint import corrected, difference, lint, lint_layers
from busbw.env.reading import LARGEST_BYTES, from_environment, text_of
from busbw.env.reading import read as read_settings
from busbw.env.rules.subject import CheckContext
from busbw.env.versions import beyond, newest, parse_version, spelled
from busbw.facts.platforms import find_platform
from busbw.machine.capture.environment import absent
from busbw.machine.capture.sites import site_files
from busbw.machine.capture.snapshot import capture
from busbw.machine.detect.ladder import detect
from busbw.machine.named import platforms
from busbw.machine.read.hardware import hardware_of
from busbw.measure.plan.settings import named_paths, with_files
from busbw.model.envvar import Explanation
from busbw.model.finding import Finding, SettingsCheck, SettingsFix, SettingsLine
from busbw.model.host import Snapshot
from busbw.model.imported import Imported
from busbw.model.record import Hello
from busbw.model.run import Run
from busbw.model.settings import WITHHELD, JobEnvironment, SettingsReading
from busbw.store import imports
from busbw.store.files import STANDARD_INPUT, read_bounded
from busbw.store.snapshots import read_snapshot
from busbw.store.sources import source_kind

# Of the files that settings name, a snapshot holds these only.
_CAPTURED = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")
_MOST_NAMED = 4


def surroundings_here() -> JobEnvironment:
    """Return what a job finds that starts on this host: environment, settings files, NCCL, platform.

    Takes some seconds at most on a healthy host: hardware and cloud are asked which platform it is. Raises InputError
    for a site's platform file that cannot be used.
    """
    found = _captured(capture(), "this host")
    return structs.replace(found, absent=absent(named_paths(found).values()))


def surroundings_of_snapshot(path: Path) -> JobEnvironment:
    """Return what a job found on a captured host. Raises InputError for a file that is no snapshot."""
    snapshot = read_snapshot(path)
    found = _captured(snapshot, path.name)
    there = {file.path for file in snapshot.files}
    missing = [value for name, value in named_paths(found).items() if name in _CAPTURED and value not in there]
    return structs.replace(found, absent=tuple(dict.fromkeys(missing)))


def surroundings_of_run(name: str) -> JobEnvironment:
    """Return what the ranks of a run had, what an import tells of its ranks' environment, or what a snapshot holds.

    `name` is a path, the beginning of a run's name, or `last`. Raises InputError where there is none, and for an import
    whose tables hold no environment.
    """
    if source_kind(name) == "snapshot":
        return surroundings_of_snapshot(Path(name))
    where = find(name)
    if is_import(where):
        return _imported(imports.read(where), where)
    return _of_run(read(where))


def _captured(snapshot: Snapshot, where: str) -> JobEnvironment:
    detection = detect(hardware_of(snapshot), snapshot.answers, tuple(each.platform for each in platforms()))
    libraries = [each for each in snapshot.libraries if each.name == "libnccl"]
    found = JobEnvironment(
        where=where,
        environment=snapshot.environment,
        nccl=next((each.version for each in libraries if each.version is not None), None),
        platform=detection.platform,
        platform_from=detection.rung,
        unseen=tuple(_withheld(snapshot.environment)),
    )
    return with_files(found, snapshot.files)


def _of_run(run: Run) -> JobEnvironment:
    plan = run.plan
    start = plan.surroundings
    environment = dict(start.environment) if start is not None else {}
    unseen = list(start.unseen) if start is not None else ["the environment of whoever started it was not stored"]
    environment |= dict(plan.job.env)
    for variable, folder in plan.job.prepend:
        environment[variable] = ":".join(part for part in (folder, environment.get(variable)) if part)
    first = next((rank.gpu for rank in run.ranks if rank.gpu is not None), None)
    if first is not None:
        # What a rank says of itself goes before what it was started with: a launcher may not pass everything on.
        kept = {name: value for name, value in environment.items() if not name.startswith("NCCL_")}
        environment = kept | dict(first.environment)
        unseen += _differing(run.ranks)
    planned = plan.gpus.nccl.version if plan.gpus is not None else None
    return JobEnvironment(
        where=f"run {plan.run_id}",
        environment=dict(sorted(environment.items())),
        files=start.files if start is not None else (),
        nccl=first.nccl if first is not None else planned,
        platform=start.platform if start is not None else None,
        platform_from=start.platform_from if start is not None else None,
        unseen=(*unseen, *_withheld(environment), *_elsewhere(plan.placement.hosts)),
    )


def _elsewhere(hosts: tuple[str, ...]) -> Iterator[str]:
    if len(hosts) > 1:
        yield f"settings files of the other {len(hosts) - 1} hosts"


def _differing(ranks: tuple[Hello, ...]) -> Iterator[str]:
    """Yield a line for each variable that is not the same in all ranks that tell theirs."""
    told = {rank.rank: dict(rank.gpu.environment) for rank in ranks if rank.gpu is not None}
    names = dict.fromkeys(name for environment in told.values() for name in environment)
    for name in names:
        first = next(iter(told.values())).get(name)
        others = [rank for rank, environment in told.items() if environment.get(name) != first]
        if others:
            shown = ", ".join(str(rank) for rank in others[:_MOST_NAMED])
            more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
            yield f"{name} is another in rank {shown}{more}: this is as the first rank has it"


def _imported(imported: Imported, where: Path) -> JobEnvironment:
    tables = [table for table in imported.tables if table.environment]
    if not tables:
        raise InputError(
            "this import holds no environment: its tools printed none",
            where=str(where),
            hint="nccl-tests writes it into its JSON report, with -J FILE",
        )
    last = tables[-1]
    others = len({table.environment for table in tables}) - 1
    unseen = [f"settings files of its hosts, and {last.environment_withheld} variables outside the allow-list"]
    unseen += [f"{others} other environments in this import: this is that of the last table"] if others else []
    return JobEnvironment(
        where=f"import {imported.import_id}",
        environment=dict(last.environment),
        nccl=dict(last.versions).get("NCCL"),
        unseen=tuple(unseen),
    )


def _withheld(environment: dict[str, str]) -> Iterator[str]:
    names = [name for name, value in environment.items() if WITHHELD in value]
    if names:
        yield f"the values of {', '.join(names[:_MOST_NAMED])}: they look secret, and were withheld"


# A line is shown in part, with the place of the finding in it.
_LONGEST_LINE = 2_000
_CONF = "nccl.conf"


def lint_file(
    file: str, *, language: str | None = None, platform: str | None = None, nccl: str | None = None
) -> SettingsCheck:
    """Return what is wrong with the settings in a file, or in standard input where it is named `-`.

    `language`: as `Reading.language`; None: what it looks like. Raises InputError for what cannot be read, and for an
    unknown platform or version.
    """
    context = _context(platform, nccl)
    _text, reading = _read(file, language)
    return _checked((reading,), lint(reading, context), context)


def fixed_file(
    file: str, *, language: str | None = None, platform: str | None = None, nccl: str | None = None
) -> SettingsFix:
    """Return what to change in a file: certain corrections only.

    Raises InputError as `lint_file` does.
    """
    context = _context(platform, nccl)
    text, reading = _read(file, language)

    def check(tried: str) -> tuple[Finding, ...]:
        return lint(read_settings(tried, reading.file, reading.language), context)

    version = context.nccl if context.nccl is not None else newest()
    after = corrected(text, reading, version, check)
    diff = difference(text, after, reading.file)
    findings = _by_line(check(text))
    return SettingsFix(
        file=file, diff=diff, findings=findings.total(), left=(findings & _by_line(check(after))).total()
    )


def _by_line(found: tuple[Finding, ...]) -> Counter[tuple[str, str]]:
    return Counter((each.code, (each.where or "").rpartition(":")[0]) for each in found)


def lint_here(*, platform: str | None = None, nccl: str | None = None) -> SettingsCheck:
    """Return what is wrong with the environment of this process and the settings files of this host."""
    return _surroundings(surroundings_here(), platform, nccl)


def lint_run(name: str, *, platform: str | None = None, nccl: str | None = None) -> SettingsCheck:
    """Return what is wrong with the settings that the ranks of a run had. Raises InputError where there is none."""
    return _surroundings(surroundings_of_run(name), platform, nccl)


def _surroundings(found: JobEnvironment, platform: str | None, nccl: str | None) -> SettingsCheck:
    context = _context(platform or found.platform, nccl or found.nccl, absent=found.absent)
    readings = [from_environment(found.environment)]
    readings += [read_settings(file.text, file.path, _CONF) for file in found.files]
    checked = _checked(tuple(readings), lint_layers(tuple(readings), context), context)
    return structs.replace(checked, hints=(*checked.hints, *(f"not seen: {each}" for each in found.unseen)))


def _context(platform: str | None, nccl: str | None, *, absent: tuple[str, ...] | None = None) -> CheckContext:
    return CheckContext(
        platform=find_platform(platform, site_files()).platform if platform is not None else None,
        nccl=parse_version(nccl) if nccl is not None else None,
        absent=frozenset(absent) if absent is not None else None,
    )


def _read(file: str, language: str | None) -> tuple[str, SettingsReading]:
    name = "stdin" if file == STANDARD_INPUT else file
    raw = read_bounded(Path(file), most_bytes=LARGEST_BYTES, kind="script")
    # Bytes that are no text are shown as such from here on.
    text = text_of(raw).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text, read_settings(text, name, language)


def _checked(
    readings: tuple[SettingsReading, ...], findings: tuple[Finding, ...], context: CheckContext
) -> SettingsCheck:
    counts = Counter(each.severity for each in findings)
    version = context.nccl if context.nccl is not None else newest()
    newer = beyond(version)
    settings = sum(reading.count for reading in readings)
    unheld = context.platform is None and settings > 0
    hint = "--platform ID also holds them against a machine: busbw platform list"
    return SettingsCheck(
        files=tuple(reading.file for reading in readings),
        languages=tuple(reading.language for reading in readings),
        platform=context.platform.id if context.platform is not None else None,
        nccl=spelled(version),
        nccl_asked=context.nccl is not None,
        settings=settings,
        findings=findings,
        errors=counts["error"],
        warnings=counts["warn"],
        notes=counts["note"],
        lines=_lines(readings, findings),
        hints=tuple(each for each in (newer, hint if unheld else None) if each is not None),
    )


def _lines(readings: tuple[SettingsReading, ...], findings: tuple[Finding, ...]) -> tuple[SettingsLine, ...]:
    """Return the lines that findings are about, each once, in their order."""
    texts = {reading.file: reading.lines for reading in readings}
    places = dict.fromkeys(_place(each) for each in findings)
    return tuple(
        SettingsLine(file=file, number=number, text=texts[file][number - 1].rstrip("\r")[:_LONGEST_LINE])
        for file, number in places
        if 0 < number <= len(texts.get(file, ()))
    )


def _place(found: Finding) -> tuple[str, int]:
    file, line, _column = (found.where or ":0:0").rsplit(":", 2)
    return file, int(line)


def explained(name: str, *, nccl: str | None = None) -> Explanation:
    """Return what is known of a variable. Raises InputError for a version that is none."""
    return _explained(name, nccl, None)


def explained_here(name: str, *, nccl: str | None = None) -> Explanation:
    """Return what is known of a variable, and its value in force on this host."""
    return _explained(name, nccl, surroundings_here())


def explained_in_run(name: str, run_name: str, *, nccl: str | None = None) -> Explanation:
    """Return what is known of a variable, and its value in force in a run. Raises InputError for a run there is not."""
    return _explained(name, nccl, surroundings_of_run(run_name))


def _explained(name: str, nccl: str | None, surroundings: JobEnvironment | None) -> Explanation:
    version = parse_version(nccl) if nccl is not None else None
    known = (each.platform for each in platforms())
    return explain(name, nccl=version, platforms=known, surroundings=surroundings)
