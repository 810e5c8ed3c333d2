"""Settings in containers: a Dockerfile, a definition of Apptainer, a manifest of Kubernetes."""

import json
import re

from busbw.env.export.page import SettingsPage, Written, cannot_unset, comment_lines, head_lines, tail_lines
from busbw.env.export.shell import export_lines

_USE = "Use: docker build --build-arg BASE=IMAGE -f THIS_FILE ."
_IN_QUOTES = re.compile(r'[\\"$]')
_WHY = "a Dockerfile cannot do that: start the container with `docker run -e NAME` from a shell without NAME"


def write_docker(page: SettingsPage) -> Written:
    """Return `ENV` instructions; the first line is no directive of the parser, whatever it says."""
    lines = [*head_lines(page, _USE), "ARG BASE", "FROM ${BASE}"]
    unset = [entry.name for entry in page.entries if entry.value is None]
    for entry in page.entries:
        lines += ["", *comment_lines(entry.comments)]
        if entry.value is None:
            lines += comment_lines((f"not here: {entry.name} should be unset, and {_WHY}",))
        else:
            lines.append(f'ENV {entry.name}="{_IN_QUOTES.sub(_escaped, entry.value)}"')
    lines += tail_lines(page)
    return Written(text="\n".join(lines) + "\n", notes=tuple(cannot_unset(unset, _WHY)))


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


_APPTAINER_USE = "Use: apptainer build --build-arg BASE=IMAGE OUTPUT.sif THIS_FILE, with Apptainer 1.2 or later"
_HEADER = ("Bootstrap: docker", "From: {{ BASE }}", "", "%environment")


def write_apptainer(page: SettingsPage) -> Written:
    """Return a definition with an %environment section, which a shell in the container sources."""
    body = [f"    {line}" if line else "" for line in map(_without_template, export_lines(page.entries))]
    return Written(text="\n".join([*head_lines(page, _APPTAINER_USE), *_HEADER, *body, *tail_lines(page)]) + "\n")


def _without_template(line: str) -> str:
    """Return a line in which no pair of braces is left that Apptainer would take for a build argument of its own."""
    mark = "{ " if line.startswith("#") else "{''"
    while "{{" in line:
        line = line.replace("{{", f"{mark}{{", 1)
    return line


_KUBERNETES_USE = (
    "Use: put your image in, or copy `env` into the containers of your job's workers",
    "In an MPIJob ranks start over ssh, which sees none of it: give mpirun the options of --format mpirun too",
)
_KUBERNETES_HEADER = (
    "apiVersion: v1",
    "kind: Pod",
    "metadata:",
    "  name: busbw-settings",
    "spec:",
    "  restartPolicy: Never",
    "  containers:",
    "    - name: worker",
    "      image: IMAGE",
)
_KUBERNETES_WHY = "a manifest cannot do that: take it out of the image, or unset it in the container's command"
# Kubernetes puts variables in for $(NAME), and takes $$ for a plain $.
_EXPANDED = re.compile(r"\$+(?=\()|\$\$+")


def write_kubernetes(page: SettingsPage) -> Written:
    """Return a Pod with an `env` list; every value is a string in double quotes, as JSON and YAML both read it."""
    unset = [entry.name for entry in page.entries if entry.value is None]
    lines: list[str] = []
    for entry in page.entries:
        item = [f"- name: {entry.name}", f"  value: {_quoted(entry.value)}"] if entry.value is not None else []
        missing = (f"not here: {entry.name} should be unset, and {_KUBERNETES_WHY}",) if entry.value is None else ()
        lines += [f"        {line}" for line in (*comment_lines((*entry.comments, *missing)), *item)]
    is_empty = len(unset) == len(page.entries)
    body = [
        *head_lines(page, *_KUBERNETES_USE),
        *_KUBERNETES_HEADER,
        "      env: []" if is_empty else "      env:",
        *lines,
        *tail_lines(page),
    ]
    return Written(text="\n".join(body) + "\n", notes=(_KUBERNETES_USE[1], *cannot_unset(unset, _KUBERNETES_WHY)))


def _quoted(value: str) -> str:
    text = json.dumps(_EXPANDED.sub(lambda match: match[0] * 2, value), ensure_ascii=False)
    # Where the manifest becomes a chart of Helm, two braces would begin a template.
    while "{{" in text:
        text = text.replace("{{", "{\\u007b", 1)
    return text
