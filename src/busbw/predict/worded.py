"""Machines as documents word them: `CoreWeave HGX H100 8x400G NDR IB`, `AWS p5.48xlarge x2 (H100)`, `8x A100 NVLink3`.

A platform is the one whose name the words hold, where its GPUs are not others than those named. Without one, nodes are
described by the GPUs, NICs and network that the words name; what they leave out is not guessed.
"""

import re
from collections.abc import Sequence

from busbw.base.errors import InputError
from busbw.model.platform import Platform
from busbw.predict.described import described_machine, like_platform
from busbw.predict.machines import MachineClass, machine_of

_HINT = "a platform's id, or words as 'gpu=H200, gpus=8, nics=16x200G, fabric=RoCE'"
_LONGEST = 200
# What networks are called; the first that occurs counts.
_NETWORKS = (
    (r"tcpxo|fastrak", "TCPXO"),
    (r"tcpx", "TCPX"),
    (r"efa(?:v[1-9])?", "EFA"),
    (r"slingshot(?:-?[0-9]+)?", "Slingshot"),
    (r"roce(?:v2)?|spectrum-?x|ethernet", "RoCE"),
    (r"infiniband|ib|[ehnx]dr(?:[0-9]{3})?|quantum-?[23]?", "InfiniBand"),
)
_MODEL = re.compile(r"[A-Z]{1,3}[0-9]{2,3}[A-Z]?", re.ASCII)
# Of the NICs that a node has, those that take part.
_USED = re.compile(r"\(([1-9][0-9]?) used\)", re.ASCII)
# As in `8xH100`, where the count is no part of the word.
_COUNTED = re.compile(r"\b[0-9]+x(?=[a-z])", re.ASCII)
# GPUs in slots, and those that links join on one board.
_CARDS = re.compile(r"\bpcie\b(?! *gen)", re.ASCII | re.IGNORECASE)
_BOARDS = re.compile(r"\b(?:sxm|nvlink|hgx)", re.ASCII | re.IGNORECASE)
# Gb/s of a port with four lanes.
_GENERATIONS = {"edr": 100, "hdr": 200, "ndr": 400, "xdr": 800}
# What stands between a number of NICs and their rate: who makes them, and what they are called.
_KIND = (
    r"(?:(?:nvidia|mellanox|hpe|broadcom|intel|aws|connectx-?[4-9]|cx-?[4-9]|bluefield-?[23]|bf-?[23]|thor-?[12]?|slingshot(?:-?[0-9]+)?|"
    r"cassini|efa(?:v[1-9])?|infiniband|ib|roce(?:v2)?|spectrum-?x|ethernet|rdma|nics?|hcas?|ports?|rails?|adapters?)\b\s*)"
)
# A bare G may be of memory: then only what ports have.
_RATE = (
    r"(?P<rate>[1-9][0-9]{1,3}(?=\s*(?:gbit/s|gbits/s|gbps|gb/s|gbe)\b)|(?:25|50|100|200|400|800|1600|3200)(?=\s*g\b))"
    r"\s*(?:gbit/s|gbits/s|gbps|gb/s|gbe|g)\b"
)
_NAMED = r"(?P<name>[ehnx]dr)-?(?P<rate>100|200|400|800)?\b"
_AT = r"(?:[@,(]|at|of|with)?\s*"
_TIMES = r"\s*[x\u00d7*]\s*"
_NICS = tuple(
    re.compile(rf"(?<![0-9.x])(?P<count>[1-9][0-9]?){form}")
    for each in (_RATE, _NAMED)
    for form in (rf"{_TIMES}{each}", rf"(?:{_TIMES}|\s+){_KIND}{{1,4}}{_AT}{each}")
) + tuple(re.compile(rf"\b{each}{_TIMES}(?P<count>[1-9][0-9]?)\b(?![.0-9])") for each in (_RATE, _NAMED))
_OF_GPU = re.compile(rf"\b{_RATE}\s*{_KIND}{{0,3}}(?:/|per\s+)\s*gpu\b", re.ASCII)
_OF_NODE = re.compile(rf"\b{_RATE}\s*(?:[a-z]+\s*)?(?:/|per\s+)\s*node\b", re.ASCII)
# More than any port has is of a node.
_IN_ALL = re.compile(rf"\b{_RATE}|\b(?P<tb>[0-9]{{1,2}}(?:\.[0-9]{{1,2}})?)\s*(?:tb/s|tbps|tbit/s)", re.ASCII)
_FASTEST_PORT = 800
# Rates in bytes are of links between GPUs.
_IN_BYTES = re.compile(r"[0-9.]+\s*[GT](?:i?B/s|Bps)", re.ASCII)


def worded_machine(
    words: str, *, gpus: int, nodes: int, named: Sequence[str], platforms: Sequence[Platform]
) -> MachineClass:
    """Return nodes as words name or describe them, with so many GPUs each; `named`: platforms that the words name.

    Raises InputError for words that leave open what is needed: GPUs, and between nodes NICs and their network.
    """
    text = words[:_LONGEST]
    if "=" in text:
        _, machine = described_machine(text, platforms)
        if machine.rates.gpus != gpus:
            raise InputError(f"{text!r} has {machine.rates.gpus} GPUs a node, the rows {gpus}", hint=_HINT)
        return machine
    model = _gpu(text, platforms)
    nics, fabric = _nics(text, gpus), _network(text.lower())
    found = _named(named, model, platforms)
    if found is not None:
        machine = machine_of(found, gpus=gpus)
        is_told = machine.rates.nic is not None and machine.rates.ports and machine.fabric is not None
        if nodes == 1 or is_told or model is None or nics is None or fabric is None:
            return machine
    if model is None:
        raise InputError(f"no platform and no known GPU is named in {text!r}", hint=_HINT)
    if _CARDS.search(text) and not _BOARDS.search(text):
        raise InputError(f"{text!r} has {model} as cards in slots, of which no measurement gives constants", hint=_HINT)
    if nodes == 1:
        return machine_of(like_platform(model, gpus, platforms), gpus=gpus)
    if nics is None or fabric is None:
        lacks = "the NICs of a node" if nics is None else "the network between nodes"
        raise InputError(f"{text!r} does not say {lacks}", hint=_HINT)
    _, machine = described_machine(f"gpu={model}, gpus={gpus}, nics={nics[0]}x{nics[1]}G, fabric={fabric}", platforms)
    return machine


def _gpu(text: str, platforms: Sequence[Platform]) -> str | None:
    """Return the GPU that is named, as platforms call it; of GB200 and B200 the longer."""
    words = re.split(r"[^a-z0-9]+", _COUNTED.sub(" ", text.lower()))
    models = {word for each in platforms for word in _model_words(each) if _MODEL.fullmatch(word)}
    return max(
        (model for model in models if model.lower() in words), key=lambda model: (len(model), model), default=None
    )


def _model_words(platform: Platform) -> list[str]:
    return re.split(r"[^A-Za-z0-9]+", platform.gpu.model or "")


def _named(named: Sequence[str], model: str | None, platforms: Sequence[Platform]) -> Platform | None:
    known = {each.id: each for each in platforms}
    return next((known[each] for each in named if each in known and _may_have(known[each], model)), None)


def _may_have(platform: Platform, model: str | None) -> bool:
    own = _model_words(platform)
    # DGX H100 and H200 are one platform, which names one of its GPUs; their links are the same.
    return platform.gpu.count > 0 and (
        model is None or own == [""] or model in own or {model, *own} >= {"H100", "H200"}
    )


def _nics(words: str, gpus: int) -> tuple[int, int] | None:
    """Return how many NICs of a node take part, and their Gb/s; None: not said."""
    text = words.lower()
    used = _USED.search(text)
    for form in _NICS:
        match = form.search(text)
        if match is not None:
            rate = match["rate"] or _GENERATIONS[match.groupdict()["name"]]
            return int(used[1] if used is not None else match["count"]), int(rate)
    match = _OF_GPU.search(text)
    if match is not None:
        return gpus, int(match["rate"])
    match = _OF_NODE.search(text)
    if match is not None:
        return _evenly(int(match["rate"]), gpus)
    in_all = _IN_ALL.finditer(_IN_BYTES.sub(" ", words).lower())
    totals = (round(1000 * float(each["tb"])) if each["tb"] else int(each["rate"]) for each in in_all)
    return next((_evenly(each, gpus) for each in totals if each > _FASTEST_PORT), None)


def _evenly(gigabits: int, gpus: int) -> tuple[int, int] | None:
    """Return a NIC a GPU, which is as good as more and slower ones; None where they would not be of whole Gb/s."""
    return (gpus, gigabits // gpus) if gigabits % gpus == 0 else None


def _network(text: str) -> str | None:
    words = _COUNTED.sub(" ", text)
    for names, fabric in _NETWORKS:
        if re.search(rf"(?<![a-z0-9])(?:{names})(?![a-z0-9])", words):
            return fabric
    return None
