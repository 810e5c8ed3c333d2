"""The registry of variables: strict, whole, and consistent in itself."""

import re
from collections.abc import Iterable

import msgspec
import pytest

from busbw.env.versions import parse_version
from busbw.facts.envvars import (
    EnvVarFile,
    by_name,
    meant_words,
    misspellings,
    owners,
    variable,
    variables,
    word_list,
)
from busbw.model.envvar import EnvVar

NCCL = [var for var in variables().values() if var.owner == "NCCL"]


def offenders(found: Iterable[EnvVar]) -> list[str]:
    return [var.name for var in found]


def test_nccl_has_all_of_its_variables() -> None:
    assert len(NCCL) >= 300
    assert len({var.name for var in NCCL}) == len(NCCL)


def test_a_variable_that_is_not_declared_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        variable("NCCL_MIN_CHANNELS")


def test_a_name_that_is_declared_twice_is_refused() -> None:
    debug = variable("NCCL_DEBUG")
    assert by_name([("a.toml", "A", debug), ("b.toml", "B", debug)]) == {"A": debug, "B": debug}
    with pytest.raises(ValueError, match=r"b\.toml: A is declared twice"):
        by_name([("a.toml", "A", debug), ("b.toml", "A", debug)])


def test_a_file_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unit"):
        msgspec.toml.decode(
            b'[[variable]]\nname = "A"\nowner = "B"\nkind = "int"\nmeaning = "."\nsource = "c"\nunit = 1',
            type=EnvVarFile,
        )


def test_every_variable_says_what_it_does_in_a_sentence() -> None:
    assert not offenders(var for var in NCCL if not re.fullmatch(r"[A-Z1].{15,190}\.", var.meaning))
    assert not offenders(var for var in NCCL for note in var.notes if not note.endswith("."))


def test_no_two_variables_are_described_alike() -> None:
    meanings = [var.meaning for var in NCCL]
    assert sorted(meanings) == sorted(set(meanings))


def test_every_variable_has_a_category_a_source_and_how_far_it_was_checked() -> None:
    assert not offenders(var for var in NCCL if None in (var.category, var.checked, var.documented) or not var.source)


def test_versions_are_versions_and_in_order() -> None:
    for var in NCCL:
        read = [parse_version(each) for each in (var.since, var.until) if each is not None]
        assert read == sorted(set(read)), var.name
        defaults = [parse_version(each) for each in var.defaults]
        assert defaults == sorted(set(defaults)), var.name


def test_a_version_that_the_registry_names_was_looked_at_or_is_said_to_be_from_the_manual() -> None:
    known = set(owners()["NCCL"].versions)
    for var in NCCL:
        if var.checked != "manual":
            assert {var.since, var.until, *var.defaults} - {None} <= known, var.name


def test_the_last_of_the_defaults_is_the_default() -> None:
    assert not offenders(var for var in NCCL if var.defaults and [*var.defaults.values()][-1] != var.default)


def test_a_switch_defaults_to_0_or_1() -> None:
    wrong = [var for var in NCCL if var.kind == "bool" and var.default not in {"0", "1", "TRUE", "FALSE"}]
    assert not offenders(wrong)


def test_a_number_defaults_to_a_number_within_its_limits() -> None:
    for var in NCCL:
        if var.kind in {"int", "size"} and var.default != "auto":
            assert var.default is not None, var.name
            number = int(var.default, 0)
            assert var.least is None or number >= var.least, var.name
            assert var.most is None or number <= var.most, var.name


def test_a_word_defaults_to_one_of_its_choices() -> None:
    for var in NCCL:
        # NCCL_NETDEVS_POLICY has none: one of its words holds a number.
        if var.choices and var.kind in {"enum", "level"} and var.default not in {"auto", "none"}:
            assert var.default in var.choices, var.name


def test_names_that_others_point_to_exist() -> None:
    for var in variables().values():
        for other in (var.replaced_by, var.same_as):
            assert other is None or other in variables(), f"{var.name}: {other}"


def test_what_stands_in_for_a_variable_is_still_read() -> None:
    for var in NCCL:
        if var.replaced_by is not None:
            assert variable(var.replaced_by).until is None or var.until is not None, var.name


def test_variables_that_a_note_names_exist() -> None:
    for var in NCCL:
        for name in re.findall(r"NCCL_[A-Z0-9_]*[A-Z0-9]\b", " ".join((var.meaning, *var.notes, var.accepted or ""))):
            known = name in variables() or name in misspellings()
            assert known or any(each.startswith(name) for each in variables()), f"{var.name}: {name}"


def test_a_misspelling_is_not_read_by_any_version_of_nccl_that_is_not_said_to_have_gone() -> None:
    for name in misspellings():
        declared = variables().get(name)
        if declared is not None and declared.owner == "NCCL":
            assert declared.until is not None, name


def test_what_was_meant_by_a_misspelling_exists() -> None:
    for name, each in misspellings().items():
        for intended in each.intended:
            assert intended in variables(), f"{name}: {intended}"


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("NCCL_IB_TIMEOUT", "20"),
        ("NCCL_BUFFSIZE", "4194304"),
        ("NCCL_NVLS_ENABLE", "2"),
        ("NCCL_CROSS_NIC", "2"),
        ("NCCL_IB_QPS_PER_CONNECTION", "1"),
        ("NCCL_IB_GID_INDEX", "-1"),
        ("NCCL_P2P_NET_CHUNKSIZE", "131072"),
        ("NCCL_IB_PCI_RELAXED_ORDERING", "2"),
        ("NCCL_COLLNET_ENABLE", "0"),
        ("NCCL_TOPO_FILE", "/var/run/nvidia-topologyd/virtualTopology.xml"),
    ],
)
def test_the_defaults_people_ask_for_are_there(name: str, default: str) -> None:
    assert variable(name).default == default


@pytest.mark.parametrize(
    ("name", "agreement"),
    [
        ("NCCL_ALGO", "same"),
        ("NCCL_PROTO", "same"),
        ("NCCL_NVLS_ENABLE", "same"),
        ("NCCL_IB_HCA", "any"),
        ("NCCL_DEBUG", "any"),
    ],
)
def test_the_registry_says_whether_ranks_must_agree(name: str, agreement: str) -> None:
    assert variable(name).agreement == agreement


@pytest.mark.parametrize(
    "name",
    ["NCCL_ALGO", "NCCL_DEBUG", "NCCL_DEBUG_LEVELS", "NCCL_DEBUG_SUBSYS", "NCCL_NET_GDR_LEVEL", "NCCL_P2P_LEVEL"],
)
def test_the_words_of_a_variable_are_those_that_its_parser_takes(name: str) -> None:
    words = {word.name for word in word_list(name).words}

    # Of the types of paths not all say something of GPUs and NICs.
    assert {choice.lower() for choice in variable(name).choices} <= {word.lower() for word in words}
    assert word_list(name).source
    assert set(meant_words(name).values()) <= words
