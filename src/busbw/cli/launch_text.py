"""What `busbw launch` prints and writes."""

import sys
from pathlib import Path
from typing import Any

import click

from busbw.api.launch import launch_line
from busbw.base.errors import InputError
from busbw.model import codec
from busbw.model.launch import LaunchRequest
from busbw.model.plan import JobFile
from busbw.show.plain import printable
from busbw.show.text.recommendation import launch_script
from busbw.store import files

_SCRIPT = "launch.sh"


def _resource(text: str) -> tuple[str, str]:
    name, equals, quantity = text.partition("=")
    if not equals:
        raise InputError(f"{text[:80]!r} is no resource", where="--resource", hint="--resource rdma/ib=1")
    return name, quantity


def print_launch(program: tuple[str, ...], output: Path | None, asked: dict[str, Any], *, as_json: bool) -> None:
    """Print the script of a launch; with `output`, write the files of the job and the script there instead."""
    folder = (output if output is not None else Path.cwd()).absolute()
    asked["resources"] = tuple(_resource(text) for text in asked["resources"])
    line = launch_line(LaunchRequest(program=program, **asked), str(folder))
    if as_json:
        sys.stdout.write(codec.encode_pretty(line).decode())
        return
    if output is None:
        sys.stdout.write(launch_script(line, str(folder), with_files=True))
        return
    files.write(line.job.files, folder)
    script = launch_script(line, str(folder), with_files=False)
    files.write([JobFile(path=_SCRIPT, text=script, executable=True)], folder)
    click.echo(printable(f"wrote {folder / _SCRIPT}"), err=True)
