"""Judging: measurements held against what the machine could do, and the answer in one sentence. Pure."""

from busbw.judge.verdict import Judgement, judge

__all__ = ["Judgement", "judge"]
