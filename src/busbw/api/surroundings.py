"""What a job would find of settings: on this host, on a captured one, or where a run or an import was made."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from busbw.api.loading import read
from busbw.api.stored import find, is_import
from busbw.base.errors import InputError
from busbw.base.text import listed
from busbw.machine.capture.environment import absent
from busbw.machine.capture.snapshot import capture
from busbw.machine.detect.ladder import detect
from busbw.machine.named import platforms
from busbw.machine.read.hardware import hardware_of
from busbw.measure.plan.surroundings import named_paths, with_files
from busbw.model.host import Snapshot
from busbw.model.imported import Imported
from busbw.model.record import Hello
from busbw.model.run import Run
from busbw.model.settings import WITHHELD, JobEnvironment
from busbw.store import imports
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
    """Return what a job found on a captured host. Raises InputError for a file that is not a snapshot."""
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
    environment |= plan.recommended.env() if plan.recommended is not None else {}
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
        recommended=plan.recommended.settings if plan.recommended is not None else (),
        unseen=(*unseen, *_withheld(environment), *_elsewhere(plan.placement.hosts)),
    )


def _elsewhere(hosts: tuple[str, ...]) -> Iterator[str]:
    if len(hosts) > 1:
        yield f"settings files of the other {len(hosts) - 1} hosts"


def _differing(ranks: tuple[Hello, ...]) -> Iterator[str]:
    """Yield a line for each variable that is not the same in all ranks that tell theirs."""
    of_ranks = {rank.rank: dict(rank.gpu.environment) for rank in ranks if rank.gpu is not None}
    names = dict.fromkeys(name for environment in of_ranks.values() for name in environment)
    for name in names:
        first = next(iter(of_ranks.values())).get(name)
        others = [rank for rank, environment in of_ranks.items() if environment.get(name) != first]
        if others:
            yield f"{name} is another in rank {listed(map(str, others), _MOST_NAMED)}: this is as the first rank has it"


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
        yield f"the values of {listed(names, _MOST_NAMED)}: they look secret, and were withheld"
