"""What the variables of a script hold at one place, as far as its own text tells."""

import msgspec

from busbw.env.reading.spelled import Spelled

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
