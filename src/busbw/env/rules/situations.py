"""What is in force where ranks are started: every assignment that certainly reaches a command, by name.

A text with branches has several: one for each way on which something is set, with what is certain on that way.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from busbw.model.settings import Arm, Assignment, LaunchCommand, SettingsReading, exclude_each_other

# Forms that everything after them sees, for as long as the text goes on.
_LASTING = {"environment", "nccl_conf", "export", "srun", "modulefile", "dockerfile", "apptainer"}
# More ways and commands than a script for people has: what is beyond is not looked at together.
MOST_WAYS = 16
MOST_LAUNCHES = 400


@dataclass(frozen=True, slots=True)
class Situation:
    """What one command, or the end of a text that starts none, has in force."""

    # Number in Reading.launches; None: the text starts nothing, or this is its end.
    number: int | None
    launch: LaunchCommand | None
    settings: dict[str, Assignment]

    def values(self) -> dict[str, str]:
        """Return the values that are known."""
        return {name: each.value for name, each in self.settings.items() if each.value is not None}


@dataclass(slots=True)
class _BranchPath:
    """One way through the branches of a text, and what is in force on it so far."""

    arms: tuple[Arm, ...]
    settings: dict[str, Assignment] = field(default_factory=dict)


def situations(reading: SettingsReading) -> Iterator[Situation]:
    """Yield the situations of a text in its order, those of each file that it writes apart."""
    own = _by_launch(reading)
    lasting: dict[str | None, list[Assignment]] = {each.target: [] for each in reading.assignments}
    numbers: dict[str | None, list[int]] = {each.target: [] for each in reading.launches}
    for each in reading.assignments:
        if each.launch is None and each.form in _LASTING:
            lasting[each.target].append(each)
    for number, launch in enumerate(reading.launches):
        numbers[launch.target].append(number)
    for target in lasting | numbers:
        yield from _of_target(reading, lasting.get(target, []), numbers.get(target, [])[:MOST_LAUNCHES], own)


def _by_launch(reading: SettingsReading) -> dict[int, list[Assignment]]:
    own: dict[int, list[Assignment]] = {}
    for each in reading.assignments:
        if each.launch is not None:
            own.setdefault(each.launch, []).append(each)
    return own


def _of_target(
    reading: SettingsReading, lasting: list[Assignment], numbers: list[int], own: dict[int, list[Assignment]]
) -> Iterator[Situation]:
    arms = [each.arms for each in lasting]
    arms += [reading.launches[number].arms for number in numbers]
    arms += [each.arms for number in numbers for each in own.get(number, [])]
    ways = [_BranchPath(each) for each in list(dict.fromkeys([(), *arms]))[:MOST_WAYS]]
    place = 0
    for number in sorted(numbers, key=lambda each: started_at(reading, each)):
        launch = reading.launches[number]
        while place < len(lasting) and _position(lasting[place]) <= started_at(reading, number):
            _apply(ways, lasting[place])
            place += 1
        for way in ways:
            if set(launch.arms) <= set(way.arms):
                yield Situation(number, launch, _with_own(reading, number, own, way))
    for each in lasting[place:]:
        _apply(ways, each)
    if not numbers:
        yield from (Situation(None, None, way.settings) for way in ways)


def started_at(reading: SettingsReading, number: int) -> tuple[int, int]:
    """Return line and column at which a command runs: a text that was put together before runs where it is used."""
    return max(_position(reading.launches[each]) for each in _chain(reading, number))


def starts_anew(launch: LaunchCommand) -> bool:
    """Whether what a command runs has an environment of its own: on another host, or as another user."""
    return launch.kind == "other" and launch.forwards_all is False


# What is started on every host to see that it answers, or to put files there: it reads no setting of the network.
_PLAIN = {
    "true", "false", "hostname", "uname", "date", "uptime", "echo", "printf", "test", "sleep", "pwd", "ls", "cat",
    "mkdir", "rm", "cp", "mv", "ln", "chmod", "touch", "tar", "kill", "pkill", "nvidia-smi", "ibstat", "ibstatus",
    "ibv_devinfo", "lstopo",
}  # fmt: skip
_SHELLS = {"sh", "bash", "dash", "ksh", "zsh"}


def is_plain(launch: LaunchCommand) -> bool:
    """Whether a command starts nothing that exchanges messages: a tool of the system, or one line of a shell for it."""
    words = launch.argv[launch.program :] if launch.program is not None else ()
    if len(words) > 2 and words[0].rpartition("/")[2] in _SHELLS and words[1] in {"-c", "-lc"}:
        words = () if re.search(r"[;&|\n`(]", words[2]) else tuple(words[2].split())
    return bool(words) and words[0].rpartition("/")[2] in _PLAIN


def is_handed_on(launch: LaunchCommand, name: str, each: Assignment) -> bool:
    """Whether such a command hands a setting on: it names it, or the setting stands in it."""
    return name in launch.forwards or each.launch is not None


def _chain(reading: SettingsReading, number: int) -> list[int]:
    """Return a launch and those that it is within, innermost first."""
    chain: list[int] = []
    each: int | None = number
    while each is not None and each not in chain and 0 <= each < len(reading.launches):
        chain.append(each)
        each = reading.launches[each].within
    return chain


def _position(each: Assignment | LaunchCommand) -> tuple[int, int]:
    return each.line, each.column


def _apply(ways: list[_BranchPath], each: Assignment) -> None:
    needed = set(each.arms)
    for way in ways:
        if not needed or needed.issubset(way.arms):
            _put(way.settings, each)
        elif not exclude_each_other(each.arms, way.arms):
            # On this way it may be set so or not: nothing is certain about it.
            way.settings.pop(each.name, None)


def _put(settings: dict[str, Assignment], each: Assignment) -> None:
    if each.unsets:
        settings.pop(each.name, None)
    elif each.form == "nccl_conf":
        # Of two lines the first counts.
        settings.setdefault(each.name, each)
    else:
        settings[each.name] = each


def _with_own(
    reading: SettingsReading, number: int, own: dict[int, list[Assignment]], way: _BranchPath
) -> dict[str, Assignment]:
    """Return what a launch sees: what lasts, then what each launch that it is within sets, then its own."""
    settings = dict(way.settings)
    outer: LaunchCommand | None = None
    for each_number in reversed(_chain(reading, number)):
        launch = reading.launches[each_number]
        # What a container does not get is told of the container.
        if outer is not None and starts_anew(outer) and launch.kind != "container":
            settings = {name: each for name, each in settings.items() if is_handed_on(outer, name, each)}
        outer = launch
        for setting in own.get(each_number, []):
            if not setting.arms or set(setting.arms).issubset(way.arms):
                _put(settings, setting)
            elif not exclude_each_other(setting.arms, way.arms):
                settings.pop(setting.name, None)
    return settings


_DIRECTIVE = re.compile(r"#(SBATCH|PBS|BSUB|FLUX:|\$)\s+(.*)", re.ASCII)
_NODES = re.compile(r"(?:^|\s)(?:-N\s*|--nodes[=\s]\s*)(\d{1,6})(?:-\d+)?(?=\s|$)", re.ASCII)
_HOST_FILES = {"-hostfile", "--hostfile", "-machinefile", "--machinefile", "-f"}
_HOSTS = {"-H", "-host", "--host", "-hosts"}
# Directives stand at the top.
_MOST_LINES = 500


def batch_system(reading: SettingsReading) -> str | None:
    """Return the word that a script's directives begin with, None where it has none."""
    for line in reading.lines[:_MOST_LINES]:
        found = _DIRECTIVE.match(line)
        if found is not None:
            return found[1]
    return None


def nodes_of(reading: SettingsReading) -> int | None:
    """Return the nodes that a batch script asks for, None where it does not say."""
    for line in reading.lines[:_MOST_LINES]:
        found = _DIRECTIVE.match(line)
        nodes = _NODES.search(found[2]) if found is not None and found[1] == "SBATCH" else None
        if nodes is not None:
            return int(nodes[1])
    return None


_VALUED = re.compile(r"-([cnNG])(\S+)", re.ASCII)


def job_options(reading: SettingsReading) -> dict[str, str]:
    """Return what the directives of a batch script for Slurm ask for, by option; the last of several counts."""
    found: dict[str, str] = {}
    for line in reading.lines[:_MOST_LINES]:
        directive = _DIRECTIVE.match(line)
        if directive is not None and directive[1] == "SBATCH":
            found |= slurm_options(tuple(directive[2].partition(" #")[0].split()))
    return found


def slurm_options(words: tuple[str, ...]) -> dict[str, str]:
    """Return options of srun or sbatch with their values, `--name=value`, `--name value` and `-c8` alike."""
    found: dict[str, str] = {}
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        short = _VALUED.fullmatch(word)
        if word.startswith("--") and equals:
            found[name] = value
        elif short is not None:
            found[f"-{short[1]}"] = short[2]
        elif word.startswith("-") and place + 1 < len(words) and not words[place + 1].startswith("-"):
            found[word] = words[place + 1]
    return found


def spans_nodes(launch: LaunchCommand, nodes: int | None) -> bool | None:
    """Whether a command starts ranks on several nodes; None: it cannot be told. `nodes`: of the job."""
    own = launch.argv[: launch.program] if launch.program is not None else launch.argv
    asked = _NODES.search(" ".join(own[1:])) if launch.kind == "srun" else None
    if asked is not None:
        return int(asked[1]) > 1
    if nodes is not None:
        return nodes > 1
    for place, word in enumerate(own[:-1]):
        if word in _HOSTS:
            return None if "$" in own[place + 1] else len(set(map(_host, own[place + 1].split(",")))) > 1
        if word in _HOST_FILES:
            return True
    return None


def _host(text: str) -> str:
    return text.partition(":")[0]
