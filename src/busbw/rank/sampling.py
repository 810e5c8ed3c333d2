"""One turn of a point: one sample, or warm-up until stable and samples until the median is known or time is up.

Rank 0 looks at the samples after each block and tells everyone what to do next.
"""

import time
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from busbw.model.plan import Sampling
from busbw.rank.blocks import BlockShape, Sampler, SampleSeries
from busbw.rank.heart import Heart
from busbw.rank.world import World
from busbw.stats.distributions import median, relative_half_width
from busbw.stats.tail import is_stable

Ended = Literal["interval", "samples", "time", "stopped"]
_REASONS: tuple[Ended, ...] = ("interval", "samples", "time", "stopped")
_GO_ON = -1

# Rank 0 decides about twenty times a second, so that progress is seen and a stop is obeyed.
_BLOCK_NS = 50_000_000
_MOST_BLOCK_SAMPLES = 500
_WARMUP_SHARE = 0.25
_MOST_WARMUP_SAMPLES = 2000
_FIRST_LEAD_NS = 20_000
_FIRST_LEAD_YIELDING_NS = 1_000_000
_LEAST_LEAD_NS = 5_000
_MOST_LEAD_NS = 20_000_000
# Enough for a 99th percentile; taken beyond a narrow interval when they cost no more than this share of the time.
_TAIL_SAMPLES = 1000
_TAIL_SHARE = 0.2
# Above this share of missed starts the announcements come too late.
_MISSED_SHARE = 0.02

# Starts that a rank misses give no sample; a first turn tries again so often, each time announced so much earlier. On
# busy cores a rank waits for its turn for milliseconds, and a single start may be announced early: it costs nothing.
_FIRST_TRIES = 10
_FIRST_TURN_LEAD_NS = 1_000_000
_MOST_FIRST_TURN_LEAD_NS = 250_000_000
_LEAD_GROWTH = 4

Report = Callable[[str, int, float | None, float | None], None]


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Instants of the monotonic clock: when this turn began, when it has had its share, and when the whole run has.

    `even_s`: what every point would have if all took the same time.
    """

    began_s: float
    share_ends_s: float
    run_ends_s: float
    even_s: float
    # What looking for the rank that delays the others may take beyond this turn's share.
    tracing_s: float

    @property
    def spent_share(self) -> float:
        """How much of an even share this turn has used up: 0 at its beginning.

        What quick points left over is there for those that need it to narrow their interval, not to be used up.
        """
        return (time.monotonic() - self.began_s) / self.even_s if self.even_s > 0 else 1.0

    @property
    def share_left_s(self) -> float:
        """Time left of this turn's share; negative when it is overdrawn."""
        return self.share_ends_s - time.monotonic()

    @property
    def run_left_s(self) -> float:
        """Time left of the run."""
        return self.run_ends_s - time.monotonic()


class Sampled(msgspec.Struct, frozen=True):
    """What one rank knows when a turn is over; `series` holds the samples of this turn alone."""

    series: SampleSeries
    calls_per_sample: int
    warmup_calls: int
    warmup_stable: bool
    ended: Ended


class Controls(msgspec.Struct, frozen=True):
    """What steers one turn of a point; `budget` and `earlier_ns` count on rank 0 only."""

    sampling: Sampling
    # 0: the first turn of the point.
    turn: int
    # Of a sample, as in earlier turns; 0: not settled yet.
    calls: int
    # Messages to and fro that compare two clocks, before the turn and where they may drift after it.
    sync_rounds: int
    # The samples of earlier turns that count.
    earlier_ns: Sequence[float]
    budget: Budget
    yields: bool
    report: Report


def take_turn(world: World, heart: Heart, sampler: Sampler, controls: Controls) -> Sampled:
    """Take what this turn of the point is for. Every rank calls this; all return series of equal length."""
    take = _first_sample if controls.turn == 0 else _samples
    return take(world, heart, sampler, controls)


def _first_sample(world: World, heart: Heart, sampler: Sampler, controls: Controls) -> Sampled:
    """Take one sample that counts after one call to warm up, whatever the time."""
    heart.enter("warming up")
    warm = SampleSeries()
    lead_ns = _FIRST_TURN_LEAD_NS
    sampler.take(BlockShape(samples=1, calls=1, lead_ns=lead_ns), warm)
    heart.enter("sampling")
    wanted = controls.sampling.calls or sampler.calls_for(warm.combined_ns[0])
    (calls,) = world.from_first([wanted])
    series = SampleSeries()
    # What counts, all ranks know alike.
    while not series.valid_ns() and len(series) < _FIRST_TRIES:
        sampler.take(BlockShape(samples=1, calls=calls, lead_ns=lead_ns), series)
        lead_ns = min(_LEAD_GROWTH * lead_ns, _MOST_FIRST_TURN_LEAD_NS)
    valid = series.valid_ns()
    controls.report("sampling", len(valid), valid[0] * 1e-9 if valid else None, None)
    ended: Ended = "samples" if len(valid) >= controls.sampling.max_samples else "time"
    return Sampled(series=series, calls_per_sample=calls, warmup_calls=1, warmup_stable=False, ended=ended)


def _samples(world: World, heart: Heart, sampler: Sampler, controls: Controls) -> Sampled:
    """Warm up, then sample until the point is known well enough or the share is used."""
    heart.enter("warming up")
    warm, shape, stable = _warm_up(world, heart, sampler, controls)
    heart.enter("sampling")
    series = SampleSeries()
    calls = controls.calls or controls.sampling.calls or sampler.calls_for(median(sorted(warm.combined_ns)))
    while True:
        latest = series if len(series) else warm
        left = controls.sampling.max_samples - len(controls.earlier_ns) - len(series)
        shape = BlockShape(
            samples=max(min(_block_samples(latest, calls, controls.budget), left), 1),
            calls=calls,
            lead_ns=_adapted_lead_ns(latest, shape, controls),
        )
        decision = _decide(heart, series, controls) if world.rank == 0 else _GO_ON
        decision, samples, calls, lead_ns = world.from_first([decision, shape.samples, calls, shape.lead_ns])
        if decision != _GO_ON:
            break
        shape = BlockShape(samples=samples, calls=calls, lead_ns=lead_ns)
        sampler.take(shape, series)
    return Sampled(
        series=series,
        calls_per_sample=calls,
        warmup_calls=len(warm),
        warmup_stable=stable,
        ended=_REASONS[decision],
    )


def _warm_up(world: World, heart: Heart, sampler: Sampler, controls: Controls) -> tuple[SampleSeries, BlockShape, bool]:
    """Take samples of one call each until their level stays, at most a quarter of the turn's time."""
    series = SampleSeries()
    first_lead_ns = _FIRST_LEAD_YIELDING_NS if controls.yields else _FIRST_LEAD_NS
    shape = BlockShape(samples=1, calls=1, lead_ns=first_lead_ns)
    ends_after_s = controls.budget.share_left_s * (1 - _WARMUP_SHARE)
    while True:
        sampler.take(shape, series)
        asked = controls.sampling.warmup_calls
        stable = is_stable(series.combined_ns) if asked is None else len(series) >= asked
        over = controls.budget.share_left_s < ends_after_s or len(series) >= _MOST_WARMUP_SAMPLES or heart.stop_asked
        shape = BlockShape(
            samples=min(2 * shape.samples, _block_samples(series, 1)),
            calls=1,
            lead_ns=_adapted_lead_ns(series, shape, controls),
        )
        go_on, stable_everywhere, samples, lead_ns = world.from_first(
            [int(not stable and not over), int(stable), shape.samples, shape.lead_ns]
        )
        shape = BlockShape(samples=samples, calls=1, lead_ns=lead_ns)
        controls.report("warming up", len(series), None, None)
        if not go_on:
            return series, shape, stable_everywhere != 0


def _block_samples(series: SampleSeries, calls: int, budget: Budget | None = None) -> int:
    # The mean, not the median: on a busy machine a few interruptions are most of the time a block takes.
    recent_ns = series.combined_ns[-_MOST_BLOCK_SAMPLES:]
    level_ns = max(sum(recent_ns) / len(recent_ns), 1.0)
    block_ns = _BLOCK_NS if budget is None else min(_BLOCK_NS, max(budget.share_left_s, 0.0) * 1e9)
    return min(max(int(block_ns / (level_ns * calls)), 1), _MOST_BLOCK_SAMPLES)


def _adapted_lead_ns(series: SampleSeries, shape: BlockShape, controls: Controls) -> int:
    """Announce starts earlier when ranks miss them, a little later when none did."""
    if controls.sampling.mode != "isolated":
        return shape.lead_ns
    recent = series.missed_anywhere[-shape.samples :]
    share = sum(recent) / max(len(recent), 1)
    if share > _MISSED_SHARE:
        return min(2 * shape.lead_ns, _MOST_LEAD_NS)
    if share == 0 and len(recent) >= 50:
        return max(shape.lead_ns * 4 // 5, _LEAST_LEAD_NS)
    return shape.lead_ns


def _decide(heart: Heart, series: SampleSeries, controls: Controls) -> int:
    """Return the number of the reason to end, or _GO_ON. Only rank 0 asks."""
    sampling, budget = controls.sampling, controls.budget
    valid = sorted([*controls.earlier_ns, *series.valid_ns()])
    half_width = relative_half_width(valid, sampling.confidence) if valid else None
    controls.report("sampling", len(valid), median(valid) * 1e-9 if valid else None, half_width)
    if heart.stop_asked:
        return _REASONS.index("stopped")
    narrow = half_width is not None and half_width <= sampling.half_width
    if (
        narrow
        and len(valid) >= sampling.min_samples
        and (len(valid) >= _TAIL_SAMPLES or budget.spent_share > _TAIL_SHARE)
    ):
        return _REASONS.index("interval")
    if len(controls.earlier_ns) + len(series) >= sampling.max_samples:
        return _REASONS.index("samples")
    # A turn that was begun is never for nothing.
    if budget.share_left_s <= 0 and len(series):
        return _REASONS.index("time")
    return _GO_ON
