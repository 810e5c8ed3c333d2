"""Folders of searches over groups: the plan, a line for each run of a group, its output as printed, what was found."""

import shlex
from pathlib import Path

from busbw.base.errors import InputError, RunError
from busbw.fabric.groups.isolation import ISOLATION_SCHEMA, GroupRun, Isolation, IsolationPlan
from busbw.model import codec
from busbw.store.files import is_file, make_resumable, read_whole, write_whole

PLAN_FILE = "isolation.json"
RUNS_FILE = "runs.jsonl"
RESULT_FILE = "result.json"
HOST_FILE = "hosts"
_MAX_BYTES = 2**28
# The end of an output is where results are.
_MOST_READ_BYTES = 4 * 2**20


def create(directory: Path, plan: IsolationPlan) -> None:
    """Make the folder of a search with its plan. Raises InputError where it cannot be made or holds something."""
    make_resumable(directory)
    write_whole(directory / PLAN_FILE, codec.encode_pretty(plan))


def find(name: str, base: Path) -> Path:
    """Return the search that `name` means: a path, or the beginning of one's name. Raises InputError."""
    if is_file(Path(name) / PLAN_FILE):
        return Path(name)
    try:
        found = [each for each in sorted(base.iterdir()) if each.name.startswith(name) and is_file(each / PLAN_FILE)]
    except (OSError, ValueError):
        found = []
    if len(found) != 1:
        raise InputError(
            f"{name[:80]!r} means {len(found) or 'no'} searches of `busbw isolate`",
            hint=f"name its folder: it has a file {PLAN_FILE}",
        )
    return found[0]


def read_plan(directory: Path) -> IsolationPlan:
    """Return what a search is about. Raises InputError when that is missing, damaged or too new."""
    path = directory / PLAN_FILE
    content = read_whole(path, _MAX_BYTES)
    codec.check_schema(content, ISOLATION_SCHEMA, where=str(path))
    plan = codec.decode(content, IsolationPlan, where=str(path))
    leaves_fit = not plan.leaves or len(plan.leaves) == len(plan.hosts)
    if len(set(plan.hosts)) < len(plan.hosts) or plan.group_nodes >= len(plan.hosts) or not leaves_fit:
        raise InputError("not a search: its hosts or its groups cannot be", where=str(path))
    return plan


def read_runs(directory: Path) -> tuple[GroupRun, ...]:
    """Return the runs of groups so far; a last line that was cut off is passed over. Raises InputError."""
    path = directory / RUNS_FILE
    if not is_file(path):
        return ()
    lines = read_whole(path, _MAX_BYTES).split(b"\n")
    return tuple(
        codec.decode(line, GroupRun, where=f"{path}:{number}")
        for number, line in enumerate(lines[:-1], start=1)
        if line
    )


def append_run(directory: Path, run: GroupRun) -> None:
    """Store one run of a group. Raises RunError when the disk is full or refuses."""
    path = directory / RUNS_FILE
    try:
        with path.open("ab+") as file:
            # A line that was cut off ends here.
            if file.tell() > 0:
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    file.truncate(_end_of_lines(path))
            file.write(codec.encode(run) + b"\n")
    except OSError as error:
        raise RunError(
            f"cannot write {RUNS_FILE}: {error.strerror or error}",
            where=str(directory),
            hint=f"free space, and go on with: busbw isolate --resume {shlex.quote(str(directory))}",
        ) from error


def _end_of_lines(path: Path) -> int:
    return path.read_bytes().rfind(b"\n") + 1


def next_round(directory: Path, number: int) -> str:
    """Return the name of a folder for a round; a round that was cut off keeps its own."""
    name, attempt = f"round-{number:03d}", 0
    while (directory / name).exists():
        attempt += 1
        name = f"round-{number:03d}.again-{attempt}"
    return name


def make_folder(directory: Path, name: str, hosts: tuple[str, ...]) -> Path:
    """Return the folder of one run of a group, with its host file. Raises RunError."""
    folder = directory / name
    try:
        folder.mkdir(parents=True)
        (folder / HOST_FILE).write_text("".join(f"{host}\n" for host in hosts), encoding="ascii")
    except OSError as error:
        raise RunError(
            f"cannot make the folder of a group: {error.strerror or error}",
            where=str(folder),
            hint=f"free space, and go on with: busbw isolate --resume {shlex.quote(str(directory))}",
        ) from error
    return folder


def printed(path: Path) -> str:
    """Return the end of what a command printed. Raises RunError."""
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _MOST_READ_BYTES, 0))
            return file.read(_MOST_READ_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise RunError(f"cannot read {path.name}: {error.strerror or error}", where=str(path)) from error


def read(directory: Path) -> Isolation | None:
    """Return what was found; None: the search has not ended. Raises InputError when it is damaged."""
    path = directory / RESULT_FILE
    if not is_file(path):
        return None
    return codec.decode(read_whole(path, _MAX_BYTES), Isolation, where=str(path))


def write(directory: Path, found: Isolation) -> None:
    """Store what was found."""
    write_whole(directory / RESULT_FILE, codec.encode_pretty(found))
