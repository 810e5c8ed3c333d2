"""The options of OSU programs whose own usage text ends before the first of them.

Version 7.4 writes more than it has room for when it prints its options: built with _FORTIFY_SOURCE, as compilers of
Debian and Ubuntu do by themselves, it is ended there. Its version it still tells. Source: its CHANGES (7.1: types,
7.2: roots) and the option strings of c/util/osu_util_options.h of 7.4, where collectives of one kind share one.
"""

import re
from types import MappingProxyType

from busbw.measure.backends import osu
from busbw.measure.backends.usage import Usage

_VERSION = re.compile(r"^# OSU .{1,80} v(?P<major>\d{1,3})\.(?P<minor>\d{1,3})\s*$", re.ASCII | re.MULTILINE)
_SINCE_ALL = (7, 0)
_SINCE_TYPES = (7, 1)
_SINCE_ROOTS = (7, 2)
_COMMON = "mxi"
_COLLECTIVE = "fM"
_PAIRS = ("latency", "bandwidth", "bibw", "message_rate")
_ROOTED = ("gather", "scatter", "reduce")


def version_of(text: str) -> tuple[int, int] | None:
    """Return the version that a program answers when it is asked with -v; None when it tells none."""
    found = _VERSION.search(text)
    return (int(found["major"]), int(found["minor"])) if found is not None else None


def options_of(program: str, collective: str, version: tuple[int, int], gpus: str | None) -> Usage | None:
    """Return what a program of this version takes; None for versions that print their usage whole.

    `gpus`: "cuda" or "rocm" for a program that is built with GPUs, as -d calls them.
    """
    if version < _SINCE_ALL:
        return None
    letters = _COMMON
    if collective not in _PAIRS:
        letters += _COLLECTIVE
    if osu.is_of_gpus(program):
        return Usage(MappingProxyType(dict.fromkeys(letters, "") | {"d": gpus or "cuda"}), "")
    letters += "c"
    if version >= _SINCE_TYPES:
        letters += "T"
    if version >= _SINCE_ROOTS and collective in _ROOTED:
        letters += "k"
    options = dict.fromkeys(letters, "") | ({"d": gpus} if gpus is not None else {})
    return Usage(MappingProxyType(options), "")
