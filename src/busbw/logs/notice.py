"""What launchers print of a rank that failed over several lines."""

import re
from collections.abc import Mapping

# torchrun's table of failures, and the frame that Hydra (MPICH, Intel MPI) prints.
_PARTS = tuple(
    re.compile(regex, re.ASCII)
    for regex in (
        r"^\s*host +: (?P<host>[\w.-]{1,253})\s*$",
        r"^\s*rank +: (?P<rank>\d{1,7}) \(local_rank: \d+\)",
        r"^= +(?:RANK (?P<rank>\d{1,7}) )?PID (?P<pid>\d{1,10}) RUNNING AT (?P<host>[\w.-]{1,253})",
    )
)
# The lines of a notice stand together.
_WITHIN = 10


class LauncherNotice:
    """The parts of the latest notice."""

    def __init__(self) -> None:
        self._groups: dict[str, str] = {}
        self._place = (-1, 0)

    def read(self, text: str, source: int, line: int) -> bool:
        """Keep what a line says, and say whether it is a part of a notice."""
        match = next((match for regex in _PARTS if (match := regex.match(text)) is not None), None)
        if match is None:
            return False
        if not self._is_near(source, line):
            self._groups = {}
        self._groups |= {name: said for name, said in match.groupdict().items() if said}
        self._place = (source, line)
        return True

    def about(self, source: int, line: int) -> Mapping[str, str]:
        """Return host, rank and process id of whom a line is about that follows the parts."""
        return self._groups if self._is_near(source, line) else {}

    def _is_near(self, source: int, line: int) -> bool:
        return self._place[0] == source and 0 <= line - self._place[1] <= _WITHIN
