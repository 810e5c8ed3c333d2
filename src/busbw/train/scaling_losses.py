"""What a loss of efficiency is made of, where each job says how much of a step it waits for communication.

The work of one GPU is what a token costs: GPU-seconds a token = seconds of a step x GPUs / tokens of a step. What it
grows by against the base is split into communication that nothing hides and everything else. Alone because `scaling` is
of printed numbers and what they are worth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from busbw.judge.scaling.places import workers
from busbw.model.scaling import Axis, ScalingEstimate, ScalingLoss

# Below it of the base's time nothing is said to be lost.
_LEAST = 0.005
# Of what communication adds, the collectives that are named.
_MOST_PARTS = 3
_LEAST_PART = 0.0005


@dataclass(frozen=True, kw_only=True, slots=True)
class CostOfJob:
    """One job: the line it stands on, its place, and what a token costs; `exposed` is a share of a step."""

    line: str
    at: int
    gpus: int
    tokens: int
    step_s: float
    exposed: ScalingEstimate
    # Of it, what each collective exposes; (): not told.
    parts: tuple[tuple[str, float], ...] = ()

    @property
    def token_s(self) -> float:
        """GPU-seconds a token."""
        return self.step_s * self.gpus / self.tokens


def scaling_losses(jobs: Sequence[CostOfJob], bases: dict[str, int], axis: Axis) -> tuple[ScalingLoss, ...]:
    """Return what each job loses against the base of its line. `bases`: the place of each line's base."""
    first = {job.line: job for job in jobs if job.at == bases.get(job.line)}
    return tuple(
        _loss(first[job.line], job, axis) for job in jobs if job.line in first and job.at != first[job.line].at
    )


def _loss(base: CostOfJob, job: CostOfJob, axis: Axis) -> ScalingLoss:
    more = job.token_s / base.token_s - 1
    waited = (job.token_s * job.exposed.value - base.token_s * base.exposed.value) / base.token_s
    parts = _parts(base, job)
    there = workers(job.at, axis)
    name = f"{job.line}: " if job.line else ""
    shares = f"exposed communication is {100 * base.exposed.value:.1f} % of a step on {base.at} and "
    shares += f"{100 * job.exposed.value:.1f} % on {job.at}"
    if abs(more) < _LEAST:
        words = f"{name}a token costs as much GPU time on {there} as on {base.at}; {shares}"
    else:
        words = (
            f"{name}a token costs {100 * more:+.1f} % GPU time on {there} against {base.at}: {100 * waited:+.1f} % "
            f"exposed communication{_parts_words(parts)}, {100 * (more - waited):+.1f} % everything else; {shares}"
        )
    return ScalingLoss(
        line=job.line, at=job.at, base=base.at, more=more, communication=waited, rest=more - waited, parts=parts,
        words=words,
    )  # fmt: skip


def _parts(base: CostOfJob, job: CostOfJob) -> tuple[tuple[str, float], ...]:
    """Return by how much each collective makes a token dearer, the largest change first; () where a job is silent."""
    if not base.parts or not job.parts:
        return ()
    before, after = dict(base.parts), dict(job.parts)
    grown = {
        name: (job.token_s * after.get(name, 0.0) - base.token_s * before.get(name, 0.0)) / base.token_s
        for name in (*before, *after)
    }
    return tuple(sorted(grown.items(), key=lambda each: -abs(each[1])))


def _parts_words(parts: Sequence[tuple[str, float]]) -> str:
    named = [f"{name} {100 * share:+.1f} %" for name, share in parts[:_MOST_PARTS] if abs(share) >= _LEAST_PART]
    return f" ({', '.join(named)})" if named else ""
