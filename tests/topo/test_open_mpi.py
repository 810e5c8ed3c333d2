"""Where mpirun puts ranks: 5.0 as its release 5.0.11 displays for simulated nodes, 4.1 as its source says."""

import pytest

from busbw.base.cpus import format_cpu_list, parse_cpu_list
from busbw.model.topology import NumaNode, Topology
from busbw.topo.ranks.binding import MpirunOptions, parse_binding
from busbw.topo.ranks.readings import Cores, RefusedError, cores_of, cpus_of, placed_by_4_1, placed_by_5_0


def node(*lists: str, sockets: int) -> Cores:
    numa = tuple(NumaNode(id=id_, cpus=parse_cpu_list(text)) for id_, text in enumerate(lists))
    cores = cores_of(Topology(numa=numa), sockets)
    assert cores is not None
    return cores


FOUR = node("0-23", "24-47", "48-71", "72-95", sockets=2)
TWO = node("0-47", "48-95", sockets=2)
EIGHT = node(*(f"{16 * n}-{16 * n + 15},{16 * n + 128}-{16 * n + 143}" for n in range(8)), sockets=2)

N = ["0-23", "24-47", "48-71", "72-95"]
# From `mpirun --display map-devel --do-not-launch` of Open MPI 5.0.11 on nodes that hwloc made up.
RECORDED_5_0 = [
    (FOUR, 8, "default", "0 1 2 3 4 5 6 7"),
    (TWO, 8, "--bind-to core", "0 1 2 3 4 5 6 7"),
    (FOUR, 8, "--bind-to numa", " ".join(list_ for list_ in N for _ in range(2))),
    (FOUR, 8, "--bind-to package", "0-47 0-47 0-47 0-47 48-95 48-95 48-95 48-95"),
    (FOUR, 8, "--map-by ppr:8:node", " ".join(["0-23"] * 8)),
    (FOUR, 8, "--map-by ppr:8:node --bind-to numa", " ".join(["0-23"] * 8)),
    (TWO, 8, "--map-by ppr:8:node --bind-to core", "0 1 2 3 4 5 6 7"),
    (FOUR, 8, "--map-by numa --bind-to core", "0 1 24 25 48 49 72 73"),
    (FOUR, 8, "--map-by ppr:2:numa", " ".join(list_ for list_ in N for _ in range(2))),
    (FOUR, 8, "--map-by ppr:2:numa --bind-to core", "0 1 24 25 48 49 72 73"),
    (FOUR, 8, "--map-by slot", "- - - - - - - -"),
    (FOUR, 8, "--map-by slot --bind-to numa", " ".join(["0-23"] * 8)),
    (FOUR, 8, "--map-by slot:PE=12", "0-11 12-23 24-35 36-47 48-59 60-71 72-83 84-95"),
    (TWO, 8, "--map-by ppr:8:node:PE=12", "0-11 12-23 24-35 36-47 48-59 60-71 72-83 84-95"),
    (FOUR, 8, "--map-by numa:PE=4", "0-3 4-7 24-27 28-31 48-51 52-55 72-75 76-79"),
    (FOUR, 8, "--map-by ppr:2:numa:PE=12", "0-11 12-23 24-35 36-47 48-59 60-71 72-83 84-95"),
    (FOUR, 8, "--map-by node", " ".join(["0-23"] * 8)),
    (FOUR, 8, "--map-by numa --bind-to none", "- - - - - - - -"),
    (FOUR, 8, "--map-by package --bind-to core", "0 1 2 3 48 49 50 51"),
    (FOUR, 5, "--map-by package --bind-to numa", "0-23 0-23 0-23 48-71 48-71"),
    (FOUR, 8, "--map-by ppr:4:package --bind-to numa", "0-23 0-23 0-23 0-23 48-71 48-71 48-71 48-71"),
    (FOUR, 6, "--map-by numa", "0-23 0-23 24-47 24-47 48-71 72-95"),
    (FOUR, 3, "--map-by numa", "0-23 24-47 48-71"),
    (FOUR, 2, "--map-by ppr:2:node", "0 1"),
    (FOUR, 2, "--bind-to numa", "0-23 24-47"),
    (EIGHT, 8, "--map-by numa", " ".join(f"{16 * n}-{16 * n + 15},{16 * n + 128}-{16 * n + 143}" for n in range(8))),
]  # fmt: skip
# By rmaps_base_map_job.c, rmaps_rr_mappers.c and rmaps_base_binding.c of Open MPI 4.1.6.
BY_SOURCE_4_1 = [
    (FOUR, 8, "default", " ".join(N * 2)),
    (FOUR, 2, "default", "0 1"),
    (FOUR, 8, "--map-by ppr:8:node --bind-to numa", " ".join(N * 2)),
    (FOUR, 8, "--map-by ppr:8:node --bind-to core", "0 1 2 3 4 5 6 7"),
    (FOUR, 8, "--map-by numa --bind-to core", "0 24 48 72 1 25 49 73"),
    (FOUR, 8, "--map-by ppr:2:numa --bind-to numa", " ".join(list_ for list_ in N for _ in range(2))),
    (FOUR, 8, "--map-by slot:PE=12", "0-11 12-23 24-35 36-47 48-59 60-71 72-83 84-95"),
    (FOUR, 4, "--map-by socket --bind-to numa", "0-23 48-71 24-47 72-95"),
    (FOUR, 4, "--map-by numa --bind-to socket", "0-47 0-47 48-95 48-95"),
    (TWO, 4, "--bind-to none", "- - - -"),
]


def text_of(cores: Cores, placed: tuple[tuple[int, ...] | None, ...]) -> str:
    return " ".join("-" if each is None else format_cpu_list(cpus_of(cores, each)) for each in placed)


def options_of(text: str) -> MpirunOptions:
    binding = parse_binding(text)
    return binding if isinstance(binding, MpirunOptions) else MpirunOptions()


@pytest.mark.parametrize(("cores", "ranks", "text", "expected"), RECORDED_5_0, ids=[row[2] for row in RECORDED_5_0])
def test_open_mpi_5_0_puts_ranks_where_its_own_display_says(cores: Cores, ranks: int, text: str, expected: str) -> None:
    assert text_of(cores, placed_by_5_0(options_of(text), cores, ranks)) == expected


@pytest.mark.parametrize(("cores", "ranks", "text", "expected"), BY_SOURCE_4_1, ids=[row[2] for row in BY_SOURCE_4_1])
def test_open_mpi_4_1_gives_objects_in_turn(cores: Cores, ranks: int, text: str, expected: str) -> None:
    assert text_of(cores, placed_by_4_1(options_of(text), cores, ranks)) == expected


def test_what_mpirun_refuses_is_refused() -> None:
    with pytest.raises(RefusedError, match="larger"):
        placed_by_5_0(options_of("--map-by numa --bind-to package"), FOUR, 8)
    with pytest.raises(RefusedError, match="not enough cores"):
        placed_by_5_0(options_of("--map-by numa:PE=20"), FOUR, 8)
    with pytest.raises(RefusedError, match="4 places for 8 ranks"):
        placed_by_5_0(options_of("--map-by ppr:2:numa"), TWO, 8)
    with pytest.raises(RefusedError, match="more ranks than cores"):
        placed_by_4_1(options_of("--map-by slot --bind-to core"), FOUR, 97)


def test_sockets_that_are_not_known_make_no_answer() -> None:
    unknown = cores_of(Topology(numa=tuple(NumaNode(id=id_, cpus=parse_cpu_list(text)) for id_, text in enumerate(N))))
    assert unknown is not None
    with pytest.raises(RefusedError, match="share a socket"):
        placed_by_4_1(options_of("--bind-to socket"), unknown, 8)
