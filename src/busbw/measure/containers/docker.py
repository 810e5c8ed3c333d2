"""Docker: a container is a child of its daemon, starts with an empty environment, and takes names one by one."""

from busbw.facts.containers import container_facts
from busbw.measure.containers import oci
from busbw.measure.containers.place import Place, Wrapped
from busbw.model.launch import Container
from busbw.model.plan import Program

_GPUS = ("--gpus", "all")
_NOTE = (
    "Docker's daemon starts the ranks: Slurm neither binds them to cores, nor counts them, nor ends them with the job"
)


def wrap(container: Container, program: Program, place: Place) -> Wrapped:
    """Return `docker run` of the program. Raises InputError as `oci.argv` does."""
    names = (name for each in container_facts().rank_variables if each.pmi == place.pmi for name in each.names)
    own = ("--user", place.user) if place.user is not None else ()
    words = oci.argv(container, program, place, own=own, gpus=_GPUS, names=tuple(names))
    return Wrapped(
        program=Program(argv=words, env=()),
        forward=place.forward,
        notes=(_NOTE,) if place.starter == "srun" else (),
    )
