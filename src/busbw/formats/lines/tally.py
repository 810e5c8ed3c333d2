"""What the readings of one table come to."""

from collections.abc import Sequence
from dataclasses import dataclass

from busbw.model.imported import Reading


@dataclass(slots=True)
class Tally:
    """Counts of one table."""

    readings: int = 0
    wrong: int = 0
    unchecked: int = 0

    def add(self, readings: Sequence[Reading]) -> None:
        """Count readings."""
        self.readings += len(readings)
        for reading in readings:
            if reading.wrong is None:
                self.unchecked += 1
            elif reading.wrong > 0:
                self.wrong += 1
