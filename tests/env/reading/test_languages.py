"""Settings from everything that is no shell script, and how each language is told."""

import pytest

from busbw.base.errors import InputError
from busbw.env.reading import LANGUAGES, from_environment, read, text_of

from .wording import of, slips_of, told

CORPUS = {
    "nccl.conf": (
        "nccl.conf",
        "A=b\n#C=d\n # E=f\nG\nH==i j \n",
        ["nccl_conf A=b", "nccl_conf  # E=f", "nccl_conf H==i j "],
    ),
    "nccl.conf with quotes": ("nccl.conf", 'export A="b"', ['nccl_conf export A="b"']),
    "env": (
        "environment",
        'A=b c\nD="e"\nF=g\nh\n\nI=',
        ["environment A=b c", 'environment D="e"', "environment F=g\nh", "environment I="],
    ),
    "env -0": ("environment", "A=b\nc\0D=e\0", ["environment A=b\nc", "environment D=e"]),
    "a list for docker": ("environment", "# x\nA=b\n# y\nC=d\n", ["environment A=b", "environment C=d"]),
    "a Dockerfile": (
        "dockerfile",
        'ARG V=1\nFROM x\nENV A=b C="d e" F=g\\ h\nENV I j  k\nENV L=$A/$M\nENV N=${V:-2}\n',
        [
            "shell V=1",
            "dockerfile A=b",
            "dockerfile C=d e",
            "dockerfile F=g h",
            "dockerfile I=j  k",
            "dockerfile L ?",
            "dockerfile N=2",
        ],
    ),
    "a Dockerfile with lines that go on": (
        "dockerfile",
        "FROM x\nENV A=b \\\n# comment\n\n  C=d\nRUN A=e make \\\n && echo B=c >> /etc/nccl.conf\n",
        ["dockerfile A=b", "dockerfile C=d", "prefix@0 A=e", "nccl_conf B=c -> /etc/nccl.conf"],
    ),
    "a Dockerfile with here-documents": (
        "dockerfile",
        "FROM x\nCOPY <<EOF /etc/nccl.conf\nA=b\nEOF\nRUN <<EOF\nexport C=d\nEOF\nENV E=f\n",
        ["nccl_conf A=b -> /etc/nccl.conf", "export@0 C=d", "dockerfile E=f"],
    ),
    "a Dockerfile's command": ("dockerfile", 'FROM x\nCMD ["bash", "-c", "mpirun -x A=b ./x"]\n', ["mpirun@0 A=b"]),
    "a Dockerfile of Windows": (
        "dockerfile",
        "# escape=`\r\nFROM x\r\nENV A=b `\r\n C=d\r\n",
        ["dockerfile A=b", "dockerfile C=d"],
    ),
    "an Apptainer definition": (
        "apptainer",
        (
            "Bootstrap: docker\nFrom: x\n%post\n export A=b\n"
            " echo 'export C=d' >> $APPTAINER_ENVIRONMENT\n"
            "%environment\n export E=f\n G=h\n%runscript\n I=j exec ./x\n"
        ),
        ["export@0 A=b", "apptainer C=d -> $APPTAINER_ENVIRONMENT", "apptainer E=f", "shell G=h", "prefix@1 I=j"],
    ),
    "a pod": (
        "kubernetes",
        (
            "kind: Pod\nspec:\n  containers:\n  - name: a\n    env:\n    - name: A\n"
            '      value: b\n    - {name: C, value: "d"}\n'
            "    - name: E\n      valueFrom: {fieldRef: {fieldPath: x}}\n    - name: F\n"
            "      value: $(A)/g\n    - name: H\n      value: $(X)\n"
        ),
        ["manifest@0 A=b", "manifest@0 C=d", "manifest@0 E ?", "manifest@0 F=b/g", "manifest@0 H ?"],
    ),
    "a script in a manifest": (
        "kubernetes",
        (
            "containers:\n- name: a\n  env: [{name: A, value: b}]\n"
            "  command: [/bin/bash, -c]\n  args:\n  - |\n    export C=$A\n"
            "    mpirun \\\n      -x D=e ./x\n"
        ),
        ["manifest@0 A=b", "export@0 C=b", "mpirun@1 D=e"],
    ),
    "two containers": (
        "kubernetes",
        "containers:\n- {name: a, env: [{name: A, value: b}]}\n- {name: c, env: [{name: A, value: d}]}\n",
        ["manifest@0 A=b", "manifest@1 A=d"],
    ),
    "an anchor": (
        "kubernetes",
        "x: &e\n- {name: A, value: b}\ncontainers:\n- {name: a, env: *e}\n- {name: c, env: *e}\n",
        ["manifest@0 A=b", "manifest@1 A=b"],
    ),
    "a ConfigMap": (
        "kubernetes",
        (
            "kind: Pod\n---\nkind: ConfigMap\ndata:\n  nccl.conf: |\n    A=b\n    C==d\n"
            "  NCCL_DEBUG: INFO\n  run.sh: |\n    export E=f\n"
        ),
        [
            "nccl_conf A=b -> nccl.conf",
            "nccl_conf C==d -> nccl.conf",
            "manifest NCCL_DEBUG=INFO",
            "export E=f -> run.sh",
        ],
    ),
    "a compose file": (
        "kubernetes",
        (
            "services:\n  a:\n    image: x\n    environment:\n    - A=b\n  c:\n"
            "    environment:\n      D: e\n    command: bash -c 'F=g ./x'\n"
        ),
        ["manifest@0 A=b", "manifest@1 D=e", "prefix@1 F=g"],
    ),
    "a task with envs": ("kubernetes", "envs:\n  A: b\nrun: |\n  export C=d\n", ["manifest A=b", "export C=d"]),
    "a job definition of AWS": (
        "kubernetes",
        "Properties:\n  Image: x\n  Environment:\n  - {Name: A, Value: b}\n  Command: [mpirun, -x, C=d, ./x]\n",
        ["mpirun@1 C=d", "manifest@0 A=b"],
    ),
    "files that a playbook writes": (
        "kubernetes",
        (
            "write_files:\n- path: /etc/nccl.conf\n  content: |\n    A=b\n"
            "- dest: /etc/profile.d/x.sh\n  block: |\n    export C=d\n"
        ),
        ["nccl_conf A=b -> /etc/nccl.conf", "export C=d -> /etc/profile.d/x.sh"],
    ),
    "a template of Helm": (
        "kubernetes",
        (
            "{{- if .Values.a }}\ncontainers:\n- name: a\n  env:\n  - name: A\n"
            "    value: {{ .Values.b | quote }}\n  - name: C\n    value: d\n{{- end }}\n"
        ),
        ["manifest@0 A ?", "manifest@0 C=d"],
    ),
    "Lua": (
        "modulefile",
        (
            "-- setenv('N','o')\nlocal r = '/opt'\nsetenv('A', r .. '/b')\n"
            'pushenv("C","d")\nunsetenv(\'E\')\n'
            "setenv('F', os.getenv('G'))\nprepend_path('PATH', r)\n"
            "if x then setenv{'H', [[i]]} end\n"
        ),
        ["modulefile A=/opt/b", "modulefile C=d", "modulefile E unset", "modulefile F ?", "modulefile H=i"],
    ),
    "Tcl": (
        "modulefile",
        (
            '#%Module\n# setenv N o\nset r /opt\nsetenv A $r/b\nsetenv C "d $r"\n'
            "setenv E {f g}\nsetenv H [exec x]; setenv I \\\n j\n"
            "if { $x } {\n  setenv K l\n}\nunsetenv M\nprepend-path PATH $r\n"
        ),
        [
            "modulefile A=/opt/b",
            "modulefile C=d /opt",
            "modulefile E=f g",
            "modulefile H ?",
            "modulefile I=j",
            "modulefile K=l",
            "modulefile M unset",
        ],
    ),
}


@pytest.mark.parametrize(("language", "text", "expected"), CORPUS.values(), ids=CORPUS.keys())
def test_a_text_sets_what_its_reader_would_take(language: str, text: str, expected: list[str]) -> None:
    assert of(text, language) == expected


@pytest.mark.parametrize(
    ("text", "file", "language"),
    [
        ("#!/bin/bash\nA=b\n", "x", "shell"),
        ("#!/bin/bash\n#SBATCH -N 2\nsrun ./x\n", "x", "slurm"),
        ("mpirun -np 2 -x A=b ./x", "-", "shell"),
        ("A=b mpirun ./x", "-", "shell"),
        ("export A=b\n", "x", "shell"),
        ("A=b\nexport A\n", "x", "shell"),
        ('A="b"\n', "x", "shell"),
        ('declare -x A="b"\n', "x", "shell"),
        ("A=b\nC=d e\n", "x", "environment"),
        ("NCCL_NET=AWS Libfabric\nNCCL_DEBUG=INFO\n", "x", "environment"),
        ("A=b\0C=d\0", "x", "environment"),
        ("A=b\n", "/etc/nccl.conf", "nccl.conf"),
        ("A=b\n", "home/.nccl.conf", "nccl.conf"),
        ("# syntax=docker/dockerfile:1\nARG V=1\nFROM x:$V\nENV A=b\n", "x", "dockerfile"),
        ("", "Dockerfile", "dockerfile"),
        ("", "images/Dockerfile.gpu", "dockerfile"),
        ("Bootstrap: docker\nFrom: x\n", "x", "apptainer"),
        ("apiVersion: v1\nkind: Pod\n", "-", "kubernetes"),
        ("a: b\n", "values.yaml", "kubernetes"),
        ("#%Module1.0\nsetenv A b\n", "1.0", "modulefile"),
        ('setenv("A", "b")\n', "1.0", "modulefile"),
        ("", "x.lua", "modulefile"),
        ("", "-", "shell"),
    ],
)
def test_a_language_is_told_by_name_and_content(text: str, file: str, language: str) -> None:
    assert read(text, file).language == language


def test_values_of_a_manifest_that_are_no_text_are_slips() -> None:
    values = ["0", "1.5", "true", "on", "0x10", "1_000", '"1"', "INFO", "mlx5_0", "", "~x"]
    lines = "".join(f"  - name: V{number}\n    value: {value}\n" for number, value in enumerate(values))
    assert slips_of(f"containers:\n- name: a\n  env:\n{lines}", "kubernetes") == [
        f"not_a_string {5 + 2 * number}:12 V{number}" for number in range(6)
    ]


def test_places_in_a_manifest_reach_into_its_scripts() -> None:
    text = (
        "containers:\n- name: a\n  command: [bash, -c]\n  args:\n  - |\n\n    export A=b\n"
        '- name: c\n  command: ["bash", "-c", "echo \\"x\\"; C=d ./x"]\n'
        "- name: e\n  command: [bash, -c, 'echo ''x''; E=f ./x']\n- name: g\n  command: [bash, -c]\n"
        "  args:\n  - >-\n    G=h\n    ./x\n"
    )
    found = read(text, "pod.yaml").assignments
    assert [each.name for each in found] == ["A", "C", "E", "G"]
    for each in found:
        assert text.split("\n")[each.line - 1][each.column - 1 :].startswith(f"{each.name}={each.value}")


def test_a_run_of_nothing_but_exports_is_a_slip() -> None:
    assert slips_of("FROM x\nRUN export A=b\nRUN export A=b && make\n", "dockerfile") == ["not_shown 2:5 A"]


def test_a_container_sees_its_own_environment() -> None:
    (launch,) = read("containers:\n- name: a\n  image: i\n  args: [./x, -n]\n", "pod.yaml").launches
    assert (launch.kind, launch.family, launch.argv) == ("container", "Kubernetes", ("./x", "-n"))


def test_an_environment_at_hand_becomes_a_reading() -> None:
    reading = from_environment({"B": "c\nd", "A": "=x"})
    assert told(reading) == ["environment A==x", "environment B=c\nd"]
    assert reading.lines == ("A==x", "B=c\\nd")


@pytest.mark.parametrize("raw", [b"\xef\xbb\xbfexport A=b\n", "export A=b\n".encode("utf-16")])
def test_marks_of_an_encoding_are_taken_off(raw: bytes) -> None:
    assert of(text_of(raw)) == ["export A=b"]


def test_bytes_that_are_no_text_are_replaced_and_said() -> None:
    reading = read(text_of(b"export A=b\xff\n"), "script", "shell")
    assert reading.assignments[0].value == "b\N{REPLACEMENT CHARACTER}"
    assert [(each.line, each.column) for each in reading.unread] == [(1, 11)]


@pytest.mark.parametrize(
    ("text", "language", "cause"),
    [
        ("\x7fELF" + "\x00" * 200, None, "not text"),
        ("x" * (8 * 2**20 + 1), None, "over the limit"),
        ("a: b\n" * 2**18, "kubernetes", "over the limit"),
        ("", "cobol", "no such kind"),
    ],
)
def test_what_is_no_text_or_too_large_is_refused(text: str, language: str | None, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        read(text, "x", language)


def test_every_language_takes_an_empty_text() -> None:
    assert [read("", "x", language).assignments for language in LANGUAGES] == [()] * len(LANGUAGES)


def test_a_document_cut_off_in_the_middle_gives_what_stands_before() -> None:
    text = "containers:\n- name: a\n  env:\n  - name: A\n    value: b\n  - name: [\n"
    reading = read(text, "pod.yaml")
    assert told(reading) == ["manifest@0 A=b"]
    assert reading.unread[0].reason.startswith("no YAML from here on")


def test_aliases_that_multiply_are_read_once() -> None:
    levels = "".join(f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 12))
    reading = read("a0: &a0 [{name: A, value: b}]\n" + levels, "bomb.yaml")
    assert reading.unread == ()
