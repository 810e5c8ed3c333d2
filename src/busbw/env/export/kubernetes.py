"""A manifest for Kubernetes: a pod whose `env` is to be copied into the job's own."""

import json
import re

from busbw.env.export.page import Page, Written, cannot_unset, comment_lines, head_lines, tail_lines

_USE = (
    "Use: put your image in, or copy `env` into the containers of your job's workers",
    "In an MPIJob ranks start over ssh, which sees none of it: give mpirun the options of --format mpirun too",
)
_HEADER = (
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
_WHY = "a manifest cannot do that: take it out of the image, or unset it in the container's command"
# Kubernetes puts variables in for $(NAME), and takes $$ for a plain $.
_EXPANDED = re.compile(r"\$+(?=\()|\$\$+")


def write(page: Page) -> Written:
    """Return a Pod with an `env` list; every value is a string in double quotes, as JSON and YAML both read it."""
    unset = [entry.name for entry in page.entries if entry.value is None]
    lines: list[str] = []
    for entry in page.entries:
        item = [f"- name: {entry.name}", f"  value: {_quoted(entry.value)}"] if entry.value is not None else []
        missing = (f"not here: {entry.name} should be unset, and {_WHY}",) if entry.value is None else ()
        lines += [f"        {line}" for line in (*comment_lines((*entry.comments, *missing)), *item)]
    is_empty = len(unset) == len(page.entries)
    body = [
        *head_lines(page, *_USE),
        *_HEADER,
        "      env: []" if is_empty else "      env:",
        *lines,
        *tail_lines(page),
    ]
    return Written(text="\n".join(body) + "\n", notes=(_USE[1], *cannot_unset(unset, _WHY)))


def _quoted(value: str) -> str:
    text = json.dumps(_EXPANDED.sub(lambda match: match[0] * 2, value), ensure_ascii=False)
    # Where the manifest becomes a chart of Helm, two braces would begin a template.
    while "{{" in text:
        text = text.replace("{{", "{\\u007b", 1)
    return text
