"""How far a sentence is understood: whether it may be told in other words, or only quoted.

It may where its words say one thing only, in plain form, of something that stands right beside them.
"""

import re

from busbw.facts.failure_words import Predicate, Reading, predicates
from busbw.logs.subjects import Subject

# Characters between the words and what they are about.
_BESIDE = 30
# A new clause begins there.
_CLAUSE = re.compile(r"[;,:.]\s|\b(?:but|because|while|when|if|unless|for|so|than|which|that|and|or)\b", re.IGNORECASE)
# As the system's errors are written: "PATH: permission denied", "open(PATH): permission denied".
_SAID_OF = re.compile(r"[\"'`)\]]{0,3}: ")
# What the system calls an error, at the end of a sentence, says it once more.
_ERRNO = re.compile(
    r"[:,(] ?(?:no such (?:file or directory|device)|permission denied|operation not permitted|invalid argument|"
    r"cannot allocate memory|device or resource busy|function not implemented|no space left on device|"
    r"connection refused|no data available|operation not supported|name or service not known|not found)\W*$",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:than|instead of|rather|unless|either|neither|nor|both|between|except|versus|vs)\b|[!=<>]=|<>|\s[<>]\s",
    re.IGNORECASE,
)
_NEGATES = re.compile(r"\b(?:not|no|never|nothing|none|without|neither)\b|n't\b", re.IGNORECASE)
# Predicates that say the same thing of one sentence.
_ALIKE = (
    frozenset({"library", "absent", "symbol"}),
    frozenset({"command", "absent"}),
    frozenset({"not-installed", "absent"}),
    frozenset({"option", "invalid", "wrong-name"}),
    frozenset({"wrong-name", "invalid"}),
    frozenset({"name", "unreachable"}),
    frozenset({"no-address", "absent"}),
    frozenset({"kernel-module", "absent", "not-running"}),
    frozenset({"symbol", "too-old"}),
    frozenset({"busy", "absent"}),
)


def reading_of(text: str, said: re.Match[str], predicate: Predicate, about: Subject | None) -> Reading:
    """Return how far a sentence is understood in which the words of a predicate stand."""
    words = _ERRNO.sub(lambda match: " " * len(match[0]), text)
    for other in predicates():
        if other.id == predicate.id or any({other.id, predicate.id} <= alike for alike in _ALIKE):
            continue
        match = other.regex().search(words)
        if match is not None and (match.end() <= said.start() or match.start() >= said.end()):
            return "several"
    if predicate.open or about is None or about.kind in {"name", "amount"}:
        return "one"
    between = text[min(said.end(), about.end) : max(said.start(), about.start)]
    is_beside = len(between) <= _BESIDE and (_SAID_OF.fullmatch(between) is not None or _CLAUSE.search(between) is None)
    around = f"{words[: said.start()]} {words[said.end() :]}"
    is_plain = _COMPARES.search(text) is None and _NEGATES.search(around) is None
    return "sure" if is_beside and is_plain else "one"
