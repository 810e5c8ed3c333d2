"""The number in a program's output, and the words of its command."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.fabric.groups.isolation import ReadRule
from busbw.fabric.groups.reading import check_command, command_of_group, read_result, read_rule

PLACES = {"hosts": "n0,n1", "hostfile": "/a b/hosts", "nodes": "2", "group": "r000g001", "folder": "/a b"}


@pytest.mark.parametrize(
    ("asked", "printed", "value"),
    [
        ("time: ([0-9.]+)", "time: 3.5 s\ntime: 4.5 s\ndone 7\n", 4.5),
        (r"bw=(\S+)", "bw=1 bw=2\n", 2.0),
        ("last-number", "step3 took 12.5 us\nrank n-17 done\n", 12.5),
        ("last-number", "2026-11-24 sum 1e3\n", 1000.0),
        ("last-number", "12.5GB/s", 12.5),
        ("exit-code", "whatever", 1.0),
    ],
)
def test_the_last_one_counts(asked, printed, value):
    assert read_result(read_rule(asked, higher_is_better=True), printed).value == value


@pytest.mark.parametrize(
    ("asked", "printed", "failure"),
    [
        ("time: ([0-9.]+)", "no such line", "nothing that 'time: ([0-9.]+)' matches"),
        ("last-number", "rank-3 done", "no number"),
        ("last-number", "", "no number"),
        ("last-number", "errors: 0", "is not a number above zero"),
        (r"bw=(\S+)", "bw=nan", "is not a number above zero"),
        (r"bw=(\S+)", "bw=-3", "is not a number above zero"),
        (r"bw=(\S+)", "bw=1_000", "is not a number above zero"),
        (r"bw=(\S+)", "bw=1e999", "is not a number above zero"),
    ],
)
def test_what_is_no_number_is_a_failure_and_no_zero(asked, printed, failure):
    found = read_result(read_rule(asked, higher_is_better=True), printed)

    assert found.value is None
    assert failure in found.failure


@pytest.mark.parametrize("text", ["time: [0-9]+", "(a)(b)", "(", "(a{99999999999})", "(" + "a" * 2000 + ")"])
def test_an_expression_has_one_group(text):
    with pytest.raises(InputError):
        read_rule(text, higher_is_better=True)


def test_it_must_be_said_which_numbers_are_better():
    with pytest.raises(InputError, match="not known which"):
        read_rule("last-number", higher_is_better=None)


@settings(max_examples=50)
@given(st.text())
def test_any_output_is_a_value_above_zero_or_a_failure(printed):
    for rule in (
        ReadRule(kind="last-number", higher_is_better=True),
        ReadRule(kind="pattern", pattern="(.*)", higher_is_better=False),
    ):
        found = read_result(rule, printed)
        assert (found.value is None) != (found.failure is None)
        assert found.value is None or found.value > 0


def test_placeholders_are_replaced_word_by_word_and_nothing_is_interpreted():
    command = ("run", "{hosts}", "--f={hostfile}", "$(rm {nodes})", "{group}; {other} {}", "{{hosts}}")

    assert command_of_group(command, PLACES) == (
        "run", "n0,n1", "--f=/a b/hosts", "$(rm 2)", "r000g001; {other} {}", "{n0,n1}",
    )  # fmt: skip


def test_what_is_put_in_is_not_replaced_again():
    assert command_of_group(("{hosts}",), {**PLACES, "hosts": "{folder}"}) == ("{folder}",)


@pytest.mark.parametrize("command", [(), ("mpirun", "prog"), ("prog", "{nodes}", "{group}"), ("a{hosts}", "b\0c")])
def test_a_command_says_which_hosts_a_group_has(command):
    with pytest.raises(InputError):
        check_command(command)
