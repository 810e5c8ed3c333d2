"""The platforms that are shipped: each can be read, each fact has a source, and nothing lies there unused."""

from pathlib import Path

import msgspec
import pytest

from busbw.base.cpus import parse_cpu_list
from busbw.facts.platform_files import Layer, layer_of, layers, merged, shared_sources, without
from busbw.facts.platforms import find_platform, platform_ids
from busbw.model.platform import Platform, PlatformSection, ResolvedPlatform

DATA = Path(__file__).parents[2] / "src" / "busbw" / "data" / "platforms"
# As the issue that asked for the catalogue names them.
EXPECTED = {
    "azure-ndv2", "azure-ndv4", "azure-ndm-a100-v4", "azure-nd-h100-v5", "azure-nd-h200-v5", "azure-nd-mi300x-v5",
    "azure-nc-a100-v4", "azure-nc-h100-v5", "azure-hbv2", "azure-hbv3", "azure-hbv4", "azure-hxv1", "oci-bm-gpu4-8",
    "oci-bm-gpu-b4-8", "oci-bm-gpu-gm4-8", "oci-bm-gpu-h100-8", "isambard-ai-phase1", "isambard-ai-phase2",
    "alps-gh200", "aws-p4d", "aws-p4de", "aws-p5", "aws-p5e", "aws-p5en", "gcp-a2", "gcp-a3-high", "gcp-a3-mega",
    "gcp-a3-ultra", "nvidia-dgx-a100", "nvidia-dgx-h100", "gb200-nvl72", "coreweave-h100", "generic",
    "nvidia-hgx-b200", "nvidia-dgx-b200", "aws-p6-b200", "oci-bm-gpu-b200-8", "oci-bm-gpu-h200-8", "gcp-a4-high",
    "gb200-nvl36", "azure-nd-gb200-v6", "oci-bm-gpu-gb200-4", "oci-bm-gpu-gb200-v3", "gcp-a4x-high",
    "aws-p6e-gb200x36", "aws-p6e-gb200x72", "azure-hb", "azure-hc", "azure-nc24rs-v3", "isambard-3", "oci-bm-gpu3-8",
    "oci-bm-gpu-a10-4", "azure-nvads-a10-v5", "azure-nvv3",
}  # fmt: skip
IDS = platform_ids()
OWN_KEYS = ("source", "checked", "note")


@pytest.fixture(params=IDS)
def resolved(request: pytest.FixtureRequest) -> ResolvedPlatform:
    return find_platform(request.param)


def sections(platform: Platform) -> list[tuple[str, PlatformSection]]:
    found = []
    for name in Platform.__struct_fields__:
        held = getattr(platform, name)
        entries = [(name, held)] if isinstance(held, PlatformSection) else []
        if isinstance(held, tuple):
            entries = [
                (f"{name}[{place}]", each) for place, each in enumerate(held) if isinstance(each, PlatformSection)
            ]
        found += entries
    return found


def says_something(section: PlatformSection) -> bool:
    defaults = {field.name: field.default for field in msgspec.structs.fields(section)}
    return any(
        bool(value) and value != defaults[name]
        for name, value in msgspec.structs.asdict(section).items()
        if name not in OWN_KEYS
    )


def test_every_platform_that_was_asked_for_is_there() -> None:
    assert set(IDS) >= EXPECTED


# `generic` is no machine, and states nothing that could have a source.
@pytest.mark.parametrize("resolved", sorted(set(IDS) - {"generic"}), indirect=True)
def test_every_section_with_a_value_says_where_it_comes_from(resolved: ResolvedPlatform) -> None:
    without_source = [
        path for path, section in sections(resolved.platform) if says_something(section) and not section.source
    ]
    assert not without_source


def test_every_value_of_a_section_says_where_it_comes_from(resolved: ResolvedPlatform) -> None:
    bare = [
        origin.path
        for origin in resolved.origins
        if ("." in origin.path or "[" in origin.path)
        and not origin.path.startswith(("names[", "traps[", "missing["))
        and not origin.source
    ]
    assert not bare


def test_every_value_has_an_origin(resolved: ResolvedPlatform) -> None:
    platform, paths = resolved.platform, {origin.path for origin in resolved.origins}
    stated = {
        f"{name}.{key}"
        for name in Platform.__struct_fields__
        if isinstance(section := getattr(platform, name), PlatformSection)
        for key, value in msgspec.structs.asdict(section).items()
        if key not in ("source", "checked") and value and not isinstance(value, dict)
    }
    assert stated <= paths
    assert {origin.file for origin in resolved.origins} <= set(resolved.files)


def test_gpus_are_numbered_from_zero_in_the_order_of_their_addresses(resolved: ResolvedPlatform) -> None:
    gpus = resolved.platform.gpus
    assert [gpu.gpu for gpu in gpus] == list(range(len(gpus)))
    addresses = [gpu.bus_id for gpu in gpus]
    if None not in addresses:
        assert addresses == sorted(addresses)


def test_a_map_is_whole_or_says_what_is_missing(resolved: ResolvedPlatform) -> None:
    platform = resolved.platform
    most = max([platform.gpu.count, *(each.gpus or 0 for each in platform.variants)])
    assert len(platform.gpus) in (0, most)
    assert len(platform.nics) in (0, platform.nic.ports) or platform.missing
    listed = [cpu for node in platform.numa for cpu in parse_cpu_list(node.cpus or "") or ()]
    if len(platform.numa) == platform.cpu.numa_nodes and all(node.cpus for node in platform.numa):
        assert len(listed) == (platform.cpu.threads or len(listed))


def test_every_file_is_part_of_a_platform() -> None:
    used = {file for each in IDS for file in find_platform(each).files}
    there = {f"busbw/data/platforms/{path.relative_to(DATA)}" for path in DATA.rglob("*.toml")}
    assert there - used == {"busbw/data/platforms/sources.toml"}


def test_every_shared_source_is_cited() -> None:
    cited = {source.id for each in IDS for source in find_platform(each).platform.sources}
    declared = {entry["id"].value for entry in layer_of(shared_sources(())[0]).entries["sources"]}
    assert declared - cited == set()


def test_what_a_file_says_is_unknown_is_said_by_what_it_extends() -> None:
    idle = []
    for path in sorted(DATA.rglob("*.toml")):
        raw = msgspec.toml.decode(path.read_bytes())
        inherited = Layer()
        for file in (file for base in raw.get("extends", ()) for file in layers(base, ())):
            inherited = merged(inherited, layer_of(file))
        idle += [f"{path.name}: {each}" for each in raw.get("unknown", ()) if without(inherited, each, "") == inherited]
    assert not idle


def test_no_two_platforms_share_a_name() -> None:
    names = [name.lower() for each in IDS for name in find_platform(each).platform.names]
    assert len(names) == len(set(names))
