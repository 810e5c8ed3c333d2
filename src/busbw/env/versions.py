"""Versions of NCCL and of other readers of variables: what they say, and what each of them knows."""

import re
from typing import Literal

from busbw.base.errors import InputError
from busbw.facts.envvars import owners
from busbw.model.envvar import EnvVar

Standing = Literal["yes", "not yet", "removed"]
# 2.28.9, v2.28.9-1, 2.28.9+cuda13.0, 2.28: NCCL's own tags, wheels and log lines.
_WRITTEN = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:\.\d{1,6})?(?:[-+ ].{0,40})?", re.ASCII)
# What ncclGetVersion returns: 2804 for 2.8.4, 21805 for 2.18.5.
_CODE = re.compile(r"\d{4,6}", re.ASCII)
_FIRST_LONG_CODE = 10_000
_ENDLESS = 10**9


def parse_version(text: str) -> tuple[int, ...]:
    """Return the two or three numbers of a version: `2.28` has two and stands for every release of that series.

    Raises InputError for a text that is not a version.
    """
    written = text.strip()
    if match := _WRITTEN.fullmatch(written):
        return tuple(int(part) for part in match.groups() if part is not None)
    if _CODE.fullmatch(written):
        code = int(written)
        series = 10_000 if code >= _FIRST_LONG_CODE else 1_000
        return code // series, code % series // 100, code % 100
    raise InputError(f"{text[:40]!r} is not a version", hint="write it as 2.28.9, 2.28 or 22809")


def spelled(version: tuple[int, ...]) -> str:
    """Return a version as it is written."""
    return ".".join(map(str, version))


def newest(owner: str = "NCCL") -> tuple[int, ...]:
    """Return the newest version whose variables are known. Raises KeyError for an owner without versions."""
    return parse_version(owners()[owner].versions[-1])


def beyond(version: tuple[int, ...], owner: str = "NCCL") -> str | None:
    """Return a sentence where nothing is known of a version, because it is newer or older than all; else None."""
    known = [parse_version(each) for each in owners()[owner].versions]
    if _last(version)[: len(version)] > known[-1][: len(version)]:
        return f"{owner} {spelled(version)} is newer than {spelled(known[-1])}, the newest busbw knows; told as of that"
    if _last(version) < known[0]:
        return f"{owner} {spelled(version)} is older than {spelled(known[0])}, the oldest busbw knows"
    return None


def reaches(version: tuple[int, ...] | None, first: tuple[int, ...]) -> bool:
    """Whether a version is `first` or later; a series of two numbers is where any of its releases is.

    None stands for the newest version that is known.
    """
    return version is None or _last(version) >= first


def known_in(var: EnvVar, version: tuple[int, ...]) -> Standing:
    """Return whether a version of its owner reads a variable.

    A series of two numbers reads what any of its releases does. A version that is newer than all known is taken to read
    what the newest does: `beyond` says so.
    """
    if var.since is not None and not reaches(version, parse_version(var.since)):
        return "not yet"
    if var.until is not None and _first(version) >= _first(parse_version(var.until)):
        return "removed"
    return "yes"


def default_in(var: EnvVar, version: tuple[int, ...]) -> str | None:
    """Return the default in a version of its owner; None where it is not known."""
    held = [default for since, default in var.defaults.items() if reaches(version, parse_version(since))]
    return held[-1] if held else None if var.defaults else var.default


def _first(version: tuple[int, ...]) -> tuple[int, ...]:
    return (*version, 0) if len(version) == 2 else version


def _last(version: tuple[int, ...]) -> tuple[int, ...]:
    return (*version, _ENDLESS) if len(version) == 2 else version
