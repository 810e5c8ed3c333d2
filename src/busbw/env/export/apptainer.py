"""A definition file for Apptainer and Singularity that lays the settings over an image."""

from busbw.env.export.page import Page, Written, head_lines, tail_lines
from busbw.env.export.shell import export_lines

_USE = "Use: apptainer build --build-arg BASE=IMAGE OUTPUT.sif THIS_FILE, with Apptainer 1.2 or later"
_HEADER = ("Bootstrap: docker", "From: {{ BASE }}", "", "%environment")


def write(page: Page) -> Written:
    """Return a definition with an %environment section, which a shell in the container sources."""
    body = [f"    {line}" if line else "" for line in map(_without_template, export_lines(page.entries))]
    return Written(text="\n".join([*head_lines(page, _USE), *_HEADER, *body, *tail_lines(page)]) + "\n")


def _without_template(line: str) -> str:
    """Return a line in which no pair of braces is left that Apptainer would take for a build argument of its own."""
    mark = "{ " if line.startswith("#") else "{''"
    while "{{" in line:
        line = line.replace("{{", f"{mark}{{", 1)
    return line
