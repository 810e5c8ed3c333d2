"""What a bisection asked and was answered, in words; for a terminal and a page alike."""

from busbw.model.bisection import Answer, BisectionStep
from busbw.model.comparison import Estimate

ANSWERS: dict[Answer, str] = {"shows": "does it", "absent": "does not", "unclear": "unclear"}


def asked_words(step: BisectionStep) -> str:
    """Return which items a question was about, by their numbers from 1: `1+3`."""
    return "+".join(str(item + 1) for item in step.items)


def estimate_words(estimate: Estimate) -> str:
    """Return a difference with its interval and what it rests on."""
    change = f"gain {100 * (estimate.ratio - 1):+.1f} %"
    if estimate.low is None or estimate.high is None:
        return f"{change} ({len(estimate.blocks)} blocks)"
    low, high = 100 * (estimate.low - 1), 100 * (estimate.high - 1)
    return f"{change} ({low:+.1f} to {high:+.1f}, {len(estimate.blocks)} blocks)"
