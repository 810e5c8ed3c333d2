"""A training workload: the model, the configurations somebody has published of it, and where each is from."""

from typing import Annotated, Literal

import msgspec

from busbw.base.value import Value

DataType = Literal["bf16", "fp16", "fp32", "fp8"]
# What a framework overlaps with computing: tensor-parallel collectives, pipeline transfers, gradients and weights.
Overlap = Literal["tp", "pp", "dp"]
Recompute = Literal["none", "selective", "full"]
# 1: the optimizer's state is split over data parallelism; 2: gradients too; 3: weights too (FSDP).
ZeroStage = Literal[0, 1, 2, 3]

Count = Annotated[int, msgspec.Meta(ge=1, le=2**40)]
# Of layers, experts and the like, where none is an answer.
Several = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
# Layers are walked through one by one.
Layers = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
# A number of ranks along one dimension.
Degree = Annotated[int, msgspec.Meta(ge=1, le=2**20)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,59}$")]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]


class LatentAttention(Value, kw_only=True, frozen=True):
    """Attention through compressed queries, keys and values (DeepSeek-V2's MLA); widths in elements."""

    query_rank: Count
    key_value_rank: Count
    # Of one head: the part without position, the part with it, and the value.
    plain_width: Count
    rotary_width: Count
    value_width: Count


class Experts(Value, kw_only=True, frozen=True):
    """The experts of a layer."""

    number: Count
    # Of them each token goes to so many.
    top_k: Count
    # Width of one expert's hidden layer, and of those that every token passes, all together.
    ffn: Count
    shared_ffn: Several = 0
    # The first layers that have one dense block in place of experts.
    dense_layers: Several = 0
    # Whether the ranks of tensor parallelism share each expert (Megatron's expert tensor parallelism).
    tensor_parallel: bool = True


class ModelShape(Value, kw_only=True, frozen=True):
    """A decoder-only transformer."""

    layers: Layers
    hidden: Count
    heads: Count
    # Groups of keys and values (grouped-query attention).
    key_value_heads: Count
    # None: hidden over heads.
    head_width: Count | None = None
    # Of the dense block; experts have widths of their own.
    ffn: Count
    # Whether the block has a gate, and so three matrices (SwiGLU, GeGLU).
    gated: bool = True
    vocabulary: Count
    # Whether the head is the embedding's matrix.
    tied: bool = False
    experts: Experts | None = None
    latent: LatentAttention | None = None


class Parallelism(Value, kw_only=True, frozen=True):
    """How many ranks share what."""

    tp: Degree = 1
    pp: Degree = 1
    cp: Degree = 1
    # Experts are spread over so many ranks of data parallelism, as Megatron counts.
    ep: Degree = 1
    # Chunks of layers that each pipeline stage has in turn (virtual pipeline).
    vp: Degree = 1
    sequence_parallel: bool = False
    zero: ZeroStage = 0
    # Layers of each stage, where they are not dealt evenly; with it vp is 1.
    stage_layers: tuple[Layers, ...] = ()
    overlap: tuple[Overlap, ...] = ()
    recompute: Recompute = "selective"
    # Of one element of a gradient as it is reduced.
    gradient_bytes: Literal[2, 4] = 4


class Printed(Value, kw_only=True, frozen=True):
    """What the source prints of a configuration that follows from the rest, so that it can be held against it."""

    dp: Degree | None = None
    accumulation: Count | None = None


class Configuration(Value, kw_only=True, frozen=True):
    """One way to train the model, on so many GPUs."""

    gpus: Degree
    # None: as many as the model has; less of them is a proxy.
    layers: Layers | None = None
    sequence: Count
    micro_batch: Count
    global_batch: Count
    parallelism: Parallelism
    printed: Printed | None = None
    source: tuple[Name, ...] = ()


class WorkloadSource(Value, kw_only=True, frozen=True):
    """Where values are from."""

    id: Name
    words: Words
    # Day or month of the last look, as 2026-11.
    checked: Annotated[str, msgspec.Meta(max_length=10)]


class PrintedWords(Value, kw_only=True, frozen=True):
    """A column of a source, and how the source glosses it where that misleads."""

    column: Literal["cp", "dp", "ep", "vp"]
    said: Words
    means: Words
    source: Name


class PublishedStep(Value, kw_only=True, frozen=True):
    """A step's time as somebody published it."""

    gpus: Degree
    dtype: DataType
    step_s: Annotated[float, msgspec.Meta(gt=0, le=1e6)]
    # The platform's id, and the machine in words.
    platform: Name
    machine: Words
    source: Name
    # Whether the constant of the step's model is fitted on it: one row of each data type.
    fitted: bool = False
    # What it used where that is not the workload's own configuration of so many GPUs.
    configuration: Configuration | None = None


class PublishedLaunch(Value, kw_only=True, frozen=True):
    """How the source starts it. `{stage}`, `{directory}`, `{dtype}`, `{fp8}` and `{gpus}` differ from job to job."""

    program: tuple[Words, ...]
    container: Literal["pyxis", "apptainer"] | None = None
    image: Words | None = None
    mounts: tuple[Words, ...] = ()
    container_options: tuple[Words, ...] = ()
    # Directives for sbatch.
    batch_options: tuple[Words, ...] = ()
    time_s: Count | None = None
    # What the program's own scripts read.
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    source: Name


class Workload(Value, kw_only=True, frozen=True):
    """A model with its configurations."""

    id: Name
    title: Words
    model: ModelShape
    dtypes: tuple[DataType, ...]
    configuration: tuple[Configuration, ...]
    source: tuple[WorkloadSource, ...] = ()
    note: tuple[Words, ...] = ()
    printed_words: tuple[PrintedWords, ...] = ()
    published: tuple[PublishedStep, ...] = ()
    launch: PublishedLaunch | None = None
