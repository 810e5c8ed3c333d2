"""How a launcher's line is written: options that take the wrong word or stand behind the program."""

import re
from collections.abc import Iterator
from itertools import pairwise

from busbw.env.misspelled import letters_off
from busbw.env.reading.arguments import MPIRUN, PREFIXES
from busbw.env.rules.situations import is_plain
from busbw.env.rules.subject import SettingsSubject, place_of, place_of_value, report, setting_text, shown
from busbw.facts.launchers import launcher_options
from busbw.model.finding import FilePlace, Finding
from busbw.model.settings import LaunchCommand

_DIRECTIVE = re.compile(r"\s*#SBATCH\s")
_WORD = re.compile(r"\S+")
_PARTS = re.compile(r"(--?|)([a-z][\w-]*)(?:=(.*))?", re.ASCII)
_FEWEST_DASHED = 4
_LONGEST = 1_000


def directives(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield remarks that were to be directives, and options in a directive that are not written as such."""
    for number, line in enumerate(subject.reading.lines, start=1):
        directive = _DIRECTIVE.match(line)
        if line.startswith("#S"):
            yield from _no_directive(subject.reading.file, number, line)
        for found in _WORD.finditer(line[:_LONGEST], directive.end()) if directive is not None else ():
            if found[0].startswith("#"):
                break
            at = FilePlace(file=subject.reading.file, line=number, column=found.start() + 1)
            yield from _as_written(at, found, line)


_LIKE_DIRECTIVE = re.compile(r"#(?P<word>S[A-Z]{4,6})\s+--?[a-z]|#SBATCH\s*(?P<dash>[\u2013\u2014])")


def _no_directive(file: str, number: int, line: str) -> Iterator[Finding]:
    """Yield a remark that was to be a directive: the word is a letter off, or the dash is one of a word processor."""
    found = _LIKE_DIRECTIVE.match(line)
    if found is None or (found["word"] is not None and letters_off(found["word"], "SBATCH", 1) != 1):
        return
    if found["dash"] is not None:
        yield report(
            "ENV006",
            at=FilePlace(file=file, line=number, column=found.start("dash") + 1),
            evidence=line[:60],
            effect="sbatch ends with an error, or does not see the option",
            fix="two plain dashes",
            written=shown(found["dash"]),
        )
        return
    yield report(
        "ENV110",
        at=FilePlace(file=file, line=number, column=1),
        evidence=line[:60],
        effect="the line is a remark, and the job runs without what it asks for",
        fix="#SBATCH",
        launcher="sbatch",
        option=f"#{found['word']}",
        meant="#SBATCH",
    )


def _as_written(at: FilePlace, found: re.Match[str], line: str) -> Iterator[Finding]:
    """Yield an option in a directive without its dashes, with a blank before `=`, or with a word for a number."""
    written, behind = found[0], line[found.end() :].split()
    parts = _PARTS.fullmatch(written)
    if parts is None:
        return
    dashes, name, value = parts.groups()
    is_first = line[: found.start()].split() == ["#SBATCH"]
    if len(name) >= _FEWEST_DASHED and not dashes and is_first and name in launcher_options()["sbatch"].names:
        yield report(
            "ENV110",
            at=at,
            evidence=written[:60],
            effect="sbatch ends with an error, or takes it for another option",
            fix=f"--{name}",
            launcher="sbatch",
            option=f"{dashes}{name}",
            meant=f"--{name}",
        )
    elif dashes == "--" and ((value is None and behind[:1] == ["="]) or (value or "").startswith("=")):
        yield report(
            "ENV111",
            at=at,
            evidence=line.strip()[:80],
            effect="sbatch ends with an error",
            fix=f"--{name}={(value or '=').lstrip('=') or (behind[1] if len(behind) > 1 else '...')}",
            option=f"--{name}",
            value=value or "=",
        )


# Options of mpirun that are nothing without a value, by names that no other MPI gives to a flag.
_NEEDING = frozenset((
    "--hostfile", "-hostfile", "--machinefile", "-machinefile", "--host", "-host", "-H", "-np", "--np",
    "--npernode", "-npernode", "--map-by", "-map-by", "--bind-to", "-bind-to", "--rank-by", "-rank-by", "-x",
    "--rankfile", "-rankfile", "-ppn", "--ppn", "-perhost", "-genv", "-env", "--mca", "-mca",
))  # fmt: skip
_GLUED = re.compile(r".*[^\s,;=^-](?P<option>--?(?:genv|genvlist|env|mca|np|hostfile|bind-to|map-by))")


def option_values(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield options that take another option or the program for their value, and values that end with an option."""
    for launch in subject.reading.launches:
        if launch.kind == "mpirun" and _is_written(subject, launch):
            yield from _taken(launch)
    for each in subject.reading.assignments:
        found = _GLUED.fullmatch(each.value or "") if each.form in ("mpirun", "mca") else None
        if found is not None:
            yield report(
                "ENV112",
                at=place_of_value(each),
                evidence=setting_text(each),
                effect=f"{found['option']} is part of the value, and what stands behind it is taken for the program",
                fix=f"a blank before {found['option']}",
                name=each.name,
                written=shown(each.value or ""),
            )


def _is_written(subject: SettingsSubject, launch: LaunchCommand) -> bool:
    """Whether the launcher's own name stands in the text, and not only options that something else hands to it."""
    return launch.argv[0].rpartition("/")[2] in subject.reading.lines[launch.line - 1]


def _taken(launch: LaunchCommand) -> Iterator[Finding]:
    own = launch.argv[1 : launch.program]
    for option, value in pairwise(own):
        if option in _NEEDING and re.match(r"--?[A-Za-z]", value) and not launch.computed:
            yield _takes(launch, option, value, f"a value behind {option}")
            return
    if launch.program is None and not launch.computed and len(own) > 1 and own[-2] in MPIRUN.valued:
        value, blank, rest = own[-1].partition(" ")
        if blank and rest and not rest.startswith("-") and value and "," not in rest:
            fix = f'the quote is closed behind the value: {own[-2]} "{value}" {rest}'
            yield _takes(launch, own[-2], shown(own[-1]), fix)


def _takes(launch: LaunchCommand, option: str, value: str, fix: str) -> Finding:
    return report(
        "ENV111",
        at=place_of(launch),
        evidence=" ".join(launch.argv)[:80],
        effect="the launcher ends with an error, or runs something else",
        fix=fix,
        option=option,
        value=value,
    )


_OF_SRUN = re.compile(
    r"--(?:kill-on-bad-exit|ntasks-per-node|cpus-per-task|gpus-per-node|gpus-per-task|cpu-bind|gpu-bind|mem-bind"
    r"|container-(?:image|mounts|name|env)|mpi(?==pmi)|ntasks|nodelist|cpus-per-gpu|ntasks-per-(?:core|gpu|socket)|gres-flags"
    r"|threads-per-core|cores-per-socket|mem-per-[cg]pu)(?:=.*)?"
)
_OF_MPIRUN = re.compile(
    r"--?(?:map-by|bind-to|npernode|allow-run-as-root|hostfile|machinefile|mca|report-bindings)"
    r"|--(?:tasks_per_rs|[cg]pu_per_rs|rs_per_host|launch_distribution|pes-per-node|cpus-per-pe|cores-per-task|gpus-per-task)(?:=.*)?"
)
# Of torchrun, where it is given none of them itself: a script may have such an option for its own.
_OF_TORCHRUN = re.compile(r"--(?:nproc[_-]per[_-]node|rdzv[_-](?:backend|endpoint|id))(?:=.*)?")
_PASSED = re.compile(r"(?:NCCL|UCX|FI|OMPI_MCA|SHARP|RCCL)_[A-Z0-9_]+(?:=.*)?")
# Programs that have options of their own for what they start.
_STARTING = re.compile(
    r"(?:.*/)?(?:\w*(?:run|exec|launch\w*)\w*|python[\d.]*|bash|sh|env|torchrun|deepspeed|accelerate|apptainer|singularity"
    r"|docker|podman|enroot|shifter|ch-run|\S*\.(?:sh|py|pl|bash))|.*[$<{].*"
)


_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
_LAUNCHES = re.compile(r"(?:.*/)?\w*(?:run|exec|launch)\w*(?:\.py)?")


def behind_program(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield options of a launcher that are given to the program."""
    for launch in subject.reading.launches:
        if not launch.argv[launch.program :] or launch.program is None:
            continue
        program, *given = launch.argv[launch.program :]
        own = launch.argv[: launch.program]
        if any(word.startswith(_TEMPLATE) for word in launch.argv):
            continue
        if launch.family == "torchrun" and not launch.computed and not any(map(_OF_TORCHRUN.fullmatch, own)):
            option = next((each for each in given if _OF_TORCHRUN.fullmatch(each)), None)
            if option is not None:
                yield _behind(launch, option, program, given)
        if launch.kind not in ("mpirun", "srun"):
            continue
        if program in PREFIXES or program.startswith("-"):
            continue
        if _STARTING.fullmatch(program) is not None and _PYTHON.fullmatch(program) is None:
            continue
        # A program of Python may hand other options on; variables of the interconnect it is not given so.
        option = _option_of(launch.kind, _only_variables(given) if _PYTHON.fullmatch(program) else given)
        if option is not None:
            yield _behind(launch, option, program, given)


def _behind(launch: LaunchCommand, option: str, program: str, given: list[str]) -> Finding:
    return report(
        "ENV113",
        at=place_of(launch),
        evidence=" ".join((program, *given))[:80],
        confidence="likely",
        effect=f"{launch.argv[0].rpartition('/')[2]} does not see it",
        fix=f"{option} before {program}",
        option=option,
        program=program,
    )


def _only_variables(given: list[str]) -> list[str]:
    """Return `-x NAME=VALUE` of the interconnect among the arguments of a program that starts nothing itself."""
    if any(_LAUNCHES.fullmatch(word) for word in given):
        return []
    return [each for pair in pairwise(given) if pair[0] == "-x" and _PASSED.fullmatch(pair[1]) for each in pair]


def _option_of(kind: str, given: list[str]) -> str | None:
    for at, word in enumerate(given):
        following = given[at + 1] if at + 1 < len(given) else ""
        if word in ("--", "|", ";", "&&", ":"):
            return None
        if kind == "srun" and _OF_SRUN.fullmatch(word):
            return word
        if kind == "mpirun" and (_OF_MPIRUN.fullmatch(word) or (word == "-x" and _PASSED.fullmatch(following))):
            return f"{word} {following}".strip()
    return None


# Slurm 17.02 to 26.11: src/plugins/mpi and its pmix/Makefile.am, srun(1); checked 2026-11-24.
_TYPES = frozenset((
    "none", "list", "pmi2", "pmix", "pmix_v1", "pmix_v2", "pmix_v3", "pmix_v4", "pmix_v5", "pmix_v6", "cray_shasta",
    "openmpi", "lam", "mpich1_p4", "mpich1_shmem", "mpichgm", "mpichmx", "mvapich",
))  # fmt: skip


# Options of srun whose value may be a word of its own.
_TWO_WORDS = {"--mpi", "--cpu-bind", "--cpu_bind", "--gpu-bind", "--mem-bind", "--distribution", "-m"}


def with_values(launch: LaunchCommand) -> Iterator[str]:
    """Yield the options of a launch, `--mpi pmix` as `--mpi=pmix`."""
    own = launch.argv[1 : launch.program]
    for at, word in enumerate(own):
        if word in _TWO_WORDS and at + 1 < len(own):
            yield f"{word}={own[at + 1]}"
        else:
            yield word


def mpi_types(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield `--mpi` of srun with a type that is near one that there is."""
    for launch in subject.reading.launches:
        for word in with_values(launch) if launch.kind == "srun" else ():
            written = word.removeprefix("--mpi=")
            if (
                written == word
                or written in _TYPES
                or re.fullmatch(r"pmix_v\d+", written)
                or not written.isascii()
                or "$" in written
            ):
                continue
            near = [each for each in sorted(_TYPES) if letters_off(written, each, 1) <= 1]
            moved = [each for each in sorted(_TYPES) if sorted(each) == sorted(written)]
            if near or moved:
                meant = (moved or near)[0]
                yield report(
                    "ENV114",
                    at=place_of(launch),
                    evidence=word,
                    effect="srun ends with an error",
                    fix=f"--mpi={meant}",
                    written=shown(written),
                    meant=meant,
                )


def other_passed(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield a variable that is set for one mpirun, which is told to pass on another of its family instead."""
    reading = subject.reading
    is_set = {each.name for each in reading.assignments}
    for number, launch in enumerate(reading.launches):
        lost = [name for name in launch.forwards if name not in is_set and not name.endswith("*")]
        if launch.kind != "mpirun" or not lost or launch.computed:
            continue
        for each in reading.assignments:
            if each.launch != number or each.form != "prefix" or each.name in launch.forwards:
                continue
            other = next((name for name in lost if name.partition("_")[0] == each.name.partition("_")[0]), None)
            if other is not None:
                yield report(
                    "ENV109",
                    at=place_of(each),
                    evidence=f"{setting_text(each)}; -x {other} in line {launch.line}",
                    confidence="likely",
                    effect=f"ranks on other nodes do not see {each.name}",
                    fix=f"-x {each.name}",
                    name=each.name,
                    other=other,
                )


# Words of a template whose blanks divide it: `{{ count }}`.
_TEMPLATE = ("{{", "{%", "}}", "%}", "<%")
# What network interfaces and NICs are called, and no program.
_COMPONENTS = {"self", "tcp", "vader", "sm", "openib", "ucx", "ob1", "smcuda", "uct", "ofi"}
_DEVICE = re.compile(
    r"lo|(?:docker|eth|ib|hsn|bond|virbr|ipogif)\d+|(?:ens|enp|eno)\d\w*|mlx[45]_\d+(?::\d)?", re.ASCII
)


def named_as_devices(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield launches whose program is called as a NIC or is a setting: a list of an option that ends at a blank."""
    for launch in subject.reading.launches:
        if launch.kind not in ("mpirun", "srun") or launch.program is None or launch.program >= len(launch.argv):
            continue
        program = launch.argv[launch.program]
        if any(word.startswith(_TEMPLATE) for word in launch.argv) or "{%" in subject.reading.lines[launch.line - 1]:
            continue
        before_options = launch.argv[launch.program - 3] if launch.program > 3 else ""
        is_component = before_options in ("--mca", "-mca") and program in _COMPONENTS
        is_setting = program.startswith("=") or ("=" in program and _PASSED.fullmatch(program) is not None)
        if _DEVICE.fullmatch(program) is not None or is_setting or is_component:
            before = launch.argv[launch.program - 1]
            yield report(
                "ENV125",
                at=place_of(launch),
                evidence=" ".join(launch.argv[max(0, launch.program - 2) :])[:80],
                effect="the launcher looks for a program of that name",
                fix=f"{before},{program}, if both belong to one list: without a blank",
                program=shown(program),
            )


_COLON = re.compile(r"(?P<name>(?:NCCL|UCX|FI|RCCL|SHARP)_[A-Z0-9_]+)(?P<sign>:(?!=)|,(?=[A-Z]+_)).+")


def colons(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield `-x NAME:VALUE` and `-x NAME,NAME` of mpirun, which pass on a variable of that whole name."""
    for launch in subject.reading.launches:
        for each in launch.forwards if launch.kind == "mpirun" else ():
            found = _COLON.fullmatch(each)
            if found is not None:
                yield report(
                    "ENV128",
                    at=place_of(launch),
                    evidence=each[:60],
                    effect="there is no variable of that name to pass on",
                    fix=f"-x {each.replace(':', '=', 1)}"
                    if found["sign"] == ":"
                    else f"-x {each.replace(',', ' -x ')}",
                    name=found["name"],
                    reason="a colon stands for the equals sign" if found["sign"] == ":" else "-x takes one name",
                )


_TORCH = {"torchrun", "deepspeed", "accelerate"}


def taken_for_variables(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield `-x NAME` of Open MPI's mpirun given to a launcher that has no such option, or another one by that name."""
    for launch in subject.reading.launches:
        launcher = launch.argv[0].rpartition("/")[2] if launch.argv else ""
        if launch.kind != "srun" and (launch.kind != "torchrun" or launch.family not in _TORCH):
            continue
        # What it takes for the program is the variable itself.
        own = launch.argv[: (launch.program if launch.program is not None else len(launch.argv)) + 1]
        given = next((value for word, value in pairwise(own) if word == "-x" and _PASSED.fullmatch(value)), None)
        if given is not None:
            yield report(
                "ENV110",
                at=place_of(launch),
                evidence=f"-x {given}"[:60],
                effect="srun takes it for a node to leave out"
                if launch.kind == "srun"
                else f"{launcher} ends with an error",
                fix=f"export {given} before it" if "=" in given else "leave it out: the environment is passed on",
                launcher=launcher,
                option="-x for variables",
                meant="`export` before it",
            )


_WAIT = re.compile(r"\s*wait\s*;?\s*(?:#.*)?")
_BACKGROUND = re.compile(r"(?<![&>|<\\])&(?![&>\d])|\bcoproc\b|\bparallel\b")
_REMARK = re.compile(r"(?:^|\s)#.*")


def _follow(lines: tuple[str, ...], one: LaunchCommand, other: LaunchCommand) -> bool:
    """Whether nothing but empty lines and remarks stands between two launches on the same way through a script."""
    return one.arms == other.arms and _is_empty_to(lines, one, other.line)


def _is_empty_to(lines: tuple[str, ...], launch: LaunchCommand, line: int) -> bool:
    """Whether nothing but empty lines and remarks stands between a launch and a line behind it."""
    at = launch.line
    while at < line and lines[at - 1].rstrip().endswith("\\"):
        at += 1
    between = (each.strip() for each in lines[at : line - 1])
    return not any(each and not each.startswith("#") for each in between)


def waits(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield a `wait` behind several launches of a script that has no command in the background."""
    reading = subject.reading
    if reading.language not in ("shell", "slurm"):
        return
    at = next((number for number, line in enumerate(reading.lines, start=1) if _WAIT.fullmatch(line)), None)
    started = [
        each for each in reading.launches if at is not None and each.line < at and each.kind in ("srun", "mpirun")
    ]
    # What only puts files there is to be done before the next, and what has another command in between, or stands on
    # another way through the script, is not meant to run beside it.
    ranks = [each for each in started if each.within is None and not is_plain(each)]
    beside = [pair for pair in pairwise(ranks) if _follow(reading.lines, *pair)]
    if at is None or not beside or beside[-1][1] is not ranks[-1] or not _is_empty_to(reading.lines, ranks[-1], at):
        return
    own = {each.line for pair in beside for each in pair}
    if any(_BACKGROUND.search(_REMARK.sub("", line)) for line in reading.lines):
        return
    yield report(
        "ENV117",
        at=FilePlace(file=reading.file, line=at, column=reading.lines[at - 1].index("wait") + 1),
        evidence=f"no command of this script ends with &; {started[0].kind} in line {min(own)}",
        confidence="likely",
        fix="& at the end of each command that is to run beside the others, or no wait",
        count=str(len(own)),
    )
