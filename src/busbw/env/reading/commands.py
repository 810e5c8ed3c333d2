"""What one command line sets, through all the programs that start each other on it."""

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Literal

from msgspec.structs import replace

from busbw.env.reading import launchers
from busbw.env.reading.arguments import (
    ENV,
    FAMILIES,
    PREFIXES,
    SSH,
    SUDO,
    TORCHRUN,
    Arguments,
    is_cut_off,
    note_space_after,
    note_space_before,
)
from busbw.env.reading.context import NAME, Context
from busbw.env.reading.spelled import FILLED, HOLE, Field, Spelled, joined, words_of
from busbw.facts.logs import applications
from busbw.model.settings import LaunchCommand

Kind = Literal["mpirun", "srun", "torchrun", "container", "other"]
Reader = Callable[[list[Field], Context, int], list[Field]]

# Those whose `if` and `for` are POSIX's.
_LIKE_POSIX = {"bash", "sh", "ksh", "dash", "ash"}
SHELLS = {"bash", "sh", "zsh", "ksh", "dash", "ash", "csh", "tcsh"}
# A shell's options in one word that end in the one with the script: -c, -lc, -exc.
_SCRIPT_OPTION = re.compile(r"-[a-zA-Z]*c")
# An option of a launcher and its value in one argument of a list; and what makes one text of such a list. Of an option
# of one letter, `-n 8`, getopt takes the rest of the argument for the value.
_UNDIVIDED = re.compile(
    r"(?:-x|-np|-ppn|-g?env|--?mca|--?host(?:file)?|--map-by|--bind-to|--rank-by|--mpi|--ntasks|--nodes) +\S.*",
    re.DOTALL,
)
_JOINED = re.compile(r"""["'] +["']\s*\.join\(|list2cmdline|shlex\.join""")
# Programs that start each other on one line.
_DEEPEST_COMMANDS = 24
# Commands that name others and start none.
_TALKING = frozenset(
    {
        "echo",
        "printf",
        "which",
        "type",
        "grep",
        "pgrep",
        "pkill",
        "killall",
        "man",
        "module",
        "ml",
        "alias",
        "hash",
        "cat",
    }
    | {
        "test",
        "[",
        "apt",
        "apt-get",
        "yum",
        "dnf",
        "pip",
        "conda",
        "spack",
        "log",
        "die",
        "logger",
        "info",
        "awk",
        "sed",
        ":",
    }
)
# One argument that is a command line with a launcher in it.
_COMMAND_LINE = re.compile(
    r"(?:[\w./=-]+ +){0,6}?(?:[\w./-]*/)?(?:mpirun|mpiexec|srun|torchrun|docker run|apptainer|singularity) +-"
)
# A name of the interconnect's libraries, and texts that begin a command or set such a name, wherever they stand.
FAMILY_NAME = re.compile(rf"(?:{'|'.join(FAMILIES)})[A-Z]\w*", re.ASCII)
LAUNCHERS = "mpirun|mpiexec|srun|sbatch|torchrun|docker|podman|apptainer|singularity|enroot|horovodrun|deepspeed|aprun"
_SCRIPT_TEXT = re.compile(
    rf"\A#!|(?m:(?:^|[;&|(])[ \t]*(?:[\w./$-]+=\S*[ \t]+|(?:sudo|env|time|exec|nohup|timeout \S+)[ \t]+)*"
    rf"(?:[\w.{FILLED}{HOLE}-]*/)*(?:{LAUNCHERS})(?:\.\w+)?[ \t]+-)"
    rf"|(?m:^[ \t]*(?:export[ \t]+)?{FAMILY_NAME.pattern}=)|[;&][ \t]*export[ \t]+{FAMILY_NAME.pattern}=",
)
# Options of mpirun by themselves: -x with such a name, and an option of Hydra with the variable of any of them.
_OPTIONS_TEXT = re.compile(
    rf"(?:^|\s)--?x[ \t]+{FAMILY_NAME.pattern}(?:=|\s|$)|(?:^|\s)-g?env[ \t]+[A-Z][A-Z0-9]*_[A-Z0-9_]+(?:=|[ \t]+\S)"
)
# The same with --mca, as the launchers of applications are given them.
_OPTIONS_GIVEN = re.compile(rf"{_OPTIONS_TEXT.pattern}|(?:^|\s)--?mca[ \t]+[a-z]\w+[ \t]+\S")
# An argument that is JSON with such a name, by itself or as the value of an option: Ray's `--runtime-env-json`.
_JSON = re.compile(rf"(?:--?[A-Za-z][\w-]*=)?(?=\s*[\[{{][^=]*\"{FAMILY_NAME.pattern}\"\s*:)")
_EXPORT = re.compile(rf"\s*export\s+{FAMILY_NAME.pattern}=")
_EVALUATING = re.compile(r"\beval\s+\"?\$(?:[@*1]|\{[@*1]\})")
_SET = re.compile(r"[A-Za-z_]\w*=")
# Options of sudo that let the environment through, whole or by name.
_KEEPING = {"-E", "--preserve-env"}
# Options by which scripts that start containers are given variables for these.
HANDING_ON = frozenset({"-e", "--env", "--environment", "--environment-variable"})
# The names of variables have several words in capitals.
_VARIABLE_SET = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+=")
_IN_CHART = re.compile(rf"(?:^|[.,=]){FAMILY_NAME.pattern}=", re.ASCII)
_PART_OF_SET = re.compile(r"(?:[^,\\{]|\\.|\{[^}]*\}?)+", re.DOTALL)
_TORCH_MODULES = {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"}


def run(fields: list[Field], context: Context) -> int | None:
    """Take down what a command sets, and the launches in it; return the number of the outermost launch."""
    while fields and fields[0].is_open:
        fields = fields[1:]
    if not fields or context.depth > _DEEPEST_COMMANDS or note_space_before(context, fields):
        return None
    name = fields[0].text.rpartition("/")[2]
    if name in _LAUNCHERS:
        kind, reader = _LAUNCHERS[name]
        starts = kind != "container" or launchers.starts(fields)
        return _launch(fields, context, kind, reader) if starts else None
    if name.startswith("python") and _is_torch(fields):
        return _launch(fields, context, "torchrun", _torchrun)
    return _wrapper(name)(fields, context)


def check_divided(arguments: list[Field], program: str, context: Context) -> None:
    """Take down arguments of a launcher's list that hold an option with its value, where `program` joins no list."""
    for field in arguments if _JOINED.search(program) is None else ():
        if _UNDIVIDED.fullmatch(field.text) is not None:
            written = field.text.replace(HOLE, "...").replace(FILLED, "...")
            meant = ", ".join(f'"{word}"' for word in written.split())
            context.ledger.slip("two_in_one", field.start, written, name=written.split()[0], meant=meant)


def as_script(text: Spelled) -> Spelled | None:
    """Return a text that stands alone as a script to read, where it is a command, settings or options of mpirun."""
    if _SCRIPT_TEXT.search(text.text) is not None:
        return text
    if _OPTIONS_TEXT.search(text.text) is not None:
        return joined([Spelled("mpirun ", ((0, text.origin(0)),)), text])
    return None


def sets_family_name(field: Field) -> bool:
    """Whether an argument is `NAME=VALUE` with a name of the interconnect's libraries."""
    found = FAMILY_NAME.match(field.text)
    return found is not None and field.text.startswith("=", found.end())


def is_known(word: str) -> bool:
    """Whether a word may be a program that starts others, by its last part."""
    name = word.rpartition("/")[2]
    return name in _KNOWN or name.startswith("python")


def is_launcher(word: str) -> bool:
    """Whether a word is a program that starts ranks or containers, by its last part."""
    return word.rpartition("/")[2] in _LAUNCHERS


def _wrapper(name: str) -> Callable[[list[Field], Context], int | None]:
    """Return the reader of a command that starts no ranks itself."""
    if name in _WRAPPERS:
        return _WRAPPERS[name]
    if name in PREFIXES:
        return _prefixed
    return _shell if name in SHELLS else _unknown


def _unknown(fields: list[Field], context: Context) -> int | None:
    """Read a command line that a program or a function nobody knows is given: as words, or as one text."""
    if fields[0].text.rpartition("/")[2] in _TALKING:
        return None
    for at, field in enumerate(fields):
        if at and (given_as := _JSON.match(field.text)):
            context.read("json", field.spelled.part(given_as.end()), context.inner(is_new=True))
        if at and at + 1 < len(fields) and _begins_command(field, fields[at - 1], fields[at + 1]):
            # What is given before it is for that command: `runai submit -e NAME=VALUE -- bash -c ...`.
            number = _handed_on(fields[:at], context)
            return _go_on(fields[at:], context if number is None else _within(context, number))
        if at and field.is_quoted and _COMMAND_LINE.match(field.text):
            _read_script(field.spelled, context)
        elif len(fields) == 2 and at and _EXPORT.match(field.text) and _EVALUATING.search(context.ledger.text):
            # `run "export NAME=value"`, where run is a function that shows and evaluates its arguments.
            _read_script(field.spelled, context)
    given = [options for at, field in enumerate(fields) if at and (options := _of_mpirun(field, fields[at - 1]))]
    for options in given:
        run(
            [Field(Spelled("mpirun", options[0].spelled.runs[:1]), options[0].start, options[0].start), *options],
            context,
        )
    return _handed_on(fields, context)


def _of_mpirun(field: Field, before: Field) -> list[Field]:
    """Return the options of mpirun that a program's own launcher is given as one argument, [] where they are none.

    Such a launcher divides them at blanks, without a shell.
    """
    name, equals, _ = field.text.partition("=")
    is_named = bool(equals) and name in _mpi_options()
    text = field.spelled.part(len(name) + 1) if is_named else field.spelled
    is_options = text.text.lstrip()[:1] == "-" and " " in text.text.strip()
    if not is_options or not (is_named or before.text in _mpi_options() or _OPTIONS_GIVEN.search(text.text)):
        return []
    return [Field(word, word.origin(0), word.end()) for word in words_of(text)]


@cache
def _mpi_options() -> frozenset[str]:
    return frozenset(option for each in applications().values() for option in each.mpi_options)


def _begins_command(field: Field, before: Field, behind: Field) -> bool:
    """Whether a command may begin at an argument: a launcher, a shell with a script, or what stands behind `--`."""
    name = field.text.rpartition("/")[2]
    if name in SHELLS:
        return _SCRIPT_OPTION.fullmatch(behind.text) is not None
    return name in _LAUNCHERS or (before.text == "--" and name in _WRAPPERS)


def _handed_on(fields: list[Field], context: Context) -> int | None:
    """Read `-e NAME=VALUE` of a script that hands it on, as scripts that start containers do."""
    given = [
        each
        for option, each in pairwise(fields)
        if option.text in HANDING_ON and _VARIABLE_SET.match(each.text) is not None
    ]
    if not given:
        return None
    number = other(fields, context)
    for each in given:
        context.assign(each, "container", number)
    return number


def _launch(fields: list[Field], context: Context, kind: Kind, reader: Reader) -> int | None:
    """Take one launch down and go on with the command that it starts."""
    line, column = context.ledger.place(max(fields[0].start, context.runs_at))
    launch = LaunchCommand(kind=kind, argv=context.argv(fields), file=context.ledger.file, line=line, column=column)
    number = context.start(launch)
    if number is None:
        return None
    program = reader(fields, context, number)
    if program:
        run(program, _within(context, number))
    return number


def _within(context: Context, number: int) -> Context:
    return replace(context, launch=number, depth=context.depth + 1)


def _prefixed(fields: list[Field], context: Context) -> int | None:
    name = fields[0].text.rpartition("/")[2]
    prefix = PREFIXES[name]
    arguments = Arguments(fields, 1 + prefix.before, prefix.grammar)
    for option in arguments.options():
        # `taskset -p`, `command -v` and the like start nothing.
        if name == "command" and option.name in {"-v", "-V"}:
            return None
    return _go_on(arguments.rest[prefix.behind :], context)


def _go_on(fields: list[Field], context: Context) -> int | None:
    return run(fields, replace(context, depth=context.depth + 1)) if fields else None


def _env(fields: list[Field], context: Context) -> int | None:
    arguments = Arguments(fields, 1, ENV)
    numbers: list[int] = []
    for option in arguments.options():
        if option.name in {"-u", "--unset"} and option.values and NAME.fullmatch(option.values[0].text):
            field = option.values[0]
            numbers += _some(context.put(field.text, None, "prefix", at=field.start))
        elif option.name in {"-S", "--split-string"} and option.values:
            _read_script(option.values[0].spelled, context)
            return None
    return _assignments_before(arguments, context, numbers)


def _sudo(fields: list[Field], context: Context) -> int | None:
    """Read a command of another user, who has an environment of his own unless options say otherwise."""
    arguments = Arguments(fields, 1, SUDO)
    kept = [option for option in arguments.options() if option.name in _KEEPING]
    if any(not option.values for option in kept) or not _starts_ranks(arguments.rest):
        return _assignments_before(arguments, context, [])
    number = other(fields, context, family="sudo")
    if number is None:
        return None
    forwards = tuple(name for option in kept for name in option.values[0].text.split(","))
    context.ledger.correct(number, replace(context.ledger.launched(number), forwards=forwards, forwards_all=False))
    _assignments_before(arguments, _within(context, number), [])
    return number


def _starts_ranks(fields: list[Field]) -> bool:
    command = next((field for field in fields if _SET.match(field.text) is None), None)
    return command is not None and command.text.rpartition("/")[2] in _LAUNCHERS


def _assignments_before(arguments: Arguments, context: Context, numbers: list[int]) -> int | None:
    """Read `NAME=VALUE... command`, where the settings are arguments of what starts the command."""
    while arguments.rest and _SET.match(arguments.rest[0].text):
        field = arguments.rest[0]
        numbers += _some(context.assign(field, "prefix"))
        arguments.at += 1
        if arguments.rest and is_cut_off(field, arguments.rest[0]):
            note_space_after(context, field, arguments.rest[0])
            arguments.at += 1
    launch = _go_on(arguments.rest, context)
    if numbers:
        launch = belong(numbers, launch, arguments.rest or arguments.fields, context)
    return launch


def belong(numbers: list[int], launch: int | None, fields: list[Field], context: Context) -> int | None:
    """Give settings to the command that they stand before; one that launches nothing becomes a launch by them."""
    if launch is None and context.launch is None:
        launch = other(fields, context)
    if launch is not None:
        context.ledger.belong(numbers, launch)
    return launch


def other(fields: list[Field], context: Context, family: str | None = None) -> int | None:
    """Take down a command that starts no ranks but has an environment of its own; return its number."""
    line, column = context.ledger.place(fields[0].start)
    return context.start(
        LaunchCommand(
            kind="other",
            family=family,
            argv=context.argv(fields),
            file=context.ledger.file,
            line=line,
            column=column,
            computed=any(field.is_open for field in fields),
        )
    )


def _some(number: int | None) -> list[int]:
    return [] if number is None else [number]


def _shell(fields: list[Field], context: Context) -> int | None:
    at = next((at for at, field in enumerate(fields) if at and _SCRIPT_OPTION.fullmatch(field.text)), None)
    if at is None:
        return _handed_on(fields, context)
    if at + 1 < len(fields):
        script = fields[at + 1].spelled
        is_whole = context.is_whole and script.is_known and fields[0].text.rpartition("/")[2] in _LIKE_POSIX
        context.read("shell", script, context.inner(is_whole=is_whole))
    return None


def _read_script(script: Spelled, context: Context) -> None:
    context.read("shell", script, context.inner())


def _eval(fields: list[Field], context: Context) -> None:
    parts: list[Spelled] = []
    for field in fields[1:]:
        parts += [field.spelled, Spelled(" ", ((0, field.end),))]
    _read_script(joined(parts, at=fields[0].end), context)


def _ssh(fields: list[Field], context: Context) -> int | None:
    """Read a command for another host, which sees nothing of the environment here."""
    arguments = Arguments(fields, 1, SSH)
    list(arguments.options())
    name = fields[0].text.rpartition("/")[2]
    command = arguments.rest[1 if name == "ssh" else 0 :]
    number = on_another_host(fields, context) if command else None
    if number is None:
        return None
    parts = [part for field in command for part in (field.spelled, Spelled(" ", ((0, field.end),)))]
    context.read("shell", joined(parts, at=fields[0].end), context.inner(launch=number, is_new=True))
    return number


def on_another_host(fields: list[Field], context: Context) -> int | None:
    """Take down a command for another host, by the program that goes there; return its number."""
    number = other(fields, context, family=fields[0].text.rpartition("/")[2])
    if number is not None:
        context.ledger.correct(number, replace(context.ledger.launched(number), forwards_all=False))
    return number


def _is_torch(fields: list[Field]) -> bool:
    at = next((at for at, field in enumerate(fields) if field.text == "-m"), None)
    return at is not None and at + 1 < len(fields) and fields[at + 1].text in _TORCH_MODULES


def _torchrun(fields: list[Field], context: Context, number: int) -> list[Field]:
    start = 1
    if fields[0].text.rpartition("/")[2].startswith("python"):
        start = next(at for at, field in enumerate(fields) if field.text == "-m") + 2
    arguments = Arguments(fields, start, TORCHRUN)
    list(arguments.options())
    launch = context.ledger.launched(number)
    context.ledger.correct(
        number,
        replace(
            launch,
            family="torchrun",
            forwards_all=True,
            program=arguments.at if arguments.rest else None,
            computed=launch.computed or arguments.is_open,
        ),
    )
    return []


def _starts_workers(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read a launcher of a framework that gives its workers its own environment."""
    launch = context.ledger.launched(number)
    family = fields[0].text.rpartition("/")[2]
    context.ledger.correct(number, replace(launch, family=family, forwards_all=True))
    return []


def _flux(fields: list[Field], context: Context) -> int | None:
    if len(fields) > 1 and fields[1].text in {"run", "submit", "batch", "alloc"}:
        return _launch(fields, context, "mpirun", launchers.read_flux)
    return None


def _ray(fields: list[Field], context: Context) -> int | None:
    """Read `ray start`, which starts no ranks itself: its workers have the environment that it has."""
    if len(fields) > 1 and fields[1].text == "start":
        return other(fields, context, family="Ray")
    return _unknown(fields, context)


def _kubectl(fields: list[Field], context: Context) -> int | None:
    """Read `kubectl set env RESOURCE NAME=VALUE`, and `kubectl run --env=NAME=VALUE`."""
    words = [field.text for field in fields]
    if words[1:3] == ["set", "env"]:
        given = [field for field in fields[3:] if _VARIABLE_SET.match(field.text) is not None]
    else:
        own = words.index("--") if "--" in words else len(words)
        given = [_behind(field, "--env=") for field in fields[:own] if field.text.startswith("--env=")]
    is_own = bool(given) or (words[1:2] == ["run"] and any(map(_names_setting, fields)))
    number = other(fields, context, family="kubectl") if is_own else _unknown(fields, context)
    for each in given:
        context.assign(each, "container", number)
    return number


def _behind(field: Field, start: str) -> Field:
    part = field.spelled.part(len(start))
    return Field(part, part.origin(0), part.end())


def _helm(fields: list[Field], context: Context) -> int | None:
    """Read `--set a.b.NAME=VALUE,...` of helm where a name is one of the interconnect's libraries."""
    given: list[Field] = []
    for option, field in pairwise(fields):
        if option.text in ("--set", "--set-string"):
            given.append(field)
        given += [_behind(field, start) for start in ("--set=", "--set-string=") if field.text.startswith(start)]
    number = other(fields, context, family="helm") if any(map(_names_setting, fields)) else _unknown(fields, context)
    for each in filter(_names_setting, given):
        _helm_values(each, context, number)
    return number


def _names_setting(field: Field) -> bool:
    return _IN_CHART.search(field.text) is not None


def _helm_values(field: Field, context: Context, number: int | None) -> None:
    """Take down the values of one --set: a comma without a backslash divides two, and each has an equals sign."""
    last: str | None = None
    for found in _PART_OF_SET.finditer(field.text):
        part = field.spelled.part(found.start(), found.end())
        path, equals, value = part.text.partition("=")
        name = path.rpartition(".")[2]
        if not equals and last is not None and part.text:
            context.ledger.slip("comma_in_list", part.origin(0), part.text, name=last)
        elif FAMILY_NAME.fullmatch(name) is not None:
            last = name
            if "\\" not in value and value[:1] != "{":
                setting = part.part(len(path) - len(name))
                context.assign(Field(setting, setting.origin(0), setting.end()), "container", number)
        elif equals:
            last = None


_LAUNCHERS: dict[str, tuple[Kind, Reader]] = {
    **dict.fromkeys(
        (
            "mpirun", "mpiexec", "orterun", "prterun", "prun", "oshrun", "shmemrun", "mpiexec.hydra", "mpirun.hydra",
            "mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich",
        ),
        ("mpirun", launchers.read_mpirun),
    ),
    "mpirun_rsh": ("mpirun", launchers.read_mpirun_rsh),
    "mpiexec.mpirun_rsh": ("mpirun", launchers.read_mpirun_rsh),
    "jsrun": ("mpirun", launchers.read_jsrun),
    "aprun": ("mpirun", launchers.read_aprun),
    "srun": ("srun", launchers.read_srun),
    "sbatch": ("other", launchers.read_sbatch),
    "salloc": ("other", launchers.read_srun),
    **dict.fromkeys(
        ("docker", "nvidia-docker", "podman", "nerdctl", "podman-hpc"), ("container", launchers.read_docker)
    ),
    **dict.fromkeys(("apptainer", "singularity"), ("container", launchers.read_apptainer)),
    "enroot": ("container", launchers.read_enroot),
    "ch-run": ("container", launchers.read_charliecloud),
    "shifter": ("container", launchers.read_shifter),
    "torchrun": ("torchrun", _torchrun),
    **dict.fromkeys(("deepspeed", "accelerate", "horovodrun"), ("torchrun", _starts_workers)),
}  # fmt: skip
_WRAPPERS: dict[str, Callable[[list[Field], Context], int | None]] = {
    "env": _env,
    "sudo": _sudo,
    "eval": _eval,
    "su": _shell,
    "runuser": _shell,
    "flux": _flux,
    "ray": _ray,
    "kubectl": _kubectl,
    "helm": _helm,
    **dict.fromkeys(("ssh", "pdsh", "clush", "rsh"), _ssh),
}
_KNOWN = frozenset((*_LAUNCHERS, *_WRAPPERS, *PREFIXES, *SHELLS))
