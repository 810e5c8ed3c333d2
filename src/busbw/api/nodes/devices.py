"""GPUs and NICs of this host, screened one after the other: copies over PCIe, pairs of GPUs, NICs in loopback."""

import math
import tempfile
from collections.abc import Callable, Mapping

import msgspec

from busbw.base.errors import InputError
from busbw.base.text import counted
from busbw.check.loops import NicLoop, loops_of
from busbw.machine.capture import host as capture
from busbw.machine.capture.snapshot import network_ports
from busbw.machine.read.index import number
from busbw.machine.read.pci import shown_lanes, shown_speed
from busbw.model import codec
from busbw.model.check.screening import NodeReading, NotScreened, SlotLink
from busbw.model.host import Answer
from busbw.model.machine import MpiFamily
from busbw.model.run import Run

_DRIVER = "libcuda.so.1"
_GPU_PAIRS_BYTES = "64M"
_GPU_PAIRS_S = 20.0
# Beside the copies: the context of a GPU, its memory, a pattern written and read.
_CONTEXT_S = 5.0
# A run beside its measuring: Python, MPI or NCCL.
_RUN_S = 20.0
# Asks a program of ours: its words, what its environment has beside, and the longest it may take.
Ask = Callable[[tuple[str, ...], Mapping[str, str], float], Answer]


class Screened(msgspec.Struct, kw_only=True, frozen=True):
    """What one part came to."""

    readings: tuple[NodeReading, ...] = ()
    unscreened: tuple[NotScreened, ...] = ()
    # GPUs whose copies came back changed.
    changed: tuple[str, ...] = ()


class _LinkLine(msgspec.Struct, frozen=True):
    bus_id: str
    speed: str | None = None
    width: str | None = None
    most_speed: str | None = None
    most_width: str | None = None


class _GpuLine(msgspec.Struct, frozen=True):
    """What `busbw.rank.screening.host_links` prints of a GPU."""

    gpu: int
    bus_id: str
    intact: bool
    to_gpu: tuple[float, ...]
    from_gpu: tuple[float, ...]
    links: tuple[_LinkLine, ...]


def screen_pcie(ask: Ask, why: Callable[[Answer], str], seconds: float, left_s: float) -> Screened:
    """Copy between the host and each GPU, one after the other."""
    words = ("busbw.rank.screening.host_links", _DRIVER, f"{seconds:g}", f"{max(left_s - _CONTEXT_S, 1.0):g}")
    answer = ask(words, {}, math.inf)
    readings: list[NodeReading] = []
    changed: list[str] = []
    for line in answer.output.splitlines():
        try:
            gpu = msgspec.json.decode(line, type=_GpuLine)
        except msgspec.MsgspecError:
            continue
        name, way = f"GPU {gpu.gpu} ({gpu.bus_id})", tuple(_link(each) for each in gpu.links)
        readings += [
            NodeReading(measure="to_gpu", samples=gpu.to_gpu, partner=name, way=way),
            NodeReading(measure="from_gpu", samples=gpu.from_gpu, partner=name, way=way),
        ]
        changed += [] if gpu.intact else [name]
    unscreened: tuple[NotScreened, ...] = ()
    if answer.ended != "ok":
        is_absent = not readings and not capture.gpus_seen()
        because = "no GPU that the kernel shows" if is_absent else why(answer)
        unscreened = (NotScreened(part="pcie", because=because, absent=is_absent),)
    return Screened(readings=tuple(readings), unscreened=unscreened, changed=tuple(changed))


def _link(line: _LinkLine) -> SlotLink:
    return SlotLink(
        bus_id=line.bus_id, speed=shown_speed(line.speed), width=shown_lanes(number(line.width)),
        most_speed=shown_speed(line.most_speed), most_width=shown_lanes(number(line.most_width)),
    )  # fmt: skip


def screen_gpu_pairs(ask: Ask, why: Callable[[Answer], str], left_s: float) -> Screened:
    """Copy between each pair of the GPUs of this host, over NCCL."""
    count = capture.gpus_seen()
    if count < 2:
        there = "one GPU, and no pair" if count else "no GPU that the kernel shows"
        return Screened(unscreened=(NotScreened(part="gpus", because=there, absent=True),))
    words = (
        "sendrecv", "--backend", "nccl", "--pairs", "all", "-b", _GPU_PAIRS_BYTES, "-e", _GPU_PAIRS_BYTES,
    )  # fmt: skip
    found = _run(ask, why, words, {}, min(_GPU_PAIRS_S, left_s / 2))
    if isinstance(found, str):
        return Screened(unscreened=(NotScreened(part="gpus", because=found),))
    pairs = tuple(
        NodeReading(measure="gpu_pair", samples=(each.busbw_Bps,), partner=f"{each.pair[0]}-{each.pair[1]}")
        for each in found.measurements
        if each.pair is not None
    )
    unscreened = () if pairs else (NotScreened(part="gpus", because=found.verdict.sentence),)
    return Screened(readings=pairs, unscreened=unscreened)


def screen_nics(ask: Ask, why: Callable[[Answer], str], seconds: float, left_s: Callable[[], float]) -> Screened:
    """Send through each NIC that can be looped, from this node to itself; of the others say why not."""
    ports = network_ports()
    if not ports:
        absent = NotScreened(part="nics", because="no NIC that the kernel shows", absent=True)
        return Screened(unscreened=(absent,))
    readings: list[NodeReading] = []
    unscreened: list[NotScreened] = []
    for each in loops_of(ports, capture.gpu_nodes(), _mpi()):
        if not isinstance(each, NicLoop):
            unscreened.append(NotScreened(part="nics", because=f"{each.nic}: {each.because}", absent=each.absent))
            continue
        if left_s() < seconds + _RUN_S:
            unscreened.append(NotScreened(part="nics", because=f"{each.nic}: no time was left"))
            continue
        found = _run(ask, why, each.words, dict(each.environment), seconds)
        rates = tuple(one.busbw_Bps for one in found.measurements) if isinstance(found, Run) else ()
        if rates:
            readings.append(NodeReading(measure="nic", samples=rates, partner=each.nic))
        else:
            because = found if isinstance(found, str) else found.verdict.sentence
            unscreened.append(NotScreened(part="nics", because=f"{each.nic}: {because}"))
    return Screened(readings=tuple(readings), unscreened=_together(unscreened))


def _together(unscreened: list[NotScreened]) -> tuple[NotScreened, ...]:
    """Return NICs of which the same is said in one sentence."""
    by_words: dict[tuple[str, bool], list[str]] = {}
    for each in unscreened:
        nic, _, because = each.because.partition(": ")
        by_words.setdefault((because, each.absent), []).append(nic)
    return tuple(
        NotScreened(part="nics", because=f"{', '.join(nics[:8])}{_more(nics)}: {because}", absent=absent)
        for (because, absent), nics in by_words.items()
    )


def _more(nics: list[str]) -> str:
    return f" and {counted(len(nics) - 8, 'other')}" if len(nics) > 8 else ""


def _mpi() -> MpiFamily | None:
    try:
        return capture.mpi(None).family
    except InputError:
        return None


def _run(
    ask: Ask, why: Callable[[Answer], str], words: tuple[str, ...], environment: Mapping[str, str], seconds: float
) -> Run | str:
    """Return a run of busbw's own on this host, or why there is none."""
    with tempfile.TemporaryDirectory(prefix="busbw-check-") as folder:
        answer = ask(
            ("busbw", "run", *words, "--time-limit", f"{seconds:.1f}", "--out", f"{folder}/run", "--json"),
            environment, math.inf,
        )  # fmt: skip
    if not answer.output.startswith("{"):
        return why(answer)
    try:
        return codec.decode(answer.output.encode(), Run, where="busbw run")
    except InputError as error:
        return error.cause
