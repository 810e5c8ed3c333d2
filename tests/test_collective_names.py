"""Collectives as people, libraries and benchmarks write them, wherever a command takes one."""

import pytest
from click.testing import CliRunner

from busbw.base.collectives import COLLECTIVES, collective_named, not_a_collective
from busbw.cli.command import busbw

LIMIT = ("limit", "--platform", "azure-nd-h100-v5", "--nodes", "2", "--collective")
PREDICT = ("predict", "--platform", "azure-nd-h100-v5", "--nodes", "2", "--size", "1G")
ADVICE = ("env", "recommend", "--platform", "azure-nd-h100-v5", "--collective")


@pytest.mark.parametrize("name", COLLECTIVES)
def test_each_name_is_known_with_other_capitals_signs_and_libraries(name: str) -> None:
    joined = name.replace("_", "")
    spelled = (name, name.upper(), joined, name.replace("_", "-"), f"nccl{joined}", f"{name}_perf", f"MPI_{joined}")
    assert {collective_named(each) for each in spelled} == {name}


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("osu_bcast", "broadcast"),
        ("all_to_all_single", "alltoall"),
        ("all_gather_into_tensor", "all_gather"),
        ("reduce_scatter_tensor", "reduce_scatter"),
        ("alreduce", None),
        ("reduce_all", None),
        ("nccl", None),
        ("mpi", None),
        ("perf", None),
        ("_", None),
        ("", None),
        ("all_reduce" + "_" * 1000, "all_reduce"),
        ("all_reduce@1G", None),
    ],
)
def test_a_word_is_a_collective_or_none(said: str, name: str | None) -> None:
    assert collective_named(said) == name


@pytest.mark.parametrize("command", [LIMIT, PREDICT, ADVICE])
def test_commands_take_what_is_meant_and_say_of_a_slip_what_it_may_be(command: tuple[str, ...]) -> None:
    spelled, plain = (CliRunner().invoke(busbw, [*command, name]) for name in ("ncclAllGather", "all_gather"))
    assert spelled.stdout == plain.stdout
    assert spelled.exit_code == plain.exit_code == 0
    slip = CliRunner().invoke(busbw, [*command, "algather"])
    assert str(slip.exception).splitlines() == ["error: 'algather' is not a collective", "hint: maybe: all_gather"]


def test_a_run_measures_what_is_meant() -> None:
    planned = CliRunner().invoke(busbw, ["run", "--plan", "-b", "1M", "-n", "2", "ncclAllGather", "Bcast"])
    assert planned.exit_code == 0
    assert "all_gather (float32" in planned.stdout
    assert "broadcast (float32" in planned.stdout


def test_a_word_that_is_near_none_gets_all_of_them_and_long_ones_are_cut() -> None:
    refused = not_a_collective("x" * 10_000)
    assert refused.cause == f"'{'x' * 40}' is not a collective"
    assert refused.hint == "one of: " + ", ".join(COLLECTIVES)
