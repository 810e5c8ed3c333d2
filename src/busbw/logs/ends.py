"""Connections between nodes whose two ends tell something different."""

import re

from busbw.logs.case import JobLogs
from busbw.logs.excerpts import lines_of

# Both ends tell of a connection; where a NIC reads from a GPU the other end's can
# write into one, unless its host lacks what that needs. The reverse is a setting (NCCL_NET_GDR_READ).
_END = re.compile(
    r"(?P<host>[\w.-]{1,253}):\d{1,10}:\d{1,10} \[\d{1,3}\] NCCL INFO (?P<pair>(?:Channel|Ring) [\d/]{2,9} ?: \d{1,7}"
    r"(?:\[\w{1,12}\])? -> \d{1,7}(?:\[\w{1,12}\])?) \[(?P<end>send|receive)\] via NET/(?!Socket)[^/\s]{1,60}/\d{1,4}"
    r"(?P<direct>/GDRDMA\b)?",
    re.ASCII,
)


def staged_hosts(case: JobLogs) -> dict[str, str]:
    """Return the hosts that receive through their memory what a NIC elsewhere reads from a GPU, and from which host."""
    if len({way.is_direct for way in case.ways if way.via.startswith("NET/")}) < 2:
        return {}
    sent: dict[str, str] = {}
    received: dict[str, str] = {}
    direct: set[str] = set()
    for _source, _number, line in lines_of(case.excerpts):
        match = _END.search(line) if "] via NET/" in line else None
        if match is None:
            continue
        if match["direct"]:
            direct.add(match["host"])
            if match["end"] == "send":
                sent[match["pair"]] = match["host"]
        elif match["end"] == "receive":
            received[match["pair"]] = match["host"]
    return {
        host: sent[pair]
        for pair, host in sorted(received.items())
        if pair in sent and host not in direct and host != sent[pair]
    }
