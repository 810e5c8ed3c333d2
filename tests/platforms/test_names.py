"""A platform is found by whatever people call it, and a name that is not known gets the ones that come close."""

import pytest

from busbw.base.errors import InputError
from busbw.facts.platforms import find_platform

from .files import platform_file, site_file

CLUSTER = platform_file(
    "blue-ai",
    '[match]\nskus = ["Standard_XY96_v9", "standard_xz*_v9"]\n[[variants]]\nsku = "BM.XY.2"\n',
    head="",
)
# HEAD calls it by its id; this one has names that need taking apart.
LAKE = site_file("lake", 'names = ["XY X900 v9 (XYv9)", "Lake"]\nprovider = "us"\nkind = "gpu"\n')


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("blue-ai", "blue-ai"),
        ("Blue-AI", "blue-ai"),
        ("blue ai", "blue-ai"),
        ("standard_xy96_V9", "blue-ai"),
        ("Standard_XZ12_v9", "blue-ai"),
        ("bm.xy.2", "blue-ai"),
        ("lake", "lake"),
        ("XY X900 v9", "lake"),
        ("xyv9", "lake"),
        ("xy_x900_v9 (xyv9)", "lake"),
    ],
)
def test_a_platform_is_found_by_any_of_its_names(name: str, expected: str) -> None:
    assert find_platform(name, (CLUSTER, LAKE)).platform.id == expected


@pytest.mark.parametrize(("name", "maybe"), [("blue", "blue-ai"), ("bleu-ai", "blue-ai"), ("xyv8", "lake")])
def test_an_unknown_name_gets_the_one_that_comes_close(name: str, maybe: str) -> None:
    with pytest.raises(InputError) as refused:
        find_platform(name, (CLUSTER, LAKE))
    assert refused.value.cause.endswith(f"maybe: {maybe}")
    assert refused.value.hint == f"busbw platform show {maybe}"


def test_a_name_that_comes_close_to_many_gets_some_of_them() -> None:
    with pytest.raises(InputError) as refused:
        find_platform("h100", ())
    assert refused.value.cause.count(", ") == 2
    assert refused.value.cause.endswith(" more")
    assert refused.value.hint == "busbw platform list"


def test_a_name_like_no_other_gets_the_list() -> None:
    with pytest.raises(InputError) as refused:
        find_platform("qqqqqqqqqq", (CLUSTER,))
    assert refused.value.cause == "no platform is called 'qqqqqqqqqq'"
    assert refused.value.hint == "busbw platform list"


@pytest.mark.parametrize(
    "name", ["", "-", "../../rules/run", "family/card", "sources", "*", "a" * 100_000, "\x1b[2J", "\udcff"]
)
def test_what_is_no_name_is_refused_politely(name: str) -> None:
    with pytest.raises(InputError) as refused:
        find_platform(name, (CLUSTER, site_file("family/card", "")))
    assert len(str(refused.value)) < 1000


def test_a_name_of_two_platforms_is_not_guessed() -> None:
    other = site_file("sea", 'names = ["Lake"]\nprovider = "us"\nkind = "gpu"\n')
    pond = site_file("pond", 'names = ["Lake"]\nprovider = "us"\nkind = "gpu"\n')
    with pytest.raises(InputError, match="is a name of 2 platforms: pond, sea"):
        find_platform("Lake", (other, pond))


def test_a_platform_that_extends_another_is_not_meant_by_the_others_sku() -> None:
    ours = platform_file("ours", head='extends = ["blue-ai"]\n')
    assert find_platform("Standard_XY96_v9", (CLUSTER, ours)).platform.id == "blue-ai"
    assert find_platform("ours", (CLUSTER, ours)).platform.match.skus == ()


def test_other_files_are_not_parsed_when_an_id_is_given() -> None:
    broken = site_file("broken", "[")
    assert find_platform("lake", (broken, LAKE)).platform.id == "lake"
    with pytest.raises(InputError, match="not valid TOML"):
        find_platform("xyv9", (broken, LAKE))
