"""The usage text of a foreign program: which options it knows. Flags decide what it is asked, not its version."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

# "[-b,--minbytes <min size in bytes>]" of nccl-tests; "  -m, --message-size" and "  -m [MIN:]MAX" of OSU.
_OPTION = re.compile(
    r"^\s*\[?-(?P<letter>[A-Za-z])(?:,\s?--(?P<name>[\w-]{1,40}))?(?=[\s,\]])(?P<rest>.{0,200})",
    re.MULTILINE,
)
_USAGE = re.compile(r"\bUSAGE:|\bUsage:", re.ASCII)
# Versions of nccl-tests by the newest option that they have (its tags, v2.0.0 to v2.19.6).
_SINCE = (
    ("K", "2.19.6 or later"),
    ("I", "2.19.2 to 2.19.5"),
    ("u", "2.18.0 to 2.19.1"),
    ("M", "2.17.7 to 2.17.10"),
    ("S", "2.17.6"),
    ("J", "2.17.3 to 2.17.5"),
    ("x", "2.17.0 to 2.17.2"),
    ("N", "2.13.10 to 2.16.9"),
    ("T", "2.13.4 to 2.13.9"),
    ("G", "2.10.0 to 2.13.3"),
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Options by their letter, each with what the usage text says after it."""

    options: Mapping[str, str]
    text: str

    def knows(self, letter: str) -> bool:
        """Whether the program takes this option."""
        return letter in self.options


def read_usage(text: str) -> Usage | None:
    """Return what a usage text says; None when it is none."""
    if _USAGE.search(text) is None:
        return None
    return Usage({match["letter"]: match["rest"].strip() for match in _OPTION.finditer(text)}, text)


def is_rccl(usage: Usage) -> bool:
    """Whether it is rccl-tests', where -u and -x mean something else than in nccl-tests."""
    return "cumask" in usage.options.get("u", "") or "--cumask" in usage.text or "--memory_type" in usage.text


def nccl_tests_version(usage: Usage) -> str | None:
    """Return the versions of nccl-tests that know these options; None for rccl-tests, which does not keep in step."""
    if is_rccl(usage):
        return None
    return next((versions for letter, versions in _SINCE if usage.knows(letter)), "2.0.0 to 2.9.0")


def operations(usage: Usage) -> tuple[str, ...]:
    """Return the operations that the usage text of nccl-tests lists for -o."""
    listed = re.search(r"--op <([a-z/]{1,80})>", usage.text)
    return tuple(name for name in listed[1].split("/") if name != "all") if listed is not None else ("sum",)
