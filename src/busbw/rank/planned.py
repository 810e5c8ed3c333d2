"""The plan that a rank carries out."""

import os
from pathlib import Path

from busbw.base import layout
from busbw.model import codec
from busbw.model.plan import Plan


def read_plan(directory: Path) -> Plan:
    """Return the plan in a run directory. Raises RuntimeError that names this host where there is none."""
    path = directory / layout.PLAN_FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RuntimeError(
            f"{os.uname().nodename} cannot read {path}: {os.strerror(error.errno or 0)}; every host must see the run "
            "directory at the same path"
        ) from error
    return codec.decode(content, Plan, where=str(path))
