"""The door to batch systems: which hosts this job has, and what Slurm can do here."""

import os
import shutil
import time
from pathlib import Path

from busbw.errors import InputError
from busbw.model.hostlist import MOST_CHARACTERS
from busbw.model.launch import Allocation, Slurm
from busbw.model.snapshot import Answer
from busbw.probe.capture.commands import ask
from busbw.probe.read import allocation as reading
from busbw.probe.read import allocation_flux, allocation_slurm
from busbw.probe.read.allocation_seen import Seen

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
        named = path.is_file()
    except (OSError, ValueError):
        named = False
    if not named and ("/" in text or path.suffix == ".txt"):
        raise InputError("there is no such file of hosts", where=text, hint="a file, or a list: --hosts n[0-3]")
    return reading.chosen(text, _read(path) if named else None, here)


def slurm() -> Slurm | None:
    """Return the Slurm whose srun is on PATH; None where there is none."""
    return allocation_slurm.slurm(ask(allocation_slurm.COMMANDS, total_s=_TOTAL_S))


def launchers() -> dict[str, str]:
    """Return the launchers of other batch systems than Slurm that are on PATH, by name: their paths."""
    found = ((name, shutil.which(name)) for name in ("flux", "jsrun", "aprun"))
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
                files[variable] = _read(Path(path))
            except InputError as error:
                unread[variable] = error.cause
    answers: tuple[Answer, ...] = ()
    if environment.get("FLUX_URI"):
        answers = ask(allocation_flux.COMMANDS, total_s=_TOTAL_S)
    return Seen(environment=environment, files=files, unread=unread, answers=answers, now_unix_s=time.time())


def _read(path: Path) -> str:
    """Return the text of a file of hosts. Raises InputError; a pipe or a device is none."""
    try:
        if not path.is_file():
            raise InputError("it is no file", where=str(path))
        with path.open("rb") as file:
            content = file.read(MOST_CHARACTERS + 1)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read it: {cause.lower()}", where=str(path)) from error
    try:
        return content.decode("ascii")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError("not ASCII, as names of hosts are", where=f"{path}:{line}") from error
