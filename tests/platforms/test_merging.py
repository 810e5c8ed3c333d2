"""Files laid over each other: tables key by key, entries by what they are known by, lists one after the other."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.facts.platform_files import KNOWN_BY, LISTED, TABLES, Layer, PlatformFile, label, layer_of, merged, without
from busbw.model.platform import Platform

WORDS = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(0, 3)
SOURCES = st.lists(WORDS, max_size=2, unique=True)


def table(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({}, optional={**fields, "source": SOURCES, "checked": st.just("2026-11")})


def entries(key: str, values: st.SearchStrategy[object], **fields: st.SearchStrategy[object]):
    known = st.fixed_dictionaries({key: values}, optional={**fields, "source": SOURCES})
    return st.lists(known, max_size=3, unique_by=lambda entry: str(entry[key]))


def nic_by_name(names: list[str]) -> list[dict[str, object]]:
    return [{"name": name, "bus_id": f"000{name}:00:00.0"} for name in names]


RAW = st.fixed_dictionaries(
    {},
    optional={
        "provider": WORDS,
        "names": st.lists(WORDS, max_size=3),
        "traps": st.lists(WORDS, max_size=3, unique=True),
        "gpu": table(model=WORDS, count=NUMBERS),
        "match": table(skus=st.lists(WORDS, max_size=2), dmi=st.dictionaries(WORDS, WORDS, max_size=2)),
        "numa": entries("id", NUMBERS, cpus=WORDS),
        "settings": entries("name", WORDS, value=WORDS, reason=WORDS),
        "nics": st.lists(WORDS, max_size=3, unique=True).map(nic_by_name),
        "published": st.lists(table(test=WORDS, value=NUMBERS), max_size=2),
    },
)


def layer(raw: dict[str, object], name: str = "ours") -> Layer:
    return layer_of(PlatformFile(name=name, where=f"{name}.toml", raw=raw))


@settings(max_examples=150, deadline=None)
@given(RAW, RAW, RAW)
def test_it_does_not_matter_which_two_of_three_files_are_merged_first(a: dict, b: dict, c: dict) -> None:
    first, second, third = layer(a, "first"), layer(b, "second"), layer(c, "third")
    assert merged(merged(first, second), third) == merged(first, merged(second, third))


@settings(max_examples=50, deadline=None)
@given(RAW)
def test_a_file_laid_over_nothing_or_under_nothing_stays_as_it_is(raw: dict) -> None:
    stated = layer(raw)
    assert merged(Layer(), stated) == stated
    assert merged(stated, Layer()) == stated


@settings(max_examples=50, deadline=None)
@given(RAW)
def test_a_file_laid_over_itself_says_nothing_twice(raw: dict) -> None:
    stated = layer(raw)
    assert merged(stated, stated) == stated


def test_every_field_of_a_platform_is_merged_in_one_known_way() -> None:
    single = {"id", "provider", "kind", "status"}
    ways = [*TABLES, *KNOWN_BY, *LISTED, *single]
    assert sorted(ways) == sorted(field.name for field in msgspec.structs.fields(Platform))


def test_the_stronger_file_wins_key_by_key_and_each_value_keeps_its_own_source() -> None:
    weaker = layer({"gpu": {"model": "H100", "sm": 90, "source": ["a"], "checked": "2026-01"}}, "weaker")
    stronger = layer({"gpu": {"model": "H200", "source": ["b"]}}, "stronger")

    facts = merged(weaker, stronger).tables["gpu"]

    assert {name: (fact.value, fact.file, fact.source, fact.checked) for name, fact in facts.items()} == {
        "model": ("H200", "stronger.toml", ("b",), None),
        "sm": (90, "weaker.toml", ("a",), "2026-01"),
    }


def test_entries_keep_their_order_and_new_ones_follow() -> None:
    weaker = layer({"gpus": [{"gpu": 0, "numa": 1}, {"gpu": 1, "numa": 1}]})
    stronger = layer({"gpus": [{"gpu": 2, "numa": 0}, {"gpu": 1, "numa": 0}]})

    gpus = merged(weaker, stronger).entries["gpus"]

    assert [(entry["gpu"].value, entry["numa"].value) for entry in gpus] == [(0, 1), (1, 0), (2, 0)]


@pytest.mark.parametrize(
    "over",
    [
        {"name": "mlx5_0", "numa": 7},
        {"bus_id": "0000:0A:00.0", "numa": 7},
        {"bus_id": "0000:0a:00.0", "port": 1, "numa": 7},
        {"name": "ib0", "bus_id": "0000:0a:00.0", "numa": 7},
    ],
)
def test_a_nic_is_known_by_its_name_or_by_its_address_and_port(over: dict[str, object]) -> None:
    nics = [{"name": "mlx5_0", "bus_id": "0000:0a:00.0"}, {"name": "mlx5_1", "bus_id": "0000:0b:00.0"}]

    made = merged(layer({"nics": nics}), layer({"nics": [over]})).entries["nics"]

    assert len(made) == 2
    assert made[0]["numa"].value == 7


def test_another_port_at_the_same_address_is_another_nic() -> None:
    weaker = layer({"nics": [{"bus_id": "0000:0a:00.0"}]})
    made = merged(weaker, layer({"nics": [{"bus_id": "0000:0a:00.0", "port": 2}]}))
    assert len(made.entries["nics"]) == 2


def test_a_setting_for_another_goal_is_another_setting() -> None:
    weaker = layer({"settings": [{"name": "NCCL_ALGO", "value": "Ring"}]})
    stronger = layer({"settings": [{"name": "NCCL_ALGO", "goal": "sharp", "value": "NVLS"}]})
    made = merged(weaker, stronger).entries["settings"]
    assert [label("settings", entry) for entry in made] == ["NCCL_ALGO", "NCCL_ALGO, sharp"]


def test_lists_begin_with_the_stronger_file_and_hold_nothing_twice() -> None:
    weaker = layer({"traps": ["one", "two"], "published": [{"test": "t", "value": 1}]})
    stronger = layer({"traps": ["three", "one"], "published": [{"value": 1, "test": "t"}]})

    made = merged(weaker, stronger).listed

    assert [fact.value for fact in made["traps"]] == ["three", "one", "two"]
    assert len(made["published"]) == 1


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("gpu.sm", {"gpu": ["model"], "match": ["dmi"], "numa": ["0.id", "0.cpus", "1.id"], "traps": ["x"]}),
        ("gpu", {"match": ["dmi"], "numa": ["0.id", "0.cpus", "1.id"], "traps": ["x"]}),
        ("match.dmi", {"gpu": ["model", "sm"], "match": [], "numa": ["0.id", "0.cpus", "1.id"], "traps": ["x"]}),
        ("numa[0].cpus", {"gpu": ["model", "sm"], "match": ["dmi"], "numa": ["0.id", "1.id"], "traps": ["x"]}),
        ("numa[0]", {"gpu": ["model", "sm"], "match": ["dmi"], "numa": ["1.id"], "traps": ["x"]}),
        ("numa[9]", {"gpu": ["model", "sm"], "match": ["dmi"], "numa": ["0.id", "0.cpus", "1.id"], "traps": ["x"]}),
        ("traps", {"gpu": ["model", "sm"], "match": ["dmi"], "numa": ["0.id", "0.cpus", "1.id"]}),
    ],
)
def test_a_value_that_is_not_known_here_is_left_out(path: str, left: dict[str, list[str]]) -> None:
    stated = layer(
        {
            "gpu": {"model": "H100", "sm": 90},
            "match": {"dmi": {"sys_vendor": "x"}},
            "numa": [{"id": 0, "cpus": "0-3"}, {"id": 1}],
            "traps": ["x"],
        }
    )

    made = without(stated, path, "ours.toml")

    found = {name: list(facts) for name, facts in made.tables.items()}
    found |= {
        name: [f"{label(name, entry)}.{key}" for entry in entries for key in entry]
        for name, entries in made.entries.items()
    }
    found |= {name: [fact.value for fact in facts] for name, facts in made.listed.items()}
    assert found == left


def test_one_key_of_a_table_inside_a_section_can_be_left_out() -> None:
    stated = layer({"match": {"dmi": {"sys_vendor": "x", "product_name": "y"}}})
    made = without(stated, "match.dmi.sys_vendor", "ours.toml")
    assert list(made.tables["match"]["dmi"]) == ["product_name"]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "gpu.smm",
        "gpus.numa",
        "numa[0].cpu",
        "nothing",
        "gpu[0].sm",
        "traps[0]",
        "numa[0",
        "id",
        "a" * 5000,
        "gpu.\n",
    ],
)
def test_a_path_that_no_platform_has_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="which no platform has"):
        without(Layer(), path, "ours.toml")
