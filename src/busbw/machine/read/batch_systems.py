"""Hosts of a job as Slurm, Flux, LSF, PBS and Grid Engine tell them, in variables, files and lists."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from busbw.base.errors import InputError
from busbw.base.hostlist import MOST_CHARACTERS, MOST_HOSTS, check_host_name, expand, expand_one, split
from busbw.machine.read.commands import Command
from busbw.model.host import Answer
from busbw.model.launch import Allocation, BatchJob, HostSlots, Slurm


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """The environment of a process, the files that it names, and what programs of the batch system say."""

    environment: Mapping[str, str]
    # By the variable that names it: its text, or in `unread` why there is none.
    files: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()
    # The time that it is.
    now_unix_s: float = 0.0

    def file(self, variable: str) -> str:
        """Return the text of the file that a variable names. Raises InputError where it cannot be read."""
        if variable not in self.files:
            raise InputError(
                f"{variable} names a file that cannot be read: {self.unread.get(variable, 'it is not there')}",
                where=self.environment.get(variable),
                hint=f"name the hosts: --hosts n[0-3]; or, outside of that job: unset {variable}",
            )
        return self.files[variable]

    def said(self, name: str) -> str | None:
        """Return what a program said, without white space around; None where it did not answer."""
        found = next((answer for answer in self.answers if answer.name == name), None)
        return found.output.strip() if found is not None and found.ended == "ok" else None


# `4` or `2(x3)`: tasks of a host, and of how many hosts in a row.
_TASKS = re.compile(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?")
_TIME = re.compile(r"[0-9]{1,12}")
_JOB_ID = re.compile(r"[0-9]{1,12}")
# Slurm's numbers for steps that are no srun of the user's (slurm/slurm.h).
_OWN_STEPS = {"4294967290": "the interactive step", "4294967291": "the batch step", "4294967292": "the extern step"}
# One of them is set where tasks were asked for. Else SLURM_TASKS_PER_NODE counts the CPUs (seen with 22.05).
_ASKED = ("SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_NTASKS_PER_GPU", "SLURM_CPUS_PER_TASK")
_SHOWN = 60

SLURM_COMMANDS = (
    Command(name="srun-version", programs=("srun",), arguments=("--version",)),
    Command(name="srun-mpi", programs=("srun",), arguments=("--mpi=list",)),
    Command(name="srun-help", programs=("srun",), arguments=("--help",)),
)
_VERSION = re.compile(r"slurm\S*\s+([0-9]+(?:\.[0-9A-Za-z]+)*)")
_TYPES_BEGIN = re.compile(r"MPI (?:plugin )?types are\.\.\.")
_TYPE = re.compile(r"[a-z][a-z0-9_]{0,40}")
_PMIX_VERSIONS = re.compile(r"specific pmix plugin versions available: ([a-z0-9_, ]+)")


class _Tasks(NamedTuple):
    # Of each host; None: not known.
    counts: tuple[int, ...] | None
    # Why they are not, or not of tasks.
    remark: str | None
    # Whether they are CPUs.
    are_cpus: bool = False


def slurm_allocation(seen: Seen) -> Allocation:
    """Return the hosts of the job. Raises InputError for variables that are not as Slurm writes them."""
    environment = seen.environment
    variable = "SLURM_JOB_NODELIST" if environment.get("SLURM_JOB_NODELIST") else "SLURM_NODELIST"
    listed = environment[variable]
    names = expand(listed, where=variable)
    if len(set(names)) != len(names):
        raise InputError("a host is named twice", where=f"{variable}={_short(listed)}")
    _check_count(environment, len(names), variable)
    tasks = _tasks(environment, names)
    job_id = environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID")
    if job_id is not None and _JOB_ID.fullmatch(job_id) is None:
        raise InputError(f"{_short(job_id)!r} is not a number of a job", where="SLURM_JOB_ID")
    counts: Sequence[int | None] = tasks.counts or [None] * len(names)
    return Allocation(
        kind="slurm",
        hosts=tuple(
            HostSlots(name=name, cpus=count) if tasks.are_cpus else HostSlots(name=name, slots=count)
            for name, count in zip(names, counts, strict=True)
        ),
        job_id=job_id,
        ends_unix_s=_ends(environment),
        how=f"{variable}={_short(listed)}{f' of job {job_id}' if job_id else ''}{_step(environment)}",
        passed_over=tuple(remark for remark in (tasks.remark, _components(environment)) if remark is not None),
    )


def repeats(text: str, where: str) -> tuple[int, ...]:
    """Return the numbers that `2(x3),1` stands for: 2, 2, 2, 1. Raises InputError."""
    counts: list[int] = []
    for part in text.split(","):
        match = _TASKS.fullmatch(part)
        if match is None:
            raise InputError(f"{_short(part)!r} is not a number of tasks", where=where)
        times = int(match[2] or 1)
        if len(counts) + times > MOST_HOSTS:
            raise InputError(f"more than {MOST_HOSTS} hosts", where=where)
        counts.extend([int(match[1])] * times)
    return tuple(counts)


def slurm(answers: Sequence[Answer]) -> Slurm | None:
    """Return the Slurm that answered COMMANDS; None where there is no srun."""
    by_name = {answer.name: answer for answer in answers}
    version = by_name["srun-version"]
    if version.ended == "absent" or not version.argv[0].startswith("/"):
        return None
    listed, helped = by_name["srun-mpi"], by_name["srun-help"]
    found = _VERSION.search(version.output)
    return Slurm(
        srun=version.argv[0],
        version=found[1] if found is not None else None,
        # Up to 20.11 the list is a complaint: on standard error, each line behind `srun: `.
        mpi_types=mpi_types(f"{listed.error}\n{listed.output}"),
        has_pyxis="--container-image" in helped.output,
    )


def mpi_types(text: str) -> tuple[str, ...]:
    """Return the names that `srun --mpi=list` prints, in order; () where it prints none."""
    names: dict[str, None] = {}
    listing = False
    for raw in text.split("\n"):
        line = raw.strip().removeprefix("srun: ").strip()
        versions = _PMIX_VERSIONS.fullmatch(line)
        if _TYPES_BEGIN.fullmatch(line):
            listing = True
        elif listing and versions is not None:
            names.update((name, None) for part in versions[1].split(",") if _TYPE.fullmatch(name := part.strip()))
        elif listing and _TYPE.fullmatch(line):
            names[line] = None
    return tuple(names)


def _check_count(environment: Mapping[str, str], found: int, variable: str) -> None:
    text = environment.get("SLURM_JOB_NUM_NODES", "")
    if text.isdecimal() and len(text) <= len(str(MOST_HOSTS)) and int(text) != found:
        raise InputError(
            f"{variable} lists {found} hosts, and SLURM_JOB_NUM_NODES is {int(text)}",
            where=variable,
            hint="name the hosts: --hosts n[0-3]",
        )


def _tasks(environment: Mapping[str, str], names: Sequence[str]) -> _Tasks:
    text = environment.get("SLURM_TASKS_PER_NODE")
    if not text:
        return _Tasks(None, None)
    counts = repeats(text, "SLURM_TASKS_PER_NODE")
    if len(counts) != len(names):
        # Inside a step the variable is about the step.
        remark = f"SLURM_TASKS_PER_NODE={_short(text)}: it is of {len(counts)} hosts, and the job has {len(names)}"
        return _Tasks(None, remark)
    if 0 in counts:
        return _Tasks(None, f"SLURM_TASKS_PER_NODE={_short(text)}: a host without tasks")
    if not any(environment.get(name) for name in _ASKED):
        remark = f"SLURM_TASKS_PER_NODE={_short(text)}: the job did not ask for tasks, these are CPUs"
        return _Tasks(counts, remark, are_cpus=True)
    return _Tasks(counts, None)


def _ends(environment: Mapping[str, str]) -> float | None:
    text = environment.get("SLURM_JOB_END_TIME", "")
    return float(text) if _TIME.fullmatch(text) else None


def _step(environment: Mapping[str, str]) -> str:
    step = environment.get("SLURM_STEP_ID")
    if step is None:
        return ""
    return f", inside {_OWN_STEPS.get(step, f'step {_short(step)}')}"


def _components(environment: Mapping[str, str]) -> str | None:
    """Return that a heterogeneous job has further components, whose hosts the usual variables do not name."""
    size = environment.get("SLURM_HET_SIZE", "")
    if not size.isdecimal() or size in ("0", "1"):
        return None
    return f"SLURM_HET_SIZE={_short(size)}: the hosts of the job's other components are not used"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


# Words of Open MPI and PRRTE for the same two things.
_SLOTS = {"slots", "cpu", "count"}
_MOST_SLOTS = {
    f"{first}{joint}{second}"
    for word in ("slots", "cpu", "count")
    for first, second in (("max", word), (word, "max"))
    for joint in "-_"
}
_ENTRY = re.compile(r"(?P<names>[^:@\s]+)(?::(?P<slots>[0-9]{1,9}))?")
# With brackets and a number of slots, or without.
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\](?::[0-9]+)?|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*")
_COUNT = re.compile(r"[0-9]{1,9}")
_OPTION = re.compile(r"(?P<key>[A-Za-z][A-Za-z_-]*)=(?P<value>\S*)")
_ALLOCATION_FILES_SHOWN = 80
# Names of one file, repeated ones counted: 16 ranks on each of the most hosts.
_MOST_ENTRIES = 2**20


def host_file(text: str, where: str) -> tuple[HostSlots, ...]:
    """Return the hosts of a file as mpirun takes it, in order; names on several lines have that many slots.

    A line is `HOST`, `HOST:4` (Hydra) or `HOST slots=4 max_slots=8` (Open MPI), HOST also a list such as `n[0-3]`; `#`
    begins a comment. Raises InputError with the line for anything else.
    """
    slots: dict[str, int] = {}
    given: dict[str, str] = {}
    entries = 0
    for place, line in _lines(text, where):
        words = _joined(line).split()
        counted = _slots(words[1:], place)
        for name, beside in _entries(words[0], place):
            entries += 1
            if beside is not None and counted is not None:
                raise _unknown(line, "both :N and slots= say how many ranks it takes", place)
            form = "slots=" if counted is not None else ":N" if beside is not None else "a line each"
            if given.setdefault(name, form) != form or (name in slots and form == "slots="):
                raise _unknown(line, f"{name} has its slots twice, and it is not said which counts", place)
            slots[name] = slots.get(name, 0) + (counted or beside or 1)
        if len(slots) > MOST_HOSTS or entries > _MOST_ENTRIES:
            raise InputError(f"more than {MOST_HOSTS} hosts, or {_MOST_ENTRIES} ranks by name", where=place)
    if not slots:
        raise InputError("no host in this file", where=where, hint="a line each: n0 slots=8")
    repeated = {name for name, form in given.items() if form != "a line each" or slots[name] > 1}
    return tuple(HostSlots(name=name, slots=count if name in repeated else None) for name, count in slots.items())


def host_list(text: str, where: str) -> tuple[HostSlots, ...]:
    """Return the hosts of a list as `n0,n1`, `n0:4,n1:4` or `n[0-3]:8`; `n0,n0,n1` are two slots and one.

    Raises InputError.
    """
    entries = list(_entries(text, where))
    if not entries:
        raise InputError("no host is named", where=where, hint="--hosts n[0-3], or a file of hosts")
    counts: dict[str, int] = {}
    counted: dict[str, bool] = {}
    for name, slots in entries:
        if name.isdecimal():
            raise InputError(f"{name} is a number, not the name of a host", where=where, hint=f"--nodes {name}")
        if counted.setdefault(name, slots is not None) != (slots is not None):
            raise InputError(f"{name} is there with and without a number of slots", where=where)
        counts[name] = counts.get(name, 0) + (slots or 1)
    # Whoever names a host twice counts slots by names.
    by_names = any(count > 1 and not counted[name] for name, count in counts.items())
    return tuple(
        HostSlots(name=name, slots=count if by_names or counted[name] else None) for name, count in counts.items()
    )


def node_file(text: str, where: str) -> tuple[HostSlots, ...]:
    """Return the hosts of a file with a name for each slot, as PBS and LSF write it. Raises InputError."""
    return repeated([(line, place) for place, line in _lines(text, where)], where)


def repeated(names: Sequence[tuple[str, str]], where: str) -> tuple[HostSlots, ...]:
    """Return hosts that are named once for each of their slots; each name comes with its place."""
    for name, place in names:
        check_host_name(name, where=place)
    counts = Counter(name for name, _place in names)
    if not 0 < len(counts) <= MOST_HOSTS:
        raise InputError(f"{len(counts)} hosts are listed, and 1 to {MOST_HOSTS} can be used", where=where)
    return tuple(HostSlots(name=name, slots=count) for name, count in counts.items())


def paired(pairs: Sequence[tuple[str, str, str]], where: str) -> tuple[HostSlots, ...]:
    """Return hosts that are named with their slots: (name, slots, place) of each; several of one host are added up."""
    counts: dict[str, int] = {}
    for name, slots, place in pairs:
        check_host_name(name, where=place)
        if _COUNT.fullmatch(slots) is None or int(slots) == 0:
            raise _unknown(f"{name} {slots}", "no number of slots", place)
        counts[name] = counts.get(name, 0) + int(slots)
    if not 0 < len(counts) <= MOST_HOSTS:
        raise InputError(f"{len(counts)} hosts are listed, and 1 to {MOST_HOSTS} can be used", where=where)
    return tuple(HostSlots(name=name, slots=count) for name, count in counts.items())


def grid_engine_file(text: str, where: str) -> tuple[HostSlots, ...]:
    """Return the hosts of a PE_HOSTFILE: host, slots, queue and processors in columns. Raises InputError."""
    pairs = []
    for place, line in _lines(text, where):
        words = line.split()
        if not 2 <= len(words) <= 4:  # the last two are not always there
            raise _unknown(line, "not the columns host, slots, queue, processors", place)
        pairs.append((words[0], words[1], place))
    return paired(pairs, where)


def _lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield `file:line` and what is there beside comments."""
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"over {MOST_CHARACTERS >> 20} MiB: no list of hosts is", where=where)
    for number, raw in enumerate(text.split("\n"), 1):
        line = re.split(r"#|//", raw, maxsplit=1)[0].strip()
        if line:
            yield f"{where}:{number}", line


def _entries(text: str, place: str) -> Iterator[tuple[str, int | None]]:
    """Yield each host of `n0:4,n[1-3]` with its slots; None where none are said."""
    room = MOST_HOSTS
    line = _joined(text.strip())
    for expression in split(line, where=place) if line else ():
        if _IPV6.fullmatch(expression) is not None:
            raise _unknown(expression, "an address of IPv6; launchers take names: put one into /etc/hosts", place)
        if "@" in expression:
            raise _unknown(expression, "a user belongs into the settings of ssh, not into a list of hosts", place)
        if expression[0] in "^+":
            raise _unknown(expression, "hosts left out, and hosts by their number, depend on another list", place)
        match = _ENTRY.fullmatch(expression)
        if match is None:
            raise _unknown(expression, "not a host, HOST:SLOTS, or a list such as n[0-3]", place)
        slots = int(match["slots"]) if match["slots"] is not None else None
        if slots == 0:
            raise _unknown(expression, "a host without slots takes no rank", place)
        names = expand_one(match["names"], where=place, room=room)
        room -= len(names)
        for name in names:
            yield name, slots


def _joined(text: str) -> str:
    """Return a line without the blanks beside its commas and equals signs."""
    return re.sub(r"\s*([=,])\s*", r"\1", text)


def _slots(options: Sequence[str], place: str) -> int | None:
    """Return the slots that the words behind a host's name say; None where they say none."""
    found: dict[str, int] = {}
    for option in options:
        match = _OPTION.fullmatch(option)
        if match is None or match["key"] not in _SLOTS | _MOST_SLOTS:
            raise _unknown(option, "known are slots=N and max_slots=N", place)
        if _COUNT.fullmatch(match["value"]) is None or int(match["value"]) == 0:
            raise _unknown(option, "no number of slots", place)
        kind = "slots" if match["key"] in _SLOTS else "most"
        if kind in found:
            raise _unknown(option, "the same is said before", place)
        found[kind] = int(match["value"])
    if found.get("most", found.get("slots", 0)) < found.get("slots", 0):
        raise _unknown(" ".join(options), "more slots than the most", place)
    return found.get("slots")


def _unknown(text: str, why: str, place: str) -> InputError:
    shown = text if len(text) <= _ALLOCATION_FILES_SHOWN else f"{text[:_ALLOCATION_FILES_SHOWN]}..."
    return InputError(f"cannot take {shown!r}: {why}", where=place)


# In a task FLUX_JOB_ID says which hosts are meant. The shell of `flux alloc` has an instance of its own, whose broker
# knows them; versions before 0.59 have no `flux hostlist`.
FLUX_COMMANDS = (
    Command(name="flux-hostlist", programs=("flux",), arguments=("hostlist", "local")),
    Command(name="flux-attribute", programs=("flux",), arguments=("getattr", "hostlist")),
    Command(name="flux-jobid", programs=("flux",), arguments=("getattr", "jobid")),
    Command(name="flux-timeleft", programs=("flux",), arguments=("job", "timeleft")),
)


def flux_allocation(seen: Seen) -> Allocation:
    """Return the hosts that Flux gave. Raises InputError where `flux` does not tell them."""
    inside = seen.environment.get("FLUX_JOB_ID") or None
    listed, asked = seen.said("flux-hostlist"), "flux hostlist local"
    if not listed and inside is None:
        listed, asked = seen.said("flux-attribute"), "flux getattr hostlist"
    if not listed:
        raise InputError(
            "FLUX_URI is set, and flux does not tell the hosts",
            where=asked,
            hint="name the hosts: --hosts n[0-3]; or, outside of Flux: unset FLUX_URI",
        )
    # Brokers may share a host in tests of Flux.
    names = tuple(dict.fromkeys(expand(listed, where=asked)))
    job_id = inside or seen.said("flux-jobid") or None
    return Allocation(
        kind="flux",
        hosts=tuple(HostSlots(name=name) for name in names),
        job_id=job_id,
        ends_unix_s=_allocation_flux_ends(seen),
        how=f"`{asked}`{f' of job {job_id}' if job_id else ''}",
    )


def _allocation_flux_ends(seen: Seen) -> float | None:
    try:
        left_s = float(seen.said("flux-timeleft") or "nan")
    except ValueError:
        return None
    return seen.now_unix_s + left_s if math.isfinite(left_s) else None


# Set by IBM's Cluster System Management: the batch script runs on a launch node that is not part of the job.
_LAUNCH_NODE_SIGN = "CSM_ALLOCATION_ID"


def lsf_allocation(seen: Seen) -> Allocation:
    """Return the hosts of the job, without its launch node. Raises InputError."""
    hosts, found = _hosts(seen)
    job_id = seen.environment.get("LSB_JOBID") or None
    passed_over: tuple[str, ...] = ()
    first, others = hosts[0], hosts[1:]
    if others and first.slots == 1 and min(host.slots or 0 for host in others) > 1:
        if seen.environment.get(_LAUNCH_NODE_SIGN):
            hosts = others
            passed_over = (
                f"{first.name}: the first host, with one slot, is the launch node ({_LAUNCH_NODE_SIGN} is set)",
            )
        else:
            passed_over = (f"possibly {first.name} is a launch node: it has one slot and the others more; it is used",)
    of_job = f" of job {job_id}" if job_id else ""
    return Allocation(kind="lsf", hosts=hosts, job_id=job_id, how=f"{found}{of_job}", passed_over=passed_over)


def _hosts(seen: Seen) -> tuple[tuple[HostSlots, ...], str]:
    """Return the hosts and the variable that they are from, the one that is never cut short first."""
    environment = seen.environment
    if "LSB_DJOB_HOSTFILE" in seen.files:
        path = environment["LSB_DJOB_HOSTFILE"]
        return node_file(seen.files["LSB_DJOB_HOSTFILE"], path), f"LSB_DJOB_HOSTFILE={path}"
    words = environment.get("LSB_MCPU_HOSTS", "").split()
    if words:
        if len(words) % 2:
            raise InputError("not pairs of a host and its slots", where="LSB_MCPU_HOSTS")
        pairs = [(name, slots, "LSB_MCPU_HOSTS") for name, slots in zip(words[::2], words[1::2], strict=True)]
        return paired(pairs, "LSB_MCPU_HOSTS"), "LSB_MCPU_HOSTS"
    words = environment.get("LSB_HOSTS", "").split()
    if words:
        return repeated([(name, "LSB_HOSTS") for name in words], "LSB_HOSTS"), "LSB_HOSTS"
    # What is wrong with the file is the reason that there is nothing.
    return node_file(seen.file("LSB_DJOB_HOSTFILE"), environment["LSB_DJOB_HOSTFILE"]), "LSB_DJOB_HOSTFILE"


# Values of a user's own words (names, comments, commands) may hold anything; these stand before all of them but one.
_FIELDS = {
    name: re.compile(rf"(?:^| ){name}=(\S*)")
    for name in ("JobId", "ArrayJobId", "ArrayTaskId", "JobState", "Reason", "ExitCode", "Restarts")
}
_HOSTS = re.compile(r" NodeList=(\S*)")
_NUMBER = re.compile(r"\d{1,18}")
_EXIT = re.compile(r"(\d{1,6}):\d{1,6}")
_NOTHING = ("None", "(null)", "", "N/A")
# The user's own name for the job comes second, and may imitate what follows it.
_NAME = re.compile(r" JobName=.*? (?=UserId=)")


def jobs(text: str) -> tuple[BatchJob, ...]:
    """Return the jobs of a listing; lines that are none are left out."""
    return tuple(found for line in text.splitlines() if (found := _job(line)) is not None)


def _job(line: str) -> BatchJob | None:
    line = _NAME.sub(" ", line, count=1)
    fields = {name: match[1] for name, pattern in _FIELDS.items() if (match := pattern.search(line)) is not None}
    number, state = fields.get("JobId", ""), fields.get("JobState", "")
    if _NUMBER.fullmatch(number) is None or not state:
        return None
    task = fields.get("ArrayTaskId")
    ended = _EXIT.fullmatch(fields.get("ExitCode", ""))
    hosts = _HOSTS.search(line)
    restarts = fields.get("Restarts", "")
    return BatchJob(
        job_id=f"{fields.get('ArrayJobId', number)}_{task}" if task is not None else number,
        state=state,
        reason=_said(fields.get("Reason")),
        exit_code=int(ended[1]) if ended is not None else None,
        hosts=_said(hosts[1] if hosts is not None else None),
        restarts=int(restarts) if _NUMBER.fullmatch(restarts) is not None else 0,
    )


def _said(value: str | None) -> str | None:
    return None if value is None or value in _NOTHING else value
