"""Settings from any text: one door for all languages."""

import codecs
import re
from collections.abc import Callable
from itertools import islice

from busbw.base.errors import InputError
from busbw.env.reading.apptainer import read_apptainer
from busbw.env.reading.context import Context
from busbw.env.reading.csh import read_csh
from busbw.env.reading.detection import language as language_of
from busbw.env.reading.dockerfile import read_dockerfile
from busbw.env.reading.environment import read_environment
from busbw.env.reading.kubernetes import read_kubernetes
from busbw.env.reading.ledger import Ledger
from busbw.env.reading.markdown import blocks
from busbw.env.reading.modulefile import read_modulefile
from busbw.env.reading.nccl_conf import read_nccl_conf
from busbw.env.reading.python import read_python
from busbw.env.reading.scope import Scope
from busbw.env.reading.shell import read_shell
from busbw.env.reading.spelled import Spelled
from busbw.env.reading.systemd import read_systemd
from busbw.model.settings import SettingsReading

LARGEST_BYTES = 8 * 2**20
# Manifests and modulefiles are read slower, and written by hand.
_LARGEST = {"kubernetes": 2**20, "modulefile": 2**20, "markdown": 2**20, "python": 2**20}
_READERS: dict[str, Callable[[Spelled, Context], None]] = {
    "environment": read_environment,
    "nccl.conf": read_nccl_conf,
    "shell": read_shell,
    "slurm": read_shell,
    "csh": read_csh,
    "dockerfile": read_dockerfile,
    "apptainer": read_apptainer,
    "kubernetes": read_kubernetes,
    "modulefile": read_modulefile,
    "systemd": read_systemd,
    "python": read_python,
}
_MARKDOWN = "markdown"
LANGUAGES = (*_READERS, _MARKDOWN)
# Scripts of one page; more, and it is none for people.
_MOST_BLOCKS = 500
_REPLACED = "\N{REPLACEMENT CHARACTER}"
# Lone surrogates stand for bytes that are no UTF-8; the last two characters are kept for what is not known.
_UNREADABLE = re.compile("[\ud800-\udfff\ufffe\uffff]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
# More control characters than these, and more among so many, and it is no text.
_MOST_CONTROLS = 16
_CONTROLS_PER_CHARACTER = 0.05


def text_of(raw: bytes) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 where it says so; other bytes stay as lone surrogates."""
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if raw.startswith(mark):
            return raw[len(mark) :].decode(encoding, "replace")
    return raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def read(text: str, file: str, language: str | None = None) -> SettingsReading:
    """Return what a text sets and starts, in this language or the one it seems to be written in.

    Nothing is run, and no other file is read. Raises InputError for what is too large, no text, or a language that is
    not known.
    """
    _check(text, file, language)
    chosen = language_of(text, file) if language is None else language
    most = _LARGEST.get(chosen, LARGEST_BYTES)
    if len(text) > most:
        raise InputError(f"{len(text)} characters are over the limit of {most} for {chosen}", where=file)
    unreadable = [found.start() for found in _UNREADABLE.finditer(text)]
    cleaned = _UNREADABLE.sub(_REPLACED, text) if unreadable else text
    if chosen == _MARKDOWN:
        return _page(cleaned, file)
    ledger = Ledger(file, cleaned)
    if unreadable:
        ledger.unread(unreadable[0], f"{len(unreadable)} bytes from here on are no UTF-8; each is read as {_REPLACED}")
    returns = cleaned.count("\r\n")
    if returns and chosen not in {"kubernetes", "dockerfile"}:
        ledger.every("carriage_return", cleaned.index("\r\n"), "\\r", count=returns)
    context = Context(ledger=ledger, scope=Scope(), nested=_nested)
    _READERS[chosen](Spelled(cleaned), context)
    return ledger.reading(chosen)


def _page(text: str, file: str) -> SettingsReading:
    """Return the reading of a page: each of its scripts is one by itself, at its place in the page."""
    parts: list[SettingsReading] = []
    for block in islice(blocks(text), _MOST_BLOCKS):
        ledger = Ledger(file, block.masked)
        _READERS[block.language](block.piece, Context(ledger=ledger, scope=Scope(), nested=_nested))
        parts.append(ledger.reading(block.language))
    lines = tuple(line.removesuffix("\r") for line in text.split("\n"))
    return SettingsReading(file=file, language=_MARKDOWN, parts=tuple(parts), lines=lines)


def _nested(language: str, piece: Spelled, context: Context) -> None:
    _READERS[language](piece, context)


def _check(text: str, file: str, language: str | None) -> None:
    if language is not None and language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise InputError(f"no such kind of text: {language[:40]}", where=file, hint=f"--as takes one of {known}")
    if len(text) > LARGEST_BYTES:
        raise InputError(f"{len(text)} characters are over the limit of {LARGEST_BYTES}", where=file)
    controls = len(_CONTROLS.findall(text))
    # `env -0` divides variables by NUL.
    divided = text.count("\0") if re.match(r"[A-Za-z_]\w*=", text) else 0
    if controls - divided > max(_MOST_CONTROLS, _CONTROLS_PER_CHARACTER * len(text)):
        raise InputError("this is no text", where=file, hint="give a script, an environment, or an nccl.conf")
