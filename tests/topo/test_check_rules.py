"""Single rules, where a whole file would hide what they say."""

from typing import get_args

import pytest
from tests.cost import check_cost

from busbw.facts.platforms import find_platform
from busbw.model.finding import Finding
from busbw.topo.buses import canonical, is_hidden, moved
from busbw.topo.check import check
from busbw.topo.file.document import Effect, Element, Kind, Remark, TopologyDocument
from busbw.topo.file.reader import read_document
from busbw.topo.reference import TopologyReference, guid_numbers, reference_of_platform

ROOT = Element(name="system", line=1, column=1)


def found(text: str, reference: TopologyReference | None = None) -> dict[str, Finding]:
    document = read_document(f'<system version="1">\n{text}\n</system>\n'.encode("latin-1"), "topo.xml")
    return {each.code: each for each in check(document, reference)}


def cpus(*masks: str) -> str:
    return "\n".join(
        f'<cpu numaid="{number}" affinity="{mask}" arch="arm64"><pci busid="000{number}:01:00.0" class="0x030200" '
        'link_speed="32.0 GT/s PCIe" link_width="16"/></cpu>'
        for number, mask in enumerate(masks)
    )


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("effect", get_args(Effect))
def test_every_remark_of_the_reader_becomes_a_finding(kind, effect):
    remark = Remark(kind=kind, effect=effect, line=3, column=7, text="a thing; NCCL does a thing", subject="nvlnk")

    findings = check(TopologyDocument(where="topo.xml", root=ROOT, remarks=(remark,)))

    assert [(str(each.place), each.evidence, each.effect) for each in findings if each.code != "TOP016"] == [
        ("topo.xml:3:7", "a thing", "NCCL does a thing")
    ]


def test_a_misspelt_element_and_attribute_are_offered_the_known_one():
    text = '<cpu numaid="0" arch="arm64" afinity="f"><pci busid="0001:01:00.0" class="0x0302"><gpus/></pci></cpu>'

    assert (found(text)["TOP007"].fix, found(text)["TOP009"].fix) == ("maybe: gpu", "maybe: affinity")


@pytest.mark.parametrize("masks", [("ff", "ff00"), ("00ff", "ff00"), ("f", "f0"), ("55555555", "aaaaaaaa")])
def test_masks_of_any_width_and_order_within_a_word_are_fine(masks):
    assert not {"TOP041", "TOP042", "TOP046", "TOP047"} & set(found(cpus(*masks)))


def test_a_kernel_that_writes_a_narrow_first_word_on_all_nodes_is_believed():
    # 40 CPUs: the kernel writes the first word with two digits.
    assert "TOP041" not in found(cpus("00,000fffff", "ff,fff00000"))
    assert "TOP041" not in found(cpus("1f,ffffffff", "e0,00000000"))
    assert found(cpus("00,000fffff", "f,fff00000"))["TOP041"].title == "mask word f has 1 digit"


def test_masks_of_grace_hopper_are_fine():
    text = cpus("000000ff,ffffffff,ffffffff", "0000ffff,ffffffff,ffffff00,00000000,00000000")

    assert not {"TOP041", "TOP042", "TOP045", "TOP046", "TOP047"} & set(found(text))


def test_masks_in_another_order_than_their_nodes_are_likely_exchanged():
    text = cpus("0000ff00", "000000ff", "00ff0000")

    assert found(text)["TOP047"].evidence == "node 0 has CPUs 8-15, node 1 has CPUs 0-7"
    assert found(text)["TOP047"].confidence == "likely"


@pytest.mark.parametrize(
    ("mask", "code"),
    [("", "TOP043"), (",", "TOP043"), ("0", "TOP043"), ("0xff", "TOP040"), ("0-7", "TOP040"), ("ff,,ff", "TOP040")],
)
def test_a_mask_that_is_none_is_named(mask, code):
    assert code in found(cpus(mask))


def test_a_list_of_cpus_is_turned_into_the_mask_it_means():
    assert found(cpus("0-23"))["TOP040"].fix == 'affinity="00ffffff"'
    assert found(cpus("0,1,2,35"))["TOP040"].fix == 'affinity="00000008,00000007"'
    assert "TOP040" in found(cpus("0000,0000"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0000:0f:00.0", "0000:0f:00.0"),
        ("00000000:0F:00.0", "0000:0f:00.0"),
        ("0f:00.0", "0000:0f:00.0"),
        ("10000:e1:00.0", "10000:e1:00.0"),
        ("0000:0f:3f.0", None),
        ("0000:0f:00.9", None),
        ("0000:0f:00", None),
        ("GPU0", None),
        ("", None),
    ],
)
def test_addresses_are_known_in_every_spelling(text, expected):
    assert canonical(text) == expected


@pytest.mark.parametrize("target", ["fffffff:ffff:ff", "fffffff:ff:ff.0", "FFFFFFFF:FF:FF.0"])
def test_hidden_switches_are_no_addresses(target):
    assert is_hidden(target)
    text = '<cpu numaid="0" arch="arm64"><pci busid="0001:01:00.0" class="0x0302"><gpu sm="90">'
    text += f'<nvlink target="{target}" count="18" tclass="0x068000"/></gpu></pci></cpu>'
    assert not {"TOP023", "TOP091", "TOP093"} & set(found(text))


def test_a_switch_that_only_the_file_knows_needs_its_class_and_a_real_device_does_not():
    bare = '<cpu numaid="0" arch="arm64"><pci busid="{}"/></cpu>'

    assert found(bare.format("ffff:ff:01.0"))["TOP020"].severity == "error"
    assert set(found(bare.format("0000:01:00.0"))) == {"TOP022"}


def test_guids_are_known_in_both_byte_orders_and_for_all_ports_of_a_card():
    printed, ncclwise = guid_numbers("946d:ae03:0050:709a"), guid_numbers("0x9a70500003ae6d94")

    assert set(printed) & set(ncclwise)
    assert set(guid_numbers("946d:ae03:0050:709b")) & set(ncclwise)
    assert guid_numbers("0x0") == guid_numbers("none") == guid_numbers(None) == guid_numbers("-1") == ()


def test_guids_of_another_host_are_found_and_those_of_this_one_are_fine():
    text = (
        '<cpu numaid="0" arch="arm64"><pci busid="0001:01:00.0" class="0x0207"><nic>'
        '<net name="mlx5_0" guid="0x9a70500003ae6d94" speed="400000"/></nic></pci></cpu>'
    )
    here = TopologyReference(name="node7", kind="host", guids=frozenset(guid_numbers("946d:ae03:0050:709a")))
    elsewhere = TopologyReference(name="node8", kind="host", guids=frozenset(guid_numbers("946d:ae03:0051:0000")))

    assert not {"TOP035", "TOP036"} & set(found(text, here))
    assert "TOP036" in found(text, elsewhere)


def test_two_buses_off_is_told_from_one():
    platform = reference_of_platform(find_platform("azure-ndv4").platform)
    gpus = "".join(f'<pci busid="{moved(gpu, 2)}" class="0x030200"/>' for gpu in platform.gpus)

    result = found(f'<cpu numaid="0" arch="x86_64">{gpus}</cpu>', platform)

    assert result["TOP062"].title == "addresses are 2 buses off"
    assert "2 subtracted" in result["TOP062"].evidence


def test_a_platform_without_addresses_still_counts_gpus_and_knows_their_links():
    reference = reference_of_platform(find_platform("gcp-a3-high").platform)
    gpus = "".join(
        f'<pci busid="0000:{bus:02x}:00.0" class="0x030200" link_speed="64.0 GT/s PCIe" link_width="16"/>'
        for bus in range(4, 11)
    )

    result = found(f'<cpu numaid="0" arch="x86_64">{gpus}</cpu>', reference)

    assert reference.gpus == {}
    assert result["TOP074"].title == "7 GPUs in the file, 8 in the machine"


def test_a_platform_without_addresses_still_knows_the_links_of_its_gpus():
    gpu = '<pci busid="0000:04:00.0" class="0x030200" link_speed="64.0 GT/s PCIe" link_width="16"/>'
    reference = TopologyReference(name="some-h100", kind="platform", gpu_GTps=32.0)

    assert "TOP082" in found(f'<cpu numaid="0" arch="x86_64">{gpu}</cpu>', reference)


def test_a_node_that_the_machine_does_not_have_is_found():
    reference = reference_of_platform(find_platform("azure-nd-h100-v5").platform)

    text = cpus("ffff", "ffff0000", "ffff,00000000").replace(":01:00.0", ":00:00.0")

    assert "TOP073" in found(text, reference)


def test_a_dump_of_several_hosts_is_said_once_and_not_taken_apart():
    hosts = "".join(f'<cpu host_hash="0x{n}" numaid="0" arch="arm64"/>' for n in range(1, 19))

    assert found(hosts)["TOP034"].title == "the file holds 18 hosts"
    assert not {"TOP031", "TOP033", "TOP072"} & set(found(hosts))


@pytest.mark.parametrize(
    "many",
    [
        '<cpu numaid="{}" affinity="ff" arch="arm64"/>',
        '<cpu numaid="{}" arch="arm64"><pci busid="0000:01:00.0" class="0x0302"/></cpu>',
        '<cpu numaid="0" affinity="' + "f" * 3000 + '{}"/>',
    ],
)
def test_a_huge_file_is_checked_in_a_moment_and_quoted_in_part(many):
    text = "\n".join(many.format(number) for number in range(2000))

    result = check_cost(lambda: found(text), most_s=5)

    assert "TOP005" in result
    assert max(len(each.evidence) for each in result.values()) <= 303
