"""The command that measures in turn what runs measured one after the other."""

import shlex

import pytest
from msgspec.structs import replace
from tests.judge.factories import make_plan, make_sweep

from busbw.cli.compare import compare
from busbw.cli.request import setting_of
from busbw.model.request import Request
from busbw.model.settings import JobEnvironment
from busbw.show.reproduce import command_in_turn

SIZES = (8, 16, 32)


def planned(binding="core", tag=None, sizes=SIZES, **environment):
    plan = make_plan(make_sweep("all_reduce", sizes))
    asked = Request(
        collectives=("all_reduce",),
        ranks=4,
        smallest_bytes=sizes[0],
        largest_bytes=sizes[-1],
        factor=2,
        stall_s=10,
        binding=None if binding == "core" else binding,
        tag=tag,
    )
    return replace(
        plan,
        tag=tag,
        request=asked,
        placement=replace(plan.placement, binding=binding),
        surroundings=JobEnvironment(where="this host", environment=environment),
    )


def settings_of(command):
    """Return the settings that `busbw compare` reads from a command, in words."""
    words = shlex.split(command)
    assert words[:2] == ["busbw", "compare"]
    given = compare.make_context("compare", words[2:]).params
    assert given["names"] == ("all_reduce",)
    settings = [setting_of(text, "--set") for text in given["settings"]]
    return [(each.environment, each.words) for each in settings]


def test_variables_in_which_runs_differ_are_the_settings():
    command = command_in_turn([planned(NCCL_DEBUG="WARN"), planned(NCCL_DEBUG="WARN", NCCL_PROTO="LL,Simple")])

    assert command == (
        "busbw compare all_reduce -b 8 -e 32 -f 2 --stall-timeout 10 --ranks 4 --set default --set NCCL_PROTO=LL,Simple"
    )
    assert settings_of(command) == [({}, ()), ({"NCCL_PROTO": "LL,Simple"}, ())]


def test_a_value_with_spaces_and_quotes_stays_one():
    command = command_in_turn([planned(UCX_TLS="a b"), planned(UCX_TLS="it's")])

    assert settings_of(command) == [({"UCX_TLS": "a b"}, ()), ({"UCX_TLS": "it's"}, ())]


def test_options_in_which_runs_differ_are_the_settings_and_those_of_all_are_not():
    command = command_in_turn([planned(tag="before"), planned("none", tag="after", sizes=(8, 16))])

    assert "--tag" not in command
    assert "-e 32" in command
    assert settings_of(command) == [({}, ()), ({}, ("--bind-to", "none"))]


def test_what_belongs_to_one_job_is_no_setting():
    assert command_in_turn([planned(SLURM_JOB_ID="1"), planned(SLURM_JOB_ID="2")]) is None


@pytest.mark.parametrize(
    "other",
    [
        planned(),
        replace(planned(NCCL_PROTO="LL"), placement=replace(planned().placement, hosts=("elsewhere",))),
        replace(planned(NCCL_PROTO="LL"), request=None),
    ],
    ids=["nothing differs", "other hosts", "nothing known of what was asked"],
)
def test_what_no_setting_can_ask_for_has_no_command(other):
    assert command_in_turn([planned(), other]) is None
