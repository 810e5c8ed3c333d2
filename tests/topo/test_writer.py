"""Files are what NCCL's reader accepts, and what would break it is refused."""

import pytest
from msgspec import structs

from busbw.base.errors import InputError
from busbw.model.topology import Gpu, Net, NumaNode, NvLink, PciDevice, PciLink, Topology
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text


def gpu(number: int, numa: int = 0) -> PciDevice:
    return PciDevice(
        bus_id=f"{number:04x}:00:00.0", parent=None, numa=numa, kind="gpu", device_class="0x030200",
        link_speed="32.0 GT/s PCIe", link_width=16,
    )  # fmt: skip


def node(*devices: PciDevice, **values) -> Topology:
    numa = NumaNode(id=0, cpus=(0, 1, 40), architecture="x86_64", vendor="GenuineIntel", family=6, model=143)
    return Topology(numa=(numa,), devices=devices, **values)


def test_a_file_has_an_element_a_line_and_nothing_nccl_stumbles_on() -> None:
    topology = node(gpu(1), gpus=(Gpu(bus_id="0001:00:00.0", dev=0, gdr=True),))
    assert file_text(topology, ("Made by hand",)) == (
        "<!-- Made by hand -->\n"
        '<system version="1">\n'
        '  <cpu numaid="0" affinity="00000100,00000003" arch="x86_64" vendor="GenuineIntel" familyid="6"'
        ' modelid="143">\n'
        '    <pci busid="0001:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">\n'
        '      <gpu dev="0" gdr="1"/>\n'
        "    </pci>\n"
        "  </cpu>\n"
        "</system>\n"
    )


def test_every_mask_is_as_long_as_the_machine() -> None:
    nodes = (NumaNode(id=0, cpus=(0,)), NumaNode(id=1, cpus=(64,)))
    text = file_text(Topology(numa=nodes))
    assert 'affinity="00000000,00000000,00000001"' in text
    assert 'affinity="00000001,00000000,00000000"' in text


@pytest.mark.parametrize("comment", ["-->", "a --> b", "=====", "<system>", "\n\t=", "--", "a=" * 200])
def test_no_comment_breaks_a_file(comment: str) -> None:
    document = read_document(file_text(node(gpu(1)), (comment,)).encode(), "topo.xml")
    assert document.remarks == ()
    assert len(document.root.children[0].children) == 1


def test_the_most_that_nccl_reads_can_be_written() -> None:
    text = file_text(node(*(gpu(number) for number in range(253))))
    kinds = {(remark.kind, remark.effect) for remark in read_document(text.encode(), "topo.xml").remarks}
    assert kinds == {("too-many-children", "fails-older")}


@pytest.mark.parametrize(
    ("topology", "cause"),
    [
        (node(*(gpu(number) for number in range(254))), "NCCL's reader stops after 255"),
        (node(*(gpu(number) for number in range(5000))), "NCCL's reader stops after 255"),
        (node(gpu(1), nvlinks=(NvLink(gpu="0001:00:00.0", target="x", count=1),) * 260,
              gpus=(Gpu(bus_id="0001:00:00.0"),)), "NCCL's reader stops after 255"),
        (node(gpu(1), gpu(1)), "stands twice"),
        (node(gpu(1, numa=3)), "NUMA node 3"),
        (node(structs.replace(gpu(1), parent="0002:00:00.0")), "does not stand before it"),
        (node(gpu(1), nvlinks=(NvLink(gpu="0001:00:00.0", target="x", count=1),)), "is not a GPU"),
        (node(gpu(1), gpus=(Gpu(bus_id="0002:00:00.0"),)), "not a device of the topology"),
        (node(gpu(1), pci_links=(PciLink(device="0002:00:00.0", target="x"),)), "not a device of the topology"),
        (node(gpu(1), nets=(Net(name="a", bus_id="0002:00:00.0", numa=0),)), "not a device of the topology"),
        (node(gpu(1), nets=(Net(name="a", bus_id=None, numa=4),)), "NUMA node 4"),
        (node(gpu(1), name="a" * 254), "NCCL's reader takes 253"),
        (node(gpu(1), name="é" * 127), "254 bytes"),
        (node(gpu(1), name="'\""), "characters"),
        (node(gpu(1), name="a\nb"), "characters"),
        (Topology(numa=(NumaNode(id=0, cpus=(900,)),)), "affinity has 260 bytes"),
        (Topology(numa=(NumaNode(id=0), NumaNode(id=0))), "NUMA node stands twice"),
    ],
)  # fmt: skip
def test_what_would_break_or_get_lost_is_refused(topology: Topology, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        file_text(topology)
