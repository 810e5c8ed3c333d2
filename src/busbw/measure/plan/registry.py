"""Every container runtime by its name."""

from collections.abc import Callable

from busbw.measure.containers import apptainer, charliecloud, docker, podman, pyxis
from busbw.measure.containers.place import Place, Wrapped
from busbw.model.launch import Container, RuntimeName
from busbw.model.plan import Program

_WRAPPERS: dict[RuntimeName, Callable[[Container, Program, Place], Wrapped]] = {
    "apptainer": apptainer.wrap,
    "singularity": apptainer.wrap,
    "pyxis": pyxis.wrap,
    "podman": podman.wrap,
    "docker": docker.wrap,
    "charliecloud": charliecloud.wrap,
}
# What each runtime's program is called where nobody names another.
PROGRAMS: dict[RuntimeName, str] = {
    "apptainer": "apptainer",
    "singularity": "singularity",
    "pyxis": "",
    "podman": "podman",
    "docker": "docker",
    "charliecloud": "ch-run",
}


def wrap(container: Container, program: Program, place: Place) -> Wrapped:
    """Return the program as it starts in the container.

    The binds of the container are taken as they are: `binds.wanted` and `binds.settled` come first.
    Raises InputError for what the runtime cannot be told.
    """
    return _WRAPPERS[container.runtime](container, program, place)
