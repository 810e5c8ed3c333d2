"""Explaining a variable with what this host, a run and the site's platforms say of it."""

from busbw.api.settings import surroundings_here, surroundings_of_run
from busbw.env.explained import explain
from busbw.env.versions import parse_version
from busbw.machine.named import platforms
from busbw.model.explanation import Explanation
from busbw.model.settings import Surroundings


def explained(name: str, *, nccl: str | None = None) -> Explanation:
    """Return what is known of a variable. Raises InputError for a version that is none."""
    return _explained(name, nccl, None)


def explained_here(name: str, *, nccl: str | None = None) -> Explanation:
    """Return what is known of a variable, and its value in force on this host."""
    return _explained(name, nccl, surroundings_here())


def explained_in_run(name: str, run_name: str, *, nccl: str | None = None) -> Explanation:
    """Return what is known of a variable, and its value in force in a run. Raises InputError for a run there is not."""
    return _explained(name, nccl, surroundings_of_run(run_name))


def _explained(name: str, nccl: str | None, surroundings: Surroundings | None) -> Explanation:
    version = parse_version(nccl) if nccl is not None else None
    known = (each.platform for each in platforms())
    return explain(name, nccl=version, platforms=known, surroundings=surroundings)
