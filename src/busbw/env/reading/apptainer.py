"""Reads Apptainer and Singularity definition files: %environment, %post, %runscript and the like."""

import re

from busbw.env.reading import commands
from busbw.env.reading.context import Context
from busbw.env.reading.expansion import Field
from busbw.env.reading.spelled import Spelled

_SECTION = re.compile(r"^[ \t]*%([A-Za-z]+)[^\n]*$", re.MULTILINE)
_RUN_WITH_ENVIRONMENT = {"runscript", "startscript", "test", "apprun", "apptest", "appstart"}
_BUILD = {"post", "setup", "pre", "appinstall"}
_ENVIRONMENT = {"environment", "appenv"}


def read_apptainer(piece: Spelled, context: Context) -> None:
    """Take down what the sections set. What %post exports is seen while building only."""
    found = list(_SECTION.finditer(piece.text))
    ends = [*(following.start() for following in found[1:]), len(piece.text)]
    # A text without sections has an end all the same.
    for section, end in zip(found, ends, strict=False):
        name = section[1].lower()
        body = piece.part(min(section.end() + 1, end), end)
        if name in _ENVIRONMENT:
            context.read("shell", body, context.inner(exported_as="apptainer"))
        elif name in _RUN_WITH_ENVIRONMENT:
            context.read("shell", body, context.inner())
        elif name in _BUILD and body.text.strip():
            title = piece.part(section.start(), section.end())
            field = Field(title, title.origin(0), title.end(), is_whole=True)
            number = commands.other([field], context, family=f"%{name}")
            context.read("shell", body, context.inner(launch=number))
