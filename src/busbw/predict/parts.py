"""GPUs, NICs and networks as people write them: `8x H100 SXM`, `8 x 400 Gb/s`, `HDR`, `RoCEv2`."""

import re
from collections.abc import Sequence

from busbw.model.platform import Platform

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
    r"(?P<rate>[1-9][0-9]{1,3}(?=\s*(?:gbit/s|gbits/s|gbps|gb/s|gbe)\b)|(?:25|50|100|200|400|800|1600|3200)(?=\s*g(?:\b|x[0-9])))"
    r"\s*(?:gbit/s|gbits/s|gbps|gb/s|gbe|g)(?:\b|(?=x[0-9]))"
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


def named_gpu(text: str, platforms: Sequence[Platform]) -> str | None:
    """Return the GPU that is named, as platforms call it; of GB200 and B200 the longer."""
    words = re.split(r"[^a-z0-9]+", _COUNTED.sub(" ", text.lower()))
    models = {word for each in platforms for word in model_words(each) if is_model(word)}
    return max(
        (model for model in models if model.lower() in words), key=lambda model: (len(model), model), default=None
    )


def gpus_of(text: str, model: str) -> int | None:
    """Return how many GPUs of a model a node has, as `8x H100`, `H100 x 8` or `8 GPUs` say; None: not said."""
    small, name = text.lower(), re.escape(model.lower())
    forms = (
        rf"(?<![0-9.])([1-9][0-9]?)(?:{_TIMES}|\s+)(?:(?:nvidia|amd|instinct)\s+)*{name}\b",
        rf"\b{name}\b[^,;0-9]{{0,12}}?{_TIMES}([1-9][0-9]?)(?![0-9.]|\s*g)",
        r"(?<![0-9.])([1-9][0-9]?)[\s-]*gpus?\b",
    )
    match = next((found for form in forms if (found := re.search(form, small, re.ASCII)) is not None), None)
    return int(match[1]) if match is not None else None


def are_cards(text: str) -> bool:
    """Return whether words say that GPUs sit in slots, with no links that join them on one board."""
    return _CARDS.search(text) is not None and _BOARDS.search(text) is None


def is_model(word: str) -> bool:
    """Return whether a word is a GPU's name, as H100 and GB200 are."""
    return _MODEL.fullmatch(word) is not None


def model_words(platform: Platform) -> list[str]:
    """Return the words of what a platform calls its GPUs."""
    return re.split(r"[^A-Za-z0-9]+", platform.gpu.model or "")


def named_nics(words: str, gpus: int) -> tuple[int, int] | None:
    """Return how many NICs of a node take part, and their Gb/s; None: not said."""
    # A rate in bytes is none of ports.
    text = _IN_BYTES.sub(" ", words).lower()
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
    totals = (round(1000 * float(each["tb"])) if each["tb"] else int(each["rate"]) for each in _IN_ALL.finditer(text))
    return next((_evenly(each, gpus) for each in totals if each > _FASTEST_PORT), None)


def _evenly(gigabits: int, gpus: int) -> tuple[int, int] | None:
    """Return a NIC a GPU, which is as good as more and slower ones; None where they would not be of whole Gb/s."""
    return (gpus, gigabits // gpus) if gigabits % gpus == 0 else None


def named_network(text: str) -> str | None:
    """Return the kind of network that is named; None: none is."""
    words = _COUNTED.sub(" ", text.lower())
    for names, fabric in _NETWORKS:
        if re.search(rf"(?<![a-z0-9])(?:{names})(?![a-z0-9])", words):
            return fabric
    return None
