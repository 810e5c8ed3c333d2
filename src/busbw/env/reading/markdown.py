"""Finds the scripts in a page of Markdown: each fenced block that names a language read here, or begins as a script."""

import re
from collections.abc import Iterator

import msgspec

from busbw.env.reading.spelled import Spelled, joined

_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*\{?\.?(?P<info>[\w.+-]*)(?P<rest>[^`\n]*)")
_BY_INFO = {
    **dict.fromkeys(("bash", "sh", "shell", "zsh", "ksh"), "shell"),
    **dict.fromkeys(("slurm", "sbatch"), "slurm"),
    **dict.fromkeys(("csh", "tcsh"), "csh"),
    **dict.fromkeys(("dockerfile", "docker", "containerfile"), "dockerfile"),
    **dict.fromkeys(("yaml", "yml"), "kubernetes"),
    **dict.fromkeys(("singularity", "apptainer"), "apptainer"),
}  # fmt: skip
# What shows a session: the lines behind prompts are commands, and without one all of it was printed.
_SESSIONS = {"console", "shell-session", "sh-session", "shellsession", "terminal"}
# What a block without a language begins with where it is a script; others are logs, tables, trees.
_SCRIPT = re.compile(r"\s*(?:#!/\S*sh\b|#SBATCH|export [A-Z_]+=|(?:\$ )?(?:mpirun|srun|sbatch|torchrun) )")
# Marks that MkDocs takes out of a page and puts its notes in.
_MARK = re.compile(r"[ \t]+# \(\d{1,3}\)!?[ \t]*$")
_DOCUMENT = re.compile(r"<<-?[ \t]*[\"'\\\\]?(\w+)")
_PROMPT = re.compile(r"[ \t]*[$%] ")


class Block(msgspec.Struct, frozen=True):
    """One script of a page. `masked`: the page with nothing but it; `piece`: the script with its places in that."""

    language: str
    masked: str
    piece: Spelled


def blocks(text: str) -> Iterator[Block]:
    """Yield the scripts of a page, in its order. One that is never closed goes on to the end of the page."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        at += 1
        if opening is None:
            continue
        first = at
        while at < len(lines) and not _closes(lines[at], opening["mark"]):
            at += 1
        language = _language(opening["info"].lower(), "\n".join(lines[first:at]))
        if language is not None:
            yield _block(language, lines, first, at)
        at += 1


def _closes(line: str, mark: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(mark) and not stripped.strip(mark[0])


def _language(info: str, body: str) -> str | None:
    if info in _SESSIONS:
        return "shell" if any(_PROMPT.match(line) for line in body.split("\n")) else None
    if info:
        return _BY_INFO.get(info)
    return "shell" if _SCRIPT.match(body) else None


def _block(language: str, lines: list[str], first: int, end: int) -> Block:
    """Return the lines of one block, of a session those that were typed, without the indent of the block."""
    body = [_MARK.sub("", line) for line in lines[first:end]]
    if language == "shell" and any(_PROMPT.match(line) for line in body):
        body = list(_typed(body))
    indent = min((len(line) - len(line.lstrip(" \t")) for line in body if line.strip()), default=0)
    parts: list[Spelled] = []
    offset = first
    for line in body:
        parts.append(Spelled(f"{line[indent:]}\n", ((0, offset + min(indent, len(line))),)))
        offset += len(line) + 1
    masked = "\n".join([*[""] * first, *body, *[""] * (len(lines) - end)])
    return Block(language, masked, joined(parts, at=first))


def _typed(body: list[str]) -> Iterator[str]:
    """Yield the lines behind a prompt and those that go on with one; what was printed is left empty."""
    goes_on, document = False, ""
    for line in body:
        is_typed = goes_on or _PROMPT.match(line) is not None
        yield line if is_typed else ""
        if document:
            document = "" if line.strip() == document else document
        elif is_typed and (found := _DOCUMENT.search(line)):
            document = found[1]
        goes_on = bool(document) or (is_typed and line.rstrip("\r").endswith("\\"))
