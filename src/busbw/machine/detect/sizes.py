"""The sizes that a platform is sold in."""

from msgspec import structs

from busbw.model.platform import Platform, Variant


def sizes_of(platform: Platform) -> tuple[Platform, ...]:
    """Return the platform as its file describes it, then each of its other sizes."""
    return (platform, *(_sized(platform, variant) for variant in platform.variants))


def size_called(platform: Platform, sku: str) -> Platform:
    """Return the platform in the size with this name.

    Where its file lists the name and does not say how that size differs, the number of CPUs and the memory are not
    known for it.
    """
    for variant in platform.variants:
        if variant.sku.lower() == sku.lower():
            return _sized(platform, variant)
    skus = platform.match.skus
    if len(skus) < 2 or skus[0].lower() == sku.lower():
        return platform
    return _without_cpu_count(structs.replace(platform, match=structs.replace(platform.match, memory_bytes=None)))


def _sized(platform: Platform, variant: Variant) -> Platform:
    sized = platform
    if variant.cores is not None and variant.cores not in (platform.cpu.cores, platform.cpu.threads):
        sized = _without_cpu_count(sized)
        sized = structs.replace(sized, cpu=structs.replace(sized.cpu, cores=variant.cores))
    if variant.memory_bytes is not None:
        sized = structs.replace(sized, match=structs.replace(sized.match, memory_bytes=variant.memory_bytes))
    if variant.gpu_memory_bytes is not None:
        sized = structs.replace(sized, gpu=structs.replace(sized.gpu, memory_bytes=variant.gpu_memory_bytes))
    if variant.nic_bps is not None:
        sized = structs.replace(sized, nic=structs.replace(sized.nic, port_bps=variant.nic_bps))
    if variant.gpus is not None and variant.gpus != platform.gpu.count:
        # The map is that of the size in the file.
        gpu = structs.replace(sized.gpu, count=variant.gpus)
        nic = structs.replace(sized.nic, ports=None)
        sized = _without_cpu_count(structs.replace(sized, gpu=gpu, nic=nic, gpus=(), nics=(), switches=()))
        sized = structs.replace(sized, cpu=structs.replace(sized.cpu, cores=variant.cores))
    return sized


def _without_cpu_count(platform: Platform) -> Platform:
    cpu = structs.replace(platform.cpu, cores=None, threads=None, numa_nodes=None, memory_bytes=None)
    return structs.replace(platform, cpu=cpu, numa=())
