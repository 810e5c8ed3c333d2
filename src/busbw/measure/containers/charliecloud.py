"""Charliecloud: ch-run hands on the host's environment, /dev, /proc, /sys and /tmp; an image is a folder or a file."""

from busbw.base.errors import InputError
from busbw.facts.containers import disturbing
from busbw.measure.containers.place import ContainerPlace, Wrapped, check_forward, checked, not_set, path_words
from busbw.model.plan import Program
from busbw.model.request import Bind, Container

_GPU_NOTE = (
    "Charliecloud has no option for GPUs: the driver's libraries must lie in the image already (ch-fromhost --nvidia)"
)
# Seen with MPICH: UCX opens what another rank holds under /proc, is refused, and says so for each pair.
_APART_NOTE = (
    "ranks of one host are in user namespaces of their own, so that MPI cannot read the memory of another: give each "
    "host the same number of ranks"
)


def wrap(container: Container, program: Program, place: ContainerPlace) -> Wrapped:
    """Return `ch-run` of the program; values arrive exactly.

    Raises InputError for paths with colons, for binds that it makes writable only, and for what no process can have.
    """
    checked(container, program)
    check_forward(place.forward)
    # It strips one pair of single quotes around a value, and expands $NAME between colons unless told not to.
    given = tuple(f"--set-env={name}='{value}'" for name, value in program.env)
    dropped = not_set(disturbing("python", "loader", "library path", "mpi"), program)
    binds = tuple(each for each in container.binds if not _bound_already(each))
    return Wrapped(
        program=Program(
            argv=(
                container.program,
                *(f"--bind={_bind(bind)}" for bind in binds),
                *((f"--cd={place.directory}",) if place.directory is not None else ()),
                *_joined(place),
                *(f"--unset-env={name}" for name in dropped),
                *(("--env-no-expand", *given) if given else ()),
                *container.options,
                container.image,
                "--",
                *program.argv,
            ),
            env=(),
        ),
        binds=binds,
        forward=place.forward,
        notes=(
            *((_GPU_NOTE,) if container.gpus else ()),
            *((_APART_NOTE,) if place.ranks_per_host is None else ()),
        ),
    )


def _joined(place: ContainerPlace) -> tuple[str, ...]:
    """Return what puts the ranks of a host into one user namespace; they know each other by their common parent."""
    together = place.starter != "processes" and place.ranks_per_host is not None and place.ranks_per_host > 1
    return (f"--join-ct={place.ranks_per_host}",) if together else ()


def _bound_already(bind: Bind) -> bool:
    """Whether a path is seen inside anyway: /dev, and the host's /tmp, are bound by the runtime itself."""
    at_its_place = bind.target in (None, bind.source)
    return bind.source.startswith("/dev/") or (at_its_place and bind.source.startswith("/tmp/"))  # noqa: S108


def _bind(bind: Bind) -> str:
    source, target = path_words(bind, ":", "Charliecloud")
    if target.startswith("/tmp/"):  # noqa: S108 - the folder of the image's, not one that is written
        raise InputError(
            "Charliecloud binds the host's /tmp itself, and nothing else below it",
            where=target,
            hint="bind it elsewhere",
        )
    return source if source == target else f"{source}:{target}"
