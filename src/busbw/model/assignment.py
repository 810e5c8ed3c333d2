"""What a script, a file or an environment sets, where it says so, and whether the ranks get to see it."""

from typing import Literal

from busbw.base.value import Integer, Value

# How a setting is written: decides who sees it, and how it is quoted.
Form = Literal[
    "environment",  # captured, or the output of env
    "nccl_conf",
    "shell",  # NAME=value, seen by nobody but the shell
    "export",
    "prefix",  # NAME=value command
    "mpirun",  # -x NAME=value, --mca mca_base_env_list, -genv, -env
    "mca",  # --mca NAME VALUE, as OMPI_MCA_NAME
    "srun",  # --export=NAME=value
    "container",  # --env, -e, APPTAINERENV_NAME
    "manifest",  # env of a Kubernetes container
    "dockerfile",
    "apptainer",
    "modulefile",
]


class Arm(Value, kw_only=True, frozen=True):
    """One way through an `if`, a `case`, a loop, a function or an `&&` list."""

    # Counts the constructs of a text in the order in which they begin.
    construct: Integer
    # Counts the ways through it.
    arm: Integer


class Assignment(Value, kw_only=True, frozen=True):
    """One variable set once. Lines and columns count from 1, columns in characters."""

    name: str
    # As the shell would pass it, where nothing has to be run to know; None: unset, or not known. `${NAME:-default}`
    # counts as its default where nothing before it sets NAME. A carriage return at its end is left out: see Slip.
    value: str | None
    # As it is written, with its quotes.
    written: str
    form: Form
    file: str
    line: Integer
    column: Integer
    # Column of the value.
    value_column: Integer | None = None
    # Line of the value where it is another than that of the name, as in a manifest.
    value_line: Integer | None = None
    # The value holds $VARIABLES or commands that are not known here.
    computed: bool = False
    # Whether it is unset rather than set.
    unsets: bool = False
    # The command whose processes see it, by its number in Reading.launches; None: everything after it.
    launch: Integer | None = None
    # The values it may have where branches before it decide; `value` is None then.
    alternatives: tuple[str, ...] = ()
    # What it is conditional on, outermost first; (): always.
    arms: tuple[Arm, ...] = ()
    # The file that the text it stands in is written to: `cat > /etc/nccl.conf <<EOF`; None: the file read.
    target: str | None = None


class Launch(Value, kw_only=True, frozen=True):
    """One command that starts ranks; `other`: one that has settings of its own, such as `NAME=value make`."""

    kind: Literal["mpirun", "srun", "torchrun", "container", "other"]
    # Open MPI, MPICH, Intel MPI..., where the options tell.
    family: str | None = None
    argv: tuple[str, ...]
    file: str
    line: Integer
    column: Integer
    # Names it passes on to the ranks by name or with a value; `ALL` and patterns as written.
    forwards: tuple[str, ...] = ()
    # Whether ranks on other nodes see the whole environment without being told.
    forwards_all: bool | None = None
    # The launch that starts this one, by its number: `mpirun ... apptainer exec ...`.
    within: Integer | None = None
    # Where the program begins in argv, behind the launcher's own options; None: not told, or none.
    program: Integer | None = None
    # It holds $VARIABLES that are not known here, so it may pass on and set more than is said.
    computed: bool = False
    arms: tuple[Arm, ...] = ()
    target: str | None = None


class Unread(Value, kw_only=True, frozen=True):
    """A part that could not be read, and why."""

    file: str
    line: Integer
    column: Integer
    reason: str


# space_after_equals: NAME= value, which sets NAME to nothing and runs, or passes on, `value`.
# space_before_equals: NAME =value, which runs NAME.
# lost_line_end: a backslash before a space where a line was to go on, or a line that begins with an option.
# typographic: quotes, dashes or spaces of a word processor.
# carriage_return: lines end as on Windows, and the shell takes the end as part of what it reads.
# comma_in_list: a list of NAME=value is cut at the commas of a value.
# option_equals: `--mca NAME=VALUE`, which takes two words.
# not_a_string: a manifest's value without quotes that is no string.
# not_shown: `export` where the environment ends with the command, as in a Dockerfile's RUN.
SlipKind = Literal[
    "space_after_equals",
    "space_before_equals",
    "lost_line_end",
    "typographic",
    "carriage_return",
    "comma_in_list",
    "option_equals",
    "not_a_string",
    "not_shown",
]


class Slip(Value, kw_only=True, frozen=True):
    """What reads well to a person and otherwise to the machine. What stands behind it is read as it was meant."""

    kind: SlipKind
    file: str
    line: Integer
    column: Integer
    # As it stands there.
    written: str
    # The variable it is about, and the value that was probably meant.
    name: str | None = None
    meant: str | None = None
    # How often it occurs in the file.
    count: Integer = 1


class Reading(Value, kw_only=True, frozen=True):
    """Everything one text sets and starts."""

    file: str
    # environment, nccl.conf, shell, slurm, csh, dockerfile, apptainer, kubernetes, modulefile, systemd, markdown.
    language: str
    assignments: tuple[Assignment, ...] = ()
    launches: tuple[Launch, ...] = ()
    unread: tuple[Unread, ...] = ()
    slips: tuple[Slip, ...] = ()
    # The text's lines, for showing where something stands.
    lines: tuple[str, ...] = ()
    # The scripts of a page, each by itself; the page sets nothing beside them.
    parts: "tuple[Reading, ...]" = ()

    @property
    def count(self) -> int:
        """How many settings it has, with those of its parts."""
        return len(self.assignments) + sum(part.count for part in self.parts)


def exclude_each_other(one: tuple[Arm, ...], other: tuple[Arm, ...]) -> bool:
    """Whether two places stand on different ways through one construct, so that no run passes both."""
    if one == other:
        return False
    ways = {arm.construct: arm.arm for arm in one}
    return any(ways.get(arm.construct, arm.arm) != arm.arm for arm in other)
