"""Reading what programs say ends, in time that grows with the length of the lines, whatever they hold."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_cost

from busbw.logs.excerpts import Excerpt, Excerpts, lines_of, without_lines
from busbw.logs.pages import is_prose, page_lines
from busbw.logs.sentences.statements import last_error, words_in

_PIECES = """ not found|error: |libfoo.so.1|: |--option=1 |/a/b/c|NAME_X=1 |10.0.0.1:77| requires at least | 1.2 |
"|cannot open |  |exceed|expected | but got |(in brackets of some length) |is not |user |GPU 1 |version |too old
|ignoring|no |built for |mlx5_0:1 |\x1b[31m|\0"""
PIECES = [*_PIECES.split("|"), "\n", "-" * 60 + "\n"]
LONG = [*PIECES, "a.", "a/", "A_", "-a", "1.", "a b ", "not a ", "no a.b ", "found but ", "no a for a ", "'", "1 ", "("]


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=30))
def test_any_text_is_read(pieces: list[str]) -> None:
    lines = [(0, number, line) for number, line in enumerate("".join(pieces).split("\n"), 1)]

    for each in words_in(lines).statements:
        assert 1 <= each.line <= len(lines)
        assert each.line in each.box
        assert each.subject is None or each.subject
        assert each.reading in {"sure", "one", "several"}
    assert last_error(lines) is None or last_error(lines)


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=30), st.integers(1, 9))
def test_pieces_are_of_the_log_whatever_the_blocks(lines: list[bytes], block: int) -> None:
    excerpts = Excerpts()
    for start in range(0, len(lines), block):
        some = lines[start : start + block]
        excerpts.feed(b"".join(line + b"\n" for line in some), start + 1, start + len(some) + 1, [0])
    excerpts.end_source()

    expected = [(0, number, line.decode(errors="replace")) for number, line in enumerate(lines, 1) if line]
    assert list(lines_of(tuple(excerpts.kept))) == expected


@pytest.mark.parametrize("piece", LONG)
def test_no_line_takes_long(piece: str) -> None:
    # No two have the same shape.
    lines = [
        (0, number, f"acme: {chr(97 + number) * number} error: not found {piece * (4000 // len(piece))}")
        for number in range(1, 20)
    ]

    check_cost(lambda: words_in(lines), most_s=1)


MARKUP = [
    "```\n",
    "# A\n",
    "## B\n",
    "[a](b)",
    "`x`",
    "**b**",
    "|--|\n",
    "n1:1:2 ",
    "the of to ",
    "[",
    "](",
    "|",
    "#",
    "\n",
]


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from([*MARKUP, *PIECES]) | st.text(max_size=6), max_size=40))
def test_what_is_left_out_of_a_page_are_lines_of_it(pieces: list[str]) -> None:
    text = "".join(pieces).encode(errors="replace")
    excerpts = (Excerpt(0, 1, text),)
    length = text.count(b"\n") + 1

    gone = page_lines(excerpts, (length,))

    assert all(source == 0 and 1 <= number <= length for source, number in gone)
    left = without_lines(excerpts, gone)
    assert left[0].text.count(b"\n") == length - 1
    assert {number for _, number, _ in lines_of(left)}.isdisjoint({number for _, number in gone})
    assert is_prose(lines_of(excerpts)) in {True, False}


@pytest.mark.parametrize("piece", MARKUP)
def test_no_line_of_a_page_takes_long(piece: str) -> None:
    line = (piece.replace("\n", "") or " ") * 20000
    excerpts = (Excerpt(0, 1, "\n".join([line] * 50).encode()),)

    check_cost(lambda: page_lines(excerpts, (50,)), most_s=1)
