"""The remote shell as one program, for launchers that take no words for it."""

import shlex
from dataclasses import dataclass

from busbw.measure.launchers.hosts import path_of
from busbw.model.launch import Start
from busbw.model.plan import JobFile

_FILE = "remote-shell"


@dataclass(frozen=True, slots=True)
class ShellProgram:
    """The path of the program, None for the launcher's own choice; and the file that has to be written for it."""

    path: str | None
    files: tuple[JobFile, ...]


def shell_program(start: Start) -> ShellProgram:
    """Return the remote shell as a program: itself, or a script that adds its words."""
    if not start.remote_shell:
        return ShellProgram(None, ())
    if len(start.remote_shell) == 1:
        return ShellProgram(start.remote_shell[0], ())
    file = JobFile(path=_FILE, text=f'#!/bin/sh\nexec {shlex.join(start.remote_shell)} "$@"\n', executable=True)
    return ShellProgram(path_of(start, file), (file,))
