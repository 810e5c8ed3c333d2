"""What Podman and Docker share: an empty environment, devices one by one, and the host's namespaces where asked."""

from busbw.base.errors import InputError
from busbw.facts.containers import fabric_need
from busbw.measure.containers.place import Place
from busbw.measure.containers.words import check_forward, check_text, checked, path_words
from busbw.model.launch import Bind, Container
from busbw.model.plan import Program

# AMD's runtime opens these; the group owns them.
_AMD = ("--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video")


def argv(
    container: Container,
    program: Program,
    place: Place,
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


def _memory(place: Place) -> tuple[str, ...]:
    needs = place.fabric is not None and fabric_need(place.fabric).locks_memory
    return ("--ulimit", "memlock=-1:-1") if needs else ()


def _bind(bind: Bind, runtime: str) -> tuple[str, ...]:
    source, target = path_words(bind, ',"', runtime)
    if source.startswith("/dev/") and source != "/dev/shm":  # noqa: S108 - the folder itself is no device
        path_words(bind, ',":', runtime)
        return ("--device", source if source == target else f"{source}:{target}")
    # Not --volume, which makes an empty folder of a source that is not there.
    mount = f"type=bind,source={source},target={target}"
    return ("--mount", f"{mount},readonly" if bind.read_only else mount)
