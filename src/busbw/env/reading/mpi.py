"""What a command line of an MPI launcher sets and passes on."""

from itertools import pairwise

from msgspec.structs import replace

from busbw.env.reading.arguments import Arguments, Grammar, Option
from busbw.env.reading.context import NAME, Context
from busbw.env.reading.expansion import Field
from busbw.env.reading.options import APRUN, FLUX, JSRUN, MPIRUN, MPIRUN_RSH
from busbw.env.reading.slips import is_cut_off, note_space_after
from busbw.env.reading.spelled import FILLED, HOLE, Spelled
from busbw.model.settings import Arm, LaunchCommand

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


def read_mpirun_rsh(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read MVAPICH's `mpirun_rsh`, where NAME=VALUE stands before the program."""
    arguments = Arguments(fields, 1, MPIRUN_RSH)
    passes_all = "-export-all" in {option.name for option in arguments.options()}
    forwards: list[str] = []
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
    return _with_env(fields[1:], context, number, FLUX, "Flux", ("--env",))


def _with_env(
    fields: list[Field], context: Context, number: int, grammar: Grammar, family: str, names: tuple[str, ...]
) -> list[Field]:
    arguments = Arguments(fields, 1, grammar)
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
