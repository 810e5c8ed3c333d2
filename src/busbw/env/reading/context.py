"""What a reader knows of the place it reads at, and what it takes down: the ledger, the variables, who sees what."""

import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

import msgspec
from msgspec.structs import replace

from busbw.env.reading.spelled import FILLED, HOLE, Field, Spelled
from busbw.model.settings import Arm, Assignment, Form, LaunchCommand, SettingsReading, Slip, SlipKind, UnreadPart


class ArmPlaces:
    """The places of a file that hold on some ways only, by where they begin."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        # End, how far it and those before it reach, and what it is conditional on.
        self._places: list[tuple[int, int, tuple[Arm, ...]]] = []

    def add(self, start: int, end: int, arms: tuple[Arm, ...]) -> None:
        """Say that what stands from `start` to before `end` holds on these ways only, beside what was said of it."""
        if not arms or end <= start:
            return
        whole = united(self.at(start), arms)
        place = bisect_right(self._starts, start)
        reach = max(end, self._places[place - 1][1]) if place else end
        self._starts.insert(place, start)
        self._places.insert(place, (end, reach, whole))

    def at(self, offset: int) -> tuple[Arm, ...]:
        """Return the ways that what stands at an offset holds on; (): always, or on those where it is read."""
        for place in range(bisect_right(self._starts, offset) - 1, -1, -1):
            end, reach, arms = self._places[place]
            if offset < end:
                return arms
            if offset >= reach:
                break
        return ()


def united(one: tuple[Arm, ...], other: tuple[Arm, ...]) -> tuple[Arm, ...]:
    """Return the ways that both name, each once."""
    return tuple(dict.fromkeys((*one, *other))) if one and other else one or other


# More than any script has; a text made to have more is cut here, and the reading says so.
MOST_ASSIGNMENTS = 20_000
MOST_LAUNCHES = 5_000
MOST_REMARKS = 1_000
MOST_ARGUMENTS = 1_000
LONGEST_WRITTEN = 4_096
# Other values that one assignment may have where branches decide.
MOST_ALTERNATIVES = 8
# How much is read on top of the file itself, in characters: scripts within scripts, and the values of variables.
MOST_NESTED = 8 * 2**20
MOST_RESOLVED = 2 * 2**20


class Ledger:
    """Takes down assignments, launches, slips and unread parts of one file, and gives the reading."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._lines = text.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)]
        self._assignments: list[Assignment] = []
        self._launches: list[LaunchCommand] = []
        # In order; what is read several times is said once.
        self._unread: dict[UnreadPart, None] = {}
        self._slips: dict[tuple[SlipKind, int], Slip] = {}
        # Where an assignment was taken down from; a place read again adds alternatives.
        self.conditional = ArmPlaces()
        self._places: dict[tuple[str, int, int | None], int] = {}
        self._set_at: set[tuple[str, int]] = set()
        self._by_name: dict[str, list[int]] = {}
        # The launches of the command that is read at the moment; branches before it make it be read several times.
        self._current: dict[tuple[int, int, int | None], int] = {}
        self._nested = MOST_NESTED
        self._resolved = MOST_RESOLVED
        self._said: set[str] = set()
        self._spoken: list[tuple[int, int]] = []
        # Whether the text is a whole script for a shell: what is no shell's language in it keeps it from running.
        self.is_script = False

    @property
    def count(self) -> int:
        """How many assignments and launches were taken down."""
        return len(self._assignments) + len(self._launches)

    @property
    def has_unread(self) -> bool:
        """Whether a part could not be read so far."""
        return bool(self._unread)

    @property
    def has_launches(self) -> bool:
        """Whether a command was taken down that starts ranks."""
        return any(launch.kind in {"mpirun", "srun", "torchrun"} for launch in self._launches)

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, from 1."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._starts, offset) - 1
        line = min(line, len(self._lines) - 1)
        return line + 1, offset - self._starts[line] + 1

    def may_nest(self, characters: int) -> bool:
        """Whether so much nested text may still be read; it is counted, and a remark is made when there is too much."""
        self._nested -= characters
        if self._nested < 0:
            self._once(len(self.text), f"more than {MOST_NESTED} characters of nested text")
        return self._nested >= 0

    def may_resolve(self, characters: int) -> bool:
        """Whether so much more may come out of variables; beyond, their values are not known."""
        self._resolved -= characters
        if self._resolved < 0:
            self._once(len(self.text), f"more than {MOST_RESOLVED} characters come out of variables")
        return self._resolved >= 0

    def assign(
        self,
        name: str,
        value: Spelled | None,
        form: Form,
        *,
        at: int,
        written: tuple[int, int] | None = None,
        launch: int | None = None,
        arms: tuple[Arm, ...] = (),
        target: str | None = None,
    ) -> int | None:
        """Take an assignment down, or an `unset` where there is no value; return its number.

        `written` is from where to where the value stands in the file, with its quotes. None when there are too many.
        """
        key = (name, at, launch)
        text = None if value is None else value.text.removesuffix("\r")
        is_known = value is None or value.is_known
        if key in self._places:
            self._alternative(self._places[key], text if is_known else None)
            return self._places[key]
        if len(self._assignments) >= MOST_ASSIGNMENTS:
            self._once(at, f"more than {MOST_ASSIGNMENTS} assignments; the rest is not read")
            return None
        line, column = self.place(at)
        value_line, value_column = (0, 0) if written is None else self.place(written[0])
        self._assignments.append(
            Assignment(
                name=name,
                value=text if is_known else None,
                written="" if value is None else self._as_written(value, written),
                form=form,
                file=self.file,
                line=line,
                column=column,
                value_column=value_column or None,
                value_line=value_line if value_line not in {0, line} else None,
                computed=not is_known,
                unsets=value is None,
                launch=launch,
                arms=united(arms, self.conditional.at(at)),
                target=target,
            )
        )
        number = len(self._assignments) - 1
        self._places[key] = number
        self._set_at.add((name, at))
        self._by_name.setdefault(name, []).append(number)
        return number

    def is_set_at(self, name: str, at: int) -> bool:
        """Whether a setting was taken down from this place, for whatever sees it."""
        return (name, at) in self._set_at

    def _as_written(self, value: Spelled, written: tuple[int, int] | None) -> str:
        if written is not None and 0 <= written[1] - written[0] <= LONGEST_WRITTEN:
            return self.text[written[0] : written[1]].removesuffix("\r")
        return value.text.replace(HOLE, "$").replace(FILLED, "$")[:LONGEST_WRITTEN]

    def _alternative(self, number: int, value: str | None) -> None:
        found = self._assignments[number]
        known = found.alternatives or ((found.value,) if found.value is not None else ())
        if value is None:
            self._assignments[number] = replace(found, value=None, computed=True, alternatives=known)
        elif found.computed or value != found.value:
            known = tuple(dict.fromkeys((*known, value)))[:MOST_ALTERNATIVES]
            self._assignments[number] = replace(found, value=None, computed=True, alternatives=known)

    def show(self, name: str) -> bool:
        """Make what the shell alone has of this name seen by what it starts; False where it is not set here."""
        numbers = self._by_name.get(name, [])
        for number in numbers:
            if self._assignments[number].form == "shell":
                self._assignments[number] = replace(self._assignments[number], form="export")
        # What was shown is not asked about again, or a script of nothing but `export A` would take for ever.
        self._by_name[name] = numbers[-1:]
        return bool(numbers)

    def belong(self, numbers: list[int], launch: int | None) -> None:
        """Say which launch sees these assignments."""
        for number in numbers:
            self._assignments[number] = replace(self._assignments[number], launch=launch)

    def begin_command(self) -> None:
        """Begin another command: what it launches is new, even where a variable holds a command read before."""
        self._current.clear()

    def launch(self, found: LaunchCommand) -> int | None:
        """Take a launch down and return its number; None when there are too many."""
        key = (found.line, found.column, found.within)
        if key in self._current:
            number = self._current[key]
            # Where its program begins is counted in the words of this way through the text.
            self._launches[number] = replace(self._launches[number], argv=found.argv)
            return number
        if len(self._launches) >= MOST_LAUNCHES:
            return None
        self._launches.append(found)
        self._current[key] = len(self._launches) - 1
        return len(self._launches) - 1

    def launched(self, number: int) -> LaunchCommand:
        """Return a launch by its number."""
        return self._launches[number]

    def correct(self, number: int, launch: LaunchCommand) -> None:
        """Replace a launch by what is known of it now."""
        self._launches[number] = launch

    def unread(self, offset: int, reason: str, *, is_rejected: bool = False) -> None:
        """Take down a part that cannot be read."""
        if len(self._unread) < MOST_REMARKS:
            line, column = self.place(offset)
            part = UnreadPart(file=self.file, line=line, column=column, reason=reason, is_rejected=is_rejected)
            self._unread[part] = None

    def rejected(self, offset: int, reason: str, *, is_certain: bool = False) -> None:
        """Take down what a shell refuses; in a fragment, whose rest may stand elsewhere, it is a part that is not read.

        `is_certain`: what follows or goes before makes no difference.
        """
        self.unread(offset, reason, is_rejected=self.is_script or is_certain)

    def spoken(self, start: int, end: int) -> None:
        """Say that nothing shows that what stands from here to there is in force."""
        if len(self._spoken) < MOST_REMARKS:
            self._spoken.append((self.place(start)[0], self.place(end)[0]))

    def _once(self, offset: int, reason: str) -> None:
        if reason not in self._said:
            self._said.add(reason)
            self.unread(offset, reason)

    def slip(self, kind: SlipKind, at: int, written: str, *, name: str | None = None, meant: str | None = None) -> None:
        """Take down a slip; the same at the same place counts once."""
        if (kind, at) not in self._slips and len(self._slips) < MOST_REMARKS:
            line, column = self.place(at)
            self._slips[kind, at] = Slip(
                kind=kind, file=self.file, line=line, column=column, written=written[:200], name=name, meant=meant
            )

    def every(self, kind: SlipKind, at: int, written: str, *, count: int) -> None:
        """Take down a slip that the whole file has, at its first place."""
        self.slip(kind, at, written)
        if (kind, at) in self._slips:
            self._slips[kind, at] = replace(self._slips[kind, at], count=count)

    def reading(self, language: str) -> SettingsReading:
        """Return everything that was taken down."""
        return SettingsReading(
            file=self.file,
            language=language,
            assignments=tuple(self._assignments),
            launches=tuple(self._launches),
            unread=tuple(self._unread),
            slips=tuple(sorted(self._slips.values(), key=lambda slip: (slip.line, slip.column))),
            lines=tuple(line.removesuffix("\r") for line in self._lines),
            spoken=tuple(dict.fromkeys(self._spoken)),
        )


# Values that one variable may have at once, where branches decide; more, and it is not known.
MOST_POSSIBLE = 8
LONGEST_VALUE = 16_384


class Known(msgspec.Struct, frozen=True):
    """A value, or the values of a list. The parts of a value may be unknown."""

    fields: tuple[Spelled, ...]
    is_list: bool = False


# None: not known, or unset.
Possible = tuple[Known | None, ...]
Changes = dict[str, Possible]


class Scope:
    """The variables, with a log of what changed in each construct that is open."""

    def __init__(self) -> None:
        self._values: dict[str, Possible] = {}
        self._logs: list[Changes] = []
        self.exported: set[str] = set()

    def get(self, name: str) -> Possible:
        """Return what a variable may hold; (None,) where nothing is known."""
        return self._values.get(name, (None,))

    def names(self) -> tuple[str, ...]:
        """Return the variables that were set, in the order of their first values."""
        return tuple(self._values)

    def set(self, name: str, possible: Possible) -> None:
        """Let a variable hold one of these from here on."""
        if self._logs:
            self._logs[-1].setdefault(name, self.get(name))
        distinct = tuple(dict.fromkeys(possible))
        self._values[name] = distinct if len(distinct) <= MOST_POSSIBLE else (None,)

    def begin(self) -> None:
        """Begin a way through a construct."""
        self._logs.append({})

    def end(self) -> Changes:
        """End it: return what the variables it changed hold behind it; they hold again what they held before."""
        log = self._logs.pop()
        changed = {name: self.get(name) for name in log}
        self._values.update(log)
        return changed

    def merge(self, ways: list[Changes], *, is_complete: bool) -> None:
        """Let each variable hold what it may after any of the ways; `is_complete`: one of them was certainly taken."""
        for name in dict.fromkeys(name for way in ways for name in way):
            before = self.get(name)
            possible = tuple(value for way in ways for value in way.get(name, before))
            self.set(name, possible if is_complete else (*possible, *before))


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
    # Whether all of it stands here: a file, or what a shell is handed in one known word.
    is_whole: bool = True
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
        is_whole: bool = False,
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
            is_whole=is_whole,
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

    def putting(
        self,
        name: str,
        value: Spelled | None,
        at: int,
        written: tuple[int, int] | None,
        *,
        launch: LaunchCommand | None = None,
    ) -> Callable[[], object]:
        """Return what takes a setting down, or an `unset` where there is no value, when it is its turn."""

        def put() -> None:
            number = None if launch is None else self.start(launch)
            self.put(name, value, "export", at=at, written=written, launch=number)

        return put

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
        # What a program puts together stands nowhere: its place there is one character, of a quote or a name.
        return written if len(written) > 1 else field.text.replace(HOLE, "$").replace(FILLED, "$")
