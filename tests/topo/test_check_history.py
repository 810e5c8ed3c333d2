"""Faults that published files have had, made again from the files of today."""

from functools import cache
from pathlib import Path

import pytest

from busbw.facts.platforms import all_platforms, find_platform, platforms_at
from busbw.model.finding import Finding
from busbw.topo.check import candidate_addresses, check, resemblance
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text
from busbw.topo.origins.from_platform import topology_of_platform
from busbw.topo.reference import TopologyReference, reference_of_platform

from .corruptions import cpus_of, read, written

VENDOR_FILES = Path(__file__).parents[2].parent / "shared" / "facts" / "topo"


def vendor_file(name: str) -> str:
    path = VENDOR_FILES / name
    if not path.exists():
        pytest.skip(f"{path} is not here: vendors' files are kept outside of this repository")
    return path.read_text()


@cache
def reference_for(platform: str) -> TopologyReference:
    return reference_of_platform(find_platform(platform).platform)


def found_alone(text: str) -> dict[str, Finding]:
    return {each.code: each for each in check(read_document(text.encode(), "topo.xml"))}


def found_against(text: str, platform: str) -> dict[str, Finding]:
    return {each.code: each for each in check(read_document(text.encode(), "topo.xml"), reference_for(platform))}


def found_by_likeness(text: str) -> tuple[str | None, dict[str, Finding]]:
    document = read_document(text.encode(), "topo.xml")
    like = resemblance(document, platforms_at(candidate_addresses(document)))
    findings = check(document, like.reference if like else None)
    return like.reference.name if like else None, {each.code: each for each in findings}


def exchanged_masks() -> str:
    """NDv5, May 2023 to January 2025: each node with the other's mask."""
    root = read(vendor_file("azure-ndv5-topo.xml"))
    first, second = cpus_of(root)
    masks = first.get("affinity", ""), second.get("affinity", "")
    first.set("affinity", masks[1])
    second.set("affinity", masks[0])
    return written(root)


def test_the_masks_of_ndv5_exchanged_are_found_in_every_way():
    text = exchanged_masks()

    against = found_against(text, "azure-nd-h100-v5")
    name, like = found_by_likeness(text)
    alone = found_alone(text)

    assert (set(against), against["TOP048"].confidence) == ({"TOP048"}, "certain")
    assert (name, set(like), like["TOP048"].confidence) == ("azure-nd-h100-v5", {"TOP048"}, "likely")
    assert (set(alone), alone["TOP047"].confidence) == ({"TOP047"}, "likely")


def test_the_remedy_for_exchanged_masks_is_the_right_mask():
    assert "00000000,0000ffff,ffffffff" in (found_against(exchanged_masks(), "azure-nd-h100-v5")["TOP048"].fix or "")


def test_the_order_of_ndv4_is_legitimate():
    assert found_alone(vendor_file("azure-ndv4-topo.xml")) == {}


def swapped_domains() -> str:
    """NDv4 until September 2023: nodes 0 and 1, and 2 and 3, with each other's devices."""
    root = read(vendor_file("azure-ndv4-topo.xml"))
    cpus = cpus_of(root)
    for one, two in ((0, 1), (2, 3)):
        cpus[one][:], cpus[two][:] = list(cpus[two]), list(cpus[one])
    return written(root)


def test_the_swapped_domains_of_ndv4_are_found_where_the_machine_is_known():
    against = found_against(swapped_domains(), "azure-ndv4")
    name, like = found_by_likeness(swapped_domains())

    assert set(against) == set(like) == {"TOP060"}
    assert against["TOP060"].title == "GPUs and NICs of NUMA nodes 0, 1, 2, 3 exchanged"
    assert (name, like["TOP060"].confidence) == ("azure-ndv4", "likely")


def test_the_swapped_domains_of_ndv4_cannot_be_told_from_the_file_alone():
    # It even looks more orderly than the truth.
    assert found_alone(swapped_domains()) == {}


def test_one_mask_on_all_nodes_is_certain_even_alone():
    root = read(vendor_file("azure-ndv4-topo.xml"))
    for cpu in cpus_of(root):
        cpu.set("affinity", "0000ffff,0000ffff")

    alone = found_alone(written(root))

    assert (set(alone), alone["TOP044"].confidence) == ({"TOP044"}, "certain")
    assert "TOP044" in found_against(written(root), "azure-ndv4")


def test_the_seven_digits_of_ocis_b4_are_found():
    """NUMA node 7 of OCI's file for BM.GPU.B4.8 begins with fff0000."""
    text = file_text(topology_of_platform(find_platform("oci-bm-gpu-b4-8").platform))
    assert text.count('affinity="ffff0000,') == 1
    broken = text.replace('affinity="ffff0000,', 'affinity="fff0000,')

    alone, against = found_alone(broken), found_against(broken, "oci-bm-gpu-b4-8")

    assert alone["TOP041"].title == against["TOP041"].title == "mask word fff0000 has 7 digits"


def p5_one_bus_off() -> str:
    """The file that was proposed for p5: each GPU on the first bus of its group, where the first NIC is in truth."""
    nics = sorted(reference_for("aws-p5").nics)
    groups = [nics[start : start + 4] for start in range(0, len(nics), 4)]
    lines = ['<system version="1">']
    for node in (0, 1):
        lines.append(f'<cpu numaid="{node}" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1">')
        for group in groups[4 * node : 4 * node + 4]:
            domain, bus, _device = group[0].split(":")
            number = int(bus, 16)
            lines.append(
                f'<pci busid="0000:{number:02x}:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>'
            )
            lines += [
                f'<pci busid="{domain}:{number + offset:02x}:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" '
                'link_width="16"/>'
                for offset in range(1, 5)
            ]
        lines.append("</cpu>")
    return "\n".join([*lines, "</system>\n"])


def test_p5_one_bus_off_is_found():
    every = check(read_document(p5_one_bus_off().encode(), "topo.xml"), reference_for("aws-p5"))
    name, like = found_by_likeness(p5_one_bus_off())

    assert [each.title for each in every if each.code == "TOP062"] == [
        "addresses are 4 buses off", "addresses are 1 bus off",
    ]  # fmt: skip
    assert name == "aws-p5"
    assert like["TOP062"].confidence == "likely"


def test_a_gpu_that_is_its_own_nvlink_peer_is_found_and_a_pair_is_not():
    """NCv4 since February 2024, and as it was before."""
    now = vendor_file("azure-ncv4-topo.xml")
    before = now
    for one, two in (("0001", "0002"), ("0003", "0004")):
        before = before.replace(f'target="{one}:', 'target="KEPT:').replace(f'target="{two}:', f'target="{one}:')
        before = before.replace('target="KEPT:', f'target="{two}:')

    assert found_alone(now)["TOP090"].severity == "error"
    assert "TOP090" not in found_alone(before)
    assert not {"TOP091", "TOP092", "TOP093"} & set(found_against(before, "azure-nc-a100-v4"))


def test_ndv2s_16_gt_is_found_where_the_devices_are_known_and_not_claimed_alone():
    text = vendor_file("azure-ndv2-topo.xml")
    name, like = found_by_likeness(text)

    assert "TOP082" in found_against(text, "azure-ndv2")
    assert (name, "TOP082" in like) == ("azure-ndv2", True)
    assert "TOP082" not in found_alone(text)


def test_the_guids_and_the_slow_switches_of_ocis_h100_are_found_alone():
    alone = found_alone(vendor_file("oci-H100-topology.xml"))

    assert alone["TOP035"].title == "the file carries the identity of one host: 16 GUIDs"
    assert alone["TOP086"].confidence == "certain"


@pytest.mark.parametrize(
    ("file", "platform"),
    [
        ("aws-p4d-24xl-topo.xml", "aws-p4d"),
        ("aws-p4de-24xl-topo.xml", "aws-p4de"),
        ("azure-ncv4-topo.xml", "azure-nc-a100-v4"),
        ("azure-ndv2-topo.xml", "azure-ndv2"),
        ("azure-ndv4-topo.xml", "azure-ndv4"),
        ("azure-ndv5-topo.xml", "azure-nd-h100-v5"),
        ("oci-H100-topology.xml", "oci-bm-gpu-h100-8"),
        ("oci-topo-flattened.xml", "oci-bm-gpu4-8"),
        ("aws-g5.48xl-topo.xml", None),
    ],
)
def test_a_file_is_most_like_the_machine_it_is_for(file, platform):
    assert found_by_likeness(vendor_file(file))[0] == platform


def test_the_search_for_addresses_leaves_out_no_platform_that_a_file_is_like():
    document = read_document(vendor_file("azure-ndv4-topo.xml").encode(), "topo.xml")

    quick = resemblance(document, platforms_at(candidate_addresses(document)))
    whole = resemblance(document, all_platforms())

    assert quick == whole
    assert quick is not None
    assert quick.also == ("azure-ndm-a100-v4",)
