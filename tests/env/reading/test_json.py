"""Settings in JSON: by itself, on a page, within a script, and written by one."""

import pytest

from busbw.env.reading import read
from busbw.model.settings import Assignment, SettingsReading


def assigned(reading: SettingsReading) -> list[Assignment]:
    found = [each for part in (reading, *reading.parts) for each in part.assignments]
    return sorted(found, key=lambda each: each.line)


JOB = """{
\t// for this job
  "env_vars": {"NCCL_IB_TC": "41", "URL": "http://a//b"}, /* NCCL_DEBUG=INFO */
  "steps": [{"name": "NCCL_ALGO", "value": "Ring"}, ],
  "entry": "mpirun -np 8 -x NCCL_PROTO=LL ./a"
}
"""
EXPECTED = [("NCCL_IB_TC", "41", 3), ("NCCL_ALGO", "Ring", 4), ("NCCL_PROTO", "LL", 5)]


@pytest.mark.parametrize("file", ["job.json", "job", "stdin", "a.code-workspace"])
def test_settings_and_commands_are_read_wherever_they_stand_and_remarks_are_not(file: str):
    reading = read(JOB, file)

    assert [(each.name, each.value, each.line) for each in assigned(reading)] == EXPECTED
    assert reading.language == "json"
    assert reading.unread == ()


def test_a_block_of_a_page_is_read():
    page = f"# A page\n\nIt goes so.\n\n```json\n{JOB}```\n"
    assert [(each.name, each.line - 5) for each in assigned(read(page, "x.md"))] == [
        (name, line) for name, _value, line in EXPECTED
    ]


SCRIPTS = {
    "an argument": 'ray submit --runtime-env-json=\'{"env_vars": {"NCCL_IB_TC": "41"}}\' -- a\n',
    "a variable in double quotes": 'R="{\n \\"env_vars\\": {\\"NCCL_IB_TC\\": \\"41\\"}}"\nray s --env "$R"\n',
    "a here-document": 'R=$(cat <<E\n{"env_vars": {"NCCL_IB_TC": "41"}}\nE\n)\nray submit --env="$R" -- a\n',
    "a file that it writes": 'cat > env.json <<\'E\'\n{"env_vars": {"NCCL_IB_TC": "41"}}\nE\n',
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_script_hands_on_is_read(name: str):
    found = [each for each in assigned(read(f"#!/bin/bash\n{SCRIPTS[name]}", "x.sh")) if each.name == "NCCL_IB_TC"]
    assert [each.value for each in found] == ["41"]


def test_a_value_between_signs_of_escape_is_not_replaced_in_the_script():
    text = f"#!/bin/bash\n{SCRIPTS['a variable in double quotes']}"
    found = next(each for each in assigned(read(text, "x.sh")) if each.name == "NCCL_IB_TC")
    assert found.value_column is None


@pytest.mark.parametrize("text", ["awk '{print \"NCCL_DEBUG\": $1}' a\n", "f '{ NCCL_DEBUG; }'\n", "f '{\"a\": 1}'\n"])
def test_other_braces_are_no_settings(text: str):
    assert assigned(read(f"#!/bin/bash\n{text}", "x.sh")) == []


def test_lines_of_packer_are_one_script_and_other_lists_are_none():
    text = '{"a": [{"type": "shell", "%s": ["cd /opt", "export A=1", "echo \\"NCCL_IB_TC=41\\" >> /etc/nccl.conf"]}]}'
    assert [each.value for each in assigned(read(text % "inline", "x.json")) if each.name == "NCCL_IB_TC"] == ["41"]
    assert assigned(read(text % "words", "x.json")) == []
