"""Files of what is known of a fabric beside its tests: where its hosts stand, and the counters of its ports."""

from collections.abc import Sequence
from pathlib import Path

from busbw.base.errors import InputError
from busbw.base.text import listed
from busbw.fabric.counters.perfquery import is_perfquery, named_by, read_perfquery
from busbw.fabric.counters.ports import PortChanges, called_as, changes
from busbw.fabric.ib_topology import MOST_BYTES, IbFabric
from busbw.machine import named
from busbw.machine.read.ethtool import ETHTOOL_HINT, is_ethtool, read_ethtool
from busbw.model import codec
from busbw.model.machine import CountersRead
from busbw.store.files import read_bounded
from busbw.store.sources import source_kind

_MOST_COUNTERS_BYTES = 2**28


def topology_text(path: str) -> str:
    """Return the text of a file that says where hosts stand. Raises InputError where it cannot be read."""
    return read_bounded(Path(path), most_bytes=MOST_BYTES, kind="topology").decode("utf-8", "replace")


def changed_counters(
    before: Sequence[str], after: Sequence[str], fabric: IbFabric | None, nodes: Sequence[str]
) -> PortChanges:
    """Return what ports counted between the readings of some files and those of others.

    A file is lines of `busbw probe --counters` of any number of hosts, outputs of perfquery or of
    `ethtool -S`, or a snapshot of `busbw probe`. Raises InputError for what is none of these, and where no host is in
    both, or none of the tested `nodes`.
    """
    first, last = (tuple(each for path in paths for each in _read(path)) for paths in (before, after))
    if fabric is not None:
        first, last = named_by(first, fabric), named_by(last, fabric)
    found = changes(called_as(first, nodes), called_as(last, nodes))
    if not found.hosts:
        raise InputError(
            "no host is in the counters before and in those after",
            where=f"{before[0]}, {after[0]}",
            hint="busbw probe --counters on each host, before and after",
        )
    ends = {each.split(" ")[0] for side in (first, last) for one in side for each in one.linked.values()}
    if not {*found.hosts, *ends} & set(nodes):
        raise InputError(
            f"no tested host is in the counters, which are of {listed(found.hosts)}",
            where=f"{before[0]}, {after[0]}",
            hint="perfquery has no names: give --topology with the output of ibnetdiscover"
            if any(host.startswith("lid ") for host in found.hosts)
            else "the tests have to name hosts as `hostname` does",
        )
    return found


def _read(path: str) -> tuple[CountersRead, ...]:
    if source_kind(path) == "snapshot":
        return (named.counters_of_file(Path(path)),)
    raw = read_bounded(Path(path), most_bytes=_MOST_COUNTERS_BYTES, kind="file of counters")
    text = raw.decode("utf-8", "replace")
    if is_perfquery(text):
        return read_perfquery(text, path)
    if is_ethtool(text):
        found = read_ethtool(text, path)
        if not found:
            raise InputError("none of its counters tells of a link or of congestion", where=path, hint=ETHTOOL_HINT)
        return found
    return counter_lines(raw, path)


def counter_lines(raw: bytes, where: str) -> tuple[CountersRead, ...]:
    """Return the readings of a file with one as JSON a line. Raises InputError with the line for anything else."""
    found = []
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if line.strip():
            if not line.lstrip().startswith(b"{"):
                raise InputError(
                    "neither counters of `busbw probe --counters`, nor of perfquery or ethtool -S, nor a snapshot",
                    where=f"{where}:{number}",
                    hint="busbw probe --counters >> before.jsonl",
                )
            found.append(codec.decode(line, CountersRead, where=f"{where}:{number}"))
    if not found:
        raise InputError("no counters in it", where=where, hint="busbw probe --counters >> before.jsonl")
    return tuple(found)
