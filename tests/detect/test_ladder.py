"""The ladder: who is believed, what is never guessed, and what is said of a host that is not as it should be."""

import pytest
from msgspec import structs
from tests.probe.hosts import snapshot_of
from tests.probe.machines import MACHINES

from busbw.facts.platforms import all_platforms
from busbw.machine.detect.ladder import detect
from busbw.machine.read.hardware import hardware_of
from busbw.model.host import Answer, Detection, Hardware, HostGpu, HostPort
from busbw.model.platform import GpuKind, Match, Platform, Variant

from .machines import answer, hardware_of_platform
from .services import AMAZON_DMI, AZURE_DMI, GOOGLE_DMI

PLATFORMS = all_platforms()
AZURE_H100 = hardware_of(snapshot_of(MACHINES["azure-nd-h100-v5"]))


def published(platform_id: str) -> Platform:
    return next(each for each in PLATFORMS if each.id == platform_id)


def near_miss(found: Detection, platform_id: str) -> tuple[str, ...]:
    """Why a platform is none."""
    (candidate,) = [each for each in found.candidates if each.platform == platform_id]
    assert candidate.standing == "near_miss"
    return candidate.differs


def test_the_service_is_believed_and_says_so() -> None:
    found = detect(AZURE_H100, (answer("azure", "Standard_ND96isr_H100_v5"),), PLATFORMS)
    assert (found.platform, found.confidence, found.rung) == ("azure-nd-h100-v5", "certain", "metadata")
    assert found.because == "the metadata service of Azure says Standard_ND96isr_H100_v5"
    assert near_miss(found, "azure-nd-h200-v5") == (
        "it is called Standard_ND96isr_H100_v5",
        "GPU is NVIDIA H100 80GB HBM3, not NVIDIA H200",
    )


def test_a_whole_document_of_a_service_is_read_too() -> None:
    whole = '{"compute": {"vmSize": "Standard_ND96isr_H100_v5", "location": "westeurope"}}'
    found = detect(AZURE_H100, (answer("azure", whole),), PLATFORMS)
    assert (found.platform, found.sku) == ("azure-nd-h100-v5", "Standard_ND96isr_H100_v5")


def test_without_the_service_the_map_in_its_cloud_is_enough() -> None:
    found = detect(AZURE_H100, (), PLATFORMS)
    assert (found.platform, found.confidence, found.rung) == ("azure-nd-h100-v5", "likely", "hardware")
    assert near_miss(found, "azure-nd-h200-v5") == ("GPU is NVIDIA H100 80GB HBM3, not NVIDIA H200",)
    assert "NICs are called" in near_miss(found, "coreweave-h100")[0]


@pytest.mark.parametrize("ended", ["failed", "absent", "timeout", "cut"])
def test_an_answer_that_is_none_counts_for_nothing(ended: str) -> None:
    bad = structs.replace(answer("azure", "Standard_ND96asr_v4"), ended=ended)
    assert detect(AZURE_H100, (bad,), PLATFORMS).platform == "azure-nd-h100-v5"


def test_firmware_that_names_the_kind_is_enough() -> None:
    found = detect(Hardware(hostname="node", dmi=AMAZON_DMI), (), PLATFORMS)
    assert (found.platform, found.confidence, found.rung) == ("aws-p5", "certain", "firmware")


def test_four_clouds_of_eight_h100_are_told_apart_by_name_alone() -> None:
    gpus = tuple(
        HostGpu(index=index, bus_id=f"0000:{index:02x}:00.0", name="NVIDIA H100 80GB HBM3") for index in range(8)
    )
    assert detect(Hardware(hostname="node", gpus=gpus), (), PLATFORMS).platform is None
    names = {"azure": "Standard_ND96isr_H100_v5", "oci": "BM.GPU.H100.8", "aws": "p5.48xlarge", "gcp": "a3-megagpu-8g"}
    found = [
        detect(Hardware(hostname="node", gpus=gpus), (answer(service, name),), PLATFORMS).platform
        for service, name in names.items()
    ]
    assert found == ["azure-nd-h100-v5", "oci-bm-gpu-h100-8", "aws-p5", "gcp-a3-mega"]


@pytest.mark.parametrize(
    ("name", "platform"),
    [
        ("Standard_ND96asr_MI200_v4", None),
        ("Standard_ND96asr_v4", "azure-ndv4"),
        ("Standard_ND96amsr_A100_v4", "azure-ndm-a100-v4"),
        ("Standard_HX176rs", "azure-hxv1"),
        ("Standard_HX176-24rs", "azure-hxv1"),
        ("Standard_HB176-24rs_v4", "azure-hbv4"),
        ("Standard_HB120-16rs_v3", "azure-hbv3"),
        ("Standard_NC24ads_A100_v4", "azure-nc-a100-v4"),
        ("Standard_NC40ads_H100_v5", "azure-nc-h100-v5"),
        ("Standard_ND96isrf_H200_v5", "azure-nd-h200-v5"),
        ("Standard_ND96isr_H100_v5_", None),
        ("Standard_ND128isr_NDR_GB200_v6", "azure-nd-gb200-v6"),
        ("Standard_D4s_v5", None),
    ],
)
def test_names_of_azure_that_look_alike(name: str, platform: str | None) -> None:
    found = detect(Hardware(hostname="node", dmi=AZURE_DMI), (answer("azure", name),), PLATFORMS)
    assert (found.platform, found.sku) == (platform, name)


@pytest.mark.parametrize(
    ("shape", "platform"),
    [
        ("BM.GPU.A100-v2.8", "oci-bm-gpu-gm4-8"),
        ("BM.GPU.GM4.8", "oci-bm-gpu-gm4-8"),
        ("BM.GPU4.8", "oci-bm-gpu4-8"),
        ("BM.GPU.GB200.4", "oci-bm-gpu-gb200-4"),
        ("BM.GPU.H200.8", "oci-bm-gpu-h200-8"),
        ("BM.GPU.B300.8", None),
    ],
)
def test_shapes_of_oracle_and_their_aliases(shape: str, platform: str | None) -> None:
    found = detect(Hardware(hostname="node"), (answer("oci", shape),), PLATFORMS)
    assert found.platform == platform


def test_a_name_that_no_platform_has_is_unknown_whatever_the_hardware_looks_like() -> None:
    found = detect(AZURE_H100, (answer("azure", "Standard_ND96isr_H100_v6"),), PLATFORMS)
    assert (found.platform, found.confidence, found.sku) == (None, None, "Standard_ND96isr_H100_v6")
    assert "Standard_ND96isr_H100_v6, which no platform here is called" in found.because
    assert near_miss(found, "azure-nd-h100-v5") == ("it is called Standard_ND96isr_H100_v6",)


def test_a_service_of_another_cloud_than_the_firmware_names_is_not_believed() -> None:
    found = detect(AZURE_H100, (answer("aws", "p5.48xlarge"),), PLATFORMS)
    assert (found.platform, found.rung) == ("azure-nd-h100-v5", "hardware")
    assert any("the firmware says Azure" in each.says for each in found.evidence if each.rung == "metadata")


def test_two_services_that_both_answer_are_not_believed() -> None:
    both = (answer("aws", "p5.48xlarge"), answer("oci", "BM.GPU.H100.8"))
    assert detect(Hardware(hostname="node"), both, PLATFORMS).platform is None


def test_lost_gpus_and_ports_are_reported_and_the_platform_stands() -> None:
    gone = {"mlx5_ib2", "mlx5_ib5"}
    hardware = structs.replace(
        AZURE_H100,
        gpus=AZURE_H100.gpus[:-1],
        ports=tuple(
            structs.replace(port, up=False) if port.name == "mlx5_ib0" else port
            for port in AZURE_H100.ports
            if port.name not in gone
        ),
    )
    found = detect(hardware, (answer("azure", "Standard_ND96isr_H100_v5"),), PLATFORMS)
    assert (found.platform, found.confidence) == ("azure-nd-h100-v5", "certain")
    texts = [each.text for each in found.contradictions]
    assert texts == [
        f"7 of 8 GPUs are here: {AZURE_H100.gpus[-1].bus_id} is missing",
        "6 of 8 ports of 400 Gb/s are here: mlx5_ib2, mlx5_ib5 are missing",
        "1 of the compute NIC's ports is down: mlx5_ib0",
    ]
    assert all(each.fix for each in found.contradictions)


def test_a_container_with_fewer_gpus_is_told_that_it_may_be_the_container() -> None:
    hardware = structs.replace(AZURE_H100, gpus=AZURE_H100.gpus[:2], container="docker")
    found = detect(hardware, (answer("azure", "Standard_ND96isr_H100_v5"),), PLATFORMS)
    (lost,) = found.contradictions
    assert "container (docker)" in (lost.fix or "")


def test_other_gpus_than_the_name_says_make_it_less_sure() -> None:
    gpus = tuple(structs.replace(gpu, name="NVIDIA A100-SXM4-80GB") for gpu in AZURE_H100.gpus)
    hardware = structs.replace(AZURE_H100, gpus=gpus)
    found = detect(hardware, (answer("azure", "Standard_ND96isr_H100_v5"),), PLATFORMS)
    assert (found.platform, found.confidence) == ("azure-nd-h100-v5", "likely")
    assert found.contradictions[0].text == "GPU is NVIDIA A100-SXM4-80GB, not NVIDIA H100 80GB HBM3"


def test_the_three_grace_hopper_systems_are_not_told_apart() -> None:
    found = detect(hardware_of(snapshot_of(MACHINES["gh200-slingshot"])), (), PLATFORMS)
    assert found.platform is None
    possible = [each.platform for each in found.candidates if each.standing == "possible"]
    assert possible == ["alps-gh200", "isambard-ai-phase1", "isambard-ai-phase2"]
    assert all(each in found.because for each in possible)


def test_a_slice_of_eight_h200_in_a_machine_of_its_own_is_unknown() -> None:
    found = detect(hardware_of(snapshot_of(MACHINES["h200-vm"])), (), PLATFORMS)
    assert found.platform is None
    assert "4 of 8 GPUs are here" in near_miss(found, "azure-nd-h200-v5")


def test_cpu_machines_of_one_board_are_told_apart_by_their_memory() -> None:
    hardware = hardware_of(snapshot_of(MACHINES["azure-hbv4"]))
    assert detect(hardware, (), PLATFORMS).platform == "azure-hbv4"
    hx = published("azure-hxv1").match.memory_bytes
    more = structs.replace(
        hardware, memory_bytes=hx, numa=tuple(structs.replace(n, memory_bytes=None) for n in hardware.numa)
    )
    assert detect(more, (), PLATFORMS).platform == "azure-hxv1"


def test_two_machines_of_google_with_one_map_are_not_told_apart_by_it() -> None:
    mega = hardware_of_platform(published("gcp-a3-mega"))
    cpus_of_high = structs.replace(mega, numa=hardware_of_platform(published("gcp-a3-high")).numa)
    found = detect(cpus_of_high, (), PLATFORMS)
    assert found.platform is None
    assert "gcp-a3-high, gcp-a3-mega" in found.because


def test_a_wide_pattern_of_a_site_is_only_likely_and_does_not_take_other_gpus() -> None:
    wide = structs.replace(
        published("azure-ndv4"),
        id="site-nd",
        match=structs.replace(published("azure-ndv4").match, skus=("standard_nd*v4",)),
    )
    others = tuple(each for each in PLATFORMS if each.id != "azure-ndv4")
    a100 = structs.replace(hardware_of_platform(published("azure-ndv4")), dmi=AZURE_DMI)
    found = detect(a100, (answer("azure", "Standard_ND96asr_v4"),), (wide, *others))
    assert (found.platform, found.confidence) == ("site-nd", "likely")
    mi200 = Hardware(
        hostname="node", dmi=AZURE_DMI, gpus=(HostGpu(index=0, bus_id="0001:00:00.0", name="AMD Instinct MI250X"),)
    )
    assert detect(mi200, (answer("azure", "Standard_ND96asr_MI200_v4"),), (wide, *others)).platform is None


def test_a_machine_of_a_site_is_known_by_the_words_of_its_firmware() -> None:
    own = Platform(
        id="site-box",
        names=("Our box",),
        provider="site",
        kind="gpu",
        match=Match(dmi={"product_name": "PowerEdge XE9680*"}),
    )
    dell = Hardware(hostname="n1", dmi={"sys_vendor": "Dell Inc.", "product_name": "PowerEdge XE9680"})
    found = detect(dell, (), (*PLATFORMS, own))
    assert (found.platform, found.confidence, found.rung) == ("site-box", "likely", "hardware")
    twin = structs.replace(own, id="site-box-2")
    assert detect(dell, (), (*PLATFORMS, own, twin)).platform is None


def test_a_machine_of_a_site_is_known_by_its_gpus_and_the_name_of_its_hosts() -> None:
    match = Match(hostnames=("blue-gpu*",), gpu_names=("NVIDIA H100 80GB HBM3",))
    own = Platform(id="blue", names=("Blue",), provider="site", kind="gpu", match=match, gpu=GpuKind(count=1))
    gpu = HostGpu(index=0, bus_id="0000:01:00.0", name="NVIDIA H100 80GB HBM3")
    hardware = Hardware(hostname="blue-gpu007", gpus=(gpu,))
    assert detect(hardware, (), (*PLATFORMS, own)).platform == "blue"
    assert detect(structs.replace(hardware, hostname="red-gpu007"), (), (*PLATFORMS, own)).platform is None
    a100 = structs.replace(gpu, name="NVIDIA A100-SXM4-80GB")
    assert detect(structs.replace(hardware, gpus=(a100,)), (), (*PLATFORMS, own)).platform is None


def test_a_size_of_a_platform_is_expected_in_its_own_numbers() -> None:
    own = structs.replace(
        published("azure-nc-a100-v4"),
        variants=(Variant(sku="Standard_NC24ads_A100_v4", gpus=1, cores=24, memory_bytes=220 * 2**30),),
    )
    gpu = HostGpu(index=0, bus_id="0001:00:00.0", name="NVIDIA A100 80GB PCIe")
    hardware = Hardware(hostname="n", dmi=AZURE_DMI, gpus=(gpu,), cpus=tuple(range(24)), memory_bytes=216 * 2**30)
    found = detect(hardware, (answer("azure", "Standard_NC24ads_A100_v4"),), (own,))
    assert (found.platform, found.contradictions) == ("azure-nc-a100-v4", ())


def test_a_host_that_says_nothing_is_unknown_without_candidates() -> None:
    found = detect(Hardware(hostname="node"), (), PLATFORMS)
    assert (found.platform, found.candidates, found.contradictions) == (None, (), ())
    assert [each.rung for each in found.evidence] == ["firmware", "metadata", "hardware"]


def test_an_empty_catalogue_knows_nothing() -> None:
    assert detect(AZURE_H100, (answer("azure", "Standard_ND96isr_H100_v5"),), ()).platform is None


def test_the_same_host_gives_the_same_answer_whatever_the_order_of_the_catalogue() -> None:
    forwards = detect(AZURE_H100, (), PLATFORMS)
    assert detect(AZURE_H100, (), tuple(reversed(PLATFORMS))) == forwards


def test_answers_of_other_programs_are_passed_over() -> None:
    other = Answer(name="nvidia-smi-topo", argv=("nvidia-smi",), ended="ok", output="Standard_ND96asr_v4")
    assert detect(AZURE_H100, (other,), PLATFORMS).rung == "hardware"


def test_google_says_which_cloud_and_not_which_machine() -> None:
    port = HostPort(name="eth0", port=1, bus_id=None, kind="Ethernet")
    found = detect(Hardware(hostname="node", dmi=GOOGLE_DMI, ports=(port,)), (), PLATFORMS)
    assert (found.platform, found.cloud) == (None, "gcp")
