"""Harnesses of what is known of a fabric beside its tests: links, and counters of ports."""

from collections.abc import Callable
from pathlib import Path

from busbw.api.sweeping.evidence import counter_lines
from busbw.fabric.counters.evidence import counter_notes
from busbw.fabric.counters.perfquery import named_by, read_perfquery
from busbw.fabric.counters.ports import changes
from busbw.fabric.ib_links import hop_count, ib_hosts, placed_by_links, slow_links
from busbw.fabric.ib_topology import is_ib_topology, read_ib_topology
from busbw.fabric.places import Endpoint, flat
from busbw.fabric.recorded import disjoint_rounds
from busbw.machine.read.ethtool import read_ethtool
from busbw.measure.plan.fabric import read_chosen

_SAMPLES = Path(__file__).parents[1] / "fabric" / "samples"
_LINKS = tuple(path.read_bytes() for path in sorted(_SAMPLES.iterdir()))
_FABRIC = read_ib_topology((_SAMPLES / "opensm-subnet.lst").read_text(), "opensm-subnet.lst")
_CHOSEN = flat(Endpoint(node=f"n{number // 2}", rail=("a", "b")[number % 2]) for number in range(8))
_LINE = b'{"host":"n1","unix_s":1.5,"uptime_s":9.0,"counters":{"mlx5_0/1 symbol_error":7,"eth0 rx_errors":0}}\n'


def _links(data: bytes) -> object:
    """Read a text as a fabric, look at its links, and place its hosts."""
    text = data.decode("latin-1")
    is_ib_topology(text)
    fabric = read_ib_topology(text, "fuzz")
    slow_links(fabric)
    hosts = list(ib_hosts(fabric).adapters)
    if len(hosts) < 2:
        return None
    hop_count(fabric, hosts[0], hosts[-1])
    return placed_by_links(flat(Endpoint(node=host) for host in hosts), fabric)


def _lines(data: bytes) -> object:
    read = counter_lines(data, "fuzz")
    return counter_notes((), changes(read[:1], read[1:] or read))


def _chosen(data: bytes) -> object:
    """Read a text as pairs that somebody chose, and put them into rounds: each pair is in one, each host once."""
    rounds = disjoint_rounds(read_chosen(data.decode("utf-8", "replace"), _CHOSEN, "fuzz"))
    assert all(len({end for pair in each for end in pair}) == 2 * len(each) for each in rounds)
    return rounds


FABRIC_HARNESSES: dict[str, Callable[[bytes], object]] = {
    "fabric_links": _links,
    "perfquery": lambda data: named_by(read_perfquery(data.decode("latin-1"), "fuzz"), _FABRIC),
    "ethtool": lambda data: read_ethtool(data.decode("utf-8", "replace"), "fuzz"),
    "counter_lines": _lines,
    "chosen_pairs": _chosen,
}
FABRIC_SEEDS = (
    *_LINKS,
    b"# Port counters: Lid 6 port 1 (CapMask: 0x1200)\nPortSelect:...1\nSymbolErrorCounter:...412\n",
    b"# Port extended counters: Lid 6 port 1 (CapMask: 0x1200 CapMask2: 0x0000000)\nPortXmitWait:............1\n",
    b"# n1 mlx5_0/1\nNIC statistics:\n     rx_prio3_pause: 412\n     [0]: rx_discards: 0007\n# n1 lo\n",
    b"# chosen\nn0:a,n1:a\nn2:b n3:b\n\nn1:b\tn0:b # again\n",
    _LINE + _LINE.replace(b":7", b":412"),
)
