"""Which of the causes of an outcome are the likeliest, by what else a log shows."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from busbw.facts.differentials import FailureOutcome, Sign, outcome_called, outcome_of, sign_regex
from busbw.logs.case import JobLogs, missing_ranks
from busbw.logs.causes import crash_library
from busbw.logs.excerpts import Excerpt, lines_of
from busbw.logs.troubles import TroubleEvent

# Who reads more than this many causes tries none.
_MOST_CAUSES = 5
# Of the log so many characters from its beginning and its end are searched for signs.
_SEARCHED = 2**20
_LONGEST_SIGN = 60
_BUS = frozenset({"7", "Bus error", "SIGBUS"})
_CRASHED = frozenset({"11", "Segmentation fault", "SIGSEGV", *_BUS})
_OWN_LIBRARIES = frozenset({"libnccl", "librccl"})
_NUMBERS = re.compile(r"\d{1,6}", re.ASCII)


class RankedCause(NamedTuple):
    """A cause, what in the log speaks for it (nothing: no sign was found), and how to tell."""

    words: str
    shown: tuple[str, ...]
    test: str


class Differential(NamedTuple):
    """The causes that an outcome may have, the likeliest by the log first."""

    causes: tuple[RankedCause, ...]

    def words(self) -> str:
        """Return the causes, numbered, with what of each the log shows."""
        parts = []
        for number, each in enumerate(self.causes, 1):
            signs = f" [in the log: {', '.join(each.shown)}]" if each.shown else ""
            parts.append(f"({number}) {each.words}{signs}")
        return "; ".join(parts)

    def fix(self) -> str:
        """Return the tests, with the same numbers."""
        return "; ".join(f"({number}) {each.test}" for number, each in enumerate(self.causes, 1))


def differential_of(case: JobLogs, event: TroubleEvent) -> Differential | None:
    """Return the causes of what a line tells; None: the line names its cause itself."""
    if event.pattern is None:
        return None
    signal = event.groups.get("signal")
    if signal in _CRASHED and crash_library(case, event) in _OWN_LIBRARIES:
        return differential_called(case, "bus-error-in-nccl" if signal in _BUS else "crash-in-nccl")
    file = event.file.rsplit("/", 1)[-1] if event.file is not None else None
    outcome = outcome_of(event.pattern.id, event.text, file)
    return ranked(case, outcome) if outcome is not None else None


def differential_called(case: JobLogs, name: str) -> Differential:
    """Return the causes of an outcome that no single line tells of. Raises KeyError for an unknown `name`."""
    return ranked(case, outcome_called(name))


def ranked(case: JobLogs, outcome: FailureOutcome) -> Differential:
    """Return the causes of an outcome: those with signs in the log first, those that it speaks against left out."""
    found: list[tuple[int, RankedCause]] = []
    for cause in outcome.cause:
        shown = _shown(case, cause.signs)
        against = _shown(case, cause.against)
        weight = sum(sign.weight for sign, _text in shown) - sum(sign.weight for sign, _text in against)
        if (against and weight <= 0) or (cause.rare and not shown):
            continue
        texts = tuple(dict.fromkeys(text for _sign, text in shown))
        found.append((weight, RankedCause(cause.words, texts, cause.test)))
    if not found:
        # The log speaks against every cause that is known: none of them is left out.
        found = [(0, RankedCause(each.words, (), each.test)) for each in outcome.cause if not each.rare]
    found.sort(key=lambda each: -each[0])
    return Differential(tuple(cause for _weight, cause in found[:_MOST_CAUSES]))


def _shown(case: JobLogs, signs: Iterable[Sign]) -> list[tuple[Sign, str]]:
    found = []
    for sign in signs:
        parts = [part for part in _parts(case, sign) if part != ""]
        if parts and None not in parts:
            found.append((sign, " and ".join(part for part in parts if part is not None)))
    return found


def _parts(case: JobLogs, sign: Sign) -> Iterable[str | None]:
    """Yield what the log shows of each thing that a sign asks for; None where it does not show it."""
    if sign.line is not None:
        match = sign_regex(sign.line).search(_text(case.excerpts))
        yield f'"{match[0].strip()[:_LONGEST_SIGN]}"' if match is not None else None
    if sign.setting is not None:
        value = _setting(case, sign.setting, sign.value)
        yield f'{sign.setting} = "{value[:_LONGEST_SIGN]}"' if value is not None else None
    if sign.fact is not None:
        regex = sign_regex(sign.value or "")
        value = next((value for value in case.has(sign.fact) if regex.search(value) is not None), None)
        yield f"{sign.fact} {value[:_LONGEST_SIGN]}" if value is not None else None
    if sign.way is not None:
        via = next((way.via for way in case.ways if way.via.startswith(sign.way)), None)
        yield f"via {via}" if via is not None else None
    if sign.pattern is not None:
        event = next((each for each in case.events if each.kind == sign.pattern), None)
        yield f'"{event.text[:_LONGEST_SIGN]}"' if event is not None else None
    yield from _circumstances(case, sign)


def _circumstances(case: JobLogs, sign: Sign) -> Iterable[str | None]:
    if sign.below is not None or sign.since is not None:
        versions = [(_number(value), value.split("+")[0]) for value in case.has("version")]
        fitting = [
            shown
            for number, shown in versions
            if (sign.below is None or number < _number(sign.below))
            and (sign.since is None or number >= _number(sign.since))
        ]
        yield f"NCCL {fitting[0]}" if fitting else None
    if sign.several_nodes is not None:
        shown = "several nodes" if case.spans_nodes else "one node" if _is_one_node(case) else None
        yield shown if shown == ("several nodes" if sign.several_nodes else "one node") else None


def _is_one_node(case: JobLogs) -> bool:
    """Whether NCCL says so, or every rank logged on one host; a piece of a log may be of one host of many."""
    every = case.rank_index.ranks is not None and not missing_ranks(case)
    return case.nodes == 1 or (every and len(case.hosts) == 1)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in _NUMBERS.findall(version.split("+", maxsplit=1)[0])[:3])


def _setting(case: JobLogs, name: str, value: str | None) -> str | None:
    """Return the value of a variable, as NCCL tells it or as a line sets it; None: not set, or to something else."""
    told = [*case.settings.get(name, {})]
    told += [
        match[1]
        for match in re.finditer(rf"\b{re.escape(name)}[\"']?[=:] ?[\"']?([^\s\"',;]{{1,200}})", _text(case.excerpts))
    ]
    regex = sign_regex(value) if value is not None else None
    return next((each for each in told if regex is None or regex.fullmatch(each) is not None), None)


@lru_cache(maxsize=1)
def _text(excerpts: tuple[Excerpt, ...]) -> str:
    text = "\n".join(line for _source, _number, line in lines_of(excerpts))
    return text if len(text) <= 2 * _SEARCHED else f"{text[:_SEARCHED]}\n{text[-_SEARCHED:]}"
