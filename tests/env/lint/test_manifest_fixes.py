"""Corrections of values that stand in another line than their names."""

from busbw.env.lint import corrected, lint
from busbw.env.reading import read
from busbw.env.rules.subject import CheckContext
from busbw.env.versions import newest

POD = """\
kind: Pod
spec:
  containers:
  - name: a
    image: b
    env:
    - name: NCCL_BUFFSIZE
      value: 8M
    - {name: NCCL_LL_BUFFSIZE, value: '1M'}
    - value: "4M"
      name: NCCL_P2P_NET_CHUNKSIZE
"""
COMPOSE = """\
services:
  a:
    image: b
    environment:
      NCCL_BUFFSIZE: 8M
  c:
    image: b
    environment:
    - NCCL_BUFFSIZE=4M
"""


def fixed(text: str) -> str:
    def check(tried: str):
        return lint(read(tried, "a.yaml"), CheckContext())

    return corrected(text, read(text, "a.yaml"), newest(), check)


def test_values_of_a_container_are_corrected_in_their_lines_and_stay_strings():
    after = fixed(POD).split("\n")

    assert after[7] == '      value: "8388608"'
    assert after[8] == "    - {name: NCCL_LL_BUFFSIZE, value: '1048576'}"
    assert after[9] == '    - value: "4194304"'
    assert after[:7] == POD.split("\n")[:7]


def test_values_of_a_compose_file_are_corrected_as_they_are_written():
    after = fixed(COMPOSE)

    assert after == COMPOSE.replace(": 8M", ': "8388608"').replace("=4M", "=4194304")


def test_a_value_in_a_block_of_lines_is_left_as_it_is():
    text = POD.replace("value: 8M", "value: |-\n        8M")

    assert "        8M\n" in fixed(text)
