"""Settings as they are written, and what a launch gets of them."""

import os
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.judge.factories import make_plan

from busbw.api.interleave import AskedSide, order_of, parse_words, with_settings
from busbw.base.errors import InputError
from busbw.cli.options import run_options
from busbw.cli.request import letters, setting_of
from busbw.machine.capture.environment import variables_in_force
from busbw.model.request import Request, defaults
from busbw.model.settings import RecommendedLayer, RecommendedSetting, Setting


def test_words_are_variables_then_names_to_leave_out_then_options():
    found = parse_words(["NCCL_PROTO=LL", "NCCL_IB_HCA==mlx5_0", "-u", "NCCL_ALGO", "--register", "2"], "--set")

    assert found.environment == (("NCCL_PROTO", "LL"), ("NCCL_IB_HCA", "=mlx5_0"))
    assert found.unset == ("NCCL_ALGO",)
    assert found.options == ("--register", "2")


@pytest.mark.parametrize("words", [[], ["default"]])
def test_default_is_nothing(words):
    found = parse_words(words, "--set")

    assert (found.environment, found.unset, found.options) == ((), (), ())


@pytest.mark.parametrize("words", [["LL"], ["=LL"], ["2A=1"], ["A-B=1"], ["-u"], ["-u", "A=1"], ["A=1", "default"]])
def test_what_is_no_setting_is_refused(words):
    with pytest.raises(InputError):
        parse_words(words, "--set")


@pytest.mark.parametrize("word", ["HF_TOKEN=abcdef", "NCCL_X=hf_0123456789abcdef0123", "MY_PASSWORD=1"])
def test_a_secret_is_not_stored_as_a_setting(word):
    with pytest.raises(InputError, match="looks like a secret") as caught:
        parse_words([word], "--set")

    assert word.partition("=")[2] not in str(caught.value)


@given(st.lists(st.text(max_size=20), max_size=8))
def test_any_words_are_read_or_refused(words):
    try:
        found = parse_words(words, "--set")
    except InputError:
        return
    assert all("\0" not in value and name.isidentifier() for name, value in found.environment)


def side(**fields):
    return AskedSide(name="x", request=Request(), **fields)


def test_a_side_is_in_force_while_it_is_planned_and_no_longer(monkeypatch):
    monkeypatch.setenv("BUSBW_TEST_A", "before")
    monkeypatch.setenv("BUSBW_TEST_B", "before")

    with variables_in_force((("BUSBW_TEST_A", "now"), ("BUSBW_TEST_C", "new")), ("BUSBW_TEST_B",)):
        inside = {name: value for name, value in os.environ.items() if name.startswith("BUSBW_TEST")}

    assert inside == {"BUSBW_TEST_A": "now", "BUSBW_TEST_C": "new"}
    assert os.environ["BUSBW_TEST_A"] == os.environ["BUSBW_TEST_B"] == "before"
    assert "BUSBW_TEST_C" not in os.environ


def test_a_plan_has_a_sides_variables_once_and_not_those_left_out():
    plan = make_plan()
    plan = msgspec.structs.replace(
        plan, job=msgspec.structs.replace(plan.job, env=(("A", "old"), ("B", "1"), ("C", "2")))
    )

    job = with_settings(plan, side(environment=(("A", "new"),), unset=("B",))).job

    assert job.env == (("C", "2"), ("A", "new"))
    assert job.unset[-1:] == ("B",)


@given(st.integers(1, 5), st.integers(1, 40), st.integers(0, 2**32))
def test_every_block_has_every_side_once(sides, blocks, seed):
    order = order_of(sides, blocks, seed)

    by_block = [[side for block, side in order if block == number] for number in range(blocks)]
    assert all(sorted(block) == list(range(sides)) for block in by_block)
    assert order == order_of(sides, blocks, seed)


def test_the_order_of_a_block_depends_on_no_other():
    orders = Counter(tuple(side for _block, side in order_of(2, 3, seed)) for seed in range(4_000))

    # Three blocks of two sides: eight orders, each as likely as any other.
    assert len(orders) == 8
    assert all(400 <= count <= 600 for count in orders.values())


def test_orders_of_other_seeds_differ():
    assert len({order_of(2, 18, seed) for seed in range(50)}) > 40


def common(**fields):
    """Return the options of all sides as the command has them where none is given."""
    usual = {each.name: None for each in letters()} | {"recommended": False}
    assert {each.name for each in run_options()} <= set(defaults())
    return {**defaults(), **usual, "collectives": ("all_reduce",), **fields}


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("default", None),
        ("recommended", "bandwidth"),
        ("recommended --register 1", "bandwidth"),
        ("--recommended", "bandwidth"),
        ("--goal latency", "latency"),
        ("NCCL_PROTO=LL --goal nic-check", "nic-check"),
    ],
)
def test_a_side_may_have_what_is_recommended(text, goal):
    asked = setting_of(text, "--set").asked(common())

    assert (asked.request.goal, asked.name) == (goal, text)


def test_the_goal_of_a_side_goes_before_that_of_all():
    assert setting_of("--goal latency", "--set").asked(common(recommended=True)).request.goal == "latency"
    assert setting_of("default", "--set").asked(common(recommended=True)).request.goal == "bandwidth"


def recommended(*names):
    return RecommendedLayer(
        platform="azure-nd-h100-v5",
        goal="bandwidth",
        nodes=1,
        nccl="2.28.9",
        settings=tuple(
            RecommendedSetting(
                setting=Setting(name=name, value="1", layer="recommended", source="a source"),
                need="helps",
                topic="affinity",
                standing="applied",
            )
            for name in names
        ),
    )


def test_what_a_side_leaves_out_stays_out_though_it_is_recommended():
    plan = msgspec.structs.replace(make_plan(), recommended=recommended("NCCL_A", "NCCL_B"))
    made = with_settings(plan, side(unset=("NCCL_A",)))

    assert made.recommended.env() == {"NCCL_B": "1"}
    assert [each.why for each in made.recommended.standing("left_out")] == ["this side leaves it out: -u NCCL_A"]
    assert with_settings(plan, side(unset=("NCCL_C",))).recommended == plan.recommended
