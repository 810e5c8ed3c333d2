"""pyxis and enroot: options of srun; the environment of the job comes along, but the image's own values win over it.

Alone because each runtime is a module.
"""

from busbw.base.errors import InputError
from busbw.facts.containers import disturbing
from busbw.measure.containers.place import ContainerPlace, Wrapped, checked, not_set, path_words
from busbw.model.plan import Program
from busbw.model.request import Bind, Container

# What enroot's hooks look for before they let GPUs, their driver and NICs in.
_GPU_HOOK = (("NVIDIA_VISIBLE_DEVICES", "all"), ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"))
_NIC_HOOK = (("MELLANOX_VISIBLE_DEVICES", "all"),)
# A mount becomes a line of a shell script in double quotes.
_REFUSED = ',:$`"\\'


def wrap(container: Container, program: Program, place: ContainerPlace) -> Wrapped:
    """Return the program with the options that make srun start it in a container; values arrive exactly.

    Raises InputError where another launcher than srun is to start it, for values of several lines, which pyxis writes
    into a list of lines, and for paths with commas, colons or what a shell reads.
    """
    checked(container, program)
    if place.starter != "srun":
        raise InputError("pyxis is part of srun", hint="start the run in a Slurm allocation, with --launcher srun")
    for name, value in program.env:
        if "\n" in value:
            raise InputError(
                "pyxis writes variables into a list of lines, and this value has several",
                where=name,
                hint="use one line",
            )
    if container.image.endswith(".sqsh") and not container.image.startswith(("/", "./")):
        # github.com/NVIDIA/pyxis/issues/127
        raise InputError(
            "pyxis takes a name without / or ./ before it for an image of a registry",
            where=f"--image {container.image}",
            hint=f"--image ./{container.image}, or its absolute path",
        )
    names = ",".join(name for name, _value in program.env)
    hooks = (*(_GPU_HOOK if container.gpus else ()), *(_NIC_HOOK if place.fabric in ("InfiniBand", "RoCE") else ()))
    given = {name for name, _value in program.env}
    # The hooks let devices in.
    binds = tuple(each for each in container.binds if not each.source.startswith("/dev/"))
    mounts = ",".join(_mount(bind) for bind in binds)
    return Wrapped(
        program=Program(argv=program.argv, env=(*(each for each in hooks if each[0] not in given), *program.env)),
        binds=binds,
        options=(
            f"--container-image={container.image}",
            *((f"--container-mounts={mounts}",) if mounts else ()),
            *((f"--container-workdir={place.directory}",) if place.directory is not None else ()),
            *((f"--container-env={names}",) if names else ()),
            *container.options,
        ),
        unset=not_set(disturbing("python", "loader", "library path", "mpi"), program),
        forward=place.forward,
    )


def _mount(bind: Bind) -> str:
    source, target = path_words(bind, _REFUSED, "pyxis")
    if bind.read_only:
        return f"{source}:{target}:ro"
    return source if source == target else f"{source}:{target}"
