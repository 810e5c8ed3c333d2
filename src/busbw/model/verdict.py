"""Measured sizes with the explanation of each, and the answer they give together."""

from busbw.base.value import Integer, Value
from busbw.model.budget import SizeExplanation
from busbw.model.curve import SweepCurve
from busbw.model.finding import Finding, Verdict
from busbw.model.gates import GateAnswers

EXPLAINED_SCHEMA = 1


class SeriesExplanation(Value, kw_only=True, frozen=True):
    """One collective over its sizes: one sweep of a run, or one table of an import."""

    title: str
    collective: str
    dtype: str | None = None
    op: str | None = None
    in_place: bool | None = None
    ranks: Integer
    # Nodes and GPUs of each. None: not known.
    nodes: Integer | None = None
    gpus_per_node: Integer | None = None
    # "nccl" or "mpi"; what was counted as time, in words.
    library: str | None = None
    statistic: str | None = None
    # Of an import the number of its table.
    table: Integer | None = None
    # Settings that decide which expectations apply, as far as they are known: (NVLS, off), (network, TCP).
    settings: tuple[tuple[str, str], ...] = ()
    curve: SweepCurve
    sizes: tuple[SizeExplanation, ...]
    verdict: Verdict
    next_step: str | None = None


class ExplainedVerdict(Value, kw_only=True, frozen=True):
    """Everything that was judged at once."""

    schema: Integer = EXPLAINED_SCHEMA
    # What was judged: a run's name, the names of files.
    subject: str
    # The machine it was held against, and where its rates come from; None and () where nothing is known of it.
    machine: str | None = None
    grounds: tuple[str, ...] = ()
    series: tuple[SeriesExplanation, ...] = ()
    # What was seen of single GPUs or pairs, of the whole, and of published figures that cannot be right.
    findings: tuple[Finding, ...] = ()
    # Sizes, tables and readings that were not judged, with the reason.
    left_out: tuple[str, ...] = ()
    verdict: Verdict
    next_steps: tuple[str, ...] = ()
    # What gates came to that were given; None: there were none.
    gates: GateAnswers | None = None
