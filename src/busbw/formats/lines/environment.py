"""Environments in logs, stripped to the allow-list of model.variables."""

import re

from busbw.formats.lines.prefix import split
from busbw.model.settings import WITHHELD, is_allowed, plain

# A line that is one variable of an environment, as env, export, declare and a shell's trace print it.
_WHOLE_LINE = re.compile(
    r"(?P<before>\s*(?:\++ )?(?:export |declare -x |setenv )?)"
    r"(?P<name>[A-Z_][A-Z0-9_]{1,200}|(?:https?|ftp|all)_proxy)=(?P<value>.*)",
    re.DOTALL,
)
_INSIDE = re.compile(
    r"""(?<![\w$.-])(?P<name>[A-Z_][A-Z0-9_]{2,200}+)=(?P<value>"(?:[^"\\]|\\.)*+"?|'[^']*+'?|[^\s"',;]++)"""
)
_QUOTED = re.compile(r'"(?P<name>[A-Za-z_]\w{0,200}+)=(?P<value>(?:[^"\\]|\\.)*+)(?P<end>"?)')


def scrub(text: str) -> str:
    """Return a line with the values of all variables outside the allow-list, and of other secrets, withheld."""
    if "=" in text:
        tag, line = split(text)
        whole = _WHOLE_LINE.fullmatch(line)
        if whole is not None and not is_allowed(whole["name"]):
            before = text.removesuffix(line) if text.endswith(line) else tag
            return f"{before}{whole['before']}{whole['name']}={WITHHELD}"
        text = _INSIDE.sub(_assigned, _QUOTED.sub(_quoted, text))
    return plain(text)


def _assigned(match: re.Match[str]) -> str:
    return match[0] if is_allowed(match["name"]) else f"{match['name']}={WITHHELD}"


def _quoted(match: re.Match[str]) -> str:
    return match[0] if is_allowed(match["name"]) else f'"{match["name"]}={WITHHELD}{match["end"]}'
