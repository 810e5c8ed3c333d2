"""The files that docs/platforms.md shows work as shown."""

import re
from pathlib import Path

import pytest

from busbw.catalog.platforms import find_platform

from .files import site_file

PAGE = Path(__file__).parents[2] / "docs" / "platforms.md"
SHOWN = re.findall(r"`([a-z0-9-]+)\.toml`:\n\n```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_page_shows_files() -> None:
    assert [name for name, _ in SHOWN] == ["blue-h100", "azure-ndv4"]


@pytest.mark.parametrize(("name", "text"), SHOWN, ids=[name for name, _ in SHOWN])
def test_a_file_that_the_page_shows_is_taken(name: str, text: str) -> None:
    resolved = find_platform(name, (site_file(name, text),))
    assert resolved.platform.id == name
    assert resolved.files[0].endswith(f"/{name}.toml")
    assert len(resolved.files) > 2
