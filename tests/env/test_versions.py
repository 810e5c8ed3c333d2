"""Versions of NCCL: how they are written, and what each knows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.env.versions import beyond, default_in, known_in, newest, parse_version, reaches, spelled
from busbw.facts.envvars import owners, variable


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        ("2.18.3", (2, 18, 3)),
        ("2.28", (2, 28)),
        ("v2.28.9-1", (2, 28, 9)),
        ("2.28.9+cuda13.0", (2, 28, 9)),
        ("2.27.7.1", (2, 27, 7)),
        (" 2.30.7\n", (2, 30, 7)),
        ("22809", (2, 28, 9)),
        ("21805", (2, 18, 5)),
        ("2804", (2, 8, 4)),
    ],
)
def test_a_version_is_read_as_tags_wheels_logs_and_the_library_write_it(written: str, numbers: tuple[int, ...]) -> None:
    assert parse_version(written) == numbers


@pytest.mark.parametrize("text", ["", "latest", "2", "2.", "2.x", "2.28.9.1.1", "²·28", "228091234", "2.28\n2.29"])
def test_what_is_no_version_is_refused_with_how_to_write_one(text: str) -> None:
    with pytest.raises(InputError, match="is not a version") as refused:
        parse_version(text)
    assert refused.value.hint is not None


def test_every_known_version_is_spelled_as_it_is_read_and_they_are_in_order() -> None:
    listed = owners()["NCCL"].versions
    read = [parse_version(each) for each in listed]
    assert [spelled(each) for each in read] == list(listed)
    assert read == sorted(set(read))
    assert newest() == read[-1]


@pytest.mark.parametrize(
    ("name", "version", "standing"),
    [
        ("NCCL_NVLS_ENABLE", "2.16.5", "not yet"),
        ("NCCL_NVLS_ENABLE", "2.17.1", "yes"),
        ("NCCL_MNNVL", "2.20.5", "yes"),
        ("NCCL_MNNVL", "2.21.5", "removed"),
        ("NCCL_WORK_FIFO_DEPTH", "2.22.3", "removed"),
        ("NCCL_TREE_THRESHOLD", "2.4.8", "yes"),
        ("NCCL_TREE_THRESHOLD", "2.5.6", "removed"),
        ("NCCL_IB_TIMEOUT", "2.3.5", "yes"),
        # A series reads what any of its releases does.
        ("NCCL_MNNVL_SCATTER_NETS_ENABLE", "2.27", "yes"),
        ("NCCL_MNNVL_SCATTER_NETS_ENABLE", "2.27.3", "not yet"),
        ("NCCL_SHM_MEMCPY_MODE", "2.30", "yes"),
        ("NCCL_SHM_MEMCPY_MODE", "2.30.7", "removed"),
        ("NCCL_SHM_MEMCPY_MODE", "2.31", "removed"),
        ("NCCL_DEBUG", "2.99", "yes"),
    ],
)
def test_a_version_reads_what_came_before_it_and_has_not_gone(name: str, version: str, standing: str) -> None:
    assert known_in(variable(name), parse_version(version)) == standing


@pytest.mark.parametrize(
    ("version", "default"),
    [("2.13.4", "14"), ("2.14", "18"), ("2.22.3", "18"), ("2.23.4", "20"), ("2.32", "20"), ("2.1", None)],
)
def test_the_default_is_that_of_the_version(version: str, default: str | None) -> None:
    assert default_in(variable("NCCL_IB_TIMEOUT"), parse_version(version)) == default


def test_a_default_that_never_changed_holds_for_every_version() -> None:
    assert default_in(variable("NCCL_IB_RETRY_CNT"), (2, 10, 3)) == "7"


@pytest.mark.parametrize(("version", "words"), [("2.40.1", "newer"), ("2.33", "newer"), ("2.0.5", "older")])
def test_a_version_that_nobody_looked_at_is_called_so(version: str, words: str) -> None:
    assert words in (beyond(parse_version(version)) or "")


@pytest.mark.parametrize("version", ["2.3.5", "2.18.3", "2.32", "2.32.3", "2.28.5"])
def test_a_version_within_those_looked_at_is_not(version: str) -> None:
    assert beyond(parse_version(version)) is None


def test_a_series_reaches_what_its_last_release_does() -> None:
    assert reaches((2, 26), (2, 26, 2))
    assert not reaches((2, 26, 1), (2, 26, 2))
    assert not reaches((2, 25), (2, 26, 2))


@given(st.one_of(st.text(), st.from_regex(r"v?[0-9]{1,5}(\.[0-9]{0,5}){0,4}[-+a-z0-9.]*")))
def test_any_text_is_a_version_or_is_refused(text: str) -> None:
    try:
        numbers = parse_version(text)
    except InputError:
        return
    assert 2 <= len(numbers) <= 3
    assert parse_version(spelled(numbers)) == numbers
    assert beyond(numbers) is None or "NCCL" in (beyond(numbers) or "")
