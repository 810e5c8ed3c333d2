"""Ranks in containers: what is bound, whether the image fits, and the program as it starts inside."""

from collections.abc import Callable

import msgspec

from busbw import __version__
from busbw.base import layout
from busbw.base.errors import InputError
from busbw.machine.capture import host as machine
from busbw.machine.capture import programs as host
from busbw.machine.capture.environment import value_of
from busbw.measure.containers import apptainer, charliecloud, inside, oci, pyxis
from busbw.measure.containers.inside import SLURM_SPOOL, settled, wanted
from busbw.measure.containers.place import ContainerPlace, Containment, Pmi, Starter, Wrapped
from busbw.measure.launchers.launcher import RankLauncher
from busbw.model.launch import Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Program
from busbw.model.request import Container, RuntimeName

_WRAPPERS: dict[RuntimeName, Callable[[Container, Program, ContainerPlace], Wrapped]] = {
    "apptainer": apptainer.wrap,
    "singularity": apptainer.wrap,
    "pyxis": pyxis.wrap,
    "podman": oci.wrap_podman,
    "docker": oci.wrap_docker,
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


def wrap(container: Container, program: Program, place: ContainerPlace) -> Wrapped:
    """Return the program as it starts in the container.

    The binds of the container are taken as they are: `binds.wanted` and `binds.settled` come first.
    Raises InputError for what the runtime cannot be told.
    """
    return _WRAPPERS[container.runtime](container, program, place)


def containment(container: Container, mpi: MpiLibrary | None, settings: tuple[str, ...], python: str) -> Containment:
    """Return what every rank runs in, after the image has been asked whether it fits.

    Raises InputError where the runtime, or a path it needs, is not here, or where the image has not what a rank needs.
    """
    name = PROGRAMS[container.runtime]
    made = msgspec.structs.replace(container, program=host.program_path(name) if name else "")
    fabric, devices = host.fabric()
    user = machine.user()
    place = ContainerPlace(
        pmi=pmi_of(mpi) if mpi is not None else None,
        fabric=fabric,
        devices=devices,
        forward=(*settings, layout.RUN_VARIABLE),
        user=user,
    )
    settled(made.binds, host.present(bind.source for bind in made.binds))
    # pyxis is part of srun, which there may not be yet.
    if made.runtime != "pyxis":
        asked = wrap(made, inside.check(python), ContainerPlace(user=user))
        text, code = host.answer(asked.program)
        inside.compare(
            text, code, version=__version__, family=mpi.family if mpi is not None else None, image=made.image
        )
    return Containment(made, place)


def pmi_of(mpi: MpiLibrary) -> Pmi:
    """Return how ranks of an MPI find their launcher."""
    return "pmix" if mpi.family == "Open MPI" else "descriptor"


def in_container(start: Start, containment: Containment, launcher: RankLauncher) -> Start:
    """Return a start whose program runs in the container.

    Raises InputError for what cannot be bound or told, and for launchers that containers are not known under.
    """
    if launcher.of_containers is None:
        raise InputError(f"ranks in a container are not started by {launcher.name}", hint="--launcher mpirun")
    place = _placed(containment.place, start, launcher.of_containers)
    environment = tuple((name, value) for name in place.forward if (value := value_of(name)) is not None)
    binds = wanted(containment.container, start.program, place, environment)
    # The run directory is made before the ranks start.
    there = host.present(bind.source for bind in binds) | {place.directory or ""}
    container = msgspec.structs.replace(containment.container, binds=settled(binds, there))
    return _inside(start, wrap(container, start.program, place))


def in_container_elsewhere(
    start: Start, container: Container, place: ContainerPlace, starter: Starter
) -> tuple[Start, Wrapped]:
    """Return a start whose program runs in the container on hosts that are not looked at, and what wraps it.

    What a host may lack is not bound, but for the folder of Slurm's PMIx, without which ranks do not find each other.
    Raises InputError as `in_container` does.
    """
    placed = _placed(place, start, starter)
    named = msgspec.structs.replace(container, program=PROGRAMS[container.runtime])
    binds = wanted(named, start.program, placed)
    made = msgspec.structs.replace(
        named, binds=tuple(each for each in binds if not each.optional or each.source == SLURM_SPOOL)
    )
    wrapped = wrap(made, start.program, placed)
    return _inside(start, wrapped), wrapped


def _placed(place: ContainerPlace, start: Start, starter: Starter) -> ContainerPlace:
    counts = set(start.placement.ranks_of_hosts or (start.placement.ranks,))
    return msgspec.structs.replace(
        place,
        starter=starter,
        directory=start.directory,
        ranks_per_host=counts.pop() // start.per_process if len(counts) == 1 else None,
    )


def _inside(start: Start, made: Wrapped) -> Start:
    return msgspec.structs.replace(
        start,
        program=made.program,
        # The image knows its own MPI.
        through_mpi4py=False,
        forward=tuple(name for name in made.forward if name not in made.unset),
        unset=tuple(dict.fromkeys((*start.unset, *made.unset))),
        options=(*start.options, *made.options),
    )
