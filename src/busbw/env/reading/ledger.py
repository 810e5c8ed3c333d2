"""What was found in one text so far, with places, within bounds."""

from bisect import bisect_right
from itertools import accumulate

from msgspec.structs import replace

from busbw.env.reading.arm_places import ArmPlaces, united
from busbw.env.reading.spelled import FILLED, HOLE, Spelled
from busbw.model.settings import Arm, Assignment, Form, LaunchCommand, SettingsReading, Slip, SlipKind, UnreadPart

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
        self._unread: list[UnreadPart] = []
        self._slips: dict[tuple[SlipKind, int], Slip] = {}
        # Where an assignment was taken down from; a place read again adds alternatives.
        self.conditional = ArmPlaces()
        self._places: dict[tuple[str, int, int | None], int] = {}
        self._by_name: dict[str, list[int]] = {}
        # The launches of the command that is read at the moment; branches before it make it be read several times.
        self._current: dict[tuple[int, int, int | None], int] = {}
        self._nested = MOST_NESTED
        self._resolved = MOST_RESOLVED
        self._said: set[str] = set()

    @property
    def count(self) -> int:
        """How many assignments and launches were taken down."""
        return len(self._assignments) + len(self._launches)

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
        self._by_name.setdefault(name, []).append(number)
        return number

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
            return self._current[key]
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

    def unread(self, offset: int, reason: str) -> None:
        """Take down a part that cannot be read."""
        if len(self._unread) < MOST_REMARKS:
            line, column = self.place(offset)
            self._unread.append(UnreadPart(file=self.file, line=line, column=column, reason=reason))

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
        )
