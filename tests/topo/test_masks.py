"""`topo masks`: the published lists come out, and bindings are judged."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.base.errors import BusbwError, ExitCode
from busbw.cli.command import busbw
from busbw.facts.platforms import find_platform
from busbw.measure.plan.masks import rank_masks
from busbw.topo.ranks.masks import cpus_beside_gpus

VENDORS = Path(__file__).parents[2] / ".." / "shared" / "facts" / "topo"
# A launcher configuration for NDv4 that Azure publishes, and the one of the article for NDv5.
NDV4 = (
    "ffffff000000,ffffff000000,ffffff,ffffff,ffffff000000000000000000,ffffff000000000000000000,"
    "ffffff000000000000,ffffff000000000000"
)
NDV5_SHARES = (
    "fff,fff000,fff000000,fff000000000,fff000000000000,fff000000000000000,fff000000000000000000,"
    "fff000000000000000000000"
)


def vendor_file(name: str) -> str:
    path = VENDORS / name
    if not path.exists():
        pytest.skip(f"no vendor files beside the repository: {path}")
    return str(path)


@pytest.mark.parametrize("source", ["azure-ndv4", "azure-ndv4-topo.xml"])
def test_the_published_list_for_ndv4_comes_out(source: str) -> None:
    masks = rank_masks(vendor_file(source) if source.endswith(".xml") else source)
    assert [place.numa for place in masks.ranks] == [1, 1, 0, 0, 3, 3, 2, 2]
    assert masks.forms[0].srun == f"--cpu-bind=mask_cpu:{NDV4}"


def test_the_published_shares_for_ndv5_come_out() -> None:
    node, share = rank_masks("azure-nd-h100-v5").forms
    assert (node.cpus, share.cpus) == ("node", "share")
    assert share.srun == f"--cpu-bind=mask_cpu:{NDV5_SHARES}"


@pytest.mark.parametrize("source", ["oci-bm-gpu4-8", "oci-bm-gpu-b4-8", "oci-topo-flattened.xml"])
def test_the_order_of_oracles_a100_comes_out(source: str) -> None:
    masks = rank_masks(vendor_file(source) if source.endswith(".xml") else source)
    assert [place.numa for place in masks.ranks] == [3, 3, 1, 1, 7, 7, 5, 5]


def test_every_form_names_the_same_cpus() -> None:
    for source in ("azure-ndv4", "oci-bm-gpu-h100-8", "oci-bm-gpu4-8"):
        for form in rank_masks(source).forms:
            for written in (form.srun, "taskset -c " + " ".join(form.taskset), "\n".join(form.rankfile)):
                judged = rank_masks(source, binding=written).readings[0]
                assert all(rank.fit == "right" for rank in judged.ranks), written
                assert len(judged.ranks) == 8


def test_bind_to_numa_with_ranks_by_node_is_wrong_on_ndv4() -> None:
    masks = rank_masks("azure-ndv4", binding="--bind-to numa --map-by ppr:8:node")
    fits = {reading.launcher: [rank.fit for rank in reading.ranks] for reading in masks.readings}
    assert fits["HPC-X 2, Open MPI 4.1"].count("wrong") == 6
    assert fits["Open MPI 5.0"].count("wrong") == 6
    assert masks.sufficient == ()


def test_nccl_that_ignores_affinity_moves_its_own_threads_only() -> None:
    masks = rank_masks("azure-ndv4", binding="--bind-to numa --map-by ppr:8:node", ignores_affinity=True)
    for reading in masks.readings:
        assert [rank.nccl_cpus for rank in reading.ranks] == [place.cpus for place in masks.ranks]
        assert any(rank.fit == "wrong" for rank in reading.ranks)


def test_hpc_x_gives_one_core_each_and_all_of_one_numa_node() -> None:
    readings = rank_masks("azure-nd-h100-v5", binding="--map-by ppr:8:node").readings
    assert [rank.numa for rank in readings[0].ranks] == [(0,)] * 8
    assert [rank.cpus for rank in readings[0].ranks] == [(cpu,) for cpu in range(8)]


def test_each_mpi_says_what_it_does_where_nothing_is_said() -> None:
    readings = {each.launcher: each for each in rank_masks("azure-ndv4", binding="default").readings}
    assert list(readings) == ["HPC-X 2", "Open MPI 4.1", "Open MPI 5.0", "Intel MPI", "MPICH", "srun"]
    assert [rank.numa for rank in readings["Intel MPI"].ranks] == [(0,), (0,), (1,), (1,), (2,), (2,), (3,), (3,)]
    assert {rank.fit for rank in readings["MPICH"].ranks} == {"partly"}
    assert readings["srun"].cannot_tell is not None
    # Options of Open MPI are not theirs, and shares that cut NUMA nodes are not published.
    assert all("MPI" in each.launcher for each in rank_masks("azure-ndv4", binding="--bind-to core").readings)
    three = rank_masks("azure-ndv4", binding="default", ranks=3).readings
    assert next(each for each in three if each.launcher == "Intel MPI").cannot_tell is not None


def test_sockets_are_told_of_a_platform_and_not_of_a_file() -> None:
    known = rank_masks("azure-ndv4", binding="--map-by socket --bind-to socket")
    assert all(reading.cannot_tell is None for reading in known.readings)
    unknown = rank_masks(vendor_file("azure-ndv4-topo.xml"), binding="--map-by socket --bind-to socket")
    assert all("socket" in (reading.cannot_tell or "") for reading in unknown.readings)


def test_what_mpirun_counts_but_nobody_gives_makes_no_answer() -> None:
    masks = rank_masks("oci-bm-gpu4-8", binding="--map-by numa --bind-to numa")
    assert all("not given" in (reading.cannot_tell or "") for reading in masks.readings)


@pytest.mark.parametrize(
    ("binding", "code"),
    [
        (None, ExitCode.OK),
        (f"mask_cpu:{NDV4}", ExitCode.OK),
        (f"mask_cpu:{NDV5_SHARES}", ExitCode.FINDINGS),
        ("none", ExitCode.OK),
        ("--bind-to numa --map-by ppr:8:node", ExitCode.FINDINGS),
        ("--cpu-bind=cores", ExitCode.CANNOT_TELL),
        ("--map-by l3cache", ExitCode.CANNOT_TELL),
    ],
)
def test_the_exit_code_follows_from_the_wrong_ranks(binding: str | None, code: ExitCode) -> None:
    arguments = ["topo", "masks", "azure-ndv4"]
    arguments += ["--binding", binding] if binding is not None else []
    for extra in ([], ["--json"]):
        done = CliRunner().invoke(busbw, [*arguments, *extra])
        assert done.exit_code == code, done.output
        if extra:
            assert json.loads(done.stdout)["name"] == "azure-ndv4"


def test_bad_text_is_one_clear_error() -> None:
    done = CliRunner().invoke(busbw, ["topo", "masks", "azure-ndv4", "--binding", "--bind-to nuna"])
    assert isinstance(done.exception, BusbwError)
    assert "nuna" in str(done.exception)


def test_cores_of_grace_counted_one_after_the_other_are_those_that_alps_shows():
    alps = find_platform("alps-gh200").platform
    shown = tuple(numa.cpus for numa in alps.numa)

    assert cpus_beside_gpus(alps) == shown == ("0-71", "72-143", "144-215", "216-287")
    assert cpus_beside_gpus(find_platform("isambard-ai-phase1").platform) == shown
    assert cpus_beside_gpus(find_platform("azure-nd-h100-v5").platform) == ()
