"""What a user asks to be measured, and how it is spelled: the one table of the options of `busbw run`.

A field is an option of the command by its `RunOption`. The command line and its help, docs/run-options.md, a
job's script and the command that measures a run again are all made from this table.
"""

import shlex
from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_type_hints

from busbw.base.collectives import Matrix
from busbw.base.errors import InputError
from busbw.base.units import short_size
from busbw.base.value import Value
from busbw.model.fabric import FabricAsked, command_words
from busbw.model.machine import Buffers
from busbw.model.train.replay import StepAsked

RuntimeName = Literal["apptainer", "singularity", "pyxis", "podman", "docker", "charliecloud"]


class Bind(Value, kw_only=True, frozen=True):
    """A path of the host that a container sees."""

    source: str
    # Inside; the same path where it is None.
    target: str | None = None
    read_only: bool = True
    # What it is for, in words; an error before the start names it where `source` is absent.
    why: str | None = None
    # Whether the container may start without it.
    optional: bool = False


class Container(Value, kw_only=True, frozen=True):
    """An image that every rank runs in."""

    runtime: RuntimeName
    # The runtime's program on the hosts, absolute or found on PATH there; "" for pyxis, which is part of srun.
    program: str
    image: str
    binds: tuple[Bind, ...] = ()
    # GPUs and their driver are to be seen inside.
    gpus: bool = False
    # Further words for the runtime, as they are.
    options: tuple[str, ...] = ()


# stream: calls back to back; isolated: each alone after an aligned start; graph: calls captured once and replayed;
# loaded: back to back while matrix products run beside them. The last two need a GPU.
Mode = Literal["stream", "isolated", "graph", "loaded"]
# What settings are to be good for.
Goal = Literal["bandwidth", "latency", "nvlink-check", "nic-check", "sharp", "training"]
Group = Literal["what", "sizes", "how", "where", "container", "batch", "output"]
# How the value of an option is written: as it stands, a number, seconds, a size, without any, once for each value, as a
# command line, a rank or `all`, or a number that is 0 for no.
Form = Literal["text", "number", "seconds", "size", "flag", "many", "command", "rank", "yes"]


@dataclass(frozen=True, slots=True)
class RunOption:
    """One option of `busbw run`: its names, what it takes, and where its help stands."""

    # With blanks between them.
    spelled: str
    group: Group
    help: str
    _: KW_ONLY
    form: Form = "text"
    metavar: str | None = None
    # (word, value): nothing but these words is taken; () where any is.
    choices: tuple[tuple[str, object], ...] = ()
    # (word, value): these words stand for something; any other word for itself.
    aliases: tuple[tuple[str, object], ...] = ()
    # Shown by --help-all only.
    rare: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Every name, such as `-d` and `--dtype`."""
        return tuple(self.spelled.split())

    @property
    def name(self) -> str:
        """The name that says most."""
        return max(self.names, key=len)

    def words(self, value: Any) -> tuple[str, ...]:  # noqa: ANN401 - the type is the form's
        """Return the words that ask for a value, such as `-b 64K`."""
        if self.form == "flag":
            return (self.name,)
        values = value if self.form == "many" else (value,)
        return tuple(word for each in values for word in self._pair(self._spelled(each)))

    def _pair(self, text: str) -> tuple[str, ...]:
        # Joined, a value may begin with a dash.
        return (f"{self.name}={text}",) if text.startswith("-") and self.name.startswith("--") else (self.name, text)

    def _spelled(self, value: Any) -> str:  # noqa: ANN401 - the type is the form's
        for word, meant in (*self.choices, *self.aliases):
            if meant == value:
                return word
        if self.form == "seconds":
            return f"{value:g}"
        if self.form == "size":
            return short_size(value)
        if self.form == "command":
            return shlex.join(value)
        return str(int(value)) if self.form == "yes" else str(value)


def _same(*words: str) -> tuple[tuple[str, str], ...]:
    return tuple((word, word) for word in words)


class Request(Value, kw_only=True, frozen=True, omit_defaults=True):
    """A measurement as asked for. None: busbw chooses, and the plan says what. What is usual is not stored."""

    # By nccl-tests' names; the arguments of the command.
    collectives: tuple[str, ...] = ()
    suite: Annotated[
        str | None,
        RunOption(
            "--suite", "what", "six: the six collectives of the pinning studies; p2p: point to point.", metavar="NAME"
        ),
    ] = None
    backend: Annotated[
        str,
        RunOption(
            "--backend",
            "what",
            "mpi, nccl: busbw's own loops; nccl-tests, osu: your binaries.",
            metavar="NAME",
            aliases=(("mpi", "native-mpi"), ("nccl", "native-nccl")),
        ),
    ] = "native-mpi"
    # Several separated by commas, or "all".
    dtype: Annotated[str, RunOption("-d --dtype", "what", "Data types, separated by commas, or all.")] = "float32"
    op: Annotated[
        str,
        RunOption("--op", "what", "Operations of reductions: sum, prod, min, max; NCCL: avg, mulsum; or all."),
    ] = "sum"
    # None: every rank in turn.
    root: Annotated[
        int | None,
        RunOption(
            "-r --root", "what", "Root of rooted collectives, or all.", form="rank", aliases=(("all", None),), rare=True
        ),
    ] = 0
    placement: Annotated[
        str,
        RunOption("--in-place", "what", "Measure out of place, in place, or both.", choices=_same("out", "in", "both")),
    ] = "out"
    pairs: Annotated[
        str | None,
        RunOption(
            "--pairs", "what", "sendrecv between two ranks at a time: all, rail, cross, or 0-1,2-3.", metavar="PAIRS"
        ),
    ] = None
    # Ranks of one node for the two-level alltoall.
    group: Annotated[
        int | None,
        RunOption(
            "--group",
            "what",
            "Ranks of one node, for alltoall_2dh and --pairs rail.",
            form="number",
            metavar="N",
            rare=True,
        ),
    ] = None
    # A file of bytes from each rank to each, for an alltoallv; None: nccl-tests' pattern.
    matrix_file: Annotated[
        str | None,
        RunOption("--matrix", "what", "alltoallv: bytes from each rank to each.", metavar="FILE", rare=True),
    ] = None
    # What that file holds.
    matrix: Matrix | None = None
    # A sweep over the pairs of a fabric, the step of a training job; None: collectives.
    fabric: FabricAsked | None = None
    step: StepAsked | None = None

    smallest_bytes: Annotated[int | None, RunOption("-b", "sizes", "Smallest size [default: 8].", form="size")] = None
    largest_bytes: Annotated[
        int | None,
        RunOption(
            "-e",
            "sizes",
            "Largest size [default: 64M; 16M for several collectives, 2M with windows; NCCL 1G].",
            form="size",
        ),
    ] = None
    # Sizes grow by this factor, or by this many bytes; one of the two.
    factor: Annotated[
        int | None,
        RunOption(
            "-f",
            "sizes",
            "Sizes grow by this factor [default: 2; 8 for several collectives].",
            form="number",
            metavar="FACTOR",
        ),
    ] = None
    step_bytes: Annotated[
        int | None, RunOption("-i", "sizes", "Sizes grow by this many bytes instead.", form="size")
    ] = None
    # Parts of a split collective are whole elements, not multiples of 16 bytes.
    unaligned: Annotated[
        bool,
        RunOption(
            "--unaligned",
            "sizes",
            "Parts of a size that is split are whole elements, not multiples of 16 bytes.",
            form="flag",
            rare=True,
        ),
    ] = False

    # None: isolated over MPI, stream over NCCL, as nccl-tests.
    mode: Annotated[
        Mode | None,
        RunOption(
            "--mode",
            "how",
            "isolated: each call alone after an aligned start; stream: back to back, as nccl-tests; graph: "
            "captured and replayed; loaded: beside matrix products [default: isolated over MPI, stream over NCCL].",
            choices=_same("isolated", "stream", "graph", "loaded"),
        ),
    ] = None
    # As nccl-tests' -G; 0 without graphs.
    graphs: Annotated[
        int,
        RunOption(
            "-G --graph", "how", "As nccl-tests: more than 0 is --mode graph.", form="number", metavar="N", rare=True
        ),
    ] = 0
    time_limit_s: Annotated[
        float, RunOption("--time-limit", "how", "Of measuring.", form="seconds", metavar="SECONDS")
    ] = 50.0
    min_samples: Annotated[int, RunOption("--min-samples", "how", "Samples of each size at least.", form="number")] = 30
    max_samples: Annotated[int, RunOption("--max-samples", "how", "Samples of each size at most.", form="number")] = (
        20_000
    )
    # Calls of one stream, graph or loaded sample, and calls before the first.
    calls: Annotated[
        int | None,
        RunOption(
            "--calls", "how", "Calls of one stream, graph or loaded sample [default: 20].", form="number", metavar="N"
        ),
    ] = None
    warmup_calls: Annotated[
        int | None,
        RunOption(
            "-w --warmup", "how", "Calls before the first sample [default: until stable].", form="number", metavar="N"
        ),
    ] = None
    verify: Annotated[bool, RunOption("-c --check", "how", "0: do not verify results.", form="yes", metavar="N")] = True
    launches: Annotated[
        int | None,
        RunOption(
            "--launches",
            "how",
            "Starts: of each program [nccl-tests, osu: 6; 1 if one has all samples], over NCCL for small sizes [1].",
            form="number",
            metavar="N",
        ),
    ] = None
    buffers: Annotated[
        Buffers,
        RunOption(
            "-R --register",
            "how",
            "NCCL: buffers that are 0 plain, 1 registered, 2 symmetric windows.",
            choices=(("0", "plain"), ("1", "registered"), ("2", "symmetric")),
        ),
    ] = "plain"
    # None: from NCCL where it can.
    memory: Annotated[
        Literal["nccl", "cuda"] | None,
        RunOption(
            "--memory",
            "how",
            "NCCL: buffers from ncclMemAlloc [default, since 2.19] or cuMemAlloc.",
            choices=_same("nccl", "cuda"),
            rare=True,
        ),
    ] = None
    cache: Annotated[
        Literal["cold", "warm"],
        RunOption(
            "--cache",
            "how",
            "NCCL: cold: calls move through more memory than the GPU's L2 cache holds.",
            choices=_same("cold", "warm"),
            rare=True,
        ),
    ] = "cold"
    # NAME=VALUE of ncclConfig_t.
    config: Annotated[
        tuple[str, ...],
        RunOption(
            "--config",
            "how",
            "NCCL: a field of ncclConfig_t, such as CTAPolicy=2.",
            form="many",
            metavar="NAME=VALUE",
            rare=True,
        ),
    ] = ()
    multicast_off: Annotated[
        bool,
        RunOption("--no-multicast", "how", "NCCL: keep NVLink multicast (NVLS) off, in every rank.", form="flag"),
    ] = False
    # None: with the settings that are there.
    goal: Annotated[
        Goal | None,
        RunOption(
            "--goal",
            "how",
            "Apply what is recommended on this platform, where it is not set yet: settings for bandwidth, latency, "
            "nic-check, nvlink-check, sharp or training.",
            choices=_same(*get_args(Goal)),
        ),
    ] = None
    load_side: Annotated[
        int,
        RunOption("--load-side", "how", "NCCL: matrices of --mode loaded are n x n.", form="number", rare=True),
    ] = 2048
    # mpi, osu: whether buffers are on GPUs.
    gpu_buffers: Annotated[
        bool, RunOption("--gpu-buffers", "how", "mpi, osu: buffers on GPUs.", form="flag", rare=True)
    ] = False
    stall_s: Annotated[
        float,
        RunOption(
            "--stall-timeout",
            "how",
            "End the run when no rank makes progress for this long.",
            form="seconds",
            metavar="SECONDS",
            rare=True,
        ),
    ] = 60.0

    ranks: Annotated[
        int | None,
        RunOption(
            "--ranks --np", "where", "Ranks [default: the cores, at most 8; all GPUs].", form="number", metavar="RANKS"
        ),
    ] = None
    # A host file, or a list such as n[0-3]; and how many hosts of an allocation. None for both: this host alone.
    hosts: Annotated[
        str | None,
        RunOption(
            "--hosts",
            "where",
            "Measure over these hosts: a host file, or a list such as n[0-3],n7 [default: this host].",
            metavar="FILE|LIST",
        ),
    ] = None
    nodes: Annotated[
        int | None,
        RunOption(
            "--nodes", "where", "Measure over so many hosts of the allocation busbw is in.", form="number", metavar="N"
        ),
    ] = None
    ranks_per_node: Annotated[
        int | None,
        RunOption("--ranks-per-node", "where", "Ranks on each of several hosts.", form="number", metavar="N"),
    ] = None
    gpus_per_process: Annotated[
        int, RunOption("-g --gpus", "where", "GPUs that each process drives.", form="number")
    ] = 1
    # None: a core for each rank over MPI, none over NCCL.
    binding: Annotated[
        str | None,
        RunOption(
            "--bind-to",
            "where",
            "CPUs of each rank: a core, a NUMA node, those beside its GPU (see topo masks), any, or what the launcher "
            "gives it unasked: default [default: core over MPI, none over NCCL].",
            choices=_same("core", "numa", "masks", "none", "default"),
        ),
    ] = None
    # Of each rank of a host, in their order; () where its topology says.
    cpus: Annotated[
        tuple[str, ...],
        RunOption(
            "--cpus",
            "where",
            "CPUs of a rank for --bind-to masks, such as 0-11,24: once for each rank of a host, in their order.",
            form="many",
            metavar="LIST",
            rare=True,
        ),
    ] = ()
    # None: what fits.
    launcher: Annotated[
        str | None,
        RunOption(
            "--launcher",
            "where",
            "auto, mpirun, srun, sbatch, flux, jsrun, aprun, mpirun_rsh; without MPI: processes, torchrun, and "
            "direct for nccl-tests [default: auto].",
            metavar="NAME",
            aliases=(("auto", None),),
        ),
    ] = None
    # Further words for the launcher.
    launcher_options: Annotated[
        tuple[str, ...],
        RunOption("--launcher-option", "where", "One word more for it.", form="many", metavar="WORD", rare=True),
    ] = ()
    mpirun: Annotated[
        str | None,
        RunOption("--mpirun", "where", "The mpirun to use [default: the site's, else the wheel's].", metavar="PROGRAM"),
    ] = None
    # The network interface that hosts meet over; None: the launcher and MPI choose.
    interface: Annotated[
        str | None,
        RunOption(
            "--interface",
            "where",
            "The network interface that hosts meet over, such as eth0.",
            metavar="NAME",
            rare=True,
        ),
    ] = None
    # Measure hosts together that do not run the same.
    allow_mixed: Annotated[
        bool,
        RunOption(
            "--allow-mixed",
            "where",
            "Measure hosts together that do not run the same, and say so.",
            form="flag",
            rare=True,
        ),
    ] = False
    # What mpirun reaches other hosts with; (): its default.
    remote_shell: Annotated[
        tuple[str, ...],
        RunOption(
            "--remote-shell",
            "where",
            "What mpirun reaches other hosts with [default: ssh].",
            form="command",
            metavar="COMMAND",
            rare=True,
        ),
    ] = ()
    # nccl-tests and osu: where their programs are.
    programs: Annotated[
        str | None,
        RunOption("--bin", "where", "nccl-tests, osu: a program, or a folder of them [default: PATH].", metavar="PATH"),
    ] = None
    nccl: Annotated[
        str | None,
        RunOption(
            "--nccl", "where", "The libnccl.so.2 to measure [default: LD_LIBRARY_PATH, wheel, system].", metavar="FILE"
        ),
    ] = None
    driver: Annotated[
        str | None,
        RunOption("--driver", "where", "The libcuda.so.1 to use.", metavar="FILE", rare=True),
    ] = None
    nvrtc: Annotated[
        str | None,
        RunOption("--nvrtc", "where", "The libnvrtc.so to use; none: the host checks.", metavar="FILE", rare=True),
    ] = None
    # The platform it is measured on; None: it is recognised, or not known.
    platform: Annotated[
        str | None,
        RunOption(
            "--platform", "where", "The platform it runs on [default: recognised, where it can be].", metavar="ID"
        ),
    ] = None

    # What every rank runs in; None: nothing.
    runtime: Annotated[
        RuntimeName | None,
        RunOption(
            "--container",
            "container",
            "Run every rank in a container; the launcher stays outside.",
            choices=_same(*get_args(RuntimeName)),
        ),
    ] = None
    image: Annotated[
        str | None,
        RunOption(
            "--image", "container", "The image: a file, a folder or a name, as the runtime takes it.", metavar="IMAGE"
        ),
    ] = None
    mounts: Annotated[
        tuple[str, ...],
        RunOption(
            "--mount",
            "container",
            "A path of the host to be seen inside.",
            form="many",
            metavar="SOURCE[:TARGET[:rw]]",
            rare=True,
        ),
    ] = ()
    container_options: Annotated[
        tuple[str, ...],
        RunOption("--container-option", "container", "One word more for it.", form="many", metavar="WORD", rare=True),
    ] = ()
    # The Python in its image that has busbw.
    image_python: Annotated[
        str,
        RunOption("--image-python", "container", "The Python inside that has busbw.", metavar="PROGRAM", rare=True),
    ] = "python3"

    tag: Annotated[str | None, RunOption("--tag", "output", "A word to find this run by later.")] = None

    @property
    def container(self) -> Container | None:
        """What every rank runs in, its program not yet looked for. Raises InputError."""
        return container_of(
            self.runtime, self.image, self.mounts, self.container_options, gpus=self.backend == "native-nccl"
        )


def container_of(
    runtime: RuntimeName | None, image: str | None, mounts: tuple[str, ...], options: tuple[str, ...], *, gpus: bool
) -> Container | None:
    """Return what the options name, its program not yet looked for; None for none of them. Raises InputError."""
    if runtime is None:
        if image is not None or mounts or options:
            raise InputError("an image needs a runtime", hint="--container apptainer, podman, ...")
        return None
    if image is None:
        raise InputError("no image is named", where=f"--container {runtime}", hint="--image FILE")
    return Container(
        runtime=runtime,
        program="",
        image=image,
        binds=tuple(_bind(text) for text in mounts),
        gpus=gpus,
        options=options,
    )


def _bind(text: str) -> Bind:
    source, *rest = text.split(":")
    if not source or len(rest) > 2 or (len(rest) == 2 and rest[1] not in ("rw", "ro")):
        raise InputError(f"{text[:80]!r} is not a mount", where="--mount", hint="--mount /data:/data:rw")
    return Bind(source=source, target=rest[0] if rest and rest[0] else None, read_only=len(rest) < 2 or rest[1] == "ro")


@cache
def options() -> Mapping[str, RunOption]:
    """Return the options of `busbw run` that a request keeps, by field, in the order of its help."""
    hints = get_type_hints(Request, include_extras=True)
    return {
        field: option
        for field in Request.__struct_fields__
        for option in getattr(hints[field], "__metadata__", ())
        if isinstance(option, RunOption)
    }


def defaults() -> Mapping[str, Any]:
    """Return what each option is where it is not given, by field."""
    usual = Request()
    return {field: getattr(usual, field) for field in options()}


def words_of(request: Request, left_out: Collection[str] = ()) -> tuple[tuple[str, ...], ...]:
    """Return the options that ask for a request, each with its value, but for the fields that are left out."""
    usual = defaults()
    return tuple(
        option.words(getattr(request, field))
        for field, option in options().items()
        if field not in left_out and getattr(request, field) != usual[field]
    )


def command_of(request: Request) -> tuple[str, ...]:
    """Return the `busbw run`, `busbw fabric` or `busbw train run` command that asks for a request, word for word."""
    if request.fabric is not None:
        words = words_of(request, _OF_THE_SWEEP)
        return (*command_words(request.fabric), *(word for each in words for word in each))
    if request.step is not None:
        words = (request.step.words(), *words_of(request, _OF_THE_STEP))
        return ("busbw", "train", "run", *(word for each in words for word in each))
    return ("busbw", "run", *request.collectives, *(word for words in words_of(request) for word in words))


# What `busbw fabric` and `busbw train run` decide themselves.
_OF_THE_SWEEP = frozenset({"smallest_bytes", "largest_bytes", "time_limit_s", "verify", "ranks_per_node", "binding"})
_OF_THE_STEP = frozenset({"smallest_bytes", "largest_bytes", "factor", "mode"})
