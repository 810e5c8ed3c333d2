"""What is measured of a node, in words: names, units, the one value that counts, and a finding about it."""

from collections.abc import Sequence
from statistics import median

import msgspec

from busbw.base.text import counted
from busbw.base.units import format_rate
from busbw.check.profiles import NodeThreshold
from busbw.facts.rules import finding
from busbw.model.check.screening import Measure, NodeReading, ScreenedNode
from busbw.model.finding import Confidence, Finding

MEASURES: dict[Measure, str] = {
    "memory_copy": "copying memory on all cores",
    "noise": "time lost to noise",
    "send": "sending",
    "receive": "receiving",
    "to_gpu": "copying to",
    "from_gpu": "copying from",
    "gpu_pair": "copying between GPUs",
    "nic": "sending through",
}
# Measures with a value for each part of a node, which each is held against what is asked for.
OF_PARTS: tuple[Measure, ...] = ("to_gpu", "from_gpu", "nic")
# Those of which the slowest counts: every pair, GPU and NIC has to be sound.
_SLOWEST = ("gpu_pair", *OF_PARTS)
_IN_BITS = ("send", "receive", "nic")


_PARTS: dict[Measure, str] = {"to_gpu": "GPU", "from_gpu": "GPU", "nic": "NIC"}


def measure_words(measure: Measure, part: str | None = None) -> str:
    """Return what a measure is about. `part`: the GPU or NIC; None: the whole node, of which the slowest one counts."""
    if measure not in OF_PARTS:
        return MEASURES[measure]
    return f"{MEASURES[measure]} {part or f'its slowest {_PARTS[measure]}'}"


def values_of(readings: Sequence[NodeReading]) -> dict[Measure, float]:
    """Return the one value of each measure that a node is judged by: the best sample, of noise the median of CPUs.

    The best, because everything else that happens on a node makes a sample worse and nothing makes it better. Of
    several partners the best one, of pairs of GPUs, GPUs and NICs the slowest.
    """
    found: dict[Measure, float] = {}
    for each in readings:
        if not each.samples:
            continue
        value = median(each.samples) if each.measure == "noise" else max(each.samples)
        if each.measure in found:
            value = min(found[each.measure], value) if each.measure in _SLOWEST else max(found[each.measure], value)
        found[each.measure] = value
    return found


def words_of(measure: Measure, value: float) -> str:
    """Return a value of a measure in its unit: what crosses a network in bits, as links are sold."""
    if measure == "noise":
        return f"{100 * value:.2g} %"
    return f"{value * 8 / 1e9:.3g} Gb/s" if measure in _IN_BITS else format_rate(value)


_LINKS = "busbw doctor --here on it names missing lanes; sudo lspci -vv: LnkSta of the GPU and each bridge above it"
_FIXES: dict[Measure, str] = {
    "memory_copy": "are all DIMMs there and at their rate (sudo dmidecode -t memory), is the NUMA setting (NPS, SNC) "
    "that of the other nodes, does anything else run there?",
    "noise": "busbw probe --noise on it tells the period of what disturbs",
    "send": "busbw fabric over these hosts tells the NIC from the cable and the switch's port",
    "receive": "busbw fabric over these hosts tells the NIC from the cable and the switch's port",
    "to_gpu": _LINKS,
    "from_gpu": _LINKS,
    "gpu_pair": "busbw run sendrecv --backend nccl --pairs all on it; nvidia-smi nvlink -s",
    "nic": "sudo lspci -vv: LnkSta of the NIC; its slot, firmware and settings beside those of the others",
}  # fmt: skip


def made(
    code: str, threshold: NodeThreshold, node: ScreenedNode, *, evidence: str, confidence: Confidence,
    part: str | None = None,
) -> Finding:  # fmt: skip
    """Return a finding about a measure of a node, as severe as its threshold says. `part`: of the node, if of one."""
    found = finding(
        code,
        evidence=evidence,
        fix=_FIXES[threshold.measure],
        confidence=confidence,
        host=node.host,
        what=measure_words(threshold.measure, part),
        peers="nodes of the same kind" if part is None else "others of its kind",
    )
    return msgspec.structs.replace(found, severity=threshold.severity, source=threshold.source)


def samples_words(measure: Measure, samples: Sequence[float]) -> str:
    """Return what a value is of its samples."""
    if measure == "noise":
        return f"the median of {counted(len(samples), 'CPU')}"
    return f"the best of {counted(len(samples), 'sample')}, the worst {words_of(measure, min(samples))}"
