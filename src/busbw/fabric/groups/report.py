"""What a search over groups came to, as a value and as lines of a terminal."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from busbw.base.hostlist import compressed
from busbw.base.text import counted, listed
from busbw.base.units import format_in
from busbw.fabric.groups.combining import Combination
from busbw.fabric.groups.isolation import AnswerKind, GroupAnswer, Isolation, IsolationPlan, TestedGroup
from busbw.fabric.groups.judging import FIRST, GroupScale, GroupTest
from busbw.fabric.groups.search import Group
from busbw.fabric.groups.splitting import BadNode, Separated
from busbw.fabric.groups.unsteady import UnsteadyNode, bad_runs, is_bad_run
from busbw.facts.rules import finding
from busbw.model.finding import Finding, Verdict
from busbw.stats.distributions import median

_CODES: dict[AnswerKind, str] = {
    "node": "FAB030", "failing": "FAB031", "together": "FAB032", "among-others": "FAB033", "whole": "FAB034",
    "everywhere": "FAB035", "unsteady": "FAB036",
}  # fmt: skip
_WIDTH = 79
_SHOWN_TESTS = 4
_MOST_ROWS = 40
_AGAIN = "the same command with --resume and a larger --rounds, or again with more --repeats"


def isolation_of(separated: Separated, plan: IsolationPlan) -> Isolation:
    """Return a search as a value: answers with evidence, findings, verdict."""
    words = _GroupWords(separated, plan)
    answers = tuple(words.answers())
    values = [value for test in separated.tests if len(test.nodes) == separated.group_nodes for value in test.values]
    scale = separated.scale
    return Isolation(
        plan=plan,
        tests=tuple(words.tested(each) for each in separated.tests),
        rounds=separated.rounds,
        group_runs=sum(len(each.results) for each in separated.tests),
        noise=scale.noise,
        least_seen=1 - math.exp(-scale.bound(plan.repeats)),
        median=median(sorted(values)) if values else None,
        answers=answers,
        cleared=words.cleared(),
        findings=tuple(_finding(each) for each in answers if each.kind in _CODES),
        verdict=_verdict(separated, plan, answers, scale),
    )


class _GroupWords:
    """The words for the tests of one search."""

    def __init__(self, separated: Separated, plan: IsolationPlan) -> None:
        self.found, self.plan, self.scale = separated, plan, separated.scale

    def hosts(self, nodes: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.plan.hosts[node] for node in nodes)

    def names(self, nodes: Iterable[int]) -> str:
        return compressed(self.hosts(sorted(nodes)))

    def value(self, test: GroupTest) -> str:
        """Return what a group came to, in a few words."""
        if test.has_failed:
            failed = [each.failure for each in test.results if each.failure is not None]
            return f"failed {len(failed)} of {len(test.results)}: {failed[0]}" if len(test.results) > 1 else failed[0]
        if self.plan.read.kind == "exit-code" or test.typical is None:
            return "exit code 0"
        return self.number(test.typical)

    def number(self, value: float) -> str:
        return format_in(value, self.plan.unit).rstrip()

    def tested(self, test: GroupTest) -> TestedGroup:
        effect = self.scale.effect(test)
        whole = test.purpose == "whole"
        state = self.scale.state(test)
        if whole and state != "failed":
            # Its size is not that of the others.
            state = "slow" if self.scale.misses(test.typical or 0.0) else "unclear"
        return TestedGroup(
            hosts=self.hosts(test.nodes),
            purpose=test.purpose,
            round=test.round,
            values=tuple(each.value for each in test.results),
            failures=tuple(each.failure for each in test.results if each.failure is not None),
            state=state,
            loss=None if effect is None or whole else 1 - math.exp(-effect),
        )

    def answers(self) -> Iterator[GroupAnswer]:
        yield from (self.culprit(each) for each in self.found.culprits)
        yield from (self.unsteady(each) for each in self.found.unsteady)
        yield from (self.combination(each, sides) for each, sides in self.joined())
        first = [each for each in self.found.tests if each.purpose in FIRST]
        if self.scale.is_slow_everywhere and not any(each.has_failed for each in first):
            yield self.everywhere(first)
        whole = [each for each in self.found.tests if each.purpose == "whole"]
        bad = [each for each in whole for one in each.results if one.value is None or self.scale.misses(one.value)]
        runs = sum(len(each.results) for each in whole)
        if runs > 1 and 3 * len(bad) >= 2 * runs:
            yield self.whole(whole, len(bad), runs)

    def culprit(self, culprit: BadNode) -> GroupAnswer:
        node, name = culprit.node, self.plan.hosts[culprit.node]
        own = [each for each in self.found.tests if node in each.nodes and each.purpose in (*FIRST, "split", "confirm")]
        bad = [each for each in own if self.scale.is_bad(each)]
        failing = any(each.has_failed for each in culprit.confirmations)
        effects = [self.scale.effect(each) for each in culprit.confirmations]
        known = sorted(each for each in effects if each is not None)
        shown = [f"with {self.names(set(each.nodes) - {node})}: {self.value(each)}" for each in culprit.confirmations]
        is_sure = culprit.confirmed == len(culprit.confirmations) and len(bad) == len(own)
        counts = f"{len(bad)} of {counted(len(own), 'group')} with {name} are {'bad' if failing else 'slow'}"
        again = f"{culprit.confirmed} of {len(culprit.confirmations)} confirmations"
        return GroupAnswer(
            kind="failing" if failing else "node",
            place=f"node {name}",
            hosts=(name,),
            loss=None if failing or not known else 1 - math.exp(-median(known)),
            confidence="likely" if is_sure else "possible",
            evidence=(f"{counts}; {again}", *shown, *self.sound_partners(culprit)),
            otherwise="its cable or switch port; its CPUs, memory or GPUs; a setting, an image or a job on it alone",
            clears=f"busbw doctor --here on {name}; then its groups as fast as the others",
        )

    def unsteady(self, found: UnsteadyNode) -> GroupAnswer:
        name = self.plan.hosts[found.node]
        effects = [
            self.scale.terms.level(one.value) - self.scale.centres.get(each.look, 0.0)
            for each in found.tests for one in each.results
            if one.value is not None and is_bad_run(self.scale, each, one)
        ]  # fmt: skip
        beside = f"{found.others_bad} of {found.others_runs} beside them without it"
        shown = [
            f"with {self.names(set(each.nodes) - {found.node})}: {bad} of {counted(runs, 'run')} bad"
            for each in found.tests for bad, runs in (bad_runs(self.scale, (each,)),)
        ]  # fmt: skip
        return GroupAnswer(
            kind="unsteady",
            place=f"node {name}",
            hosts=(name,),
            loss=1 - math.exp(-median(sorted(effects))) if effects else None,
            confidence="likely",
            evidence=(f"{found.bad} of {counted(found.runs, 'run')} with {name} are bad, {beside}", *shown),
            otherwise="a link that comes and goes; a clock that is lowered at times; other work on it at times",
            clears=f"busbw doctor --here and busbw probe --noise on {name}, and its error counters over a day",
        )

    def sound_partners(self, culprit: BadNode) -> Iterator[str]:
        """Yield sound groups that had the partners of a node without it."""
        partners = [set(each.nodes) - {culprit.node} for each in culprit.confirmations]
        seen = set()
        for test in reversed(self.found.tests):
            at = next((at for at, own in enumerate(partners) if own <= set(test.nodes)), None)
            if (
                at is not None
                and at not in seen
                and culprit.node not in test.nodes
                and self.scale.state(test) == "sound"
            ):
                seen.add(at)
                extra = self.names(set(test.nodes) - partners[at])
                yield f"sound without it: {self.names(partners[at])} with {extra}: {self.value(test)}"
        if not seen:
            sound = {node for each in self.found.tests if self.scale.state(each) == "sound" for node in each.nodes}
            shared = [node for node in set().union(*partners) if node in sound]
            if shared:
                yield f"each in sound groups without it: {self.names(shared)}"

    def joined(self) -> Iterator[tuple[Combination, tuple[Group, ...]]]:
        """Yield combinations with their sides; several that fall into two sides of one divide are one."""
        shown = [each for each in self.found.combinations if each.sides and self.is_bad_alone(each)]
        yield from ((each, ()) for each in self.found.combinations if each not in shown)
        waiting = list(shown)
        while waiting:
            first = waiting.pop(0)
            one, other = set(first.sides[0]), set(first.sides[1])
            again = True
            while again:
                again = False
                for each in list(waiting):
                    left, right = each.sides
                    if one.intersection(right) or other.intersection(left):
                        left, right = right, left
                    if one.intersection(left) or other.intersection(right):
                        one, other = one | set(left), other | set(right)
                        waiting.remove(each)
                        again = True
            yield first, (tuple(sorted(one)), tuple(sorted(other)))

    def is_bad_alone(self, found: Combination) -> bool:
        return found.alone is None or self.scale.is_bad(found.alone)

    def combination(self, found: Combination, sides: tuple[Group, ...]) -> GroupAnswer:
        names = self.names(found.group.nodes)
        runs: tuple[str, ...] = (f"{names}: {self.value(found.group)}, again {self.value(found.again)}",)
        if found.alone is not None:
            runs = (*runs, f"{names} with nothing beside it: {self.value(found.alone)}")
        hosts = self.hosts(found.group.nodes)
        if not self.is_bad_alone(found):
            return self.answer("among-others", f"group {names}", hosts, found.again, runs,
                               "too few uplinks, or another job, on the way of this group",
                               f"{names} as fast beside the other groups as alone")  # fmt: skip
        if sides:
            one, other = (self.names(side) for side in sides)
            hosts = self.hosts(sorted({node for side in sides for node in side}))
            apart = [f"{side} apart, among others: sound" for side in (one, other)]
            return self.answer("together", f"{one} with {other}", hosts, found.again, (*runs, *apart),
                               "the link or route between them, a switch more, or a setting that differs",
                               f"{one} and {other} in one group as fast as others")  # fmt: skip
        return self.answer("open", f"group {names}", hosts, found.again, (*runs, "no part of it shows it among others"),
                           "a fault that comes and goes, or one of three nodes together",
                           f"{names} again, with more --repeats")  # fmt: skip

    def answer(
        self, kind: AnswerKind, place: str, hosts: tuple[str, ...], test: GroupTest, evidence: tuple[str, ...],
        otherwise: str, clears: str,
    ) -> GroupAnswer:  # fmt: skip
        effect = self.scale.effect(test)
        return GroupAnswer(
            kind=kind, place=place, hosts=hosts, loss=None if effect is None else 1 - math.exp(-effect),
            confidence="possible", evidence=evidence, otherwise=otherwise, clears=clears,
        )  # fmt: skip

    def everywhere(self, first: Sequence[GroupTest]) -> GroupAnswer:
        values = sorted(each.typical for each in first if each.typical is not None)
        level, expected = median(values), self.plan.expected or 0.0
        found = f"median of {counted(len(values), 'group')} {self.number(level)}"
        lost = 1 - math.exp(self.scale.terms.level(expected) - self.scale.terms.level(level))
        return GroupAnswer(
            kind="everywhere", place="every group", hosts=self.plan.hosts, loss=lost, confidence="likely",
            evidence=(f"{found}, expected {self.number(expected)}",),
            otherwise="an expectation of another size of group or message, or a setting that all nodes have",
            clears="settings of `busbw env recommend`, or the value that this machine has reached before",
        )  # fmt: skip

    def whole(self, tests: Sequence[GroupTest], bad: int, runs: int) -> GroupAnswer:
        first = next(each for each in tests)
        return GroupAnswer(
            kind="whole", place=f"all {counted(self.found.nodes, 'node')} together", hosts=self.plan.hosts,
            loss=None, confidence="possible",
            evidence=(f"{bad} of {counted(runs, 'run')} of all nodes are bad: {self.value(first)}",
                      f"every group of {self.found.group_nodes} is sound"),
            otherwise="a limit of the program or of the system at this size; links that only larger groups cross",
            clears=f"--group {min(2 * self.found.group_nodes, self.found.nodes // 2)}: larger groups",
        )  # fmt: skip

    def cleared(self) -> tuple[str, ...]:
        passed = [f"group {self.names(each.nodes)}: {self.value(each)}, and sound again" for each in self.found.passed]
        nodes = [
            f"node {self.plan.hosts[each.node]}: {each.confirmed} of {len(each.confirmations)} confirmations"
            for each in self.found.unconfirmed
        ]
        return (*passed, *nodes)


def _finding(answer: GroupAnswer) -> Finding:
    slower = f"{100 * answer.loss:.1f} % slower; " if answer.loss is not None else ""
    return finding(
        _CODES[answer.kind],
        evidence=f"{slower}{'; '.join(answer.evidence[:3])}",
        fix=answer.clears,
        confidence=answer.confidence,
        effect=f"what else would explain it: {answer.otherwise}",
        what=answer.place,
    )


def _verdict(found: Separated, plan: IsolationPlan, answers: Sequence[GroupAnswer], scale: GroupScale) -> Verdict:
    codes = tuple(dict.fromkeys(_CODES[each.kind] for each in answers if each.kind in _CODES))
    named = [each for each in answers if each.kind != "open"]
    if named:
        more = f", and {counted(len(answers) - 1, 'other')}" if len(answers) > 1 else ""
        return Verdict(
            outcome="failed" if named[0].kind == "failing" else "slow",
            sentence=f"{_sentence(named[0])} ({named[0].confidence}){more}",
            because=codes,
        )
    why = _untold(found, plan, answers)
    if why is not None:
        return Verdict(outcome="cannot_tell", sentence=f"cannot tell: {why}", because=codes)
    group_nodes, rounds = f"groups of {found.group_nodes}", counted(found.rounds, "round")
    if plan.read.kind == "exit-code":
        return Verdict(outcome="ok", sentence=f"ok: no group failed, {group_nodes} of {found.nodes} nodes in {rounds}")
    least = 100 * (1 - math.exp(-scale.bound(plan.repeats)))
    same = f"no node slows its {group_nodes} by {least:.0f} % or more in {rounds}"
    if plan.expected is not None:
        return Verdict(outcome="ok", sentence=f"ok: {same}; all reach what is expected")
    return Verdict(
        outcome="cannot_tell",
        sentence=f"cannot tell whether all of it is slow: {same}; --expect says what a group should reach",
    )


def _sentence(answer: GroupAnswer) -> str:
    slower = f", {100 * answer.loss:.0f} % slower" if answer.loss is not None else ""
    return {
        "node": f"slow: {answer.place} slows every group it is in{slower}",
        "failing": f"failed: groups with {answer.place} fail, and those without it do not",
        "unsteady": f"slow at times: {answer.place} slows some runs of every group it is in{slower}",
        "together": f"slow only together: {answer.place}{slower}; apart they are sound",
        "among-others": f"slow among others: {answer.place}{slower}; alone it is sound",
        "whole": f"bad only together: {answer.place}; groups of fewer are sound",
        "everywhere": f"slow: {answer.place}{slower} than expected",
    }[answer.kind]


def _untold(found: Separated, plan: IsolationPlan, answers: Sequence[GroupAnswer]) -> str | None:
    """Return why nothing can be said; None: everything is sound as far as it was measured."""
    first = [each for each in found.tests if each.purpose in FIRST]
    if first and all(each.has_failed for each in first):
        return f"every group fails, the first with: {_failure(first[0])}; does the command run by itself?"
    if any(each.kind == "open" for each in answers):
        place = next(each.place for each in answers if each.kind == "open")
        return f"{place} is bad in every run, and no part of it shows why; {_AGAIN}"
    if found.is_budget_spent:
        return f"{counted(found.rounds, 'round')} were allowed, and are used up; {_AGAIN}"
    if found.unknown:
        names = compressed([plan.hosts[node] for node in found.unknown])
        return f"{names} were in bad groups only, and none could be told from the others; {_AGAIN}"
    scale = found.scale
    unsure = [each.node for each in found.unconfirmed
              if any(scale.is_bad(test) for test in each.confirmations)]  # fmt: skip
    if unsure:
        names = compressed([plan.hosts[node] for node in unsure])
        return f"groups with {names} are bad in some runs and sound in others; {_AGAIN}"
    return None


def _failure(test: GroupTest) -> str:
    return next((each.failure for each in test.results if each.failure is not None), "no value")


def isolation_lines(found: Isolation) -> tuple[str, ...]:
    """Return what was found as text of 79 columns, without colour."""
    return (
        *_wrapped(found.verdict.sentence),
        "",
        *_heading(found),
        *(line for each in found.answers for line in _answer(each)),
        *_cleared(found),
        *_table(found),
    )


def _wrapped(text: str, first: str = "", rest: str = "  ") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _heading(found: Isolation) -> Iterator[str]:
    plan = found.plan
    yield from _wrapped(
        f"{counted(len(plan.hosts), 'node')} ({compressed(plan.hosts)}) in groups of {plan.group_nodes}"
    )
    numbers = found.median if found.plan.read.kind != "exit-code" else None
    middle = f", median {format_in(numbers, plan.unit).rstrip()}" if numbers is not None else ""
    yield f"{counted(found.rounds, 'round')}, {counted(found.group_runs, 'group run')}{middle}"
    if numbers is not None:
        least = f"a group counts as slow from {100 * found.least_seen:.0f} % on"
        yield from _wrapped(f"a run scatters by {100 * found.noise:.1f} %; {least}")


def _answer(answer: GroupAnswer) -> Iterator[str]:
    yield ""
    slower = f", {100 * answer.loss:.1f} % slower" if answer.loss is not None else ""
    yield from _wrapped(f"consistent with: {answer.place}{slower}, {answer.confidence}")
    for line in answer.evidence:
        yield from _wrapped(line, "  ", "    ")
    yield from _wrapped(f"what else would explain it: {answer.otherwise}", "  ", "    ")
    yield from _wrapped(f"what would clear it: {answer.clears}", "  ", "    ")


def _cleared(found: Isolation) -> Iterator[str]:
    if found.cleared:
        yield ""
        yield from _wrapped(f"suspicious at first, not confirmed: {listed(found.cleared, _SHOWN_TESTS, between='; ')}")


def _table(found: Isolation) -> Iterator[str]:
    """Yield a row for each group that was not sound, and for those of the first look."""
    rows = [each for each in found.tests if each.purpose in ("whole", *FIRST) or each.state != "sound"]
    if not rows:
        return
    yield ""
    yield f"{'round':>5}  {'why':<8}  {'state':<7}  {'slower':>7}  group"
    for each in rows[:_MOST_ROWS]:
        slower = f"{100 * each.loss:.1f} %" if each.loss is not None and found.plan.read.kind != "exit-code" else "-"
        state = "-" if each.purpose == "whole" and each.state == "unclear" else each.state
        yield from _wrapped(
            f"{each.round + 1:>5}  {each.purpose:<8}  {state:<7}  {slower:>7}  {compressed(each.hosts)}", "", " " * 34
        )
    if len(rows) > _MOST_ROWS:
        yield f"       and {len(rows) - _MOST_ROWS} more: --json has them all"
