"""What NCCL writes of machines without a fault, reduced from published dumps: no warning, and no error."""

import pytest

from busbw.base.cpus import format_mask
from busbw.facts.platforms import find_platform
from busbw.model.finding import Finding
from busbw.topo.check import check
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import portable
from busbw.topo.origins.from_document import topologies_of
from busbw.topo.reference import reference_of_platform

_CPU = 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"'
_FAST = 'link_speed="32.0 GT/s PCIe" link_width="16"'
_SOCKET = '<nic><net name="eth0" dev="0" latency="0" speed="10000" port="0" guid="0x1" maxconn="65536" gdr="0"/></nic>'


def found(text: str, platform: str | None = None) -> dict[str, Finding]:
    document = read_document(f'<system version="1">\n{text}\n</system>\n'.encode(), "topo.xml")
    reference = reference_of_platform(find_platform(platform).platform) if platform else None
    return {each.code: each for each in check(document, reference)}


def gpu(bus: str) -> str:
    number = int(bus, 16)
    return f'<pci busid="0000:{bus}:00.0" class="0x030200" {_FAST}><gpu dev="{number}" sm="90" rank="{number}"/></pci>'


def nic(bus: str) -> str:
    net = f'<nic><net name="mlx5_{bus}" speed="400000" port="1"/></nic>'
    return f'<pci busid="0000:{bus}:00.0" class="0x020700" {_FAST}>{net}</pci>'


def switch(bus: str, link: str, *below: str) -> str:
    return f'<pci busid="0000:{bus}:00.0" class="0x060400" {link}>{"".join(below)}</pci>'


def cpu(number: int, mask: str, *below: str) -> str:
    return f'<cpu numaid="{number}" affinity="{mask}" {_CPU}>{"".join(below)}</cpu>'


def grave(findings: dict[str, Finding]) -> set[str]:
    return {each.code for each in findings.values() if each.severity != "note"}


def test_an_interface_without_a_pci_device_stands_below_the_numa_node_of_every_rank():
    text = cpu(0, "0000ffff", gpu("01"), _SOCKET) + cpu(1, "ffff0000", gpu("81"), _SOCKET)

    assert not found(text)


def test_a_port_of_a_pci_device_that_stands_twice_is_found_still():
    port = '<nic><net name="mlx5_0" speed="400000"/></nic>'
    text = cpu(0, "ffff", *(f'<pci busid="0000:0{bus}:00.0" class="0x020700" {_FAST}>{port}</pci>' for bus in "12"))

    assert found(text)["TOP032"].title == "net mlx5_0 stands two times"


@pytest.mark.parametrize(("guid", "is_one_hosts"), [("0x1", False), ("31", False), ("0x64774a0003a1420c", True)])
def test_numbers_that_are_no_guids_are_no_identity(guid: str, is_one_hosts: bool):
    text = cpu(0, "ffff", gpu("01"), _SOCKET.replace("0x1", guid))

    assert ("TOP035" in found(text)) is is_one_hosts


@pytest.mark.parametrize("link", ['link_speed="2.5 GT/s PCIe" link_width="1"', 'link_speed="5.0 GT/s PCIe"'])
def test_the_made_up_link_of_a_virtual_switch_is_a_note_where_gpu_and_nic_are_below_it(link: str):
    text = cpu(0, "ffff", switch("01", link, gpu("02"), nic("03")), switch("11", link, gpu("12"), nic("13")))
    findings = found(text)

    assert not grave(findings)
    assert findings["TOP086"].effect == (
        "NCCL plans what goes out of this switch, to CPUs and other switches, with "
        f"{'0.1875' if 'width' in link else '6'} GB/s in all"
    )


def test_a_slow_link_between_gpus_and_nics_is_a_warning_with_both_numbers_to_write():
    slow = 'link_speed="2.5 GT/s PCIe" link_width="1"'
    finding = found(cpu(0, "ffff", switch("01", slow, gpu("02")), switch("11", _FAST, nic("13"))))["TOP083"]

    assert finding.severity == "warn"
    assert finding.fix == 'link_speed="32.0 GT/s PCIe" link_width="16", if the slot is as fast as the device'


def test_the_bridge_of_an_amd_gpu_is_a_note():
    slot = 'link_speed="16.0 GT/s PCIe" link_width="8"'
    amd = gpu("02").replace('sm="90"', 'sm="104" gcn="910"')
    text = cpu(0, "ffff", switch("01", slot, amd), switch("11", _FAST, nic("13")))

    assert (grave(found(text)), "TOP086" in found(text)) == (set(), True)


def test_a_processor_one_generation_behind_its_gpus_is_a_note():
    text = cpu(0, "ffff", switch("01", _FAST.replace("32.0", "16.0"), gpu("02")), switch("11", _FAST, nic("13")))

    assert (grave(found(text)), "TOP086" in found(text)) == (set(), True)


def test_the_masks_of_a_host_without_hyperthreads_are_a_note_and_exchanged_ones_an_error():
    masks = {node: tuple(range(8 * node, 8 * node + 8)) for node in (1, 3, 5, 7)}
    right = "".join(cpu(node, format_mask(cpus, 4)) for node, cpus in masks.items())
    exchanged = "".join(cpu(node, format_mask(masks[8 - node], 4)) for node in masks)

    assert found(right, "oci-bm-gpu4-8")["TOP051"].severity == "note"
    assert not {"TOP049", "TOP045"} & set(found(right, "oci-bm-gpu4-8"))
    assert "TOP049" in found(exchanged, "oci-bm-gpu4-8")


def test_half_a_mask_on_one_node_only_is_an_error():
    text = cpu(1, format_mask(tuple(range(8, 16)), 4)) + cpu(3, "00000000,ff000000,00000000,ff000000")

    assert "TOP049" in found(text, "oci-bm-gpu4-8")


def test_a_file_of_rccl_is_called_so_and_not_broken():
    below = '<gpu dev="0" sm="94" gcn="gfx942" arch="38911" rank="0"><xgmi target="0000:02:00.0" count="1"/></gpu>'
    pci = f'<pci busid="0000:01:00.0" class="0x120000" {_FAST}>{below}</pci>'
    # Beside a NIC, but for the CPU: how far GPUDirect RDMA goes is for RCCL to say.
    text = f'<system version="2"><cpu numaid="0" affinity="ffff" {_CPU}>{pci}{nic("02")}</cpu></system>'
    findings = check(read_document(text.encode(), "topo.xml"))

    assert {(each.code, each.severity) for each in findings} == {("TOP014", "note")}
    assert 'version="2" is RCCL\'s' in {each.title for each in findings}


def test_a_file_of_version_2_without_amds_gpus_is_an_error():
    findings = check(read_document(f'<system version="2">{cpu(0, "ffff", gpu("01"))}</system>'.encode(), "topo.xml"))

    assert [(each.code, each.severity) for each in findings] == [("TOP004", "error")]


@pytest.mark.parametrize(
    ("attribute", "fix"), [("speed", "NCCL reads it of <net>"), ("id", None), ("linkspeed", "maybe: link_speed")]
)
def test_an_attribute_of_another_element_is_not_offered_itself(attribute: str, fix: str | None):
    text = cpu(0, "ffff", f'<nic {attribute}="1"><net name="eth0" speed="10000"/></nic>')

    assert found(text)["TOP009"].fix == fix


def linked(bus: str, *links: str) -> str:
    return gpu(bus).replace("/></pci>", f">{''.join(links)}</gpu></pci>")


def test_the_one_gpu_without_nvlinks_among_those_at_nvswitches_is_found():
    to_switch = '<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>'
    text = cpu(0, "ffff", linked("01", to_switch), linked("02", to_switch), linked("03", to_switch), gpu("04"))
    whole = text.replace(gpu("04"), linked("04", to_switch))

    assert found(text)["TOP096"].title == "GPU 0000:04:00.0 has no NVLinks, and the others have"
    assert not found(whole)


def test_a_bridge_between_two_of_three_gpus_is_fine():
    link = '<nvlink target="0000:{}:00.0" count="4" tclass="0x030200"/>'
    ends = linked("01", link.format("02")), linked("02", link.format("01"))

    assert not found(cpu(0, "ffff", *ends, gpu("03")))


def test_the_flat_list_of_a_virtual_machine_is_noted_once():
    flat = f'<cpu numaid="-1" {_CPU}>{gpu("05")}{gpu("06")}{nic("0d")}{nic("0e")}</cpu>'
    findings = found(flat)

    assert findings["TOP075"].evidence == "a CPU is on every way (GPUs: 2, NICs: 2)"
    assert not grave(findings)


def test_a_switch_or_a_chip_link_between_gpus_and_nics_is_not_flat():
    chip = linked("01", '<c2c bw="44712" count="5"/>')

    assert "TOP075" not in found(cpu(0, "ffff", switch("11", _FAST, gpu("12"), nic("13")), gpu("21"), nic("22")))
    assert "TOP075" not in found(cpu(0, "ffff", chip, nic("02")))


@pytest.mark.parametrize("node", [0, 1])
def test_nothing_is_said_of_gpudirect_rdma_where_the_port_or_the_gpu_cannot(node: int):
    blind = nic("02").replace("speed=", 'gdr="0" speed=')
    weak = gpu("01").replace("sm=", 'gdr="0" sm=')

    for end, port in ((gpu("01"), blind), (weak, nic("02"))):
        text = cpu(0, "0000ffff", end) + cpu(1, "ffff0000", port) if node else cpu(0, "ffff", end, port)
        assert not {"TOP070", "TOP075"} & set(found(text))


def test_a_gpu_below_its_generation_is_noted_where_numa_is_hidden_unless_it_is_beside_its_cpu():
    slow = gpu("01").replace("32.0", "16.0")
    chip = slow.replace("/></pci>", '><c2c bw="44712" count="5"/></gpu></pci>')
    findings = found(cpu(-1, "ffff", slow))

    assert findings["TOP087"].title == "GPU 0000:01:00.0 has 16 GT/s here and can do more"
    assert not grave(findings)
    for text in (cpu(0, "ffff", slow), cpu(-1, "ffff", chip), cpu(-1, "ffff", gpu("01"))):
        assert "TOP087" not in found(text)


def test_a_network_card_of_a_class_of_its_own_is_one_by_what_stands_in_it():
    card = nic("02").replace('class="0x020700"', 'class="0x00ff00" vendor="0x1ded"')

    assert "TOP026" not in found(cpu(0, "ffff", switch("01", _FAST, card, gpu("03"))))
    assert "TOP026" in found(cpu(0, "ffff", card.replace("<nic>", "<gin>").replace("</nic>", "</gin>")))


@pytest.mark.parametrize(("device", "code"), [("gpu", "0x020700"), ("gpu", "0x060400"), ("nic", "0x030200")])
def test_a_device_that_is_called_another_kind_than_what_stands_in_it_is_found(device: str, code: str):
    right = gpu("02") if device == "gpu" else nic("02")
    wrong = right.replace('class="0x030200"', f'class="{code}"').replace('class="0x020700"', f'class="{code}"')

    assert found(cpu(0, "ffff", wrong))["TOP026"].effect == "NCCL goes by what stands inside"


def test_ranks_that_share_a_gpu_list_its_links_once_each():
    to_switch = '<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>'
    ranks = "".join(f'<gpu dev="0" sm="90" rank="{rank}" gdr="1">{to_switch}</gpu>' for rank in range(2))
    shared = f'<pci busid="0000:01:00.0" class="0x030200" {_FAST}>{ranks}</pci>'

    assert not found(cpu(0, "ffff", shared, linked("02", to_switch)))


def efa(bus: str, speed: int) -> str:
    return nic(bus).replace("400000", str(speed)).replace("0x020700", "0x020000")


@pytest.mark.parametrize(("speed", "codes"), [(400000, set()), (300000, {"TOP066", "TOP102"}), (100000, {"TOP066"})])
def test_a_port_that_stands_for_all_of_its_gpu_hides_the_others(speed: int, codes: set[str]):
    near = cpu(0, "ffff", *(efa(bus, speed) for bus in ("52", "63", "74", "85")))
    far = cpu(1, "ffff0000", *(efa(bus, speed) for bus in ("96", "a7", "b8", "c9")))

    assert {"TOP066", "TOP102"} & set(found(near + far, "aws-p5")) == codes


def test_the_family_of_an_amd_processor_as_older_nccl_writes_it_has_the_true_one_as_its_fix():
    old = cpu(0, "ffff", gpu("01")).replace(_CPU, 'arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="17"')

    assert found(old)["TOP029"].fix == 'familyid="25"'
    rccls = old.replace('sm="90"', 'sm="304" gcn="gfx942"')
    assert "TOP029" not in found(rccls)
    for text, family in ((old, 25), (rccls, 175)):
        document = read_document(f'<system version="1">{text}</system>'.encode(), "topo.xml")
        assert portable(topologies_of(document)[0]).numa[0].family == family


def test_a_speed_that_a_virtual_machine_hides_has_that_of_the_device_as_its_fix():
    hidden = cpu(0, "ffff", gpu("01").replace("32.0 GT/s PCIe", "Unknown"))

    assert found(hidden)["TOP080"].fix == 'link_speed="32.0 GT/s PCIe", if the slot is as fast as the device'
    assert found(hidden.replace('sm="90" ', ""))["TOP080"].fix is None
