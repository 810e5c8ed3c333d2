"""Every shipped platform, as a host that is exactly as published: known as itself, or not at all."""

import pytest
from msgspec import structs

from busbw.facts.platforms import all_platforms
from busbw.machine.detect.ladder import detect
from busbw.model.platform import Platform

from .machines import answer, hardware_of_platform, without_gpu

PLATFORMS = all_platforms()
NAMED = [each for each in PLATFORMS if each.match.service is not None]
MAPPED = [each for each in PLATFORMS if any(place.bus_id is not None for place in each.gpus)]
SKUS = [
    (each, sku)
    for each in NAMED
    for sku in dict.fromkeys((*each.match.skus, *(variant.sku for variant in each.variants)))
    if not set("*?[") & set(sku)
]
# What the published map and firmware are enough for; of the others too little is published, or several are alike.
KNOWN_BY_HARDWARE = {
    "azure-hbv2", "azure-hbv3", "azure-hbv4", "azure-hxv1", "azure-nc-a100-v4", "azure-nd-h100-v5",
    "azure-nd-h200-v5", "azure-nd-mi300x-v5", "azure-ndm-a100-v4", "azure-ndv2", "azure-ndv4", "gcp-a3-mega",
    "gcp-a3-ultra", "oci-bm-gpu-b4-8", "oci-bm-gpu-gm4-8", "oci-bm-gpu-h100-8", "oci-bm-gpu4-8", "azure-nd-gb200-v6",
    "gcp-a4-high", "gcp-a4x-high", "oci-bm-gpu-b200-8", "oci-bm-gpu-gb200-4", "oci-bm-gpu-gb200-v3",
    "oci-bm-gpu-h200-8", "azure-hb", "azure-hc", "azure-nc24rs-v3",
}  # fmt: skip
KNOWN_BY_FIRMWARE = {"aws-p4d", "aws-p4de", "aws-p5", "aws-p5e", "aws-p5en", "aws-p6-b200"}
# Known even where firmware and service cannot be read: map, names of NICs and CPUs of each NUMA node are their own.
KNOWN_WITHOUT_FIRMWARE = {
    "azure-nd-h100-v5",
    "azure-nd-h200-v5",
    "azure-ndm-a100-v4",
    "azure-ndv2",
    "azure-ndv4",
    "aws-p4d",
    "aws-p4de",
}
# Machines of two clouds of whose insides so little is published that the firmware alone tells them apart.
LOOK_ALIKES = {
    ("gcp-a3-ultra", "oci-bm-gpu-h200-8"),
    ("oci-bm-gpu-h200-8", "gcp-a3-ultra"),
    ("oci-bm-gpu-gb200-4", "gcp-a4x-high"),
}


def ids(platform: Platform) -> str:
    return platform.id


@pytest.mark.parametrize("platform", PLATFORMS, ids=ids)
def test_a_host_as_published_is_itself_or_unknown(platform: Platform) -> None:
    found = detect(hardware_of_platform(platform), (), PLATFORMS)
    assert found.platform in (platform.id, None)
    assert (found.platform is not None) == (platform.id in KNOWN_BY_HARDWARE | KNOWN_BY_FIRMWARE)
    assert found.contradictions == ()


@pytest.mark.parametrize("platform", MAPPED, ids=ids)
def test_a_host_with_a_published_map_is_at_least_a_candidate(platform: Platform) -> None:
    found = detect(hardware_of_platform(platform), (), PLATFORMS)
    standings = {each.platform: each.standing for each in found.candidates}
    assert standings[platform.id] in ("matches", "possible")


@pytest.mark.parametrize("platform", PLATFORMS, ids=ids)
def test_without_firmware_only_a_whole_map_with_names_of_its_own_is_enough(platform: Platform) -> None:
    found = detect(structs.replace(hardware_of_platform(platform), dmi={}), (), PLATFORMS)
    assert found.platform == (platform.id if platform.id in KNOWN_WITHOUT_FIRMWARE else None)


@pytest.mark.parametrize("platform", PLATFORMS, ids=ids)
def test_a_kind_of_gpu_alone_is_never_a_platform(platform: Platform) -> None:
    whole = hardware_of_platform(platform)
    hardware = structs.replace(whole, dmi={}, ports=(), pci=(), numa=(), cpus=(), cpu_model=None, memory_bytes=None)
    gpus = tuple(structs.replace(gpu, bus_id=f"0e{gpu.index:02x}:00:00.0") for gpu in hardware.gpus)
    found = detect(structs.replace(hardware, gpus=gpus), (), PLATFORMS)
    assert found.platform is None


@pytest.mark.parametrize("other", ["azure", "oci", "gcp"])
@pytest.mark.parametrize("platform", PLATFORMS, ids=ids)
def test_a_host_is_never_taken_for_one_of_another_cloud(platform: Platform, other: str) -> None:
    cloud = next(each for each in PLATFORMS if each.match.service == other)
    hardware = structs.replace(hardware_of_platform(platform), dmi=hardware_of_platform(cloud).dmi)
    found = detect(hardware, (), PLATFORMS)
    assert found.platform is None or found.platform.startswith(f"{other}-")
    if platform.match.service not in (other, None) and (platform.id, found.platform) not in LOOK_ALIKES:
        assert found.platform is None


@pytest.mark.parametrize(("platform", "sku"), SKUS, ids=lambda each: each if isinstance(each, str) else each.id)
def test_a_name_of_the_service_is_its_platform_whatever_the_case(platform: Platform, sku: str) -> None:
    assert platform.match.service is not None
    hardware = hardware_of_platform(platform)
    for name in (sku, sku.upper(), sku.lower()):
        found = detect(structs.replace(hardware, gpus=(), pci=()), (answer(platform.match.service, name),), PLATFORMS)
        assert (found.platform, found.sku, found.confidence, found.rung) == (platform.id, name, "certain", "metadata")


@pytest.mark.parametrize("platform", [each for each in NAMED if each.match.skus], ids=ids)
def test_a_whole_host_with_its_name_has_no_contradiction(platform: Platform) -> None:
    assert platform.match.service is not None
    named = answer(platform.match.service, platform.match.skus[0])
    assert detect(hardware_of_platform(platform), (named,), PLATFORMS).contradictions == ()


@pytest.mark.parametrize("platform", [each for each in NAMED if each.gpu.count > 1], ids=ids)
def test_a_host_that_has_lost_a_gpu_is_still_its_platform_and_says_so(platform: Platform) -> None:
    assert platform.match.service is not None
    hardware = without_gpu(hardware_of_platform(platform), 3 % platform.gpu.count)
    found = detect(hardware, (answer(platform.match.service, platform.match.skus[0]),), PLATFORMS)
    assert found.platform == platform.id
    (lost,) = found.contradictions
    count = platform.gpu.count
    assert lost.part == "GPU count"
    assert lost.text.startswith(f"{count - 1} of {count} GPUs are here")
    addresses = {place.gpu: place.bus_id for place in platform.gpus}
    if len(addresses) == count and None not in addresses.values():
        assert f"{addresses[3 % count]} is missing" in lost.text


@pytest.mark.parametrize("platform", [each for each in NAMED if each.gpu.count > 1], ids=ids)
def test_a_host_that_has_lost_a_gpu_is_never_taken_for_another(platform: Platform) -> None:
    found = detect(without_gpu(hardware_of_platform(platform), 0), (), PLATFORMS)
    assert found.platform in (platform.id, None)
