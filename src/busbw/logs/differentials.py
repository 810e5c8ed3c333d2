"""Which of the causes of an outcome are the likeliest, by what else a log shows."""

import re
from collections.abc import Iterable
from functools import lru_cache

from busbw.facts.differentials import FailureOutcome, Sign, outcome_called, outcome_of, sign_regex
from busbw.logs.case import JobLogs, missing_ranks
from busbw.logs.crashes import outcome_of_number
from busbw.logs.excerpts import Excerpt, lines_of
from busbw.logs.troubles import TroubleEvent
from busbw.model.finding import RankedCause

# A longer list is not worked through.
_MOST_CAUSES = 5
# Of the log so many characters from its beginning and its end are searched for signs.
_SEARCHED = 2**20
_LONGEST_SIGN = 60
_NUMBERS = re.compile(r"\d{1,6}", re.ASCII)


def differential_of(case: JobLogs, event: TroubleEvent) -> tuple[RankedCause, ...]:
    """Return the causes that a line leaves open, or the signal and library of a crash, the likeliest first.

    (): the line names its cause itself.
    """
    if event.pattern is None:
        return ()
    file = event.file.rsplit("/", 1)[-1] if event.file is not None else None
    outcome = outcome_of(event.pattern.id, event.text, file)
    number = outcome_of_number(case, event) if outcome is None else None
    if number is not None:
        outcome = outcome_called(number)
    return _ranked(case, outcome, event.text) if outcome is not None else ()


def differential_called(case: JobLogs, name: str, quoted: str = "") -> tuple[RankedCause, ...]:
    """Return the causes of an outcome that no single line tells of. Raises KeyError for an unknown `name`.

    `quoted`: the line that stands for it.
    """
    return _ranked(case, outcome_called(name), quoted)


def _ranked(case: JobLogs, outcome: FailureOutcome, quoted: str) -> tuple[RankedCause, ...]:
    """Return the causes of an outcome: those with signs in the log first, those that it speaks against left out."""
    found: list[tuple[int, RankedCause]] = []
    for cause in outcome.cause:
        shown = _shown(case, cause.signs)
        against = _shown(case, cause.against)
        weight = sum(sign.weight for sign, _text in shown) - sum(sign.weight for sign, _text in against)
        if (against and weight <= 0) or (cause.rare and not shown):
            continue
        # What the line itself says is not told twice.
        texts = tuple(text for text in dict.fromkeys(text for _sign, text in shown) if text.strip('"') not in quoted)
        found.append((weight, RankedCause(words=cause.words, shown=texts, test=cause.test)))
    if not found:
        # The log speaks against every cause that is known: none of them is left out.
        found = [(0, RankedCause(words=each.words, test=each.test)) for each in outcome.cause if not each.rare]
    found.sort(key=lambda each: -each[0])
    return tuple(cause for _weight, cause in found[:_MOST_CAUSES])


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
    # A comma is part of a value, as in UCX_TLS=rc,cuda_copy; at its end it belongs to the list around.
    told += [
        match[1].rstrip(",")
        for match in re.finditer(rf"\b{re.escape(name)}[\"']?[=:] ?[\"']?([^\s\"';]{{1,200}})", _text(case.excerpts))
    ]
    regex = sign_regex(value) if value is not None else None
    return next((each for each in told if regex is None or regex.fullmatch(each) is not None), None)


@lru_cache(maxsize=1)
def _text(excerpts: tuple[Excerpt, ...]) -> str:
    text = "\n".join(line for _source, _number, line in lines_of(excerpts))
    return text if len(text) <= 2 * _SEARCHED else f"{text[:_SEARCHED]}\n{text[-_SEARCHED:]}"
