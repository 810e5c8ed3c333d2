"""Nodes over all of their checks: how often each began to fail, and the time between failures."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from busbw.base.text import counted
from busbw.model.check.report import CheckHistory, NodePast, NodeRecord

# Failures below which a time between them says nothing: two are one interval.
LEAST_FAILURES = 3
_CONFIDENCE = 0.90
ASSUMPTION = (
    "times between failures assume that a node fails at a constant rate, each time independently of the last; limits "
    f"are exact for a Poisson count, {100 * _CONFIDENCE:.0f} %; a failure between two checks counts from the second"
)
_FAILING = ("error",)


def history_of(past: Iterable[NodePast]) -> CheckHistory:
    """Return every node, those that fail most often first."""
    by_host: dict[str, list[NodePast]] = defaultdict(list)
    for each in past:
        by_host[each.host].append(each)
    nodes = [_record(host, sorted(checks, key=lambda each: each.unix_s)) for host, checks in by_host.items()]
    nodes.sort(key=lambda each: (-each.failures, each.mtbf_s or math.inf, each.host))
    failing = [each for each in nodes if each.failures]
    if not nodes:
        sentence = "no check is stored yet"
    elif not failing:
        sentence = (
            f"no failure in {counted(sum(each.checks for each in nodes), 'check')} of {counted(len(nodes), 'node')}"
        )
    else:
        first = failing[0]
        sentence = (
            f"{counted(len(failing), 'node')} of {len(nodes)} failed; {first.host} most often, "
            f"{counted(first.failures, 'time')} in {counted(first.checks, 'check')}"
        )
    return CheckHistory(nodes=tuple(nodes), assumption=ASSUMPTION, sentence=sentence)


def _record(host: str, checks: Sequence[NodePast]) -> NodeRecord:
    failures = 0
    sound_s = 0.0
    codes: dict[str, None] = {}
    for before, now in zip((None, *checks), checks, strict=False):
        failing = now.outcome in _FAILING
        was_failing = before is not None and before.outcome in _FAILING
        if before is not None and not was_failing:
            sound_s += now.unix_s - before.unix_s
        if failing and not was_failing:
            failures += 1
        if failing:
            codes.update(dict.fromkeys(now.codes))
    mtbf = low = high = None
    if failures >= LEAST_FAILURES and sound_s > 0:
        fewest, most = poisson_limits(failures, _CONFIDENCE)
        mtbf, low, high = sound_s / failures, sound_s / most, sound_s / fewest
    return NodeRecord(
        host=host, checks=len(checks), failures=failures, watched_s=sound_s, mtbf_s=mtbf, mtbf_low_s=low,
        mtbf_high_s=high, last=checks[-1].outcome, last_unix_s=checks[-1].unix_s, codes=tuple(codes),
    )  # fmt: skip


def poisson_limits(count: int, confidence: float) -> tuple[float, float]:
    """Return the exact limits of the mean of a Poisson count that came to `count`, at least 1 (Garwood 1936)."""
    tail = (1 - confidence) / 2
    low = _mean_where(lambda mean: 1 - _at_most(count - 1, mean) - tail, count)
    high = _mean_where(lambda mean: tail - _at_most(count, mean), count)
    return low, high


def _at_most(count: int, mean: float) -> float:
    """Return the probability of `count` or fewer."""
    return sum(math.exp(each * math.log(mean) - mean - math.lgamma(each + 1)) for each in range(count + 1))


def _mean_where(rising: Callable[[float], float], count: int) -> float:
    """Return where a function of the mean that rises is 0."""
    low, high = 1e-9, 4.0 * count + 20
    for _step in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
