"""What to do is wrapped at words, and whatever is to be copied can be copied."""

import io
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text
from tests.judge.factories import make_measurement, make_plan

from busbw.judge.expectation import advice
from busbw.model.plan import Placement
from busbw.show.lines import action_lines, say
from busbw.show.words import placement_words

PS = "ps -eLo psr,pid,pcpu,comm --sort=-pcpu"
WORDS = st.lists(st.text(alphabet="abcdefghij", min_size=1, max_size=12), min_size=1, max_size=40)


def said(words: str, width: int, *, is_terminal: bool = True) -> list[str]:
    out = Console(file=io.StringIO(), width=width, force_terminal=is_terminal, color_system=None)
    say(out, Text(words))
    return out.file.getvalue().splitlines()


def pasted(lines: tuple[str, ...], first_word: str) -> list[str]:
    """Return the arguments that a shell reads when the lines of a command are copied."""
    start = next(place for place, line in enumerate(lines) if line.strip().startswith(first_word))
    end = start
    while lines[end].endswith("\\"):
        end += 1
    return shlex.split("\n".join(lines[start : end + 1]).replace("\\\n", ""))


def test_a_long_command_stands_on_a_line_of_its_own_without_its_backticks() -> None:
    lines = action_lines("fix", f"measure again when it is quiet, or with fewer ranks; what runs: `{PS}`", 80)

    assert lines == (
        "  fix: measure again when it is quiet, or with fewer ranks; what runs:",
        f"         {PS}",
    )


def test_what_follows_a_command_begins_with_a_word() -> None:
    lines = action_lines("fix", f"look for a process beside the ranks (`{PS}`), and measure again", 60)

    assert [line.strip() for line in lines] == [
        "fix: look for a process beside the ranks",
        PS,
        "and measure again",
    ]


@pytest.mark.parametrize("width", [30, 40, 60, 80])
def test_a_command_wider_than_the_terminal_is_the_same_command_when_it_is_pasted(width: int) -> None:
    command = "busbw compare all_reduce --backend nccl --set default --set 'NCCL_ALGO=a b' --set NCCL_MIN_NCHANNELS=32"

    lines = action_lines("next", f"more channels, measured in turn: `{command}`; then keep what is faster", width)

    assert pasted(lines, "busbw") == shlex.split(command)
    assert not any(line.endswith(("--set \\", "--backend \\")) for line in lines)


def test_a_command_of_busbw_that_nothing_quotes_ends_before_the_sentence_goes_on() -> None:
    words = "find the slow rail: busbw run sendrecv --backend native-nccl -b 64M --pairs rail --group 8, on the nodes"

    lines = action_lines("next", words, 80, indent=0)

    assert pasted(lines, "busbw") == shlex.split(
        "busbw run sendrecv --backend native-nccl -b 64M --pairs rail --group 8"
    )
    assert lines[-1].strip() == "on the nodes"


def test_a_short_command_stays_in_its_sentence_and_in_one_piece() -> None:
    words = "where they are not set at all, in no file and no environment, busbw doctor --here says why it does not"

    lines = action_lines("fix", words, 80)

    assert sum("busbw doctor --here" in line for line in lines) == 1
    assert " ".join(line.strip() for line in lines) == f"fix: {words}"


def test_a_quoted_value_is_not_divided() -> None:
    words = 'set what the plug-in of this machine is called by its own words, NCCL_NET="AWS Libfabric"'

    assert any('NCCL_NET="AWS Libfabric"' in line for line in action_lines("fix", words, 72))


def test_what_fits_and_what_no_terminal_limits_is_one_line() -> None:
    assert action_lines("fix", f"see `{PS}`", 80) == (f"  fix: see `{PS}`",)
    assert len(action_lines("fix", f"{'word ' * 60}`{PS}`", None)) == 1


@given(words=WORDS, width=st.integers(min_value=24, max_value=100))
def test_wrapping_loses_no_word_and_keeps_to_the_width(words: list[str], width: int) -> None:
    text = " ".join(words)

    actions, lines = action_lines("fix", text, width), said(text, width)

    assert " ".join(" ".join(actions).split()) == f"fix: {text}"
    assert " ".join(" ".join(lines).split()) == text
    assert all(len(line) <= max(width, 27) for line in (*actions, *lines))


@given(st.text(max_size=200), st.integers(min_value=1, max_value=60))
def test_no_text_breaks_the_wrapping(text: str, width: int) -> None:
    kept = "".join(character for character in text if not character.isspace())

    lines = action_lines("fix", text, width)

    # Only what stood around a command may go: backticks, brackets, what closed the sentence; backslashes may come.
    assert set(kept) - set("`()\\,;:. ") <= set("".join(lines))


def test_a_number_stays_beside_its_unit() -> None:
    assert said("not measured: alltoall 4 KiB, alltoall 32 KiB", 24) == [
        "not measured: alltoall",
        "  4 KiB, alltoall 32 KiB",
    ]


def test_where_there_is_no_terminal_a_text_is_one_line() -> None:
    assert said("word " * 50 + "end", 20, is_terminal=False) == ["word " * 50 + "end"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_loop_that_measures_other_algorithms_is_the_same_loop_when_it_is_pasted(width: int) -> None:
    words = advice(make_plan(), make_measurement("all_reduce"))

    loop = pasted(action_lines("fix", words, width), "for")

    assert loop == shlex.split(words.split("`")[1])
    assert loop[-1] == "done"


def test_a_placement_is_told_in_one_line() -> None:
    here = Placement(ranks=2, hosts=("n0",), binding="core", oversubscribed=False)
    spread = Placement(ranks=4, hosts=("n0", "n1"), ranks_of_hosts=(2, 2), binding="none", oversubscribed=True)

    assert placement_words(here) == "2 ranks, one core each"
    assert placement_words(spread) == "4 ranks on 2 hosts, n[0-1], 2 on each; not bound, more ranks than cores"
