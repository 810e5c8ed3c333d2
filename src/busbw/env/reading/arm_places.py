"""Where a text is conditional: a value that is put together on one way through a script belongs to that way."""

from bisect import bisect_right

from busbw.model.settings import Arm


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
