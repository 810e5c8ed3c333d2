"""The files that docs/platforms.md shows work as shown."""

import re
from pathlib import Path

import pytest

from busbw.facts.platforms import find_platform

from .files import site_file

PAGE = Path(__file__).parents[2] / "docs" / "platforms.md"
SHOWN = re.findall(r"`([a-z0-9-]+)\.toml`:\n\n```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_page_shows_files() -> None:
    assert [name for name, _ in SHOWN] == ["blue-h100", "azure-ndv4", "green-gb200"]


@pytest.mark.parametrize(("name", "text"), SHOWN, ids=[name for name, _ in SHOWN])
def test_a_file_that_the_page_shows_is_taken(name: str, text: str) -> None:
    resolved = find_platform(name, (site_file(name, text),))
    assert resolved.platform.id == name
    assert resolved.files[0].endswith(f"/{name}.toml")
    assert len(resolved.files) > 2


def test_a_partition_of_a_rack_is_a_domain_of_its_own_and_has_no_table_of_the_whole_rack() -> None:
    text = dict(SHOWN)["green-gb200"]
    partition = find_platform("green-gb200", (site_file("green-gb200", text),)).platform
    assert partition.nvlink.domain_gpus == 16
    assert (partition.sweeps, partition.published) == ((), ())
    assert partition.nvlink.gpu_Bps == find_platform("gb200-nvl72").platform.nvlink.gpu_Bps
