"""Apptainer and Singularity: the host's environment comes along, an image's own settings come after it."""

import re

from busbw.base.errors import InputError
from busbw.facts.containers import disturbing
from busbw.measure.containers.place import ContainerPlace, Wrapped, check_text, checked, env_words, not_set, path_words
from busbw.model.plan import Program
from busbw.model.request import Bind, Container

_PREFIX = {"apptainer": "APPTAINERENV_", "singularity": "SINGULARITYENV_"}
_GPUS = {"nvidia": "--nv", "amd": "--rocm"}
# A value behind the prefix is evaluated by a shell, whose escapes changed between releases (Singularity 3.5 to
# Apptainer 1.1): what no shell would touch goes this way, all else through `env` inside, which nobody evaluates.
_PLAIN = re.compile(r"[ !#%-\[\]^_a-~]+")
# Names that the prefix treats in a way of its own: ignored, made read-only, or part of another name.
_OWN = {"HOME", "PATH", "PREPEND_PATH", "APPEND_PATH", "UID", "EUID", "GID", "PWD", "IFS", "OPTIND", "PS1"}
_OWN |= {"PREPEND_LD_LIBRARY_PATH", "APPEND_LD_LIBRARY_PATH", "PROMPT_COMMAND"}
_OWN_PREFIXES = ("APPTAINER", "SINGULARITY", "SING_USER_DEFINED_")
_LIBRARY_PATH = "LD_LIBRARY_PATH"


def wrap(container: Container, program: Program, place: ContainerPlace) -> Wrapped:
    """Return `apptainer exec` of the program.

    Values arrive exactly, but for LD_LIBRARY_PATH: the runtime puts the folder of the GPU driver's libraries behind it.
    Raises InputError for paths with commas, colons or backslashes, and for what no process can have.
    """
    checked(container, program)
    check_text(container, program)
    prefix = _PREFIX[container.runtime]
    plain = tuple((name, value) for name, value in program.env if _goes_by_prefix(name, value))
    inside = tuple((name, value) for name, value in program.env if not _goes_by_prefix(name, value))
    # The host's LD_LIBRARY_PATH stays outside by itself. mpirun gives its ranks the others after the launcher's shell.
    roots = not_set(disturbing("mpi"), program)
    # The host's /dev is there already.
    binds = tuple(
        each for each in container.binds if not (each.source.startswith("/dev/") and each.target in (None, each.source))
    )
    return Wrapped(
        program=Program(
            argv=(
                container.program,
                "exec",
                *((_GPUS[place.gpu_vendor],) if container.gpus else ()),
                *(word for bind in binds for word in _bind(bind)),
                *(("--pwd", place.directory) if place.directory is not None else ()),
                *container.options,
                container.image,
                *env_words(roots if place.starter == "mpirun" else (), inside),
                *program.argv,
            ),
            env=tuple((prefix + name, value) for name, value in plain),
        ),
        binds=binds,
        unset=(*not_set(disturbing("python", "loader"), program), *(() if place.starter == "mpirun" else roots)),
        forward=place.forward,
    )


def _goes_by_prefix(name: str, value: str) -> bool:
    is_plain = _PLAIN.fullmatch(value) is not None
    if name == _LIBRARY_PATH:
        if not is_plain:
            raise InputError(
                "Apptainer reads this value as a shell does, and it is not a list of plain folders",
                where=_LIBRARY_PATH,
                hint="set it in the image",
            )
        return True
    return is_plain and name not in _OWN and not name.startswith(_OWN_PREFIXES)


def _bind(bind: Bind) -> tuple[str, ...]:
    source, target = path_words(bind, ",:\\^", "Apptainer")
    shown = source if source == target and not bind.read_only else f"{source}:{target}"
    return ("--bind", f"{shown}:ro" if bind.read_only else shown)
