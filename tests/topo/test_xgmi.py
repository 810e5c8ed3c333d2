"""The links of AMD's GPUs: read from RCCL's files and from a host, counted as RCCL counts them, written again."""

import msgspec
import pytest

from busbw.model.topology import Gpu, NvLink, Topology
from busbw.show.topology_tree import link_lines
from busbw.topo.check import check
from busbw.topo.comparison import compare
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text
from busbw.topo.origins.from_document import topologies_of
from busbw.topo.paths.graph import xgmi_Bps
from busbw.topo.paths.matrix import meanings, path_matrix
from busbw.topo.paths.view import view_of

from .nodes import make_device, make_numa

GPUS = 8


def mesh(gcn: str | None = "gfx942", count: int = 1) -> Topology:
    """Return eight GPUs on two sockets, each joined to each other, and nothing between sockets but the CPUs' link."""
    gpus = tuple(
        Gpu(bus_id=f"00{place + 1}1:00:00.0", dev=place, rank=place, gdr=True, gcn=gcn) for place in range(GPUS)
    )
    return Topology(
        numa=tuple(make_numa(place) for place in range(2)),
        devices=tuple(
            make_device(gpu.bus_id, "gpu", numa=place // 4, device_class="0x120000", vendor="0x1002")
            for place, gpu in enumerate(gpus)
        ),
        gpus=gpus,
        nvlinks=tuple(
            NvLink(gpu=gpu.bus_id, target=other.bus_id, count=count, target_class="0x120000", kind="xgmi")
            for gpu in gpus
            for other in gpus
            if other is not gpu
        ),
    )


def reread(text: str) -> Topology:
    (topology,) = topologies_of(read_document(text.encode(), "rccl.xml"))
    return topology


def test_a_file_of_rccl_is_read_with_its_links_and_written_as_one():
    text = file_text(mesh())

    assert text.startswith('<system version="2">')
    assert text.count("<xgmi ") == GPUS * (GPUS - 1)
    assert 'gcn="gfx942"' in text
    assert "nvlink" not in text
    assert reread(text) == mesh()


def test_what_rccl_alone_knows_is_noted_and_no_fault():
    document = read_document(file_text(mesh()).encode(), "rccl.xml")

    assert {(each.code, each.severity) for each in check(document, None)} == {("TOP014", "note"), ("TOP022", "note")}


def test_compute_units_are_no_compute_capability():
    text = file_text(mesh()).replace('gcn="gfx942"', 'sm="304" gcn="gfx942"')

    assert {gpu.sm for gpu in reread(text).gpus} == {None}


@pytest.mark.parametrize(
    ("gcn", "GBps"),
    [
        ("gfx942", 48),
        ("gfx942:sramecc+:xnack-", 48),
        ("gfx950", 48),
        ("gfx90a", 36),
        ("910", 36),
        ("908", 24),
        ("gfx906", 24),
        ("gfx94", 48),
        ("", 24),
        (None, 24),
    ],
)
def test_a_link_counts_as_rccl_counts_it(gcn: str | None, GBps: float):  # noqa: N803 - a unit
    assert xgmi_Bps(gcn) == GBps * 1e9


def test_a_mesh_carries_what_the_links_of_one_gpu_do():
    view = view_of(mesh())
    ring, tree = view.ceilings

    assert ring.busbw_Bps == 7 * 48e9
    assert ring.formula == "XGMI links of one GPU to 7 GPUs: 336.0 GB/s"
    assert ring.limit == "XGMI links of GPU0"
    assert tree.busbw_Bps == pytest.approx(336e9)
    assert not [note for note in view.notes if "XGMI" in note or "NVLink" in note]


def test_links_are_told_by_their_name():
    assert link_lines(mesh())[0] == "XGMI: every pair of GPUs, 1 link, 48"
    two = msgspec.structs.replace(mesh(count=2), nvlinks=mesh(count=2).nvlinks[:1])
    assert link_lines(two)[0] == "XGMI: GPU0 2 to GPU1, 96"


def test_the_matrix_says_xgmi_and_explains_it():
    matrix = path_matrix(mesh())

    assert matrix.rows[0].cells == ("X", *["XGMI"] * 7)
    assert meanings(matrix)[-1][0] == "XGMI"
    without = path_matrix(msgspec.structs.replace(mesh(), nvlinks=()))
    assert without.rows[0].cells[7] == "SYS"
    assert "XGMI" not in dict(meanings(without))


def test_a_peer_that_is_not_there_is_no_switch():
    gone = NvLink(gpu="0011:00:00.0", target="00a1:00:00.0", count=1, target_class="0x120000", kind="xgmi")
    topology = msgspec.structs.replace(mesh(), nvlinks=(gone,))

    assert link_lines(topology)[0] == "XGMI: GPU0 1 to absent 00a1:00:00.0, 48"
    assert "XGMI" not in view_of(topology).ceilings[0].formula


def test_without_links_and_without_a_processor_the_reader_is_told():
    bare = view_of(msgspec.structs.replace(mesh(), nvlinks=()))
    assert any(note.startswith("no XGMI links are listed") for note in bare.notes)
    assert any("24 GB/s" in note for note in view_of(mesh(gcn=None)).notes)


def test_links_that_differ_are_a_difference():
    one = mesh()
    other = msgspec.structs.replace(
        one,
        nvlinks=tuple(
            msgspec.structs.replace(link, count=2) if link.gpu == "0011:00:00.0" else link for link in one.nvlinks
        ),
    )

    differences = [each for each in compare(one, other, ("one", "other")).differences if each.group == "XGMI links"]
    assert [each.subject for each in differences] == ["GPU 0011:00:00.0"]


def faults(text: str) -> dict[str, str]:
    return {each.code: each.title for each in check(read_document(text.encode(), "rccl.xml"), None)}


def test_links_that_cannot_be_are_found_as_nvlinks_are():
    text = file_text(mesh())
    first = '<xgmi target="0021:00:00.0" count="1"'

    assert faults(text.replace(first, first.replace('"1"', '"2"'), 1))["TOP092"] == (
        "XGMI links differ by direction between 0011:00:00.0 and 0021:00:00.0"
    )
    assert faults(text.replace(first, first.replace('"1"', '"0"'), 1))["TOP095"] == "a count of 0 XGMI links"
    assert faults(text.replace(first, first.replace("0021", "00a1"), 1))["TOP091"] == (
        "XGMI link to 00a1:00:00.0, which is not in the file"
    )
    assert faults(text.replace(first, first.replace("0021", "0011"), 1))["TOP090"] == (
        "GPU 0011:00:00.0 is its own XGMI link peer"
    )


def test_what_stands_inside_a_link_is_ignored():
    text = file_text(mesh()).replace(' tclass="0x120000"/>', ' tclass="0x120000"><pci busid="0000:01:00.0"/></xgmi>')

    assert reread(text) == mesh()
