"""What a reader knows of the place it reads at: the file, the variables, who sees what is set there."""

import re
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from busbw.env.reading.expansion import Field
from busbw.env.reading.ledger import MOST_ARGUMENTS, Ledger
from busbw.env.reading.scope import Scope
from busbw.env.reading.spelled import FILLED, HOLE, Spelled
from busbw.model.settings import Arm, Form, LaunchCommand

NAME = re.compile(r"[A-Za-z_]\w*")
# Prefixes that Apptainer and Singularity take off: the rest is a variable in the container.
_INTO_CONTAINER = re.compile(r"(?:APPTAINERENV|SINGULARITYENV)_(?=[A-Za-z_])")
_LONGEST_ARGUMENT = 2_000
DEEPEST = 6


class Context(msgspec.Struct):
    """The place that is read. `nested` reads a text that stands in it, in the language named first."""

    ledger: Ledger
    scope: Scope
    nested: "Callable[[str, Spelled, Context], None]"
    # The launch whose processes see what is set here, and the file that is written here.
    launch: int | None = None
    target: str | None = None
    arms: tuple[Arm, ...] = ()
    depth: int = 0
    # How an exported variable is put down here.
    exported_as: Form = "export"
    # `set -a`: all that is set is exported.
    exports_all: bool = False
    # What srun passes on when it is not told: `#SBATCH --export` decides.
    slurm_forwards_all: bool = True
    # Where the command stands that is read: what it runs may have been written before, into a variable.
    runs_at: int = 0
    # Counts the constructs with several ways through them.
    constructs: int = 0

    def inner(
        self,
        *,
        launch: int | None = None,
        target: str | None = None,
        is_new: bool = False,
        exported_as: Form | None = None,
    ) -> "Context":
        """Return the context of a text that stands here; `is_new`: it knows nothing of the variables around it."""
        return replace(
            self,
            scope=Scope() if is_new else self.scope,
            launch=self.launch if launch is None and not is_new else launch,
            target=self.target if target is None else target,
            exported_as=self.exported_as if exported_as is None else exported_as,
            exports_all=False,
            depth=self.depth + 1,
        )

    def read(self, language: str, piece: Spelled, inner: "Context") -> None:
        """Read a text that stands in this one, unless it lies too deep or there is too much of it."""
        if inner.depth > DEEPEST:
            self.ledger.unread(piece.origin(0), f"nested more than {DEEPEST} deep")
        elif self.ledger.may_nest(len(piece.text)):
            inner.scope.begin()
            before, inner.constructs = self.constructs, self.constructs
            self.nested(language, Spelled(piece.text.replace(FILLED, HOLE), piece.runs), inner)
            self.constructs = max(before, inner.constructs)
            inner.scope.end()

    def assign(self, field: Field, form: Form, launch: int | None = None) -> int | None:
        """Take NAME=VALUE down; return its number, None where it is none."""
        equals = field.text.find("=")
        name = field.text[: max(equals, 0)]
        if not NAME.fullmatch(name):
            return None
        value = field.spelled.part(equals + 1)
        start = field.spelled.origin(equals) + 1 if field.is_whole else value.origin(0)
        end = field.end if field.is_whole else value.end()
        # What several places of the file make up stands at none of them.
        written = (start, end) if field.is_whole or len(value.runs) == 1 else None
        return self.put(name, value, form, at=field.spelled.origin(0), written=written, launch=launch)

    def put(
        self,
        name: str,
        value: Spelled | None,
        form: Form,
        *,
        at: int,
        written: tuple[int, int] | None = None,
        launch: int | None = None,
    ) -> int | None:
        """Take an assignment down; return its number. A prefix for containers is taken off."""
        prefix = _INTO_CONTAINER.match(name)
        if prefix is not None:
            name, at, form = name[prefix.end() :], at + prefix.end(), "container"
        return self.ledger.assign(
            name,
            value,
            form,
            at=at,
            written=written,
            launch=self.launch if launch is None else launch,
            arms=self.arms,
            target=self.target,
        )

    def start(self, launch: LaunchCommand) -> int | None:
        """Take a launch down; return its number."""
        return self.ledger.launch(replace(launch, arms=self.arms, target=self.target, within=self.launch))

    def argv(self, fields: list[Field]) -> tuple[str, ...]:
        """Return a command's arguments for showing; what is not known stands there as it is written."""
        return tuple(self.shown(field)[:_LONGEST_ARGUMENT] for field in fields[:MOST_ARGUMENTS])

    def shown(self, field: Field) -> str:
        """Return an argument for showing; one that is not known as it is written."""
        if field.spelled.is_known:
            return field.text
        written = self.ledger.text[field.start : field.end] if field.is_whole else ""
        return written or field.text.replace(HOLE, "$").replace(FILLED, "$")
