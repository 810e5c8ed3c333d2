"""What is no topology file at all, told from its first bytes and its root element."""

import re

from busbw.base.errors import InputError

MOST_BYTES = 8 * 2**20
_EXPORT = "have NCCL write one: NCCL_TOPO_DUMP_FILE=topo.xml"
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"<\x00", b"\x00<")
_HTML = re.compile(rb"(?:\xef\xbb\xbf)?<!doctype\s+html", re.IGNORECASE)
_OTHER_ROOTS = {
    "graphs": "a graph file (NCCL_GRAPH_FILE), not a topology file (NCCL_TOPO_FILE)",
    "topology": "what lstopo writes, not a topology file of NCCL",
    "nvidia_smi_log": "what nvidia-smi -q -x writes, not a topology file of NCCL",
    "html": "an HTML page, not a topology file of NCCL",
    "svg": "a picture, not a topology file of NCCL",
}


def check_form(raw: bytes, where: str) -> None:
    """Raise InputError when `raw` is too long, empty, compressed, binary or not XML."""
    what = _form(raw, raw.strip())
    if what is not None:
        raise InputError(f"{where} {what}", where=where, hint=_EXPORT)


def _form(raw: bytes, text: bytes) -> str | None:
    """Return what is wrong with a file as a whole, None for what may be XML."""
    compressed = next((name for magic, name in _COMPRESSED.items() if raw.startswith(magic)), None)
    checks = (
        (len(raw) > MOST_BYTES, f"is over {MOST_BYTES >> 20} MiB: no topology file is"),
        (not text, "is empty"),
        (compressed is not None, f"is compressed ({compressed}); NCCL reads plain text"),
        (raw.startswith(_WIDE), "is UTF-16 text; NCCL reads single bytes"),
        (b"\0" in raw, f"is a binary file: a zero byte at offset {raw.find(0)}"),
        (text[:1] in {b"{", b"["}, "is JSON, not a topology file of NCCL"),
        (_HTML.match(text) is not None, f"is {_OTHER_ROOTS['html']}"),
        (b"<!ENTITY" in raw, "defines entities; no topology file does, and none are expanded"),
        (b"<" not in text, "is not XML: it has no element"),
    )
    return next((what for holds, what in checks if holds), None)


def refuse_root(name: str, where: str) -> InputError:
    """Return the error for a file whose root element is none that NCCL reads."""
    other = _OTHER_ROOTS.get(name.lower())
    if other is not None:
        return InputError(f"{where} is {other}", where=where, hint=_EXPORT)
    shown = f"<{name[:40]}>" if name else "no element"
    return InputError(f"{where} holds {shown}, where a topology file of NCCL holds <system>", where=where, hint=_EXPORT)
