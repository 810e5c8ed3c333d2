"""A launch as a shell script: the files it needs, its settings with their reasons, its command."""

import shlex
import textwrap
from collections.abc import Iterator

from busbw.measure.launchers.command_line import command_line
from busbw.model.launch_line import LaunchLine
from busbw.model.plan import JobFile
from busbw.show.plain import printable

_COLUMNS = 100
_END = "END_OF_FILE"


def launch_script(line: LaunchLine, directory: str, *, with_files: bool) -> str:
    """Return the script. `with_files`: it writes its files into `directory` first; else they are there."""
    found = line.recommendation
    nodes = "1 node" if found.nodes == 1 else f"{found.nodes} nodes"
    lines = [
        "#!/bin/bash",
        *_comment(f"{line.launcher} on {found.platform}, {nodes}, for {found.goal}; NCCL {found.nccl}"),
        *(each for setting in found.settings for each in _comment(f"{setting.name}: {setting.reason}")),
        *(each for note in line.notes for each in _comment(f"note: {note}")),
    ]
    if with_files:
        lines += [each for file in line.job.files for each in _written(file, directory)]
    return "\n".join([*lines, command_line(line.job)]) + "\n"


def _written(file: JobFile, directory: str) -> Iterator[str]:
    path = shlex.quote(f"{directory}/{file.path}")
    end = _END
    while end in file.text.splitlines():
        end += "_"
    yield f"cat > {path} <<'{end}'"
    yield from file.text.removesuffix("\n").split("\n")
    yield end
    if file.executable:
        yield f"chmod +x {path}"


def _comment(text: str) -> list[str]:
    wrapped = textwrap.wrap(printable(" ".join(text.split())), _COLUMNS, break_long_words=False, break_on_hyphens=False)
    return [f"# {each}" for each in wrapped]
