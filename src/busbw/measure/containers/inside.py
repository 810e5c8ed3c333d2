"""Whether a run can go on inside an image: busbw of this version there, over an MPI of the launcher's family.

busbw is installed in the image. An image of the host's own system can be given the host's environment instead, by binds
of its folders at their own paths; this check tells whether that holds.
"""

import msgspec

from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.model.machine import MpiFamily
from busbw.model.plan import Program

# MPI is asked what it is without being started: one process is not a job.
_PROGRAM = """
import json, busbw
found = {"busbw": busbw.__version__, "mpi": None}
try:
    import mpi4py
    mpi4py.rc.initialize = False
    from mpi4py import MPI
    found["mpi"] = MPI.Get_library_version()
except (ImportError, RuntimeError) as error:
    found["error"] = str(error)
print(json.dumps(found))
"""
# What the libraries say of themselves. MPICH, Intel MPI and MVAPICH share one way of finding each other, and one ABI.
_MARKS: tuple[tuple[str, MpiFamily], ...] = (
    ("Open MPI", "Open MPI"),
    ("Intel(R) MPI", "Intel MPI"),
    ("MVAPICH", "MVAPICH"),
    ("MPICH", "MPICH"),
)
_HYDRA: tuple[MpiFamily, ...] = ("MPICH", "Intel MPI", "MVAPICH")


class _Answer(Value, kw_only=True, frozen=True):
    """What the check prints."""

    busbw: str
    mpi: str | None = None
    error: str | None = None


def check(python: str) -> Program:
    """Return the program that says what is inside; it starts once, without a launcher, before the run."""
    return Program(argv=(python, "-P", "-c", _PROGRAM), env=())


def compare(output: str, exit_code: int, *, version: str, family: MpiFamily | None, image: str) -> None:
    """Raise InputError where ranks in the image would not be part of this run.

    `output`: what the check printed, its standard error behind it; `version`: busbw's own; `family`: of the MPI whose
    launcher starts the ranks, None where they use none.
    """
    found = _answer(output)
    if exit_code != 0 or found is None:
        said = _printable((output.strip().splitlines() or ["nothing"])[-1])
        raise InputError(
            f"busbw does not start in the image: {said}",
            where=image,
            hint=f"install it there: pip install busbw=={version}",
        )
    if found.busbw != version:
        raise InputError(
            f"the image has busbw {_printable(found.busbw)}, and {version} starts it",
            where=image,
            hint=f"install the same there: pip install busbw=={version}",
        )
    if family is not None:
        _compare_mpi(found, family, image)


def _compare_mpi(found: _Answer, family: MpiFamily, image: str) -> None:
    library = found.mpi
    if library is None:
        raise InputError(
            f"no MPI loads in the image: {_printable(found.error or 'no reason given')}",
            where=image,
            hint=f"install one of the launcher's family there: {family}",
        )
    inside = next((each for mark, each in _MARKS if mark in library), None)
    if inside != family and not (inside in _HYDRA and family in _HYDRA):
        shown = _printable((library.splitlines() or ["an MPI without a name"])[0].strip("\0 "))
        raise InputError(
            f"the image has {shown}, and the ranks are started by {family}: each of them would be a job of its own",
            where=image,
            hint=f"install {family} in the image, or start with the launcher of its MPI",
        )


def _answer(output: str) -> _Answer | None:
    """Return the line of the check among what the runtime printed; None where there is none."""
    for line in output.splitlines():
        if line.startswith('{"busbw": '):
            try:
                return msgspec.json.decode(line.encode(errors="replace"), type=_Answer)
            except msgspec.MsgspecError:
                return None
    return None


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:200])
