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
        ('os.environ["A"] = (\n    "b"\n)', [("A", "b")]),
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
        # What begins with a text is not that text.
        ('os.environ["A"] = ",".join(names)', [("A", None)]),
        ('os.environ["A"] = "b".upper()', [("A", None)]),
        ('os.environ["A"] = ",".join(["b", "c"])', [("A", "b,c")]),
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


PROGRAM = '''
import subprocess

HCA = "mlx5_0,mlx5_1"
COMMON = ["-x", "NCCL_IB_HCA=" + HCA, "-x", f"NCCL_BUFFSIZE={8388608}"]


class Check:
    OPTIONS = "-x NCCL_DEBUG=WARN"

    def run(self, np, hosts, sharp):
        """Example: mpirun -x NCCL_NTHREADS=512 ./a"""
        cmd = f"mpirun -np {np} --hostfile {hosts} "
        cmd += self.OPTIONS
        if sharp:
            cmd += " -x NCCL_COLLNET_ENABLE=1"
        cmd += " -x UCX_TLS=%s -x FI_PROVIDER={} ./a".format("cxi") % "tcp"
        print(f"running {cmd}")
        subprocess.run(cmd, shell=True)

    def run_list(self):
        args = ["mpirun", "-np", "8", *COMMON]
        args.append("-x")
        args.extend(["NCCL_PROTO=Simple", "./a"])
        return subprocess.check_call(args)
'''


def test_commands_that_a_program_puts_together_are_read_at_their_places():
    reading = read(PROGRAM, "check.py")

    assert sorted((each.line, each.name, each.value) for each in reading.assignments) == [
        (5, "NCCL_BUFFSIZE", "8388608"),
        (5, "NCCL_IB_HCA", "mlx5_0,mlx5_1"),
        (9, "NCCL_DEBUG", "WARN"),
        (16, "NCCL_COLLNET_ENABLE", "1"),
        (17, "FI_PROVIDER", "cxi"),
        (17, "UCX_TLS", "tcp"),
        (24, "NCCL_PROTO", "Simple"),
    ]
    assert [each.kind for each in reading.launches] == ["mpirun", "mpirun"]
    assert [each.name for each in reading.assignments if each.arms] == ["NCCL_COLLNET_ENABLE"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('OPTIONS = {"NCCL_DEBUG": "INFO", "UCX_TLS": 8, "other": 1}', ["NCCL_DEBUG=INFO", "UCX_TLS=8"]),
        ('for a in ("Ring", "Tree"):\n    os.environ["NCCL_ALGO"] = a', ["NCCL_ALGO=Ring|Tree"]),
        ('SWEEP = {"NCCL_ALGO": ["Ring", "Tree"]}', ["NCCL_ALGO=Ring|Tree"]),
        ('pairs = [("NCCL_DEBUG", "INFO"), ("UCX_TLS", "rc")]', ["NCCL_DEBUG=INFO", "UCX_TLS=rc"]),
        ('f.write("NCCL_DEBUG=INFO\\nNCCL_ALGO=Ring\\n")', ["NCCL_DEBUG=INFO", "NCCL_ALGO=Ring"]),
        ('monkeypatch.setenv("NCCL_DEBUG", "INFO")', ["NCCL_DEBUG=INFO"]),
        ('task.update_envs(NCCL_DEBUG="INFO")', ["NCCL_DEBUG=INFO"]),
        ('x = "INFO"\nos.environ["NCCL_DEBUG"] = x', ["NCCL_DEBUG=INFO"]),
        ('x = "INFO" if y else "WARN"\nos.environ["NCCL_DEBUG"] = x', ["NCCL_DEBUG=?"]),
        ('if y:\n    x = "INFO"\nelse:\n    x = "WARN"\nos.environ["NCCL_DEBUG"] = x', ["NCCL_DEBUG=?"]),
        ('v = 2\nos.environ["NCCL_DEBUG"] = str(v)', ["NCCL_DEBUG=?"]),
        ('os.system(" ".join(["srun", "-N2", "--export=ALL,NCCL_DEBUG=INFO", "./a"]))', ["NCCL_DEBUG=INFO"]),
        ('ENV = ["NCCL_DEBUG=INFO", "HOME=/x"]\nrun(environment=ENV)', ["NCCL_DEBUG=INFO"]),
        ('script = """#!/bin/bash\nexport NCCL_DEBUG=INFO\nsrun ./a\n"""\nsubmit(script)', ["NCCL_DEBUG=INFO"]),
        # What describes, asks or shows sets nothing.
        ('HELP = {"NCCL_DEBUG": "how much is printed"}', []),
        ('p.add_argument("--x", help="mpirun -x NCCL_DEBUG=INFO ./a")', []),
        ('print("export NCCL_DEBUG=INFO")', []),
        ('assert os.environ.get("NCCL_DEBUG", "WARN") == "INFO"', []),
        ('raise ValueError("use mpirun -x NCCL_DEBUG=INFO")', []),
    ],
)  # fmt: skip
def test_constants_are_followed_and_words_about_settings_are_none(text: str, expected: list[str]):
    found = read(text, "x.py").assignments

    assert [f"{each.name}={each.value or '|'.join(each.alternatives) or '?'}" for each in found] == expected


def test_exports_in_one_line_of_a_text_are_read_and_a_sentence_is_not():
    text = 'command = "export A=1; export NCCL_ALGO=Ring && export NCCL_DEBUG=INFO"'

    assert [f"{each.name}={each.value}" for each in read(text, "x.py").assignments] == [
        "A=1",
        "NCCL_ALGO=Ring",
        "NCCL_DEBUG=INFO",
    ]
    assert not read('help = "first export A=1; then NCCL_ALGO is looked at"', "x.py").assignments


def test_a_table_of_nics_by_machine_is_read():
    text = 'SHAPES = {"BM.GPU.H100.8": ["mlx5_0", "mlx5_1"], "names": ["mlx5_0"], "p5.48xlarge": other}'

    assert [(each.target, each.value, each.form) for each in read(text, "x.py").assignments] == [
        ("BM.GPU.H100.8", "=mlx5_0,mlx5_1", "table")
    ]


@pytest.mark.parametrize(
    "text", ["x = " + "(" * 5000, "x = " + "-" * 200_000 + "1", "a" + ".a" * 100_000, "x = 'a\0b'"]
)
def test_what_python_itself_cannot_read_ends_in_a_note(text: str):
    reading = read(text, "x.py")

    assert len(reading.unread) == 1


def test_values_that_double_again_and_again_stay_small():
    text = 'a = "x" * 1\nb = "NCCL_DEBUG=INFO "\n' + "b = b + b\n" * 100 + "run(b)\n"

    assert len(read(text, "x.py").assignments) < 50
