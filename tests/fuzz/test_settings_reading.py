"""Readers of scripts and settings refuse any input politely, and in time that grows with its length only."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_growth

from busbw.base.errors import InputError
from busbw.env.reading import LANGUAGES, from_environment, read, text_of
from busbw.model.settings import SettingsReading

VALID = {
    "shell": b"""#!/bin/bash
#SBATCH --export=ALL,A=b
set -a; D=/opt
if [ "$1" = x ]; then H==mlx5_0; else H="=mlx5_1"; fi
ARGS=(-x NCCL_IB_HCA="$H" -x "C=${D:-e f}")
case $x in a|b) f() { export A=$'b\\tc'; } ;; esac
for n in 1 2; do A=$n mpirun "${ARGS[@]}" --mca pml ucx ./x $(date) 2>&1 | tee log; done
cat > /etc/nccl.conf <<EOF
A=$D
EOF
srun --export=ALL,"A='b,c'" apptainer exec --env A=b,C=d i.sif bash -c 'export E=f; env G=h ./x' # end
docker run -e A=b --env-file f image \\
  ./y &
""",
    "dockerfile": b'ARG V=1\nFROM x\nENV A=b C="d e" \\\n  E=f\nRUN <<EOF\nexport A=b\nEOF\nCMD ["a", "b"]\n',
    "apptainer": b"Bootstrap: docker\n%environment\n export A=b\n%post\n echo A=b >> nccl.conf\n",
    "kubernetes": b"""kind: Pod
x: &e
- {name: A, value: b}
containers:
- name: a
  env: *e
  args: ["bash", "-c", "C=d ./x"]
  command:
  - |
    export A=b
---
kind: ConfigMap
data: {nccl.conf: "A=b"}
---
env: {A: b}
jobs: {a: {steps: [{env: {C: d}, run: "export E=f"}]}}
---
variables: {A: {value: b}}
c: {script: [export D=e]}
""",
    "json": b'{"env_vars": {"NCCL_DEBUG": "INFO", "B": 1, // c\n},'
    b'\t"d": ["mpirun -x E=f ./g", {"name": "UCX_TLS", "value": "h"}]}',
    "modulefile": b"local r = '/o'\nsetenv('A', r .. \"b\")\n-- x\npushenv(\"C\", [[d]])\n",
    "nccl.conf": b"A=b\n#C\n",
    "markdown": b"# a\nA=b\n```bash\nexport A=b\n```\n- c\n  ~~~\n"
    b"  $ export C=d \\\n   E=f\n  g\n  ~~~\n```yaml\na: b\n",
    "systemd": b"[Service]\nEnvironment=A=b \"C=d e\" \\\n F='g'\n"
    b"UnsetEnvironment=H\nExecStart=-/usr/bin/env I=j mpirun ./a\n",
    "python": b"import os\nos.environ['A'] = 'b'\nenv = dict(os.environ, C=\"d\")\nenv.update({'E': str(1), 'F': g})\n"
    b"os.environ.setdefault('H', 'i' 'j')\ndel env['K']\nenv |= {'L': '''m\nn'''}  # o\n",
    "environment": b"A=b\nC=d\ne\n",
    "makefile": b"A = b\nexport C := $(A) # d\nifeq ($(E),1)\nexport F=$(shell g)\nelse\nendif\nh: i\n"
    b"\t@C=j mpirun -x K=$$l \\\n\t./m\nh: export N=o\ndefine p\nq\nendef\n",
    "notebook": b'{"cells": [{"cell_type": "code", "source": ["%env A=b\\n", "!mpirun -x C=d ./e\\n", "f = 1"]},'
    b' {"cell_type": "code", "source": "%%bash\\nexport G=h"}]}',
    "toml": b"[env]\nA = \"b\"\nC = ['mpirun -x D=e ./f', \"g\"]\n[[job]]\nh = { NCCL_DEBUG = 'INFO' } # i\nj = 5\n",
}
FRAGMENTS = (
    b"'", b'"', b"`", b"$(", b"${", b"}", b")", b"(", b"((", b"[[", b"\\", b"\\\n", b"\n", b"\r\n", b" ", b"\t",
    b"<<E\n", b"E\n", b"<<<", b">", b"&&", b"||", b";;", b"|", b"#", b"=", b"+=", b"$", b"${A:-", b"${A[@]}",
    b"$'\\x", b"if ", b"fi\n", b"do ", b"esac", b"case x in ", b"{ ", b"export ", b"unset ", b"eval ", b"bash -c ",
    b"```\n", b"~~~sh\n", b"$(cat <<-E\n", b"E)", b"$(case a in a) ",
    b"mpirun -x ", b"srun --export=", b"docker run ", b"--mca ", b": ", b"- ", b"&a ", b"*a", b"!!x ", b"{{", b"}}",
    b"|\n", b"? ", b"--[[", b"]]", b"..", b"\xff", b"\xc3\xa9", b"\x00", b"\xef\xbf\xbf", b"99999999999999999999",
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, valid: bytes) -> bytes:
    data = valid
    for _ in range(draw(st.integers(1, 8))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 30)))
        data = data[:start] + draw(st.sampled_from(FRAGMENTS) | st.binary(max_size=6)) + data[end:]
    return data


def check(data: bytes, language: str | None) -> None:
    try:
        reading = read(text_of(data), "fuzz", language)
    except InputError:
        return
    for each in (reading, *reading.parts):
        check_places(each)


def check_places(reading: SettingsReading) -> None:
    for each in (*reading.assignments, *reading.launches, *reading.unread, *reading.slips):
        assert 1 <= each.line <= len(reading.lines)
        assert 1 <= each.column <= len(reading.lines[each.line - 1]) + 2
    for each in reading.assignments:
        assert each.launch is None or each.launch < len(reading.launches)
        assert each.value is None or not set(each.value) & {"\ufffe", "\uffff"}
        assert (each.value is None) == (each.computed or each.unsets)


@pytest.mark.parametrize("language", LANGUAGES)
def test_only_an_input_error_comes_out_and_every_place_is_in_the_text(language: str) -> None:
    valid = VALID["shell" if language in ("slurm", "csh") else language]

    @settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(damaged(valid) | st.binary(max_size=100) | st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(b"".join))
    def parse(data: bytes) -> None:
        check(data, language)
        check(data, None)

    parse()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.dictionaries(st.text(max_size=10), st.text(max_size=20), max_size=5))
def test_any_environment_becomes_a_reading(variables: dict[str, str]) -> None:
    reading = from_environment(variables)
    assert {each.name for each in reading.assignments} == set(variables)


PATTERNS = (
    "'", '"', "`", '"$(', '"$("\n', "$(", "${", "${a:-", "(", "((", "A=(", "if ", "if x; then A=1\n",
    "[ x ] && A=1 && ", 'A="$A x"\n', 'A="$A$A"\n', 'B="$B$A"\nA="$B"\n', "cat <<E\n",
    "cat > nccl.conf <<E\nA=b\nE\n", "case x in a) A=1;; ",
    '"$(cat <<E\n', "x=$(cat <<E\n)\nE\n", "x=$(case a in a) ", "((a);", "((a;(b)", "$((1<<", "$(cat <<E <<F\n",
    '"${a:-${b#',
    "\\", "\\ ", "bash -c '", "env A=b ", "mpirun : ",
    "-x A=b ", "[[ ", "f() { ", "export A\n", "srun --export=A=b,", "for x in 1 2 3; do A=$x; ", "a", "=", "A= ",
    "env['A'] = 'b'\n", "env.update({'A': ", "env = dict(", "'''", "del env[", "if a:\n ",
    "Environment=A=b \\\n", "ExecStart=", "```\n", "~~~~sh\nA=b\n",
    "- ", "- - ", "{a: ", "[", "a: &a\n", "&a ", "{{", "a = a .. a\n", "{", "setenv A $a$b", "set a $a$a\n", '"$a',
    "ENV A=b \\\n", "RUN <<E\n", "export A=$(A)$(B)\n", "$(", "a:\n\t", "ifdef A\n", "%post\n", "{{ x }}",
    "? ", "\t", "\u201c",
)  # fmt: skip


@pytest.mark.parametrize(
    "language",
    [
        "shell",
        "dockerfile",
        "apptainer",
        "kubernetes",
        "modulefile",
        "environment",
        "markdown",
        "systemd",
        "python",
        "makefile",
    ],
)
def test_a_long_input_takes_no_longer_than_its_length_explains(language: str) -> None:
    for pattern in PATTERNS:
        short, long = ((pattern * (length // len(pattern))).encode() for length in (3_000, 12_000))
        # Linear is a factor of 4, quadratic 16.
        check_growth(lambda data: check(data, language), short, long, most=10)


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("((a;", ") ;)"), ("$(a ", ")"), ('"$(a ', ')"'), ("$(case a in a) ", " ;; esac)"), ("$(cat <<E\n", "E\n)"),
        ("${a:-", "}"), ("a() { ", "; }\n"),
    ],
)  # fmt: skip
def test_a_deep_script_takes_no_longer_than_its_length_explains(opening: str, closing: str) -> None:
    short, long = ((opening * depth + closing * depth).encode() for depth in (500, 2_000))
    check_growth(lambda data: check(data, "shell"), short, long, most=10)
