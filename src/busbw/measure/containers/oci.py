"""What Podman and Docker share: an empty environment, devices one by one, and the host's namespaces where asked."""

from busbw.base.errors import InputError
from busbw.facts.containers import container_facts, fabric_need
from busbw.measure.containers.place import ContainerPlace, Wrapped, check_forward, check_text, checked, path_words
from busbw.model.plan import Program
from busbw.model.request import Bind, Container

# AMD's runtime opens these; the group owns them.
_AMD = ("--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video")


def argv(
    container: Container,
    program: Program,
    place: ContainerPlace,
    *,
    own: tuple[str, ...],
    gpus: tuple[str, ...],
    names: tuple[str, ...],
) -> tuple[str, ...]:
    """Return `podman run` or `docker run` of the program; values arrive exactly.

    `own`: the words of one runtime; `gpus`: those that let NVIDIA's GPUs in; `names`: variables that come from the
    environment it is started in. Raises InputError for paths with commas or double quotes, for what no process can
    have, and where ranks inherit a file descriptor.
    """
    checked(container, program)
    check_text(container, program)
    check_forward(place.forward)
    if place.pmi == "descriptor":
        raise InputError(
            f"{container.runtime} starts a container apart from the process that the launcher started, so that a rank "
            "does not inherit the file descriptor through which it finds the others",
            hint="use Open MPI or srun --mpi=pmix, which use sockets, or Apptainer or Charliecloud",
        )
    return (
        container.program,
        "run",
        "--rm",
        # The interfaces, shared memory and processes of the host: MPI's and NCCL's ways between ranks of one host.
        *("--network", "host", "--ipc", "host", "--pid", "host"),
        *own,
        *((gpus if place.gpu_vendor == "nvidia" else _AMD) if container.gpus else ()),
        *_memory(place),
        *(word for bind in container.binds for word in _bind(bind, container.runtime)),
        *(("--workdir", place.directory) if place.directory is not None else ()),
        *(word for name in (*names, *place.forward) for word in ("--env", name)),
        *(word for name, value in program.env for word in ("--env", f"{name}={value}")),
        *container.options,
        # What an image does before it starts the program prints into the rank's output, which is a channel.
        *("--entrypoint", program.argv[0]),
        container.image,
        *program.argv[1:],
    )


def _memory(place: ContainerPlace) -> tuple[str, ...]:
    needs = place.fabric is not None and fabric_need(place.fabric).locks_memory
    return ("--ulimit", "memlock=-1:-1") if needs else ()


def _bind(bind: Bind, runtime: str) -> tuple[str, ...]:
    source, target = path_words(bind, ',"', runtime)
    if source.startswith("/dev/") and source != "/dev/shm":  # noqa: S108 - the folder itself is not a device
        path_words(bind, ',":', runtime)
        return ("--device", source if source == target else f"{source}:{target}")
    # Not --volume, which makes an empty folder of a source that is not there.
    mount = f"type=bind,source={source},target={target}"
    return ("--mount", f"{mount},readonly" if bind.read_only else mount)


_GPUS = ("--gpus", "all")
_NOTE = (
    "Docker's daemon starts the ranks: Slurm neither binds them to cores, nor counts them, nor ends them with the job"
)


def wrap_docker(container: Container, program: Program, place: ContainerPlace) -> Wrapped:
    """Return `docker run` of the program. Raises InputError as `oci.argv` does."""
    names = (name for each in container_facts().rank_variables if each.pmi == place.pmi for name in each.names)
    own = ("--user", place.user) if place.user is not None else ()
    words = argv(container, program, place, own=own, gpus=_GPUS, names=tuple(names))
    return Wrapped(
        program=Program(argv=words, env=()),
        binds=container.binds,
        forward=place.forward,
        notes=(_NOTE,) if place.starter == "srun" else (),
    )


# The name that the NVIDIA Container Toolkit gives to all GPUs in its CDI specification.
_PODMAN_GPUS = ("--device", "nvidia.com/gpu=all")


def wrap_podman(container: Container, program: Program, place: ContainerPlace) -> Wrapped:
    """Return `podman run` of the program. Raises InputError as `oci.argv` does."""
    patterns = (
        pattern for each in container_facts().rank_variables if each.pmi == place.pmi for pattern in each.patterns
    )
    own = (
        # Files of the host keep their owner where somebody else than root starts it, and SELinux lets them be read.
        *(("--userns", "keep-id") if place.user is not None else ()),
        *("--security-opt", "label=disable"),
    )
    words = argv(container, program, place, own=own, gpus=_PODMAN_GPUS, names=tuple(patterns))
    return Wrapped(program=Program(argv=words, env=()), binds=container.binds, forward=place.forward)
