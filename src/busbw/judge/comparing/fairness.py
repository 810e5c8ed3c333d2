"""What makes a comparison unfair, or may: circumstances in which the sides differ, and what became of launches."""

from collections.abc import Iterator, Sequence

from busbw.base.text import counted, listed
from busbw.facts.rules import finding
from busbw.judge.comparing.launch import Circumstances, Launch
from busbw.judge.comparing.versus import point_words
from busbw.model.comparison import Design, Side
from busbw.model.finding import Finding

# Where sides differ in these, their times are of different things: refused unless it is asked for all the same.
REFUSED = ("CMP001", "CMP002", "CMP003", "CMP004")
_WARNED = ("CMP006", "CMP007", "CMP008", "CMP009", "CMP010", "CMP011", "CMP012", "CMP013", "CMP018")
_NOTED = ("CMP016",)
_LONGEST = 120
# Where it is not known what the sides were given.
ANY_CLAIM_COMMAND = "busbw compare --set default --set 'NAME=VALUE'"


def differences(sides: Sequence[Side], circumstances: Sequence[Circumstances]) -> tuple[Finding, ...]:
    """Return a finding for each circumstance in which sides differ, those that are refused first.

    Between settings measured in turn only what can never be fair: the rest is what was asked to be compared.
    """
    measured = all(side.kind == "settings" for side in sides)
    codes = REFUSED if measured else (*REFUSED, *_WARNED, *_NOTED)
    return tuple(
        finding(code, evidence=evidence, fix=_fix(code))
        for code in codes
        if (evidence := _unlike(code, sides, circumstances)) is not None
    )


def _unlike(code: str, sides: Sequence[Side], circumstances: Sequence[Circumstances]) -> str | None:
    known = [(side.letter, each[code]) for side, each in zip(sides, circumstances, strict=True) if code in each]
    if len({words for _letter, words in known}) < 2:
        return None
    if code == "CMP013":
        return _unlike_settings(known)
    return "; ".join(f"{letter}: {_short(words)}" for letter, words in known)


def _unlike_settings(known: Sequence[tuple[str, str]]) -> str:
    """Return the settings that not every side has, side by side."""
    of_side = {letter: set(words.split("\n")) for letter, words in known}
    shared = set.intersection(*of_side.values())
    return "; ".join(
        f"{letter}: {_short(', '.join(sorted(words - shared)) or 'none of these')}" for letter, words in of_side.items()
    )


def _short(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def _fix(code: str) -> str | None:
    if code in REFUSED:
        return "measure both the same way, or compare all the same: --anyway"
    return None


def launch_findings(
    sides: Sequence[Side], launches: Sequence[Launch], design: Design, claim_command: str | None
) -> tuple[Finding, ...]:
    """Return what is to be said of the launches: wrong results, failures, how few there are, and in what order."""
    return (
        *_wrong(sides, launches),
        *_failed(sides, launches),
        *_single(sides, launches, design),
        *_one_after_the_other(design, claim_command),
    )


def _wrong(sides: Sequence[Side], launches: Sequence[Launch]) -> Iterator[Finding]:
    for number, side in enumerate(sides):
        wrong = {
            f"{point_words(point.key)} in {launch.name}": point.key
            for launch in launches
            if launch.side == number
            for point in launch.points
            if point.wrong
        }
        if wrong:
            yield finding(
                "CMP005",
                evidence=f"{side.letter} ({side.name}): {listed(list(wrong))}",
                fix="do not use these settings until the results are right",
                points=counted(len(set(wrong.values())), "point"),
            )


def _failed(sides: Sequence[Side], launches: Sequence[Launch]) -> Iterator[Finding]:
    failed = [launch for launch in launches if launch.ended == "failed"]
    if failed:
        said = [f"{sides[launch.side].letter} {launch.name}: {launch.cause or 'no cause told'}" for launch in failed]
        yield finding("CMP015", evidence=listed(said, 2), launches=_launches(len(failed)))


def _single(sides: Sequence[Side], launches: Sequence[Launch], design: Design) -> Iterator[Finding]:
    counts = {side.letter: sum(launch.side == number for launch in launches) for number, side in enumerate(sides)}
    if launches and min(counts.values()) == 1:
        yield finding(
            "CMP017",
            evidence=", ".join(f"{letter}: {_launches(count)}" for letter, count in counts.items()),
            # What helps sides that were not interleaved is said of that.
            fix=None if design == "descriptive" else "more launches: --blocks 30",
        )


def _launches(count: int) -> str:
    return f"{count} launch{'' if count == 1 else 'es'}"


def _one_after_the_other(design: Design, claim_command: str | None) -> Iterator[Finding]:
    if design == "descriptive":
        yield finding(
            "CMP014",
            evidence="the launches of each side were taken when that side was measured",
            fix=f"for an answer: {claim_command or ANY_CLAIM_COMMAND}",
        )
