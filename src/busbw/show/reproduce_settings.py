"""The settings of a run as words before its command line."""

import re
import shlex

from busbw.model.settings import Settings
from busbw.model.variables import WITHHELD

# What a launcher or a queue sets for one job alone.
OF_ONE_JOB = ("SLURM_", "WORLD_SIZE", "RANK", "LOCAL_RANK")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def with_settings(command: str, settings: Settings | None) -> str:
    """Return `NCCL_PROTO=Simple busbw run ...`: what the environment set and the run did not set itself.

    Values that were withheld, and what belongs to one job, are left out.
    """
    if settings is None:
        return command
    words = [
        f"{choice.name}={shlex.quote(choice.value)}"
        for choice in settings.in_force()
        if choice.layer == "shell"
        and choice.value is not None
        and WITHHELD not in choice.value
        and _NAME.fullmatch(choice.name)
        and not choice.name.startswith(OF_ONE_JOB)
    ]
    return " ".join([*words, command])
