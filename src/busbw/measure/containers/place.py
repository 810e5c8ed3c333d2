"""Where a container starts, and what becomes of the program that starts in it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from busbw.base.errors import InputError
from busbw.base.value import Integer, Value
from busbw.facts.containers import FabricName
from busbw.model.launch import check_name, check_variable
from busbw.model.plan import Program
from busbw.model.request import Bind, Container

Starter = Literal["mpirun", "srun", "processes"]
# How a rank finds its launcher: over sockets, or over a file descriptor that it inherits (PMI of Hydra and srun).
Pmi = Literal["pmix", "descriptor"]
GpuVendor = Literal["nvidia", "amd"]


class ContainerPlace(Value, kw_only=True, frozen=True):
    """What is around a container on every host. The defaults: one process, no MPI, no GPU, no fabric."""

    # Who starts the runtime, once for each rank.
    starter: Starter = "processes"
    # None: ranks are told through variables of the program alone.
    pmi: Pmi | None = None
    # Ranks that start on each host; None: hosts differ in it.
    ranks_per_host: Integer | None = 1
    # The run directory: bound as it is, and where ranks start; None: neither.
    directory: str | None = None
    gpu_vendor: GpuVendor = "nvidia"
    fabric: FabricName | None = None
    # Device nodes of the fabric that every host has: /dev/cxi0, /dev/cxi1...
    devices: tuple[str, ...] = ()
    # Names that every rank gets as the launching shell has them, beside those of the program.
    forward: tuple[str, ...] = ()
    # `uid:gid` of whoever starts the run; None: root.
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Containment:
    """A container whose image fits, with what this host gives to it."""

    container: Container
    place: ContainerPlace


class Wrapped(Value, kw_only=True, frozen=True):
    """A program that starts in a container."""

    # For the launcher: the runtime and its words, then the program; its environment is the host's side of it.
    program: Program
    # What these words bind: without what the runtime shows of the host anyway.
    binds: tuple[Bind, ...] = ()
    # Words for the launcher itself: srun with pyxis.
    options: tuple[str, ...] = ()
    # Names that the runtime would hand on from the host, and must not get.
    unset: tuple[str, ...] = ()
    # Names that the runtime hands on as the launching shell has them: for the launcher to forward.
    forward: tuple[str, ...] = ()
    # What a reader should know of how it starts, a sentence each.
    notes: tuple[str, ...] = ()


def checked(container: Container, program: Program) -> Program:
    """Return the program. Raises InputError where no process could be started as it says."""
    if not program.argv or not program.argv[0] or "=" in program.argv[0]:
        raise InputError("a program in a container needs a name without `=`", where=" ".join(program.argv)[:80] or None)
    if not container.image or container.image.startswith("-"):
        raise InputError(f"{container.image[:80]!r} cannot be an image", hint="name it with --image")
    for word in (*program.argv, *container.options, container.image, container.program):
        if "\0" in word:
            raise InputError("a word of a command cannot contain NUL", where=repr(word[:80]))
    for name, value in program.env:
        check_variable(name, value, prefix="APPTAINERENV_")
    return program


def check_text(container: Container, program: Program) -> None:
    """Raise InputError for bytes that are no UTF-8: runtimes that hand JSON to their parts replace them."""
    values = (value for _name, value in program.env)
    paths = (path for bind in container.binds for path in (bind.source, bind.target or ""))
    for text in (*values, *program.argv, *container.options, *paths):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"{container.runtime} replaces bytes that are no UTF-8", where=ascii(text)[:80], hint="use UTF-8"
            ) from None


def check_forward(names: Iterable[str]) -> None:
    """Raise InputError for names that cannot be names."""
    for name in names:
        check_name(name)


def path_words(bind: Bind, refused: str, runtime: str) -> tuple[str, str]:
    """Return source and target of a bind. Raises InputError for paths that the runtime's own syntax would take apart.

    `refused`: characters that mean something else to it.
    """
    target = bind.source if bind.target is None else bind.target
    for path in (bind.source, target):
        if not path.startswith("/"):
            raise InputError(f"{path[:80]!r} is not an absolute path", hint="bind absolute paths")
        # Some runtimes take blanks at the ends off.
        blank = path[-1] if path != path.rstrip() else None
        found = next((letter for letter in path if letter in refused or ord(letter) < 0x20), blank)
        if found is not None:
            raise InputError(
                f"{runtime} cannot be told of a path with {found!r} in it", where=path, hint="bind it through a link"
            )
    return bind.source, target


def env_words(unset: tuple[str, ...], values: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return what a command inside begins with so that variables are as they should be: `env` of the image.

    No runtime looks at these words, so that every value arrives.
    """
    if not unset and not values:
        return ()
    return (
        "env",
        *(word for name in unset for word in ("-u", name)),
        *(f"{name}={value}" for name, value in values),
    )


def not_set(names: tuple[str, ...], program: Program) -> tuple[str, ...]:
    """Return those of the names that the program does not set itself."""
    given = {name for name, _value in program.env}
    return tuple(name for name in names if name not in given)
