"""Libraries, images and caches that somebody else made: read as they are, refused, or partly read, and never more."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_growth

from busbw.machine.read.built import read_binary
from busbw.machine.read.image import squash_tree
from busbw.machine.read.loader import cache_of

from .harnesses import feed
from .machine_harnesses import MACHINE_HARNESSES
from .machine_seeds import machine_seeds
from .stack_seeds import elf_file, loader_cache, sif_image, squash_image
from .test_parsers import damaged

NAMES = ("built_binary", "built_image", "built_package", "loader_cache")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_but_an_input_error_comes_out_whatever_is_read(name: str) -> None:
    @settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=300) | damaged(machine_seeds(name)))
    def read(data: bytes) -> None:
        feed(MACHINE_HARNESSES[name], data)

    read()


@pytest.mark.parametrize("name", NAMES[:2])
def test_every_byte_may_be_any(name: str) -> None:
    for seed in machine_seeds(name):
        for place in range(min(len(seed), 6000)):
            for value in (0, 0xFF, seed[place] ^ 0x80):
                if place < 200 or (value == 0xFF and place % 3 == 0):
                    feed(MACHINE_HARNESSES[name], seed[:place] + bytes((value,)) + seed[place + 1 :])


def test_the_seeds_say_what_they_hold() -> None:
    raw = elf_file(needs=("libfabric.so.1",))
    found = read_binary(lambda offset, count: raw[offset : offset + count], len(raw), "/x/libnccl-net.so")
    assert found is not None
    assert (found.role, found.version, found.interfaces) == ("plugin", "1.18.0", ("ncclNetPlugin_v6",))
    assert [str(code) for code in found.code] == ["sm_90", "compute_90"]
    assert cache_of(loader_cache()) == {
        "libc.so.6": ("/lib64/libc.so.6",),
        "libnccl.so.2": ("/opt/nccl/lib/libnccl.so.2",),
    }
    for image in (squash_image(), sif_image(squash_image())):
        tree = squash_tree(lambda offset, count, image=image: image[offset : offset + count], len(image))  # type: ignore[misc]
        assert tree.names("/lib") == ("libx.so", "libx.so.1")
        assert tree.target("/lib/libx.so.1").startswith("libx.so")
        opened = tree.opened("/lib/libx.so")
        assert opened is not None
        assert opened[0](0, opened[1]) == bytes(range(256)) * 17


@pytest.mark.parametrize("name", NAMES)
def test_a_long_input_takes_no_longer_than_its_length_explains(name: str) -> None:
    for seed in machine_seeds(name)[:1]:
        short, long = (seed + b"\0" * length for length in (6_000, 48_000))
        check_growth(lambda data: feed(MACHINE_HARNESSES[name], data), short, long, most=24)
