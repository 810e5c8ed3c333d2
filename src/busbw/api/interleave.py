"""Settings measured in turn: in random order, every launch planned first, and then carried out one by one."""

import datetime as dt
import random
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from busbw import __version__
from busbw.api.comparisons import compare_launches
from busbw.api.loading import read
from busbw.api.runs import resume
from busbw.base.errors import InputError, RunError
from busbw.base.text import counted
from busbw.judge.comparing.comparison import check_fair
from busbw.judge.comparing.fairness import differences
from busbw.judge.comparing.launch import of_plan
from busbw.judge.comparing.versus import least_blocks
from busbw.machine.capture.environment import variables_in_force
from busbw.measure.execute.launch import Listener, counted_interrupts
from busbw.measure.plan.planning import plans
from busbw.measure.plan.recommended import with_variables
from busbw.measure.plan.request import run_words
from busbw.model.comparison import Comparison, ComparisonPlan, PlannedLaunch, PlannedSide, Side
from busbw.model.plan import Plan, points_of
from busbw.model.request import Request
from busbw.model.run import Run
from busbw.model.settings import is_allowed, plain
from busbw.stats.signed_rank import MOST_PAIRS
from busbw.store import comparisons
from busbw.store import outcome as outcomes

DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# What finds programs and libraries, which ranks on other hosts get with their own environment.
_SEARCH = frozenset({"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD"})


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedSide:
    """A side as it was asked for: as env(1) has it, then options of `busbw run`, which are in the request already."""

    name: str
    environment: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    request: Request

    def planned(self, letter: str) -> PlannedSide:
        """Return the side as a plan has it."""
        return PlannedSide(
            letter=letter, name=self.name, environment=self.environment, unset=self.unset, options=self.options
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SideWords:
    """The words of one side, taken apart."""

    environment: tuple[tuple[str, str], ...]
    unset: tuple[str, ...]
    options: tuple[str, ...]


def parse_words(words: list[str], where: str) -> SideWords:
    """Return what a side is made of: NAME=VALUE and -u NAME first, then options of `busbw run`.

    Raises InputError for a word that is neither.
    """
    environment: dict[str, str] = {}
    unset: list[str] = []
    rest = [] if words == [DEFAULT] else list(words)
    while rest:
        if rest[0] == "-u":
            if len(rest) < 2 or not _NAME.fullmatch(rest[1]):
                raise InputError("-u needs the name of a variable to leave out", where=where, hint="-u NCCL_PROTO")
            unset.append(rest[1])
            del rest[:2]
            continue
        name, equals, value = rest[0].partition("=")
        if rest[0].startswith("-"):
            break
        if not equals or not _NAME.fullmatch(name) or "\0" in value:
            raise InputError(
                f"{rest[0]!r} is neither NAME=VALUE, nor -u NAME, nor an option of `busbw run`",
                where=where,
                hint="--set 'NCCL_PROTO=LL NCCL_ALGO=Ring', --set '--register 2', or --set default",
            )
        if plain(rest[0]) != rest[0]:
            raise InputError(
                f"{name} looks like a secret, and settings are stored with the comparison",
                where=where.partition(" ")[0],
                hint="set it in the shell: every launch has it then, and it is not stored",
            )
        environment[name] = value
        del rest[0]
    return SideWords(environment=tuple(environment.items()), unset=tuple(dict.fromkeys(unset)), options=tuple(rest))


def with_settings(plan: Plan, side: AskedSide) -> Plan:
    """Return a plan whose commands have the side's variables, whoever starts them.

    Raises InputError for a variable that would not reach other hosts.
    """
    if plan.placement.is_spread:
        lost = [name for name, _value in side.environment if not is_allowed(name) and name not in _SEARCH]
        if lost:
            raise InputError(
                f"{', '.join(lost)}: not among the variables that reach other hosts",
                where=f"--set '{side.name}'",
                hint="those of NCCL, UCX, libfabric and MPI do: see docs/hosts.md",
            )
    made = with_variables(plan, side.environment, side.unset)
    layer = plan.recommended
    if layer is None or not set(side.unset) & set(layer.env()):
        return made
    # What a side leaves out stays out, also where it is recommended.
    settings = tuple(
        msgspec.structs.replace(each, standing="left_out", why=f"this side leaves it out: -u {each.setting.name}")
        if each.setting.name in side.unset
        else each
        for each in layer.settings
    )
    return msgspec.structs.replace(made, recommended=msgspec.structs.replace(layer, settings=settings))


# Finds 3 % in 95 of 100 cases: see docs/compare.md, and tests/compare for the proof.
DEFAULT_BLOCKS = 30
DEFAULT_BUDGET_S = 900.0
_MOST_SIDES = 26
# What a launch takes beside measuring, roughly; and the least that is worth a launch.
_START_UP_S = 5.0
_LEAST_LIMIT_S = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonTerms:
    """How a comparison is to be measured. Seconds; `seed` None: drawn."""

    blocks: int = DEFAULT_BLOCKS
    budget_s: float = DEFAULT_BUDGET_S
    seed: int | None = None
    anyway: bool = False
    geometric_mean: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Follower:
    """Who is told of each launch: before it starts its number from 1, the launch and its plan; after it, the run."""

    before: Callable[[int, ComparisonPlan, Plan, Path], Listener]
    after: Callable[[int, ComparisonPlan, Run], None]


def plan_comparison(
    asked: Sequence[AskedSide], terms: ComparisonTerms, directory: Path | None, base: Path
) -> tuple[ComparisonPlan, tuple[Plan, ...], Path]:
    """Return the plan of a comparison, those of its launches in their order, and the folder it is for.

    Raises InputError for what cannot be measured on this machine, and for sides that are no fair comparison.
    """
    _check(asked, terms)
    created, token = dt.datetime.now(dt.UTC), secrets.token_hex(2)
    seed = terms.seed if terms.seed is not None else secrets.randbits(32)
    name = f"{created:%Y%m%dT%H%M%S}-compare-{run_words(asked[0].request)}-{token}"
    where = (directory if directory is not None else base / name).absolute()
    order = order_of(len(asked), terms.blocks, seed)
    limit_s = max(terms.budget_s / len(order) - _START_UP_S, _LEAST_LIMIT_S)
    launches = tuple(
        PlannedLaunch(folder=f"launch-{number:03d}-{_letter(side)}", side=side, block=block)
        for number, (block, side) in enumerate(order, start=1)
    )
    of_side = [_plans(one, number, launches, where, limit_s) for number, one in enumerate(asked)]
    sides = tuple(one.planned(_letter(number)) for number, one in enumerate(asked))
    _check_fair(sides=[_side(one.letter, one.name) for one in sides], of_side=of_side, terms=terms)
    iterators = [iter(own) for own in of_side]
    points = len(points_of(of_side[0][0].sweeps)) * (len(asked) - 1)
    plan = ComparisonPlan(
        busbw_version=__version__,
        comparison_id=where.name,
        created=created.isoformat(timespec="seconds"),
        seed=seed,
        sides=sides,
        launches=launches,
        design="random_order",
        budget_s=terms.budget_s,
        launch_limit_s=limit_s,
        anyway=terms.anyway,
        geometric_mean=terms.geometric_mean,
        notes=_few_blocks(terms.blocks, points),
    )
    return plan, tuple(next(iterators[launch.side]) for launch in launches), where


def order_of(sides: int, blocks: int, seed: int) -> tuple[tuple[int, int], ...]:
    """Return (block, side) of each launch, in order: each block has every side once, in a random order of its own.

    No block's order depends on another's: that makes each block an independent value to the test of its claims.
    """
    drawn = random.Random(seed)  # noqa: S311 - an order of launches is not a secret
    return tuple((block, side) for block in range(blocks) for side in drawn.sample(range(sides), sides))


def _check(asked: Sequence[AskedSide], terms: ComparisonTerms) -> None:
    if len(asked) < 2:
        raise InputError("one setting is not a comparison", hint="--set default --set 'NCCL_PROTO=LL'")
    names = [one.name for one in asked]
    if not 1 <= terms.blocks <= MOST_PAIRS or len(asked) > _MOST_SIDES:
        raise InputError(
            f"{counted(terms.blocks, 'block')} of {len(asked)} settings: 1 to {MOST_PAIRS} blocks of at most "
            f"{_MOST_SIDES} settings can be planned",
            where=f"--blocks {terms.blocks}",
        )
    if not 0 < terms.budget_s <= 31 * 24 * 3600:
        raise InputError("a budget must be more than 0 and at most a month", where=f"--budget {terms.budget_s:g}")
    if len(names) > len(set(names)) and len({one.request for one in asked}) > 1:
        raise InputError("two settings have one name", hint="write each --set as it is to be called")


def _plans(
    asked: AskedSide, number: int, launches: Sequence[PlannedLaunch], where: Path, limit_s: float
) -> tuple[Plan, ...]:
    """Return the plans of one side's launches."""
    # A comparison starts its own launches.
    own = 1 if asked.request.launches is None else asked.request.launches
    request = msgspec.structs.replace(
        asked.request, time_limit_s=min(asked.request.time_limit_s, limit_s), launches=own
    )
    folders = [where / launch.folder for launch in launches if launch.side == number]
    with variables_in_force(asked.environment, asked.unset):
        made = plans(request, folders)
    return tuple(with_settings(plan, asked) for plan in made)


def _check_fair(*, sides: Sequence[Side], of_side: Sequence[tuple[Plan, ...]], terms: ComparisonTerms) -> None:
    if not terms.anyway:
        check_fair(differences(sides, [of_plan(own[0]) for own in of_side]))
    measured = [{(s.collective, s.dtype, s.op, s.in_place) for s in own[0].sweeps} for own in of_side]
    for number, own in enumerate(measured[1:], start=1):
        if not own & measured[0]:
            raise InputError(
                f"{sides[number].name} measures nothing that {sides[0].name} does", hint="compare the same collectives"
            )


def _few_blocks(blocks: int, points: int) -> tuple[str, ...]:
    least = least_blocks(points)
    if blocks >= least:
        return ()
    return (f"{counted(blocks, 'block')} can claim nothing of {counted(points, 'point')}; {least} are the least",)


def _letter(side: int) -> str:
    return chr(ord("A") + side)


def _side(letter: str, name: str) -> Side:
    return Side(letter=letter, name=name, kind="settings", launches=())


def start(plan: ComparisonPlan, launches: tuple[Plan, ...], directory: Path, follower: Follower) -> Comparison:
    """Carry out a comparison in a new folder and return what it came to. What was measured is kept, whatever happens.

    Raises InputError when the folder cannot be made, RunError when a side does not run.
    """
    comparisons.create(plan, launches, directory)
    return go_on(directory, follower)


def go_on(directory: Path, follower: Follower) -> Comparison:
    """Start the launches that are missing, and return what all of them come to."""
    plan = comparisons.read_plan(directory)
    ends_s = time.monotonic() + plan.budget_s
    # A block that would not be whole is not begun; a launch is taken to last as long as the longest one did.
    longest_s = 0.0
    with counted_interrupts() as stops:
        for number, launch in enumerate(plan.launches, start=1):
            place = directory / launch.folder
            if _is_done(place):
                continue
            left = [other for other in plan.launches[number - 1 :] if other.block == launch.block]
            if stops.count or time.monotonic() + len(left) * longest_s > ends_s:
                break
            began_s = time.monotonic()
            run = _carry_out(place, number, plan, follower)
            longest_s = max(longest_s, time.monotonic() - began_s)
            follower.after(number, plan, run)
            if run.outcome is None or run.outcome.ended == "stopped":
                break
            _check_runs(plan, launch, directory)
    return compare_launches(directory)


def _carry_out(place: Path, number: int, plan: ComparisonPlan, follower: Follower) -> Run:
    if comparisons.was_begun(place):
        comparisons.start_again(place)
    return resume(place, follower.before(number, plan, comparisons.launch_plan(place), place))


def _is_done(place: Path) -> bool:
    outcome = outcomes.read(place)
    return outcome is not None and outcome.ended != "stopped"


def _check_runs(plan: ComparisonPlan, launch: PlannedLaunch, directory: Path) -> None:
    """Raise RunError where the first launches of a side have failed, with nothing measured in any."""
    own = [other for other in plan.launches if other.side == launch.side and _is_done(directory / other.folder)]
    runs = [read(directory / each.folder) for each in own[:2]]
    if len(own) == 2 and all(not run.measurements for run in runs):
        side = plan.sides[launch.side]
        cause = next(
            (run.outcome.cause for run in runs if run.outcome is not None and run.outcome.cause), "no cause told"
        )
        raise RunError(
            f"{side.letter} ({side.name}) does not run: {cause}",
            where=str(directory / launch.folder),
            hint=f"busbw show {directory / launch.folder}",
        )
