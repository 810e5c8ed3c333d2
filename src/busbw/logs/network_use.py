"""What a log says that a job used of the network: the lines in which NCCL and UCX name their ways."""

import re

from busbw.base.text import printable
from busbw.model.finding import Told

# A line that spans two blocks is put together again; no line of interest is longer.
_LONGEST_LINE = 2**16
_LONGEST_EVIDENCE = 160
# NCCL prints the way of each connection, UCX the transports of each kind of peer at UCX_LOG_LEVEL=info.
_DIRECT = re.compile(rb"via (?:COLL)?NET/[^/\s]{1,60}/\d{1,4}/GDRDMA\b[^\n]{0,60}")
_INDIRECT = re.compile(rb"via NET/(?!Socket)[^/\s]{1,60}/\d{1,4}(?!\d)(?!/GDRDMA)[^\n]{0,60}")
_SHARP = re.compile(rb"via COLLNET/SHARP/[^\n]{1,60}")
_LANES = re.compile(
    rb"UCX  ?INFO [^\n]{0,200}?(?:inter-node cfg#\d{1,6}|ep_cfg\[\d{1,6}\]:?) ([a-z]{2,4}\([^\n]{1,1000})"
)
_DC = re.compile(rb"\bdc_mlx5/")
_OTHER = re.compile(rb"\b(?:rc|ud)_(?:mlx5|verbs)/")


class NetworkUse:
    """Reads a log block by block, and knows what its job used. The first line that tells is kept as evidence."""

    def __init__(self) -> None:
        self._rest = b""
        self._seen: dict[str, bytes] = {}

    def feed(self, block: bytes) -> None:
        """Take the next block of a log."""
        text = self._rest + block
        self._rest = text[text.rfind(b"\n") + 1 :][-_LONGEST_LINE:]
        self._look(text)

    def _look(self, text: bytes) -> None:
        for name, pattern in (("direct", _DIRECT), ("indirect", _INDIRECT), ("sharp", _SHARP)):
            if name not in self._seen and (match := pattern.search(text)) is not None:
                self._seen[name] = match[0]
        if "dc" in self._seen or b"UCX" not in text:
            return
        for match in _LANES.finditer(text):
            if _DC.search(match[1]) is not None:
                self._seen["dc"] = match[1]
                return
            if _OTHER.search(match[1]) is not None:
                self._seen.setdefault("other", match[1])

    def told(self) -> dict[str, Told]:
        """Return the answers of the log, by the id of the feature; what it does not tell of is not in it."""
        pairs = (("gpudirect", "direct", "indirect"), ("sharp", "sharp", None), ("dct", "dc", "other"))
        found = {}
        for feature, positive, negative in pairs:
            if positive in self._seen:
                found[feature] = Told(answer="yes", because=f"the log: {_shown(self._seen[positive])}")
            elif negative is not None and negative in self._seen:
                found[feature] = Told(answer="no", because=f"the log: {_shown(self._seen[negative])}")
        return found


def _shown(line: bytes) -> str:
    return printable(line.decode("utf-8", "replace").strip())[:_LONGEST_EVIDENCE]
