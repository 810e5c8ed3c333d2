"""Which node makes groups of nodes slow or fail: a command, or a run of busbw's own, on groups side by side."""

import datetime as dt
import math
import random
import secrets
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from busbw import __version__
from busbw.api.loading import read
from busbw.api.sweeping.evidence import topology_text
from busbw.base.collectives import COLLECTIVES, not_a_collective
from busbw.base.errors import BusbwError, InputError, RunError
from busbw.base.hostlist import compressed
from busbw.base.text import counted
from busbw.fabric.groups.isolation import GroupRun, Isolation, IsolationPlan, ReadRule
from busbw.fabric.groups.judging import GroupResult, GroupTerms
from busbw.fabric.groups.reading import check_command, command_of_group, read_result
from busbw.fabric.groups.report import isolation_of
from busbw.fabric.groups.search import Group
from busbw.fabric.groups.splitting import MOST_ROUNDS, REPEATS, first_groups, separate
from busbw.fabric.ib_links import placed_by_text
from busbw.fabric.places import Endpoint, flat
from busbw.fabric.table import quantity
from busbw.machine.capture import host as capture
from busbw.machine.capture import programs
from busbw.measure.execute.groups import STDERR, STDOUT, GroupCommand, GroupEnding, run_side_by_side
from busbw.measure.plan.hosts import hosts_of
from busbw.model.request import Request, words_of
from busbw.store import isolations

LEAST_HOSTS = 3
# Each has two pipes and what it starts.
_MOST_SIDE_BY_SIDE = 128
_TIMEOUT_S = 600.0
_MOST_REPEATS, _MOST_ROUNDS = 100, 1000
# How long a command may take to end; a run of busbw's own stops its ranks on every host first.
_GRACE_S = 3.0
_OWN_GRACE_S = 30.0
# What a group's run has of its own, and what makes no difference for it.
_NOT_OF_GROUPS = frozenset({"hosts", "nodes", "tag"})
_SHOWN = 200
_RUN_FOLDER = "run"


@dataclass(frozen=True, kw_only=True, slots=True)
class IsolationRequest:
    """What to search. `command` with `read`, or `request` with one collective."""

    hosts: str | None = None
    nodes: int | None = None
    # Nodes of a group; None: about the root of all.
    group_nodes: int | None = None
    repeats: int = REPEATS
    most_rounds: int = MOST_ROUNDS
    timeout_s: float = _TIMEOUT_S
    whole: bool = True
    # Slurm's topology.conf, or the output of ibnetdiscover, iblinkinfo or opensm.
    tree: str | None = None
    seed: int | None = None
    # What a sound group reaches: a number, of busbw's own runs with a unit.
    expect: str | None = None
    command: tuple[str, ...] = ()
    read: ReadRule | None = None
    request: Request | None = None


def plan_isolation(asked: IsolationRequest, directory: Path | None, base: Path) -> tuple[IsolationPlan, Path]:
    """Return the plan of a search and the folder it is for.

    Raises InputError for hosts that cannot be split, and for a command that does not say where it runs.
    """
    hosts, how = _hosts(asked)
    created = dt.datetime.now(dt.UTC)
    command, read_by = _command(asked)
    name = Path(command[0]).name if asked.request is None else asked.request.collectives[0]
    token = f"{created:%Y%m%dT%H%M%S}-isolate-{name}-{secrets.token_hex(2)}"
    where = (directory if directory is not None else base / token).absolute()
    _check_numbers(asked)
    plan = IsolationPlan(
        busbw_version=__version__,
        isolation_id=where.name,
        created=created.isoformat(timespec="seconds"),
        hosts=hosts,
        how=how,
        leaves=_leaves(asked.tree, hosts),
        group_nodes=_size(asked.group_nodes, len(hosts)),
        repeats=asked.repeats,
        most_rounds=asked.most_rounds,
        whole=asked.whole,
        timeout_s=asked.timeout_s,
        seed=asked.seed if asked.seed is not None else secrets.randbits(32),
        command=command,
        read=read_by,
        expected=_expected(asked, read_by),
        unit="B/s" if read_by.kind == "busbw-run" else "",
    )
    return plan, where


def _hosts(asked: IsolationRequest) -> tuple[tuple[str, ...], str]:
    found = hosts_of(Request(hosts=asked.hosts, nodes=asked.nodes), capture.host().name)
    if found is None:
        raise InputError("no hosts are named", hint="--hosts n[0-7], --hosts FILE, or --nodes 8 inside a job")
    names = tuple(each.name for each in found.hosts)
    if len(names) < LEAST_HOSTS:
        raise InputError(
            f"{counted(len(names), 'host')} cannot be told from each other by groups: {LEAST_HOSTS} are the least",
            where=found.how,
            hint="busbw run on the two of them, and on each with a third host",
        )
    return names, found.how


def _leaves(tree: str | None, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the leaf switch of each host; (): no file says it. Raises InputError for hosts that a file lacks."""
    if tree is None:
        return ()
    places = placed_by_text(flat(Endpoint(node=each, rail=None) for each in hosts), topology_text(tree), tree).places
    unknown = [host for host, leaf in zip(hosts, places.leaves, strict=True) if leaf is None]
    if unknown:
        raise InputError(
            f"no leaf switch of {compressed(unknown)} is in this file", where=tree, hint="leave --topology out"
        )
    return tuple(places.leaf_names[leaf] for leaf in places.leaves if leaf is not None)


def _leaf_numbers(plan: IsolationPlan) -> tuple[int, ...]:
    names = list(dict.fromkeys(plan.leaves))
    return tuple(names.index(each) for each in plan.leaves)


def _size(asked: int | None, hosts: int) -> int:
    """Return the nodes of a group: two groups side by side at least; of three hosts two."""
    most = max(hosts // 2, 2)
    group_nodes = asked if asked is not None else max(2, math.isqrt(hosts))
    if not 2 <= group_nodes <= most:
        raise InputError(
            f"groups of {group_nodes} cannot be: with {hosts} hosts they have 2 to {most}",
            where=f"--group {group_nodes}",
            hint="leave it out, and groups have about the root of all hosts",
        )
    if hosts // group_nodes > _MOST_SIDE_BY_SIDE:
        least = -(-hosts // _MOST_SIDE_BY_SIDE)
        raise InputError(
            f"{hosts // group_nodes} groups side by side are more than {_MOST_SIDE_BY_SIDE}",
            where=f"--group {group_nodes}",
            hint=f"--group {least}",
        )
    return group_nodes


def _check_numbers(asked: IsolationRequest) -> None:
    # Without a second run it is not known how far values scatter; an exit code does not.
    least = 1 if asked.read is not None and asked.read.kind == "exit-code" else 2
    if not least <= asked.repeats <= _MOST_REPEATS:
        raise InputError(f"--repeats lies between {least} and {_MOST_REPEATS}", where=f"--repeats {asked.repeats}")
    if not 1 <= asked.most_rounds <= _MOST_ROUNDS:
        raise InputError(f"--rounds lies between 1 and {_MOST_ROUNDS}", where=f"--rounds {asked.most_rounds}")
    if not 0 < asked.timeout_s <= 31 * 24 * 3600:
        raise InputError(
            "a group's time must be more than 0 and at most a month", where=f"--timeout {asked.timeout_s:g}"
        )


def _command(asked: IsolationRequest) -> tuple[tuple[str, ...], ReadRule]:
    if asked.request is None:
        check_command(asked.command)
        assert asked.read is not None
        _check_program(asked.command[0])
        return asked.command, asked.read
    names = asked.request.collectives
    if len(names) != 1 or names[0] not in COLLECTIVES:
        if (wrong := next((name for name in names if name not in COLLECTIVES), None)) is not None:
            raise not_a_collective(wrong)
        raise InputError(
            "one collective tells groups apart",
            where=" ".join(names)[:_SHOWN],
            hint="busbw isolate all_reduce -b 64M --hosts F; a command of yours stands behind --",
        )
    request = asked.request
    if request.smallest_bytes is None or request.largest_bytes not in (None, request.smallest_bytes):
        raise InputError("groups are compared at one size", hint=f"busbw isolate {names[0]} -b 64M --hosts F")
    words = [word for option in words_of(request, _NOT_OF_GROUPS | {"largest_bytes"}) for word in option]
    group_nodes = str(request.smallest_bytes)
    own = ("run", names[0], "--hosts", "{hosts}", *words, "-e", group_nodes, "--out", "{folder}/" + _RUN_FOLDER)
    return (sys.executable, "-P", "-m", "busbw", *own), ReadRule(kind="busbw-run", higher_is_better=True)


def _check_program(name: str) -> None:
    """Raise InputError for a program that is not here."""
    try:
        programs.find((name,), None)
    except InputError as error:
        raise InputError(
            f"there is no program {name[:_SHOWN]!r}", where="the command behind --", hint="a path, or a name on PATH"
        ) from error


def _expected(asked: IsolationRequest, read_by: ReadRule) -> float | None:
    if asked.expect is None:
        return None
    if read_by.kind == "busbw-run":
        return quantity(asked.expect, "bandwidth", "--expect")
    found = read_result(ReadRule(kind="last-number", higher_is_better=True), asked.expect)
    if read_by.kind == "exit-code" or found.value is None:
        raise InputError(
            "a program whose exit code is read reaches no value"
            if read_by.kind == "exit-code"
            else "not a number above 0",
            where=f"--expect {asked.expect[:80]}",
            hint="--expect 380",
        )
    return found.value


def planned_groups(plan: IsolationPlan) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """Return the groups of the first round that has several, each with its hosts and its command."""
    made = []
    for at, group in enumerate(first_groups(len(plan.hosts), plan.group_nodes, _leaf_numbers(plan))):
        hosts = tuple(plan.hosts[node] for node in group)
        made.append((hosts, command_of_group(plan.command, _places(hosts, _name(0, at), "FOLDER"))))
    return tuple(made)


def isolate_nodes(plan: IsolationPlan, where: Path, say: Callable[[str], None]) -> Isolation:
    """Carry out a search in a new folder and return what was found; `say` is told of each round.

    Raises InputError when the folder cannot be made, RunError when a command cannot be started or was stopped.
    """
    isolations.create(where, plan)
    return go_on(where, say)


def go_on(where: Path, say: Callable[[str], None]) -> Isolation:
    """Carry out what is missing in a search and return what was found. What is stored is taken as it is."""
    plan = isolations.read_plan(where)
    rounds = _Rounds(plan, where, say)
    separated = separate(
        len(plan.hosts),
        plan.group_nodes,
        rounds.measure,
        GroupTerms(higher_is_better=plan.read.higher_is_better, expected=plan.expected),
        random.Random(plan.seed),  # noqa: S311 - which groups are drawn is no secret
        repeats=plan.repeats,
        most_rounds=plan.most_rounds,
        whole=plan.whole,
        leaves=_leaf_numbers(plan),
    )
    found = isolation_of(separated, plan)
    isolations.write(where, found)
    return found


class _Rounds:
    """Rounds of groups: taken from the folder where they are stored, else run and stored."""

    def __init__(self, plan: IsolationPlan, where: Path, say: Callable[[str], None]) -> None:
        self._plan, self._where, self._say = plan, where, say
        self._stored: dict[int, dict[int, GroupRun]] = {}
        self._of: dict[int, int] = {}
        for each in isolations.read_runs(where):
            own = self._stored.setdefault(each.round, {})
            if each.at in own:
                # The round was cut off, and has begun anew.
                own.clear()
            own[each.at] = each
            self._of[each.round] = each.of

    def measure(self, groups: Sequence[Group], number: int) -> tuple[GroupResult, ...]:
        """Return what each group of a round comes to. Raises RunError when it is stopped."""
        hosts = tuple(tuple(self._plan.hosts[node] for node in group) for group in groups)
        stored = self._stored.get(number, {})
        if len(stored) == len(groups):
            self._check(hosts, stored, number)
            return tuple(GroupResult(value=stored[at].value, failure=stored[at].failure) for at in range(len(groups)))
        shown = "; ".join(compressed(own) for own in hosts[:4])
        more = f" and {len(hosts) - 4} more" if len(hosts) > 4 else ""
        self._say(f"round {number + 1}: {counted(len(hosts), 'group')}: {shown}{more}")
        return self._run(hosts, number)

    def _check(self, hosts: Sequence[tuple[str, ...]], stored: dict[int, GroupRun], number: int) -> None:
        if [stored[at].hosts if at in stored else () for at in range(len(hosts))] != list(hosts):
            raise InputError(
                f"round {number + 1} that is stored here had other groups than this busbw asks for",
                where=str(self._where),
                hint="begin anew with another --out",
            )

    def _run(self, hosts: Sequence[tuple[str, ...]], number: int) -> tuple[GroupResult, ...]:
        results: dict[int, GroupResult] = {}
        commands, folders = [], []
        folder_of_round = isolations.next_round(self._where, number)
        for at, own in enumerate(hosts):
            name = f"{folder_of_round}/group-{at:03d}"
            folder = isolations.make_folder(self._where, name, own)
            folders.append(name)
            argv = command_of_group(self._plan.command, _places(own, _name(number, at), str(folder)))
            tag = f"{self._plan.isolation_id}.{name}"
            commands.append(GroupCommand(argv=argv, folder=folder, tag=tag))

        def ended(at: int, ending: GroupEnding) -> None:
            result = _result(self._plan.read, ending, self._where / folders[at])
            results[at] = result
            isolations.append_run(
                self._where,
                GroupRun(
                    round=number, at=at, of=len(hosts), hosts=hosts[at], value=result.value, failure=result.failure,
                    wall_s=ending.wall_s, folder=folders[at],
                ),
            )  # fmt: skip

        grace_s = _OWN_GRACE_S if self._plan.read.kind == "busbw-run" else _GRACE_S
        if not run_side_by_side(commands, self._plan.timeout_s, grace_s, ended):
            raise RunError(
                f"stopped in round {number + 1}; what was measured is stored",
                where=str(self._where),
                hint=f"busbw isolate --resume {shlex.quote(str(self._where))}",
            )
        return tuple(results[at] for at in range(len(hosts)))


def _name(number: int, at: int) -> str:
    return f"r{number:03d}g{at:03d}"


def _places(hosts: tuple[str, ...], name: str, folder: str) -> dict[str, str]:
    return {
        "hosts": ",".join(hosts), "hostfile": f"{folder}/{isolations.HOST_FILE}", "nodes": str(len(hosts)),
        "group": name, "folder": folder,
    }  # fmt: skip


def _result(rule: ReadRule, ending: GroupEnding, folder: Path) -> GroupResult:
    if rule.kind == "busbw-run":
        return _of_run(ending, folder)
    if ending.failure is not None:
        last = _last_line(folder / STDERR)
        return GroupResult(failure=f"{ending.failure}: {last}" if last else ending.failure)
    return read_result(rule, isolations.printed(folder / STDOUT))


def _of_run(ending: GroupEnding, folder: Path) -> GroupResult:
    """Return the bus bandwidth that a run of busbw's own reached; its exit code speaks of findings."""
    try:
        run = read(folder / _RUN_FOLDER)
    except BusbwError as error:
        said = _last_line(folder / STDERR) or error.cause
        return GroupResult(failure=f"{ending.failure or 'no result'}: {said}")
    if any(each.wrong is not None for each in run.measurements):
        return GroupResult(failure="wrong result")
    if run.outcome is None or run.outcome.ended not in ("complete", "time") or not run.measurements:
        cause = run.outcome.cause if run.outcome is not None and run.outcome.cause else "no result"
        return GroupResult(failure=cause[:_SHOWN])
    value = run.measurements[-1].busbw_Bps
    return GroupResult(value=value) if value > 0 else GroupResult(failure="it moved nothing")


def _last_line(path: Path) -> str:
    """Return the last line of what went to standard error, of an error of busbw its cause."""
    lines = [line.strip() for line in isolations.printed(path).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("error: ")]
    return (causes or lines or [""])[-1][:_SHOWN]
