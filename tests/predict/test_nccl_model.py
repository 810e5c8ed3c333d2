"""The model by which NCCL chooses, against what NCCL prints and against its own functions, release by release."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from busbw.base.errors import InputError
from busbw.facts.nccl_model import nccl_constants, nccl_model_facts
from busbw.model.predict.nccl_choice import MODELLED, NCCL_ALGORITHMS, PROTOCOLS, NcclGraphs, NcclJob
from busbw.predict.graphs import graphs_as_stated, graphs_of_file, graphs_of_log
from busbw.predict.nccl import choice
from busbw.predict.nccl_table import cost_table, empty_call
from busbw.predict.nccl_work import most_threads

HERE = Path(__file__).parent
TABLES = json.loads((HERE / "nccl_tables.json").read_text())["releases"]
LOG = (HERE / "samples" / "four-h200-2.28.9.log").read_text()
GRAPH_FILE = (HERE / "samples" / "four-h200-graph.xml").read_bytes()
FOUR_H200 = NcclJob(nodes=1, ranks=4, sm=90)


def printed_table(log: str) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Return what a log's tuning table prints, by collective, algorithm and protocol."""
    found, algorithms = {}, []
    names = {"Broadcast": "broadcast", "Reduce": "reduce", "AllGather": "all_gather"}
    names |= {"ReduceScatter": "reduce_scatter", "AllReduce": "all_reduce"}
    for line in log.splitlines():
        _, _, text = line.partition("NCCL INFO ")
        head, *cells = (each.strip() for each in text.split("|"))
        if head == "Algorithm":
            algorithms = [cell.lower() for cell in cells if cell]
        elif head in names:
            for place, cell in enumerate(each for each in cells if each):
                latency, bandwidth = (part.strip() for part in cell.split("/"))
                found[names[head], algorithms[place // 3], PROTOCOLS[place % 3]] = (latency, bandwidth)
    return found


DOCTOR = HERE.parent / "doctor" / "logs"


@pytest.mark.parametrize(
    ("log", "nodes"),
    [
        (HERE / "samples" / "four-h200-2.28.9.log", 1),
        # Over PCIe, and as four nodes of one GPU over sockets: PAT, a plain tree, LL128 that is off.
        (DOCTOR / "p2p-off.log", 1),
        (DOCTOR / "sockets.log", 4),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else str(value),
)
def test_the_table_that_nccl_printed_comes_out_to_the_digit(log: Path, nodes: int) -> None:
    text = log.read_text(errors="replace")
    printed = printed_table(text)
    job = msgspec.structs.replace(FOUR_H200, nodes=nodes)
    cells = cost_table(job, graphs_of_log(text, log.name).graphs, nccl_constants("2.28.9"))
    ours = {
        (cell.collective, cell.algorithm, cell.protocol): (f"{cell.latency_us:.1f}", f"{cell.bandwidth_GBps:.1f}")
        for cell in cells
    }
    assert len(printed) == 105
    assert ours == printed


def test_threads_and_channels_are_those_that_nccl_printed() -> None:
    logged = graphs_of_log(LOG, "log")
    (line,) = (
        line for line in LOG.splitlines() if "Max NThreads" in line and "|            512 |            640" in line
    )
    printed = [int(number) for number in re.findall(r"\| +(\d+)", line)]
    assert printed[:6] == [
        most_threads(logged.graphs, algorithm, protocol) for algorithm in ("tree", "ring") for protocol in PROTOCOLS
    ]
    stated = msgspec.structs.replace(FOUR_H200, channels=None)
    found = choice(
        stated, logged.graphs, nccl_constants("2.28.9"), release="2.28.9", collective="all_reduce", size_bytes=2**30
    )
    assert found.chosen.channels == logged.channels == 24


def test_a_graph_file_and_the_log_of_the_same_job_say_the_same() -> None:
    of_file, of_log = graphs_of_file(GRAPH_FILE, "graph.xml"), graphs_of_log(LOG, "log").graphs
    assert (of_file.ring, of_file.tree, of_file.plain_tree) == (of_log.ring, of_log.tree, of_log.plain_tree)


@pytest.mark.parametrize("release", TABLES)
def test_every_cell_and_every_choice_is_that_of_nccls_own_functions(release: str) -> None:
    constants = nccl_constants(release)
    assert len(TABLES[release]) >= 20
    for kept in TABLES[release]:
        job, graphs = msgspec.convert(kept["job"], NcclJob), msgspec.convert(kept["graphs"], NcclGraphs)
        ours = {
            f"{MODELLED.index(cell.collective)}{NCCL_ALGORITHMS.index(cell.algorithm)}"
            f"{PROTOCOLS.index(cell.protocol)}": cell
            for cell in cost_table(job, graphs, constants)
            if cell.bandwidth_GBps > 0
        }
        assert len(ours) == len(kept["cells"])
        for line in kept["cells"]:
            name, latency_us, bandwidth = line.split()
            assert ours[name].latency_us == pytest.approx(float(latency_us), rel=1e-4, abs=1e-6)
            assert ours[name].bandwidth_GBps == pytest.approx(float(bandwidth), rel=1e-4)
        for collective, size_bytes, algorithm, protocol, channels, threads, time_us, *chunk_bytes in kept["calls"]:
            found = choice(job, graphs, constants, release=release, collective=collective, size_bytes=size_bytes).chosen
            assert (found.algorithm, found.protocol) == (algorithm, protocol)
            assert (found.channels, found.threads) == (channels, threads)
            assert found.time_us == pytest.approx(time_us, rel=1e-3)
            assert chunk_bytes in ([], [found.chunk_bytes])


def test_an_empty_call_is_the_cheapest_cell_of_ll() -> None:
    graphs = graphs_of_log(LOG, "log").graphs
    constants = nccl_constants("2.28.9")
    for name in MODELLED:
        cells = cost_table(FOUR_H200, graphs, constants)
        least = min(cell.latency_us for cell in cells if cell.collective == name and cell.bandwidth_GBps > 0)
        found = empty_call(constants, name, 4)
        assert found is not None
        assert found.time_us == pytest.approx(least)
    assert empty_call(constants, "alltoall", 4) is None


@pytest.mark.parametrize(("release", "together"), [("2.22.3", 16), ("2.28.9", 10), ("2.30.7", 8)])
def test_merged_calls_cost_a_ring_each_its_latency_and_others_once_for_so_many(release: str, together: int) -> None:
    def times_us(algorithm: str) -> list[float]:
        asked = {"release": release, "collective": "all_reduce", "size_bytes": 64, "algorithm": algorithm}
        graphs, constants = graphs_as_stated(("ring=12x30/30",)), nccl_constants(release)
        counts = (1, together, together + 1)
        return [choice(FOUR_H200, graphs, constants, calls=n, **asked).chosen.time_us for n in counts]

    once, whole, more = times_us("ring")
    assert (whole, more) == pytest.approx((together * once, (together + 1) * once), rel=0.01)
    once, whole, more = times_us("tree")
    assert (whole, more) == pytest.approx((once, 2 * once), rel=0.01)


def test_merged_calls_of_releases_with_other_rules_are_refused() -> None:
    graphs, constants = graphs_as_stated(("ring=12x30/30",)), nccl_constants("2.21.5")
    with pytest.raises(InputError, match="merges calls is not modelled"):
        choice(FOUR_H200, graphs, constants, release="2.21.5", collective="all_reduce", size_bytes=64, calls=2)


@pytest.mark.parametrize(
    ("release", "sm", "nvls", "channels"),
    [
        # 8 channels are doubled, and on several nodes of fast Hopper GPUs once more; 16 only before 2.20.
        ("2.19.4", 90, False, 32),
        ("2.20.5", 90, False, 16),
        ("2.20.5", 80, False, 16),
        # NVLS adds channels, which rings used from 2.22 to 2.27.
        ("2.21.5", 90, True, 8),
        ("2.22.3", 90, True, 16),
        ("2.28.9", 90, True, 8),
    ],
)
def test_channels_follow_the_rules_of_the_release(release: str, sm: int, nvls: bool, channels: int) -> None:
    graphs = graphs_as_stated(("ring=4x30/30",)) if nvls else graphs_as_stated(("ring=8x60/60",))
    job = NcclJob(nodes=2, ranks=16, sm=sm, nvls=nvls)
    asked = {"release": release, "collective": "all_reduce", "size_bytes": 2**30, "algorithm": "ring"}
    assert choice(job, graphs, nccl_constants(release), **asked).chosen.channels == channels


def test_every_release_that_was_read_has_constants_and_others_are_refused_by_name() -> None:
    for release in nccl_model_facts().releases:
        assert nccl_constants(release).base.ring == (6.6, 14.0, 8.4)
    for release in ("2.17.1", "2.31.2", "2.26.4", "2.27", "nonsense", "9" * 5000, "2.٣٠.7", ""):
        with pytest.raises(InputError, match="is not known"):
            nccl_constants(release)
    for release, near in (("2.28.8", "2.28.7 or 2.28.9"), ("2.17.1", "2.18.1"), ("2.31.2", "2.30.7")):
        with pytest.raises(InputError) as error:
            nccl_constants(release)
        assert str(error.value).endswith(f"the nearest that were read: --nccl {near}")


@pytest.mark.parametrize(
    ("nodes", "ranks", "collective", "algorithm", "words"),
    [
        (1, 1, "all_reduce", None, "one rank alone"),
        (3, 8, "all_reduce", None, "8 ranks on 3 nodes"),
        (1, 8, "alltoall", None, "no cost model of alltoall"),
        (2, 16, "broadcast", "tree", "tree does not do broadcast"),
        (1, 8, "all_reduce", "nvlstree", "nvlstree does not do all_reduce"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    nodes: int, ranks: int, collective: str, algorithm: str | None, words: str
) -> None:
    job = NcclJob(nodes=nodes, ranks=ranks, sm=90)
    graphs, constants = graphs_as_stated(("ring=8x40/40",)), nccl_constants("2.26.5")
    with pytest.raises(InputError, match=words):
        choice(job, graphs, constants, release="2.26.5", collective=collective, size_bytes=2**20, algorithm=algorithm)
