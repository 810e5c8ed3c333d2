"""What terminal and page say the same way of a check: sentences that several nodes share, once, with the nodes."""

from collections.abc import Iterable, Sequence

from busbw.base.hostlist import compressed
from busbw.base.text import counted
from busbw.model.check.report import NodeAnswer

_MOST_NAMES = 60


def still_open(nodes: Sequence[NodeAnswer]) -> tuple[tuple[str, str], ...]:
    """Return what could not be told: (nodes, sentence), each sentence once."""
    return _shared((node.host, each) for node in nodes for each in node.open)


def not_screened(nodes: Sequence[NodeAnswer]) -> tuple[tuple[str, str], ...]:
    """Return what was not screened and need not be: (nodes, sentence), each sentence once."""
    return _shared((node.host, each) for node in nodes for each in node.notes)


def _shared(said: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    by_words: dict[str, list[str]] = {}
    for host, words in said:
        by_words.setdefault(words, []).append(host)
    return tuple((_names(hosts), words) for words, hosts in by_words.items())


def _names(hosts: Sequence[str]) -> str:
    names = compressed(hosts)
    return names if len(names) <= _MOST_NAMES else f"{names[:_MOST_NAMES]}... ({counted(len(hosts), 'node')})"
