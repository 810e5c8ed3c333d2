"""What a trace or the records of NCCL say of communication: how much of a step it takes, and how much is exposed."""

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding
from busbw.model.scaling import ScalingEstimate
from busbw.model.train.reading import TrainingLog

TRAIN_READ_SCHEMA = 1


class GroupShare(Value, kw_only=True, frozen=True):
    """The communication of one process group, and what of it nothing computes beside. Seconds a step, of one GPU.

    Groups run beside each other: what two of them expose at once counts in both.
    """

    # "2 (TP), 8 ranks"; "not told" where the trace names no groups.
    group: str
    collectives: tuple[tuple[str, Integer], ...]
    kernels: Integer
    busy_s: float
    exposed_s: float


class TraceStep(Value, kw_only=True, frozen=True):
    """One step of a trace on one GPU."""

    number: Integer
    time_s: float
    compute_s: float
    communication_s: float
    exposed_s: float


class TraceShare(Value, kw_only=True, frozen=True):
    """One trace: its steps, and the shares of the step in the middle by exposed share. Times are of kernels on the GPU.

    Of two steps in the middle it is the mean. Communication is what is exposed and what is hidden; compute, what is
    exposed and idle make the step.
    """

    source: str
    rank: Integer | None = None
    gpus: Integer | None = None
    steps: tuple[TraceStep, ...]
    # Whether the trace marks steps; else all of it is one.
    has_steps: bool
    step_s: ScalingEstimate
    communication: float
    exposed: float
    hidden: float
    compute: float
    # Neither kernel runs: the GPU waits for the host, input, or memory copies.
    idle: float
    groups: tuple[GroupShare, ...]
    kernels: Integer
    bytes_read: Integer
    sentence: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


class RecordShare(Value, kw_only=True, frozen=True):
    """One collective of one communicator in records of NCCL Inspector: times and bus bandwidth over its records."""

    communicator: str
    collective: str
    size_bytes: Integer
    ranks: Integer
    records: Integer
    time_s: float
    median_s: float
    busbw_Bps: float | None = None


class InspectorLog(Value, kw_only=True, frozen=True):
    """Records of NCCL Inspector: what each collective took. They do not say what ran beside it."""

    source: str
    records: Integer
    recording_ranks: Integer
    shares: tuple[RecordShare, ...]
    garbled: Integer
    bytes_read: Integer
    sentence: str
    notes: tuple[str, ...] = ()


class TrainReadReport(Value, kw_only=True, frozen=True):
    """What `busbw train read` answers: of logs steps and throughput, of traces and records communication."""

    schema: Integer = TRAIN_READ_SCHEMA
    logs: tuple[TrainingLog, ...] = ()
    traces: tuple[TraceShare, ...] = ()
    records: tuple[InspectorLog, ...] = ()
