"""Every fault is found, with the right code; right files have none but true ones."""

from collections import Counter
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from busbw.api.topologies import made_file
from busbw.base.errors import InputError
from busbw.facts.platforms import all_platforms, find_platform
from busbw.model.finding import Finding
from busbw.topo.check import check, resemblance
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text
from busbw.topo.origins.from_platform import topology_of_platform
from busbw.topo.reference import TopologyReference, reference_of_platform

from .corruptions import Corruption, corruptions, read, written

VENDOR_FILES = Path(__file__).parents[2].parent / "shared" / "facts" / "topo"
# What is truly wrong, or worth a note, in vendors' files as they are: the rules, and why each is right.
TRUE_FINDINGS = {
    # Entries without anything but an address leave all to detection, the architecture too (aws-ofi-nccl issue 785).
    "aws-g5.48xl-topo.xml": (None, {"TOP021", "TOP022"}),
    "aws-p4d-24xl-topo.xml": ("aws-p4d", set()),
    "aws-p4de-24xl-topo.xml": ("aws-p4de", set()),
    # Each GPU is its own NVLink peer, speeds are empty; the family is NCCL's number for Milan.
    "azure-ncv4-topo.xml": ("azure-nc-a100-v4", {"TOP029", "TOP080", "TOP090"}),
    # V100 and ConnectX-5 are Gen3; the only NIC is on NUMA node 0, and below no switch.
    "azure-ndv2-topo.xml": ("azure-ndv2", {"TOP070", "TOP075", "TOP082"}),
    "azure-ndv4-topo.xml": ("azure-ndv4", set()),
    "azure-ndv5-topo.xml": ("azure-nd-h100-v5", set()),
    # GUIDs of one host, switches with 5 GT/s up from Gen5 devices, ports at 180 instead of 200 Gb/s.
    "oci-H100-topology.xml": ("oci-bm-gpu-h100-8", {"TOP035", "TOP086", "TOP102"}),
    # The family is NCCL's number for Rome.
    "oci-topo-flattened.xml": ("oci-bm-gpu4-8", {"TOP029"}),
}  # fmt: skip
# Whose PCI maps were published when this was written.
MAPPED = {
    "alps-gh200", "aws-p4d", "aws-p4de", "azure-nc-a100-v4", "azure-nd-h100-v5", "azure-nd-h200-v5",
    "azure-ndm-a100-v4", "azure-ndv2", "azure-ndv4", "oci-bm-gpu-b4-8", "oci-bm-gpu-gm4-8", "oci-bm-gpu-h100-8",
    "oci-bm-gpu4-8",
}  # fmt: skip
# What cannot be found, since nobody has published the truth.
NOT_PUBLISHED = {("azure-ndv2", "narrower than the machine")}
# Where to try one kind of fault in one file: here at every place, elsewhere at a few.
MOST_PLACES = {"azure-ndv4-topo.xml": 100}
_CPU = 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="207"'
_LINK = 'link_speed="32.0 GT/s PCIe" link_width="16"'
_SWITCH = f'class="0x060400" vendor="0x1000" device="0xc030" {_LINK}'
_GPUS = ("0000:11:00.0", "0000:31:00.0", "0000:91:00.0")


def _group(number: int) -> str:
    """Return a switch with a GPU, linked to both others, and a NIC."""
    gpu = _GPUS[number]
    bus = gpu[5]
    nvlinks = "".join(f'<nvlink target="{peer}" count="9" tclass="0x030200"/>' for peer in _GPUS if peer != gpu)
    net = f'<net name="mlx5_{number}" dev="{number}" speed="400000" port="1" maxconn="131072" gdr="1"/>'
    return f"""<pci busid="0000:{bus}0:00.0" {_SWITCH}>
      <pci busid="{gpu}" class="0x030200" vendor="0x10de" device="0x2330" {_LINK}>
        <gpu dev="{number}" sm="90" rank="{number}" gdr="1">{nvlinks}</gpu>
      </pci>
      <pci busid="0000:{bus}2:00.0" class="0x020700" vendor="0x15b3" device="0x1021" {_LINK}>
        <nic>{net}</nic>
      </pci>
    </pci>"""


# A node as a dump shows it: links between GPUs, ports with names; two GPUs on one socket, one on the other.
OWN = f"""<system version="1">
  <cpu numaid="0" affinity="00000000,0000ffff,00000000,0000ffff" {_CPU}>
    {_group(0)}
    {_group(1)}
  </cpu>
  <cpu numaid="1" affinity="00000000,ffff0000,00000000,ffff0000" {_CPU}>
    {_group(2)}
  </cpu>
</system>
"""


@cache
def platform_files() -> dict[str, str]:
    """Return the file of every platform whose PCI map is published."""
    found = {}
    for platform in all_platforms():
        try:
            found[platform.id] = file_text(topology_of_platform(platform))
        except InputError:
            continue
    return found


def vendor_file(name: str) -> str:
    path = VENDOR_FILES / name
    if not path.exists():
        pytest.skip(f"{path} is not here: vendors' files are kept outside of this repository")
    return path.read_text()


def found_in(text: str, reference: TopologyReference | None = None) -> tuple[Finding, ...]:
    return check(read_document(text.encode(), "topo.xml"), reference)


def codes_in(text: str, reference: TopologyReference | None = None) -> set[str]:
    return {each.code for each in found_in(text, reference)}


@cache
def reference_for(platform: str) -> TopologyReference:
    return reference_of_platform(find_platform(platform).platform)


@pytest.mark.parametrize("name", sorted(TRUE_FINDINGS))
def test_a_vendors_file_has_no_findings_but_true_ones(name):
    platform, expected = TRUE_FINDINGS[name]

    assert codes_in(vendor_file(name), reference_for(platform) if platform else None) == expected


@pytest.mark.parametrize("name", sorted(TRUE_FINDINGS))
def test_a_vendors_file_alone_has_no_findings_that_its_machine_would_not_confirm(name):
    assert codes_in(vendor_file(name)) <= TRUE_FINDINGS[name][1]


def test_the_platforms_that_had_a_map_still_have_one():
    assert set(platform_files()) >= MAPPED


@pytest.mark.parametrize("name", platform_files())
def test_a_file_made_from_a_platform_has_no_warnings(name):
    for text in (platform_files()[name], made_file(name).text):
        for reference in (None, reference_for(name)):
            assert [each for each in found_in(text, reference) if each.severity != "note"] == []


def test_a_plain_file_has_no_findings():
    # Two GPUs on one node and one on the other is uneven, and says so.
    assert codes_in(OWN) == {"TOP072"}


@pytest.mark.parametrize("other", ["oci-bm-gpu4-8", "aws-p4d", "gcp-a3-mega"])
def test_a_file_of_another_machine_is_one_finding(other):
    found = found_in(platform_files()["azure-nd-h100-v5"], reference_for(other))

    assert [each.code for each in found] == ["TOP076"]


def test_a_machine_whose_addresses_are_not_published_is_not_another():
    assert "TOP076" not in codes_in(platform_files()["azure-nd-h100-v5"], reference_for("gcp-a3-high"))


def test_one_known_address_is_enough_to_compare_the_rest():
    text = platform_files()["azure-nd-h100-v5"].replace("0001:00:00.0", "0000:0f:00.0")

    found = codes_in(text, reference_for("oci-bm-gpu4-8"))

    assert "TOP076" not in found
    assert {"TOP064", "TOP065"} <= found


def titles(findings: tuple[Finding, ...]) -> Counter[tuple[str, str]]:
    return Counter((each.code, each.title) for each in findings)


def missed(base: str, references: dict[str, TopologyReference | None], most_places: int) -> list[str]:
    """Return the faults of which no expected rule speaks, or of which too much is claimed."""
    true = {name: titles(found_in(base, reference)) for name, reference in references.items()}
    every = sorted(corruptions(base), key=lambda each: each.kind)
    wrong = []
    for kind, group in groupby(every, key=lambda each: each.kind):
        for each in some_of(list(group), most_places):
            document = read_document(each.text.encode(), "topo.xml")
            for name, reference in references.items():
                if (name, kind) not in NOT_PUBLISHED:
                    expected = each.known if reference is not None else each.alone
                    wrong += judged(each, check(document, reference), true[name], expected, name)
    return wrong


def judged(
    fault: Corruption,
    findings: tuple[Finding, ...],
    true: Counter[tuple[str, str]],
    expected: frozenset[str],
    against: str,
) -> list[str]:
    fresh = {code for code, _title in titles(findings) - true}
    where = f"{fault.kind} at {fault.place}, against {against}"
    if expected and not fresh & expected:
        return [f"{where}: {sorted(expected)} not in {sorted(fresh)}"]
    sure = {each.code for each in findings if each.severity == "error" and each.confidence == "certain"}
    claimed = sorted(sure & fresh)
    return [f"{where}: {claimed} cannot be certain"] if not expected and claimed else []


def some_of(faults: list[Corruption], most: int) -> list[Corruption]:
    """Return at most so many, from all over the file."""
    return faults[:: -(-len(faults) // most)]


@pytest.mark.parametrize("name", sorted(TRUE_FINDINGS))
def test_every_fault_in_a_vendors_file_is_found(name):
    text, platform = written(read(vendor_file(name))), TRUE_FINDINGS[name][0]
    references = {"itself": None} | ({platform: reference_for(platform)} if platform else {})

    assert missed(text, references, MOST_PLACES.get(name, 3)) == []


@pytest.mark.parametrize("name", platform_files())
def test_every_fault_in_a_platforms_file_is_found(name):
    text = written(read(platform_files()[name]))

    assert missed(text, {name: reference_for(name)}, 2) == []


def test_every_fault_in_a_plain_file_is_found():
    assert missed(OWN, {"itself": None}, 100) == []


def test_most_faults_that_need_the_machine_are_found_though_nobody_names_it():
    base = written(read(vendor_file("azure-ndv4-topo.xml")))
    platforms = all_platforms()
    faults = [each for each in corruptions(base) if each.known and not each.alone]
    found = Counter()

    for fault in some_of(faults, 120):
        document = read_document(fault.text.encode(), "topo.xml")
        like = resemblance(document, platforms)
        assert like is None or like.reference.name == "azure-ndv4", f"{fault.kind} at {fault.place}"
        findings = check(document, like.reference if like else None)
        found[bool({each.code for each in findings} & fault.known)] += 1

    assert found[False] == 0
    assert found[True] > 50
