"""Files of gates."""

import re
from pathlib import Path

import pytest

from busbw.base.errors import InputError
from busbw.judge.gates.expression import MOST_BYTES, MOST_GATES, parse_gate, parse_gates_file

DOCUMENT = Path(__file__).parents[3] / "docs" / "gates.md"
WHOLE = """# Acceptance of rack 7
[baseline]
run = "accepted-2026-11"
within = ["5%", "all_reduce@1G..=2%"]

[[gate]]
collective = "all_reduce"
size = "1G..8G"
at_least = "380GB/s"
dtype = "bfloat16"
op = "sum"
in_place = false
ranks = 16
checked = true

[[gate]]
collective = "latency"
size = "8"
at_most = "5us"
measure = "p99"
"""


def read(text):
    return parse_gates_file(text.encode(), where="gates.toml")


def refused(text):
    with pytest.raises(InputError) as error:
        read(text)
    assert len(str(error.value).splitlines()) <= 4
    return error.value


def test_a_table_says_what_an_expression_says():
    found = read(WHOLE)
    assert found.baseline == "accepted-2026-11"
    assert found.gates == (
        parse_gate("all_reduce@1G..8G,bfloat16,sum,out-of-place,16ranks,checked=380GB/s", "at_least"),
        parse_gate("latency@8,p99=5us", "at_most"),
        parse_gate("5%", "within"),
        parse_gate("all_reduce@1G..=2%", "within"),
    )


@pytest.mark.parametrize(
    ("change", "cause", "where"),
    [
        (("at_least =", "atleast ="), "unknown field `atleast`", "gates.toml:6"),
        (("ranks = 16", 'ranks = "16"'), "Expected `int | null`", "gates.toml:6"),
        (("ranks = 16", "ranks = 0"), "Expected `int` >= 1", "gates.toml:6"),
        (("ranks = 16", f"ranks = {'9' * 40}"), "Expected `int` <= 999999", "gates.toml:6"),
        (('collective = "latency"\n', ""), "missing required field `collective`", "gates.toml:16"),
        (('measure = "p99"', 'measure = "p98"'), "Invalid enum value 'p98'", "gates.toml:16"),
        (('at_most = "5us"', 'at_most = "5 parsecs"'), "'parsecs' is not a unit", "gates.toml:16"),
        (('at_most = "5us"', ""), "neither at_least nor at_most", "gates.toml:16"),
        (('at_most = "5us"', 'at_most = "5us"\nat_least = "1GB/s"'), "both at_least and at_most", "gates.toml:16"),
        (('size = "8"', 'size = "eight"'), "'eight' is not a size", "gates.toml:16"),
        (('dtype = "bfloat16"', 'dtype = "bf16"'), "'bf16' is no dtype", "gates.toml:6"),
        (('"bfloat16"', '"bfloat16'), "not valid TOML", "gates.toml"),
        (("within =", "with_in ="), "unknown field `with_in`", "gates.toml:2"),
        (('["5%", ', '["five", '), "not a number with a unit", "gates.toml:2"),
        (("[baseline]", "[base]"), "unknown field `base`", "gates.toml"),
        (("ranks = 16", f"ranks = {'9' * 5000}"), "not valid TOML", "gates.toml"),
    ],
)
def test_what_is_wrong_is_named_with_the_line_of_its_table(change, cause, where):
    error = refused(WHOLE.replace(*change))
    assert cause.lower() in error.cause.lower()
    assert error.where == where


def test_a_file_without_a_gate_is_refused():
    assert "no gate" in refused("").cause
    assert "no gate" in refused("gate = []").cause


def test_gates_without_their_own_tables_are_numbered():
    assert refused('gate = [{collective = "all_reduce"}]').where == "gates.toml, gate 1"


def test_a_file_has_its_bounds():
    table = '[[gate]]\ncollective = "all_reduce"\nat_least = "1GB/s"\n'
    assert len(read(table * MOST_GATES).gates) == MOST_GATES
    assert str(MOST_GATES) in refused(table * (MOST_GATES + 1)).cause
    assert str(MOST_BYTES) in refused("#" * (MOST_BYTES + 1)).cause


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"\x00", b'[[gate]]\ncollective = "\xff"', b"[" * 100_000])
def test_what_is_no_text_is_refused(raw):
    with pytest.raises(InputError):
        parse_gates_file(raw, where="gates.toml")


def test_the_files_of_the_documentation_are_read():
    blocks = re.findall(r"^```toml\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        assert read(block).gates
