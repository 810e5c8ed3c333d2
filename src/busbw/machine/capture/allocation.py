"""The door to batch systems: which hosts this job has, and what Slurm can do here."""

import codecs
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from busbw.base.errors import InputError
from busbw.base.hostlist import MOST_CHARACTERS
from busbw.machine.capture.files import ask
from busbw.machine.read import allocation as reading
from busbw.machine.read import batch_systems
from busbw.machine.read.batch_systems import Seen
from busbw.model.host import Answer
from busbw.model.launch import Allocation, Slurm

_TOTAL_S = 15.0


def allocation() -> Allocation | None:
    """Return the hosts that a batch system gave to this process; None outside of one.

    Raises InputError where it says something that cannot be understood.
    """
    return reading.allocation(_seen())


def hosts(text: str) -> Allocation:
    """Return the hosts that a user names: a file, or a list as `n[0-3]`. The allocation around is passed over.

    Raises InputError.
    """
    try:
        here = reading.allocation(_seen())
    except InputError:
        # It is not followed, whatever is wrong with it.
        here = None
    path = Path(text)
    try:
        # A pipe is what a shell makes of `<(scontrol show hostnames)`.
        named = path.is_file() or path.is_fifo()
        other = not named and path.exists()
    except (OSError, ValueError):
        named = other = False
    if other and "/" in text:
        raise InputError("neither a file nor a pipe", where=text, hint="a file, or a list: --hosts n[0-3]")
    if not named and ("/" in text or path.suffix == ".txt"):
        raise InputError("there is no such file of hosts", where=text, hint="a file, or a list: --hosts n[0-3]")
    return reading.chosen(text, _read(path) if named else None, here)


def slurm() -> Slurm | None:
    """Return the Slurm whose srun is on PATH; None where there is none."""
    return batch_systems.slurm(ask(batch_systems.SLURM_COMMANDS, total_s=_TOTAL_S))


def launchers(programs: Iterable[str]) -> dict[str, str]:
    """Return those of the programs of launchers that are on PATH, by name: their paths."""
    found = ((name, shutil.which(name)) for name in programs)
    return {name: path for name, path in found if path is not None}


def started_several_times() -> str | None:
    """Return why this process must not start ranks: a launcher started it several times; None where it may."""
    return reading.multiplied(os.environ)


def _seen() -> Seen:
    environment = dict(os.environ)
    files, unread = {}, {}
    for variable in reading.FILE_VARIABLES:
        if path := environment.get(variable):
            try:
                files[variable] = _read_file(Path(path))
            except InputError as error:
                unread[variable] = error.cause
    answers: tuple[Answer, ...] = ()
    if environment.get("FLUX_URI"):
        answers = ask(batch_systems.FLUX_COMMANDS, total_s=_TOTAL_S)
    return Seen(environment=environment, files=files, unread=unread, answers=answers, now_unix_s=time.time())


def _read_file(path: Path) -> str:
    """Return the text of a file that a batch system names. Raises InputError; a pipe, which may never end, is none."""
    try:
        is_file = path.is_file()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if not is_file:
        raise InputError("it is not a file", where=str(path))
    return _read(path)


def _read(path: Path) -> str:
    """Return the text of a file or a pipe with hosts, whoever wrote it: comments may be in any language.

    Raises InputError.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_CHARACTERS + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    # Editors and shells of Windows begin a file with a mark of its encoding.
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if marked else "utf-8-sig", errors="replace")


def _unreadable(path: Path, error: OSError | ValueError) -> InputError:
    cause = getattr(error, "strerror", None) or str(error)
    return InputError(f"cannot read it: {cause.lower()}", where=str(path))
