"""What else is another after a change than before it: libraries, versions, hosts, NCCL's choices, settings."""

from collections.abc import Callable, Iterable, Sequence

from busbw.model.history import PointKind, RunInTime

_LONGEST_VALUE = 60
# A run, and what one point of it is.
PointInTime = tuple[RunInTime, PointKind]
_ASPECTS: tuple[tuple[str, Callable[[RunInTime, PointKind], str | None]], ...] = (
    ("libraries", lambda _, point: point.libraries),
    ("busbw", lambda run, _: run.busbw_version),
    ("hosts", lambda _, point: point.hosts),
    ("algorithm", lambda _, point: point.algorithm),
    ("protocol", lambda _, point: point.protocol),
)


def changed_with_it(earlier: Sequence[PointInTime], later: Sequence[PointInTime]) -> Iterable[str]:
    """Yield what all runs just before a change have in common, and all just after it have otherwise."""
    for name, of in _ASPECTS:
        before, after = {of(*each) for each in earlier}, {of(*each) for each in later}
        if len(before) == len(after) == 1 and before != after:
            yield f"{name}: {before.pop() or 'not told'} -> {after.pop() or 'not told'}"
    yield from _other_settings([dict(_pairs(run)) for run, _ in earlier], [dict(_pairs(run)) for run, _ in later])


def _pairs(run: RunInTime) -> Iterable[tuple[str, str]]:
    for setting in run.settings:
        name, _, value = setting.partition("=")
        yield name, value


def _other_settings(earlier: Sequence[dict[str, str]], later: Sequence[dict[str, str]]) -> Iterable[str]:
    """Yield the settings that each side agrees on, and the other otherwise; a job's own number never stays the same."""
    names = dict.fromkeys(name for each in (*earlier, *later) for name in each)
    for name in names:
        before, after = {each.get(name) for each in earlier}, {each.get(name) for each in later}
        if len(before) == len(after) == 1 and before != after:
            words = [f'"{value[:_LONGEST_VALUE]}"' if value is not None else "unset" for value in (*before, *after)]
            yield f"{name}: {words[0]} -> {words[1]}"
