"""What the command lines of launchers set and pass on: of MPI, of Slurm, of container runtimes."""

import csv
import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec.structs import replace

from busbw.env.reading.arguments import (
    APPTAINER,
    APRUN,
    CHARLIECLOUD,
    DOCKER,
    ENROOT,
    FLUX,
    JSRUN,
    MPIRUN,
    MPIRUN_RSH,
    SRUN,
    Arguments,
    Grammar,
    Option,
    is_cut_off,
    note_space_after,
)
from busbw.env.reading.context import NAME, Context
from busbw.env.reading.spelled import FILLED, HOLE, Field, Spelled, joined
from busbw.model.settings import Arm, LaunchCommand

# MPI: mpirun in all its families, jsrun, aprun, flux.

# By whose name the variable of a parameter begins.
_PARAMETERS = {
    "mca": "OMPI_MCA_", "gmca": "OMPI_MCA_", "omca": "OMPI_MCA_", "ompimca": "OMPI_MCA_", "prtemca": "PRTE_MCA_",
    "pmixmca": "PMIX_MCA_",
}  # fmt: skip
# Options that one family alone has.
_OPEN_MPI = frozenset(
    {
        "-x", "mca", "gmca", "omca", "prtemca", "pmixmca", "npernode", "report-bindings", "tag-output",
        "allow-run-as-root", "oversubscribe", "display-map", "timestamp-output", "mca-base-env-list", "app",
        "output-filename", "tune", "rankfile", "cpu-set", "display-allocation", "use-hwthread-cpus",
        "nooversubscribe", "bind-to-core", "bycore", "display",
    }
)  # fmt: skip
_HYDRA = frozenset(
    {
        "genv", "env", "genvlist", "envlist", "genvall", "genvnone", "envall", "envnone", "ppn", "perhost",
        "bootstrap", "launcher", "iface", "rmk", "f", "hosts", "prepend-rank", "print-rank-map", "bootstrap-exec",
        "launcher-exec", "outfile-pattern",
    }
)  # fmt: skip
_HYDRA_NAMES = {"mpiexec.hydra", "mpirun.hydra", "mpirun.mpich", "mpiexec.mpich"}
_OPEN_MPI_NAMES = {"prterun", "prun", "orterun", "mpirun.openmpi", "mpiexec.openmpi", "oshrun", "shmemrun"}
_INTEL = ("I_MPI_",)


class Mpirun:
    """Reads one command line, application after application where `:` divides several."""

    def __init__(self, fields: list[Field], context: Context, number: int) -> None:
        self._fields = fields
        self._context = context
        self._number = number
        self._launch = context.ledger.launched(number)
        self._votes: set[str] = set()
        self._forwards: list[str] = list(self._launch.forwards)
        self._only_listed: bool | None = None

    def read(self) -> list[Field]:
        """Take down what the options set; return the command that the ranks run, [] where none is seen."""
        program: list[Field] = []
        where: int | None = None
        start = 1
        is_open = self._launch.computed
        self._part_applications()
        while start < len(self._fields):
            arguments = Arguments(self._fields, start, MPIRUN)
            for option in arguments.options():
                self._option(option, arguments)
            is_open = is_open or arguments.is_open
            divider = next((at for at in range(arguments.at, len(self._fields)) if self._fields[at].text == ":"), None)
            if not program and arguments.at < len(self._fields):
                program, where = self._fields[arguments.at : divider], arguments.at
            start = len(self._fields) if divider is None else divider + 1
        self._finish(where, is_open=is_open)
        return program

    def _part_applications(self) -> None:
        """Say that what several applications are given holds for the ranks of each alone."""
        dividers = [at for at, field in enumerate(self._fields) if field.text == ":"]
        if not dividers:
            return
        number, self._context.constructs = self._context.constructs, self._context.constructs + 1
        bounds = [0, *dividers, len(self._fields)]
        for arm, (first, behind) in enumerate(pairwise(bounds)):
            start, end = self._fields[first].start, self._fields[behind - 1].end
            self._context.ledger.conditional.add(start, end, (Arm(construct=number, arm=arm),))

    def _finish(self, program: int | None, *, is_open: bool) -> None:
        family = self._family()
        passes_all: bool | None = None
        if family == "Open MPI":
            passes_all = False
        elif family in {"MPICH", "Intel MPI"}:
            passes_all = self._only_listed is not True
        found = replace(
            self._launch,
            family=family,
            forwards=tuple(dict.fromkeys(self._forwards)),
            forwards_all=passes_all,
            program=program,
            computed=is_open,
        )
        self._context.ledger.correct(self._number, found)

    def _family(self) -> str | None:
        name = self._fields[0].text.rpartition("/")[2]
        if name in _OPEN_MPI_NAMES or "Open MPI" in self._votes:
            return "Open MPI"
        if "Intel MPI" in self._votes:
            return "Intel MPI"
        return "MPICH" if name in _HYDRA_NAMES or "MPICH" in self._votes else self._launch.family

    def _option(self, option: Option, arguments: Arguments) -> None:
        name = option.name if option.name == "-x" else option.name.lstrip("-")
        if name in _OPEN_MPI or any(value.text.startswith("ppr:") for value in option.values):
            self._votes.add("Open MPI")
        elif name in _HYDRA:
            self._votes.add("MPICH")
        if name in _PARAMETERS:
            self._parameter(_PARAMETERS[name], option, arguments)
        elif name == "-x" and option.values:
            self._export(option.values[0], arguments)
        elif name in {"genv", "env"} and option.values:
            self._pair(option, arguments)
        elif name in {"genvlist", "envlist"} and option.values:
            self._forwards += [each for each in option.values[0].text.split(",") if each]
            self._only_listed = True
        elif name in {"genvall", "envall"}:
            self._only_listed = False
        elif name in {"genvnone", "envnone"}:
            self._only_listed = True

    def _export(self, field: Field, arguments: Arguments) -> None:
        name = field.spelled.text.partition("=")[0]
        if HOLE in name or FILLED in name:
            # Any names: `-x $NAMES`.
            arguments.is_open = True
            return
        self._forwards.append(name)
        self._context.assign(field, "mpirun", self._number)
        following = arguments.rest[0] if arguments.rest else None
        if following is not None and is_cut_off(field, following):
            note_space_after(self._context, field, following)
            arguments.at += 1

    def _pair(self, option: Option, arguments: Arguments) -> None:
        name = option.values[0]
        if "=" in name.text:
            # Hydra takes NAME=VALUE as one argument too.
            arguments.at -= len(option.values) - 1
            self._context.assign(name, "mpirun", self._number)
            self._forwards.append(name.text.partition("=")[0])
        elif len(option.values) == 2:
            self._put(name.text, name, option.values[1])
            self._forwards.append(name.text)
        if name.text.startswith(_INTEL):
            self._votes.add("Intel MPI")

    def _put(self, name: str, field: Field, value: Field) -> None:
        if NAME.fullmatch(name):
            written = (value.start, value.end)
            self._context.put(
                name, value.spelled, "mpirun", at=field.spelled.origin(0), written=written, launch=self._number
            )

    def _parameter(self, prefix: str, option: Option, arguments: Arguments) -> None:
        if not option.values:
            return
        name = option.values[0]
        if "=" in name.text:
            # It takes two words: the next one would be its value.
            self._context.ledger.slip("option_equals", name.spelled.origin(0), name.text)
            arguments.at -= len(option.values) - 1
            spelled, _, _ = name.text.partition("=")
            value = name.behind(len(spelled) + 1)
        elif len(option.values) == 2:
            spelled, value = name.text, option.values[1]
        else:
            return
        if spelled == "mca_base_env_list":
            self._list(value.spelled)
        elif NAME.fullmatch(spelled):
            written = (value.start, value.end)
            at = name.spelled.origin(0)
            context = self._context
            context.put(prefix + spelled, value.spelled, "mca", at=at, written=written, launch=self._number)

    def _list(self, value: Spelled) -> None:
        """Take down the variables of mca_base_env_list, which semicolons divide."""
        at = 0
        for part in value.text.split(";"):
            spelled = value.part(at, at + len(part))
            at += len(part) + 1
            if part:
                self._forwards.append(part.partition("=")[0])
                self._context.assign(Field(spelled, spelled.origin(0), spelled.end()), "mpirun", self._number)


def read_mpirun(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `mpirun` and `mpiexec` of any family; return the command that the ranks run."""
    return Mpirun(fields, context, number).read()


# Options of mpirun_rsh with which hosts are no words of the command line.
_HOSTS_ELSEWHERE = {"hostfile", "f", "machinefile", "config", "ppn", "spawnfile"}


def read_mpirun_rsh(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `mpirun_rsh` of MVAPICH2: hosts where no file names them, then NAME=VALUE, then the program."""
    arguments = Arguments(fields, 1, MPIRUN_RSH)
    # mpiexec.mpirun_rsh hands its environment on by itself.
    passes_all = fields[0].text.rpartition("/")[2] != "mpirun_rsh"
    forwards: list[str] = []
    count: int | None = None
    takes_hosts = not passes_all
    for option in arguments.options():
        name = option.name.lstrip("-")
        passes_all = passes_all or name in {"export", "export-all"}
        takes_hosts = takes_hosts and name not in _HOSTS_ELSEWHERE
        if name in {"np", "n"} and option.values and option.values[0].text.isdecimal():
            count = int(option.values[0].text[:9])
        if name == "env" and len(option.values) == 2:
            pair, value = option.values
            forwards.append(pair.text)
            if NAME.fullmatch(pair.text):
                at, written = pair.spelled.origin(0), (value.start, value.end)
                context.put(pair.text, value.spelled, "mpirun", at=at, written=written, launch=number)
    rest = arguments.rest
    if takes_hosts and count is not None and rest and "=" not in rest[0].text and len(rest) > count:
        arguments.at += count
    while arguments.rest and context.assign(arguments.rest[0], "mpirun", number) is not None:
        forwards.append(arguments.rest[0].text.partition("=")[0])
        arguments.at += 1
    _correct(context, number, arguments, "MVAPICH", forwards, forwards_all=passes_all)
    return arguments.rest


def read_jsrun(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read IBM's `jsrun`, which passes the environment on."""
    return _with_env(fields, context, number, JSRUN, "IBM Spectrum MPI", ("-E", "--env"))


def read_aprun(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read Cray's `aprun`, which passes the environment on."""
    return _with_env(fields, context, number, APRUN, "ALPS", ("-e", "--environment-override"))


def read_flux(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `flux run`, which passes the environment on."""
    return _with_env(fields, context, number, FLUX, "Flux", ("--env",))


def _with_env(
    fields: list[Field], context: Context, number: int, grammar: Grammar, family: str, names: tuple[str, ...]
) -> list[Field]:
    # `flux run` is two words.
    arguments = Arguments(fields, 2 if grammar is FLUX else 1, grammar)
    forwards: list[str] = []
    for option in arguments.options():
        if option.name in names and option.values:
            forwards.append(option.values[0].text.partition("=")[0])
            context.assign(option.values[0], "mpirun", number)
    _correct(context, number, arguments, family, forwards, forwards_all=True)
    return arguments.rest


def _correct(
    context: Context, number: int, arguments: Arguments, family: str, forwards: list[str], *, forwards_all: bool
) -> None:
    launch = context.ledger.launched(number)
    found: LaunchCommand = replace(
        launch,
        family=family,
        forwards=tuple(dict.fromkeys((*launch.forwards, *forwards))),
        forwards_all=forwards_all,
        program=arguments.at if arguments.rest else None,
        computed=launch.computed or arguments.is_open,
    )
    context.ledger.correct(number, found)


# Slurm: srun, sbatch, salloc, and the directives of a batch script.
_WORDS = {"ALL", "NONE", "NIL"}
# Names that stand in an export list by themselves; others there are more often the rest of a value with commas.
_USUAL = frozenset(
    {
        "PATH",
        "LD_LIBRARY_PATH",
        "HOME",
        "USER",
        "SHELL",
        "LANG",
        "TERM",
        "PYTHONPATH",
        "PWD",
        "LOGNAME",
        "TMPDIR",
        "DISPLAY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "MODULEPATH",
        "MANPATH",
    }
)
_NAME_OF_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]")


def read_srun(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `srun`; return the command that the ranks run."""
    arguments = Arguments(fields, 1, SRUN)
    forwards: list[str] = []
    passes_all = context.slurm_forwards_all
    for option in arguments.options():
        if option.name == "--export" and option.values:
            names, passes_all = export_list(option.values[0].spelled, context, number)
            forwards += names
        elif option.name == "--container-env" and option.values:
            forwards += [name for name in option.values[0].text.split(",") if name]
    launch = context.ledger.launched(number)
    found = replace(
        launch,
        family="Slurm",
        forwards=tuple(dict.fromkeys((*launch.forwards, *forwards))),
        forwards_all=passes_all,
        program=arguments.at if arguments.rest else None,
        computed=launch.computed or arguments.is_open,
    )
    context.ledger.correct(number, found)
    return arguments.rest


def read_sbatch(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `sbatch`, whose job sees what it exports; return nothing, for the job is a script of its own."""
    arguments = Arguments(fields, 1, SRUN)
    forwards: list[str] = []
    passes_all = True
    for option in arguments.options():
        if option.name == "--export" and option.values:
            forwards, passes_all = export_list(option.values[0].spelled, context, number)
        elif option.name == "--wrap" and option.values:
            context.read("shell", option.values[0].spelled, context.inner(launch=number))
    launch = context.ledger.launched(number)
    context.ledger.correct(
        number,
        replace(
            launch,
            family="Slurm sbatch",
            forwards=tuple(forwards),
            forwards_all=passes_all,
            program=arguments.at if arguments.rest else None,
            computed=launch.computed or arguments.is_open,
        ),
    )
    return []


def read_directive(options: list[Field], context: Context) -> None:
    """Read one line of #SBATCH options: what it exports is seen by everything after it."""
    arguments = Arguments(options, 0, SRUN)
    for option in arguments.options():
        if option.name == "--export" and option.values:
            _, context.slurm_forwards_all = export_list(option.values[0].spelled, context, None)


def read_pbs_directive(options: list[Field], context: Context) -> None:
    """Read one line of #PBS options: `-v NAME=VALUE,NAME`."""
    at = next((number for number, field in enumerate(options) if field.text == "-v"), None)
    if at is not None and at + 1 < len(options):
        export_list(options[at + 1].spelled, context, None)


def export_list(value: Spelled, context: Context, number: int | None) -> tuple[list[str], bool]:
    """Take down the variables of an export list; return the names and words in it, and whether it passes on all.

    Commas divide them, but between quotes that reach Slurm itself.
    """
    found: list[str] = []
    setting: str | None = None
    for part in _parts(value):
        if "=" in part.text:
            setting = part.text.partition("=")[0]
            found.append(setting)
            bare = _without_quotes(part)
            context.assign(Field(bare, bare.origin(0), bare.end()), "srun", number)
        elif part.text:
            found.append(part.text)
            if setting is not None and not _may_be_name(part.text):
                context.ledger.slip("comma_in_list", part.origin(0), part.text, name=setting)
    # Slurm looks at no capitals there: src/common/env.c, sbatch.c.
    is_all = any(word.upper() == "ALL" for word in found) or HOLE in value.text
    return found, is_all or (not found and context.slurm_forwards_all)


def _may_be_name(text: str) -> bool:
    is_unknown = text[0] in {HOLE, FILLED}
    return is_unknown or text.upper() in _WORDS or text in _USUAL or _NAME_OF_VARIABLE.fullmatch(text) is not None


def _parts(value: Spelled) -> Iterator[Spelled]:
    start = 0
    quote = ""
    for at, character in enumerate(value.text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == ",":
            yield value.part(start, at)
            start = at + 1
    yield value.part(start)


def _without_quotes(part: Spelled, quotes: str = "'\"") -> Spelled:
    """Return NAME=VALUE without the quotes around the value, by default those that Slurm takes off."""
    equals = part.text.find("=")
    quote = part.text[equals + 1 : equals + 2]
    if not quote or quote not in quotes or len(part.text) < equals + 3 or not part.text.endswith(quote):
        return part
    return joined((part.part(0, equals + 1), part.part(equals + 2, len(part.text) - 1)))


# Container runtimes: Docker and its kin, Apptainer, enroot, Charliecloud, Shifter.
_ENGINES = {"run", "exec", "create"}
_ACTIONS = {"exec", "run", "shell", "start", "test"}
_WITHOUT_VERB = {"ch-run", "shifter"}
# Options of Apptainer that keep the host's environment out.
_CLEAN = {"-e", "--cleanenv", "-C", "--containall"}


def starts(fields: list[Field]) -> bool:
    """Whether a command of a runtime starts something: `docker build` and `apptainer pull` do not."""
    name = fields[0].text.rpartition("/")[2]
    return name in _WITHOUT_VERB or any(field.text in _ENGINES | _ACTIONS for field in fields[1:])


def read_docker(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `docker run` and the like, which pass on what they are told; return what runs in the container."""
    verb = next((at for at, field in enumerate(fields) if at and field.text in _ENGINES), None)
    if verb is None:
        return []
    arguments = Arguments(fields, verb + 1, DOCKER)
    forwards: list[str] = []
    passes_all = False
    for option in arguments.options():
        if option.name in {"-e", "--env"} and option.values:
            forwards.append(option.values[0].text.partition("=")[0])
            context.assign(option.values[0], "container", number)
            _check_space(option, arguments, context)
        elif option.name == "--env-file" and option.values:
            context.ledger.unread(option.at, f"the file behind --env-file is not read: {_shown(option.values[0])}")
        passes_all = passes_all or option.name == "--env-host"
    # Then comes the image, and behind it the command.
    return _finish(arguments, context, number, fields[0], forwards, forwards_all=passes_all)


def read_apptainer(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `apptainer exec` and the like, which pass on the environment unless told not to."""
    verb = next((at for at, field in enumerate(fields) if at and field.text in _ACTIONS), None)
    if verb is None:
        return []
    arguments = Arguments(fields, verb + 1, APPTAINER)
    forwards: list[str] = []
    passes_all = True
    for option in arguments.options():
        passes_all = passes_all and option.name not in _CLEAN
        if option.name == "--env" and option.values:
            forwards += _apptainer_env(option.values[0], context, number)
            _check_space(option, arguments, context)
        elif option.name == "--env-file" and option.values:
            context.ledger.unread(option.at, f"the file behind --env-file is not read: {_shown(option.values[0])}")
    return _finish(arguments, context, number, fields[0], forwards, forwards_all=passes_all)


def _apptainer_env(field: Field, context: Context, number: int) -> list[str]:
    """Take down `NAME=VALUE,NAME=VALUE`. With one `=` in all of it, the commas belong to the value."""
    if field.text.count("=") <= 1:
        context.assign(field, "container", number)
        return [field.text.partition("=")[0]]
    forwards: list[str] = []
    for part in _of_csv(field.spelled):
        name, equals, _ = part.text.partition("=")
        if equals:
            forwards.append(name)
            context.assign(Field(part, part.origin(0), part.end()), "container", number)
        elif part.text:
            context.ledger.slip("comma_in_list", part.origin(0), part.text, name=forwards[-1] if forwards else None)
    return forwards


def _of_csv(value: Spelled) -> list[Spelled]:
    """Return the fields of one line of CSV, which is how the list is read."""
    if '"' not in value.text:
        parts: list[Spelled] = []
        at = 0
        for text in value.text.split(","):
            parts.append(value.part(at, at + len(text)))
            at += len(text) + 1
        return parts
    try:
        rows = list(csv.reader([value.text.replace("\n", " ")]))
    except csv.Error:
        return [value]
    return [Spelled(text, ((0, value.origin(0)),)) for text in (rows[0] if rows else [])]


def read_enroot(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `enroot start`."""
    return _simple(fields, context, number, ENROOT, ("-e", "--env"), forwards_all=None)


def read_charliecloud(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read Charliecloud's `ch-run`, which passes on the environment."""
    # It takes one pair of single quotes off a value.
    return _simple([fields[0], *fields], context, number, CHARLIECLOUD, ("--set-env",), forwards_all=True, stripped="'")


def read_shifter(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `shifter`, which passes on the environment."""
    grammar = Grammar(valued=frozenset({"-i", "--image", "-e", "--env", "--env-file", "-V", "--volume", "-w", "-m"}))
    # With --image there is no other argument before the command.
    names = ("-e", "--env")
    return _simple([fields[0], *fields], context, number, grammar, names, forwards_all=True, images=0)


def _simple(
    fields: list[Field],
    context: Context,
    number: int,
    grammar: Grammar,
    names: tuple[str, ...],
    *,
    forwards_all: bool | None,
    images: int = 1,
    stripped: str = "",
) -> list[Field]:
    arguments = Arguments(fields, 2, grammar)
    forwards: list[str] = []
    for option in arguments.options():
        if option.name in names and option.values:
            forwards.append(option.values[0].text.partition("=")[0])
            spelled = _without_quotes(option.values[0].spelled, stripped)
            context.assign(Field(spelled, spelled.origin(0), spelled.end()), "container", number)
    return _finish(arguments, context, number, fields[0], forwards, forwards_all=forwards_all, images=images)


def _check_space(option: Option, arguments: Arguments, context: Context) -> None:
    following = arguments.rest[0] if arguments.rest else None
    if following is not None and is_cut_off(option.values[0], following):
        note_space_after(context, option.values[0], following)
        arguments.at += 1


def _finish(
    arguments: Arguments,
    context: Context,
    number: int,
    name: Field,
    forwards: list[str],
    *,
    forwards_all: bool | None,
    images: int = 1,
) -> list[Field]:
    program = arguments.rest[images:]
    launch = context.ledger.launched(number)
    found = replace(
        launch,
        family=name.text.rpartition("/")[2],
        forwards=tuple(dict.fromkeys((*launch.forwards, *forwards))),
        forwards_all=forwards_all,
        program=arguments.at + images if program else None,
        computed=launch.computed or arguments.is_open,
    )
    context.ledger.correct(number, found)
    return program


def _shown(field: Field) -> str:
    return field.text[:80] if field.spelled.is_known else "its name is not known"
