"""What a start over several hosts is for."""

from enum import Enum


class Role(Enum):
    """Whether ranks measure or a process looks at each host."""

    # Hosts and their slots are in a file; processes work in the run directory.
    MEASURING = "measuring"
    # Everything is in the command line, since the run directory may be what is wrong: full, or gone from a host.
    VISITING = "visiting"
