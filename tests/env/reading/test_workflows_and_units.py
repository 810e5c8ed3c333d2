"""Workflows of GitHub, pipelines of GitLab, units of systemd."""

import pytest

from busbw.base.errors import InputError
from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.env.rules.subject import CheckContext

WORKFLOW = """\
on: push
env:
  NCCL_ALGO: Ring
jobs:
  a:
    env: {NCCL_P2P_DISABLE: 1, A_DIR: "${{ github.workspace }}/x"}
    steps:
    - name: one
      env: {NCCL_P2P_LEVEL: NVL}
      run: |
        mpirun -x NCCL_PROTO=LL ./a
    - uses: actions/checkout@v4
  b:
    steps:
    - run: NCCL_P2P_LEVEL=NVL ./a
"""
PIPELINE = """\
variables:
  NCCL_ALGO: {value: Ring, description: of the whole}
  WHERE: $CI_PROJECT_DIR
one:
  variables: {NCCL_P2P_DISABLE: "1"}
  script:
    - export NCCL_P2P_LEVEL=NVL
    - srun ./a
two:
  script: [export NCCL_P2P_LEVEL=NVL, srun ./a]
"""
UNIT = """\
[Service]
Environment=NCCL_ALGO=Ring "NCCL_PROTO=LL LL128" 'A=b c' \\
  NCCL_NTHREADS=256
Environment="HOME_OF=%h/x"
EnvironmentFile=-/etc/a.env
UnsetEnvironment=NCCL_DEBUG
ExecStart=-/usr/bin/env B=c mpirun -x C=d ./a
"""


def places(text: str, file: str) -> list[str]:
    found = lint(read(text, file), CheckContext())
    return [f"{each.place.line} {each.code}" for each in found if each.place and each.is_serious]


def test_a_step_of_a_workflow_sees_the_variables_of_its_job_and_of_the_whole():
    reading = read(WORKFLOW, ".github/workflows/a.yaml")

    assert [(each.name, each.value) for each in reading.assignments] == [
        ("NCCL_ALGO", "Ring"),
        ("NCCL_P2P_DISABLE", "1"),
        ("A_DIR", None),
        ("NCCL_P2P_LEVEL", "NVL"),
        ("NCCL_PROTO", "LL"),
        ("NCCL_P2P_LEVEL", "NVL"),
    ]
    assert places(WORKFLOW, "a.yaml") == ["9 ENV060"]


def test_a_job_of_a_pipeline_sees_its_own_variables_and_those_of_the_whole():
    reading = read(PIPELINE, ".gitlab-ci.yml")

    assert [each.name for each in reading.assignments] == [
        "NCCL_ALGO",
        "WHERE",
        "NCCL_P2P_DISABLE",
        "NCCL_P2P_LEVEL",
        "NCCL_P2P_LEVEL",
    ]
    assert places(PIPELINE, ".gitlab-ci.yml") == ["7 ENV060"]


def test_other_documents_are_no_workflows_and_their_settings_are_read_by_name():
    reading = read("jobs: {a: {steps: 3}}\nenv: {NCCL_ALGO: Ring, WHERE: here}\n", "a.yaml")

    assert [(each.name, each.value) for each in reading.assignments] == [("NCCL_ALGO", "Ring")]
    assert [each.family for each in reading.launches] == ["mapping"]


def test_a_unit_sets_its_words_and_expands_nothing():
    reading = read(UNIT, "a.service")

    assert reading.language == "systemd"
    assert [(each.name, each.value, each.line) for each in reading.assignments] == [
        ("NCCL_ALGO", "Ring", 2),
        ("NCCL_PROTO", "LL LL128", 2),
        ("A", "b c", 2),
        ("NCCL_NTHREADS", "256", 3),
        ("HOME_OF", None, 4),
        ("NCCL_DEBUG", None, 6),
        ("B", "c", 7),
        ("C", "d", 7),
    ]
    assert [each.line for each in reading.unread] == [5]
    for each in reading.assignments:
        assert reading.lines[each.line - 1].startswith(each.name, each.column - 1)


@pytest.mark.parametrize("file", ["hostfile", "conf/machinefile.txt", "rankfile"])
def test_files_that_set_nothing_are_refused_by_their_names(file: str):
    with pytest.raises(InputError, match="is not read"):
        read("a slots=8\n", file)
