"""What is set and does not reach the ranks: launchers, containers and shells pass on what they are told to."""

import re
from collections.abc import Iterator

from busbw.base.text import listed
from busbw.env.rules.situations import Situation, is_handed_on, is_plain, spans_nodes, started_at, starts_anew
from busbw.env.rules.subject import OF_BUILDING, SettingsSubject, known, place_of, place_of_value, report, setting_text
from busbw.model.finding import Finding
from busbw.model.settings import Assignment, LaunchCommand, SettingsReading

# Forms that set a variable for the launching side only.
_EXPORTED = {"export", "prefix", "environment"}
# Owners whose variables mpirun of Open MPI passes on by itself, and programs that only the launching side needs.
_HOSTS_OF_OPEN_MPI = {"-H", "--host", "--hostfile"}
_OWN_OF_OPEN_MPI = ("OMPI_", "PMIX_", "PRTE_")
# A variable that is used or exported elsewhere in the text, as in a string that is run later.
_USE = re.compile(r"(?:\$\{?|\bexport )([A-Za-z_]\w*)", re.ASCII)
_FOR_RANKS = (
    *("NCCL_", "MSCCL_", "MSCCLPP_", "UCX_", "FI_", "OFI_", "SHARP_", "CUDA_", "TORCH_NCCL_", "HCOLL_", "NVSHMEM_"),
)


def forwarding(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield what is set where the ranks do not see it."""
    for each in subject.situations:
        if each.launch is not None and not is_plain(each.launch):
            yield from _mpirun(subject, each, each.launch)
            yield from _srun(each, each.launch)
            yield from _container(each, each.launch)
            yield from _anew(subject, each, each.launch)
    yield from _left_in_shell(subject)
    yield from _named_and_unset(subject)
    yield from _too_late(subject)


def _matters(name: str) -> bool:
    variable = known(name)
    return variable is not None and name.startswith(_FOR_RANKS) and variable.owner not in OF_BUILDING


def _mpirun(subject: SettingsSubject, situation: Situation, launch: LaunchCommand) -> Iterator[Finding]:
    """Yield what mpirun of Open MPI keeps from other nodes."""
    if launch.kind != "mpirun" or not _passes_on_what_is_named(launch) or launch.computed:
        return
    # Under a batch system mpirun starts its daemons through that, and they have the environment of the script.
    if spans_nodes(launch, subject.nodes) is not True or subject.batch_system is not None:
        return
    for name, each in situation.settings.items():
        if each.form not in _EXPORTED or name in launch.forwards or not _matters(name):
            continue
        if name.startswith(_OWN_OF_OPEN_MPI):
            continue
        yield report(
            "ENV100",
            at=place_of(each),
            evidence=f"mpirun in line {launch.line} names no -x {name}, and starts ranks on other nodes",
            confidence="likely",
            effect=f"{setting_text(each)} holds for the ranks of this node only",
            fix=f"-x {name} in line {launch.line}",
            name=name,
        )


def _passes_on_what_is_named(launch: LaunchCommand) -> bool:
    """Whether an mpirun is Open MPI's; where no option tells, the way in which hosts are given does."""
    if launch.forwards_all is not None or launch.family is not None:
        return launch.forwards_all is False
    return any(word in _HOSTS_OF_OPEN_MPI for word in launch.argv[: launch.program])


def _srun(situation: Situation, launch: LaunchCommand) -> Iterator[Finding]:
    if launch.kind != "srun" or launch.forwards_all is not False or launch.computed:
        return
    # A list of names without PATH leaves a program without what the script has loaded, whatever it is called.
    has_list = bool(launch.forwards) and not {"NONE", "NIL", "PATH"} & {name.upper() for name in launch.forwards}
    exported = [
        each
        for name, each in situation.settings.items()
        if each.form in _EXPORTED and each.launch is None and name not in launch.forwards
    ]
    lost = [each for each in exported if _matters(each.name)] or (exported if has_list else [])
    if lost:
        yield report(
            "ENV103",
            at=place_of(launch),
            evidence=f"{listed(each.name for each in lost)} set before, from line {lost[0].line} on",
            effect="the ranks run without them, and without PATH and LD_LIBRARY_PATH of the script",
            fix="--export=ALL,...",
        )


def _container(situation: Situation, launch: LaunchCommand) -> Iterator[Finding]:
    if launch.kind != "container" or launch.forwards_all is not False or launch.computed:
        return
    program = launch.argv[0].rpartition("/")[2] if launch.argv else ""
    for name, each in situation.settings.items():
        if each.form not in ("export", "environment") or name in launch.forwards or not _matters(name):
            continue
        if program in ("apptainer", "singularity"):
            yield report(
                "ENV105",
                at=place_of(launch),
                evidence=setting_text(each),
                fix=f"--env {name}=..., or APPTAINERENV_{name} before the command",
                option=_clearing_option(launch),
                name=name,
            )
        elif program in ("docker", "podman", "nerdctl"):
            yield report(
                "ENV104",
                at=place_of(each),
                evidence=f"{setting_text(each)}; {program} in line {launch.line} does not name it",
                fix=f"-e {name} in line {launch.line}",
                confidence="likely",
                name=name,
            )


def _clearing_option(launch: LaunchCommand) -> str:
    for word in launch.argv:
        if word in ("--cleanenv", "-e", "--containall", "-C", "--no-env"):
            return word
    return "its environment option"


def _anew(subject: SettingsSubject, situation: Situation, launch: LaunchCommand) -> Iterator[Finding]:
    """Yield what ranks do not have that are started on another host, or by another user."""
    if not starts_anew(launch):
        return
    reading = subject.reading
    inner = {number: each for number, each in enumerate(reading.launches) if each.within == situation.number}
    given = {each.name for each in reading.assignments if each.launch in inner}
    for name, each in situation.settings.items():
        if each.form not in ("export", "environment") or not _matters(name) or is_handed_on(launch, name, each):
            continue
        if name not in given and any(_wants(started, name) for started in inner.values()):
            yield report(
                "ENV108",
                at=place_of(each),
                evidence=f"{launch.family} in line {launch.line} does not hand it on",
                confidence="likely",
                effect=f"{setting_text(each)} does not hold for what is started there",
                fix=f"sudo --preserve-env={name}"
                if launch.family == "sudo"
                else f"{name}={each.written} before it there",
                name=name,
                program=launch.family or launch.argv[0],
            )


def _wants(launch: LaunchCommand, name: str) -> bool:
    """Whether a command starts ranks, or a container that is to take a variable in by its name."""
    return launch.kind in ("mpirun", "srun", "torchrun") or (launch.kind == "container" and name in launch.forwards)


def _left_in_shell(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield assignments that no program sees, where something is started that would need them."""
    reading = subject.reading
    if not reading.launches or reading.language not in ("shell", "slurm", "makefile"):
        return
    seen = {each.name for each in reading.assignments if each.form != "shell"}
    used = frozenset(_USE.findall("\n".join(reading.lines)))
    last = max(started_at(reading, number) for number in range(len(reading.launches)))
    for each in reading.assignments:
        if each.form != "shell" or each.name in seen or each.unsets or not _matters(each.name) or each.name in used:
            continue
        if (each.line, each.column) > last and reading.language != "makefile":
            # Nothing is started behind it: a list of an environment on a page, or a file for others to take in.
            continue
        yield report(
            "ENV102",
            at=place_of(each),
            evidence=setting_text(each),
            effect="no program that this script starts sees it",
            fix=f"export {each.name}={each.written}",
            name=each.name,
        )


def _named_and_unset(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield names that mpirun is told to pass on and that the text does not set."""
    reading = subject.reading
    set_here = {each.name for each in reading.assignments if not each.unsets}
    if not any(each.form in ("export", "environment") for each in reading.assignments):
        return
    reported: set[str] = set()
    for launch in reading.launches:
        if launch.kind != "mpirun" or launch.family not in (None, "Open MPI"):
            continue
        for name in launch.forwards:
            if name in set_here or name in reported or not _matters(name):
                continue
            reported.add(name)
            yield report(
                "ENV101",
                at=place_of(launch),
                evidence=f"{name} is set nowhere in {reading.file}",
                confidence="possible",
                fix=f"-x {name}=VALUE",
                name=name,
            )


def _too_late(subject: SettingsSubject) -> Iterator[Finding]:
    reading = subject.reading
    if reading.language == "python":
        # Functions are called in another order than they stand in.
        return
    last: dict[str | None, int] = {}
    for number, launch in enumerate(reading.launches):
        before = last.get(launch.target)
        if launch.kind != "other" and (before is None or started_at(reading, before) <= started_at(reading, number)):
            last[launch.target] = number
    for each in reading.assignments:
        number_of = last.get(each.target)
        if number_of is None or not _matters(each.name) or not _is_late(each, reading, number_of):
            continue
        yield report(
            "ENV107",
            at=place_of(each),
            evidence=f"{setting_text(each)}; the last command is in line {started_at(reading, number_of)[0]}",
            confidence="likely",
            effect="no rank of this script sees it",
            fix="set it before the command",
            name=each.name,
        )


def _is_late(each: Assignment, reading: SettingsReading, number: int) -> bool:
    if each.form != "export" or each.launch is not None or each.unsets or each.arms or reading.launches[number].arms:
        return False
    return (each.line, each.column) > started_at(reading, number)


_LAUNCHER, _WORKER = "Launcher:", "Worker:"
_PODS_FOR_RANKS = ("NCCL_", "MSCCL_", "MSCCLPP_", "UCX_", "FI_", "OFI_", "SHARP_")


def pods(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield variables that an MPIJob sets for its launcher only."""
    reading = subject.reading
    if reading.language != "kubernetes" or not any("MPIJob" in line for line in reading.lines):
        return
    roles = {id(each): _role(reading.lines, each) for each in reading.assignments if each.form == "manifest"}
    workers = {each.name for each in reading.assignments if roles.get(id(each)) == _WORKER}
    passed = {each.name for each in reading.assignments if each.form in ("mpirun", "mca", "export", "prefix")}
    passed |= {name for launch in reading.launches for name in launch.forwards}
    for each in reading.assignments:
        if roles.get(id(each)) != _LAUNCHER or each.name in workers | passed:
            continue
        if each.name.startswith(_PODS_FOR_RANKS):
            yield report(
                "ENV106",
                at=place_of(each),
                evidence=setting_text(each),
                confidence="likely",
                effect="the ranks run with the default",
                fix=f"-x {each.name} in the launcher's mpirun, or the same entry for the workers",
                name=each.name,
            )


def _role(lines: tuple[str, ...], each: Assignment) -> str | None:
    """Return the key of the replica that a line of a manifest belongs to."""
    for line in reversed(lines[: each.line]):
        key = line.strip()
        if key in (_LAUNCHER, _WORKER):
            return key
        if key == "---":
            return None
    return None


_NAMES = (
    "SLURM_PROCID|SLURM_LOCALID|SLURM_NODEID|SLURMD_NODENAME|OMPI_COMM_WORLD_(?:LOCAL_|NODE_)?RANK|PMIX?_RANK"
    "|PALS_(?:LOCAL_)?RANKID|MPI_LOCALRANKID|RANK|LOCAL_RANK|NODE_RANK|GROUP_RANK|HOSTNAME"
)
# The same on all ranks of a node.
_OF_NODE = {"HOSTNAME", "hostname", "SLURMD_NODENAME"}
# As a variable, in arithmetic, or as what a command prints.
_OF_RANK = re.compile(rf"\$\{{?({_NAMES})\b|\$\(\([^()]*\b({_NAMES})\b|(?:\$\(|`)\s*(hostname)\b", re.ASCII)
# torchrun on each of several nodes.
_NODES = re.compile(r"--nnodes[= ](?!1(?:\s|$))", re.ASCII)
_LONGEST = 4_000


def ranks(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield variables that all ranks must have alike, with values that are made from the rank."""
    # A script that starts the ranks, or is started by a batch system, works its values out once, for all of them.
    starting = {launch.target for launch in subject.reading.launches if launch.kind in ("mpirun", "srun")}
    several = _has_several_nodes(subject)
    for each in subject.reading.assignments:
        variable = known(each.name)
        if variable is None or variable.agreement != "same" or not each.computed:
            continue
        runs_once = each.target in starting or (each.target is None and subject.batch_system is not None)
        if each.form == "shell" or (each.launch is None and runs_once):
            continue
        found = _OF_RANK.search(each.written[:_LONGEST])
        if found is not None and (several or not _OF_NODE.issuperset(filter(None, found.groups()))):
            yield report(
                "ENV160",
                at=place_of_value(each),
                evidence=f"{setting_text(each)}: {next(filter(None, found.groups()))} is another one on each",
                confidence="likely",
                effect="the job hangs or fails where ranks come to different decisions",
                fix="the same value on every rank",
                name=each.name,
            )


def _has_several_nodes(subject: SettingsSubject) -> bool:
    """Whether the text says that the job has more than one node."""
    if subject.nodes is not None:
        return subject.nodes > 1
    return any(_NODES.search(" ".join(each.argv)) is not None for each in subject.reading.launches)
