"""Workloads by name, from a file, or made of another program's configuration."""

from pathlib import Path

from busbw.facts.workloads import shipped_workloads
from busbw.model.train.plan import ShownWorkload
from busbw.model.train.workload import Workload
from busbw.store.files import read_bounded
from busbw.train.configurations.registry import read_configuration
from busbw.train.planning import (
    shown,
)
from busbw.train.workloads import MOST_BYTES, read_workload, workload_named, workload_toml


def every_workload() -> tuple[Workload, ...]:
    """Return the workloads that are shipped, by name."""
    return tuple(workload_named(name) for name in shipped_workloads())


def workload_of(name: str) -> Workload:
    """Return a workload by its name, or from a file. Raises InputError for what is neither, and for a bad file."""
    if "/" not in name and not name.endswith(".toml"):
        return workload_named(name)
    raw = read_bounded(Path(name), most_bytes=MOST_BYTES, kind="workload")
    return read_workload(raw.decode("utf-8", "replace"), name)


def shown_workload(name: str) -> ShownWorkload:
    """Return a workload with the sizes of its configurations. Raises InputError as `workload_of`, and for bad ones."""
    return shown(workload_of(name))


def made_workload(file: Path, form: str | None, says: tuple[str, ...]) -> str:
    """Return the file of a workload, made of another program's configuration.

    Raises InputError for what is none, for a job that cannot be, and, by name, for what it does not say.
    """
    raw = read_bounded(file, most_bytes=MOST_BYTES, kind="configuration")
    workload, notes = read_configuration(raw.decode("utf-8", "replace"), str(file), form, says)
    shown(workload)
    return workload_toml(workload, (f"made of {file.name}", *notes))
