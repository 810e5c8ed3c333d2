"""Podman: a container starts with an empty environment, and takes names with a star from the one around it."""

from busbw.facts.containers import container_facts
from busbw.measure.containers import oci
from busbw.measure.containers.place import Place, Wrapped
from busbw.model.launch import Container
from busbw.model.plan import Program

# The name that the NVIDIA Container Toolkit gives to all GPUs in its CDI specification.
_GPUS = ("--device", "nvidia.com/gpu=all")


def wrap(container: Container, program: Program, place: Place) -> Wrapped:
    """Return `podman run` of the program. Raises InputError as `oci.argv` does."""
    patterns = (
        pattern for each in container_facts().rank_variables if each.pmi == place.pmi for pattern in each.patterns
    )
    own = (
        # Files of the host keep their owner where somebody else than root starts it, and SELinux lets them be read.
        *(("--userns", "keep-id") if place.user is not None else ()),
        *("--security-opt", "label=disable"),
    )
    words = oci.argv(container, program, place, own=own, gpus=_GPUS, names=tuple(patterns))
    return Wrapped(program=Program(argv=words, env=()), forward=place.forward)
