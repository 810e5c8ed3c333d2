"""The signs that what stands in a program or a manifest is ever in force, and not only spoken of."""

import ast
import re
from collections.abc import Iterator

from busbw.env.reading.commands import LAUNCHERS

# Names of what holds an environment, or is laid over one.
_ENVIRONMENT = re.compile(r"env|var(?:s|iables)?$|settings$|nccl|ucx|export", re.IGNORECASE)
_APPLIED = r"environ\b.*\b{0}\b|\benv\w*\s*=\s*{0}\b|\bupdate\(\s*\**{0}\b|\*\*\s*{0}\b|\bin {0}\.items\("
# Keys under which an environment stands, by itself or below others: `env_vars`, `extraEnv`, Ramble's `env_vars: set:`.
_KEY = re.compile(
    r"env|(?:^|[_-])var(?:s|iables)?$|settings$|^(?:nccl|rccl|ucx|mpi|libfabric|set|export)", re.IGNORECASE
)
# A text that sets for others or starts ranks, and not only names with values.
_ACTS = re.compile(rf"\A\s*#!|^[ \t]*export |\b(?:{LAUNCHERS})\b|(?:^|\s)--?(?:x|g?env) ", re.MULTILINE)
# Arguments that describe.
_DESCRIBES = {"help", "description", "epilog", "usage", "doc", "message", "msg", "title", "text", "metavar"}


def is_applied(names: tuple[str, ...], program: str) -> bool:
    """Whether one of these names is that of an environment, or of what a program lays over one."""
    return any(
        name and (_ENVIRONMENT.search(name) or re.search(_APPLIED.format(re.escape(name)), program)) for name in names
    )


def is_under_environment(keys: tuple[str, ...]) -> bool:
    """Whether one of the keys above a mapping is that of an environment."""
    return any(map(_KEY.search, keys))


def acts(text: str) -> bool:
    """Whether a text that a program holds is a script, sets for others, or starts ranks."""
    return _ACTS.search(text) is not None


def children(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions of one of Python, but for what only describes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.keyword) and child.arg not in _DESCRIBES:
            yield child.value
