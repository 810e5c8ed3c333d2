"""Python programs: what they put into an environment, token by token."""

import pytest

from busbw.env.reading.texts import read


def told(text: str, file: str = "train.py") -> list[tuple[str, str | None]]:
    return [(each.name, each.value) for each in read(text, file).assignments]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('os.environ["A"] = "b"', [("A", "b")]),
        ("os.environ['A']='b'  # c", [("A", "b")]),
        ('environ["A"] = str(1)', [("A", "1")]),
        ('os.environ["A"] = "b" "c"', [("A", "bc")]),
        ('os.environ["A"] = (\n    "b"\n)', [("A", None)]),
        ("os.environ['A'] = r'\\d'", [("A", "\\d")]),
        ("os.environ['A'] = '\\x62'", [("A", "b")]),
        ("os.environ['A'] = f'{b}'", [("A", None)]),
        ("os.environ['A'] = b'c'", [("A", None)]),
        ("os.environ['A'] = 'b' + c", [("A", None)]),
        ("os.environ['A'] = 'b' if c else 'd'", [("A", None)]),
        ("os.environ['A'] = os.environ['B'] = 'c'", [("A", None), ("B", "c")]),
        ('os.environ.setdefault("A", "b")', [("A", "b")]),
        ("os.putenv('A', 'b'); os.unsetenv('C')", [("A", "b"), ("C", None)]),
        ("os.environ.update({'A': 'b', 'C': str(2), **more}, D='e')", [("A", "b"), ("C", "2"), ("D", "e")]),
        ("env = dict(os.environ, A='b')", [("A", "b")]),
        ("child_env = {**os.environ, 'A': 'b', 'C': [1, {'D': 'e'}]}", [("A", "b"), ("C", None)]),
        ("env |= {'A': 'b'}", [("A", "b")]),
        ("del os.environ['A'], env['B']", [("A", None), ("B", None)]),
        ("os.environ.pop('A', None)", [("A", None)]),
        ("if a:\n    self.env['A'] = 'b'\n", [("A", "b")]),
    ],
)
def test_what_is_put_into_an_environment_is_taken_down(text: str, expected: list[tuple[str, str | None]]):
    assert told(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "os.environ['A'] == 'b'",
        "x = os.environ['A']",
        "# os.environ['A'] = 'b'",
        '"""os.environ[\'A\'] = \'b\'"""',
        "settings['A'] = 'b'",
        "os.environ[a] = 'b'",
        "os.environ['A-B'] = 'c'",
        "env.get('A', 'b')",
    ],
)
def test_what_sets_nothing_is_left_alone(text: str):
    assert told(text) == []


def test_a_value_stands_where_it_is_written():
    first, second = read("import os\nos.environ['A'] = \\\n    'b'\nos.environ.update(\n  C='d')", "x.py").assignments

    assert (first.line, first.value_line, first.value_column) == (2, 3, 6)
    assert (second.line, second.column, second.value_column) == (5, 3, 6)


@pytest.mark.parametrize(
    ("text", "file", "language"),
    [
        ("A=b", "x.py", "python"),
        ("#!/usr/bin/env python3\nprint()\n", "launch", "python"),
        ("import os\nos.environ['A'] = 'b'\n", "-", "python"),
        ("#!/bin/bash\npython3 - <<E\nimport os\nE\n", "job", "shell"),
        ("#!/usr/bin/python3\n#SBATCH -N 2\n", "job", "slurm"),
    ],
)
def test_a_program_is_known_by_its_name_or_its_first_lines(text: str, file: str, language: str):
    assert read(text, file).language == language


def test_what_is_no_python_is_said_and_what_stands_before_it_is_read():
    reading = read("os.environ['A'] = 'b'\nx = (\n", "x.py")

    assert [(each.name, each.value) for each in reading.assignments] == [("A", "b")]
    assert [each.reason for each in reading.unread] == ["not all of it is Python: EOF in multi-line statement"]


def test_a_correction_keeps_the_quotes():
    reading = read("os.environ['NCCL_P2P_DISABLE'] = ' 1'", "x.py")

    assert reading.assignments[0].written == " 1"
