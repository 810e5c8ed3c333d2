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


@dataclass(frozen=True, kw_only=True, slots=True)
class CostOfJob:
    """One job: the line it stands on, its place, and what a token costs; `exposed` is a share of a step."""

    line: str
    at: int
    gpus: int
    tokens: int
    step_s: float
    exposed: ScalingEstimate

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
    there = workers(job.at, axis)
    name = f"{job.line}: " if job.line else ""
    shares = f"exposed communication is {100 * base.exposed.value:.1f} % of a step on {base.at} and "
    shares += f"{100 * job.exposed.value:.1f} % on {job.at}"
    if abs(more) < _LEAST:
        words = f"{name}a token costs as much GPU time on {there} as on {base.at}; {shares}"
    else:
        words = (
            f"{name}a token costs {100 * more:+.1f} % GPU time on {there} against {base.at}: {100 * waited:+.1f} % "
            f"exposed communication, {100 * (more - waited):+.1f} % everything else; {shares}"
        )
    return ScalingLoss(
        line=job.line, at=job.at, base=base.at, more=more, communication=waited, rest=more - waited, words=words
    )
