"""A text that names settings of which none was read says so; one that only mentions them in passing does not."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.cli.command import busbw
from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.env.rules.subject import CheckContext


def codes(text: str, file: str) -> list[str]:
    return [each.code for each in lint(read(text, file), CheckContext())]


SILENT = {
    "a program that asks elsewhere": ('set_option(x, ("NCCL_DEBUG", value, 3))\n', "x.py"),
    "a script that edits": ("#!/bin/bash\nsed -i 's/NCCL_DEBUG.*/NCCL_DEBUG=INFO/' conf\n", "x.sh"),
    "a page with a value": ("# A page\n\nSet `NCCL_IB_HCA` to `mlx5_0`.\n", "x.md"),
    "a table of a page": ("# A page\n\n| name | value |\n|---|---|\n| `NCCL_IB_TC` | 106 |\n", "x.md"),
    "what to set, on a condition": ("# A page\n\nIf it hangs, set `NCCL_P2P_DISABLE=1`, and try again.\n", "x.md"),
    "what to run with": ("# A page\n\nRun it with `NCCL_DEBUG=INFO`, and look.\n", "x.md"),
    "the text of a program": ('def a():\n    a = """\n    NCCL_NVLS_ENABLE: 0\n    """\n    set(a)\n', "x.py"),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_was_not_understood_is_said(name: str):
    assert codes(*SILENT[name]) == ["ENV018"]


SPOKEN_OF = {
    "a page without commands": ("# A page\n\nThe variable NCCL_IB_HCA names the NICs.\n", "x.md"),
    "a page that lists some": ("# A page\n\nIt reads `NCCL_DEBUG`, `NCCL_IB_HCA`, and others.\n", "x.md"),
    "a list of names": ("names: [NCCL_DEBUG, UCX_TLS]\n", "x.yaml"),
    "a sentence that lists some": ('def f():\n    """It needs UCX_TLS, UCX_IB_GID_INDEX, etc. to be set."""\n', "x.py"),
    "the head of a printed table": ('def f(w):\n    w.write("| host | NCCL_SOCKET_IFNAME | NCCL_DEBUG |")\n', "x.py"),
    "a pattern": ("def f(c):\n    c.match(r'-x NCCL_DEBUG=[^ ]+ -x UCX_TLS=[^ ]+')\n", "x.py"),
    "a condition": ("# A page\n\nUsed for all logs, when `NCCL_DEBUG=INFO` is set.\n", "x.md"),
    "a condition of two": (
        "# A page\n\nThey are made when NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=COLL enabled.\n",
        "x.md",
    ),
    "what follows from one": ("# A page\n\nWith `NCCL_NET_SHARED_COMMS=1`, NCCL shares them.\n", "x.md"),
    "a word to put a value in for": ("# A page\n\nSetting `NCCL_NET=<plugin name>` makes it sure.\n", "x.md"),
    "a condition on a reader": ("# A page\n\nIf you set `NCCL_DEBUG_FILE=/a/b`, the plug-in leaves it.\n", "x.md"),
    "what it prints": (
        "# A page\n\n| error | what to do |\n|---|---|\n| aborted | check `NCCL_DEBUG=INFO` output |\n",
        "x.md",
    ),
    "a table that describes": (
        "# A page\n\n| name | it |\n|---|---|\n| `NCCL_IB_TC` | The class of it, as `106` |\n",
        "x.md",
    ),
    "what a test is to find": ("def test_a(c):\n    b = [a for a in c if 'setenv NCCL_DEBUG \"1\"' in a]\n", "x.py"),
    "the text of a test": ('def test_a():\n    a = """\n    NCCL_NVLS_ENABLE: 0\n    """\n    assert a\n', "x.py"),
    "a test of empty values": ('TEXT = """\nenv_vars:\n  NCCL_DEBUG: null # of NCCL\n  UCX_TLS: \'\'\n"""\n', "x.py"),
}


@pytest.mark.parametrize("name", SPOKEN_OF)
def test_what_is_only_spoken_of_is_a_note(name: str):
    assert codes(*SPOKEN_OF[name]) == ["ENV027"]


UNDERSTOOD = {
    "a setting": ("export NCCL_SOCKET_IFNAME=eth0\nsrun ./app\n", "x.sh"),
    "a name that is passed on": ("mpirun -x NCCL_DEBUG ./app\n", "x.sh"),
    "an unset": ("unset NCCL_DEBUG\nsrun ./app\n", "x.sh"),
    "a remark": ("#!/bin/bash\n# NCCL_DEBUG=INFO is for tests\nsrun ./app\n", "x.sh"),
    "what is used": ('#!/bin/bash\necho NCCL_DEBUG; [ "$NCCL_DEBUG" ] && cd ${NCCL_DEBUG_DIR}\n', "x.sh"),
    "what is asked": ('import os\na = os.environ.get("NCCL_DEBUG")\nb = os.environ["OMPI_COMM_WORLD_RANK"]\n', "x.py"),
    "folders": ("#!/bin/bash\nmake NCCL_HOME=/opt MPI=1\nls /opt/NCCL_TESTS\n", "x.sh"),
    "a constant of the program's own": ("NCCL_LOG_FILE = 'test.log'\nrules = {'store': 'NCCL_DIS'}\n", "x.py"),
    "what a log says": ('# A page\n\nNCCL INFO NET/OFI Setting NCCL_PROTO to "simple"\n', "x.md"),
    "nothing of the kind": ("#!/bin/bash\nsrun ./app\n", "x.sh"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_what_is_understood_or_sets_nothing_is_not(name: str):
    assert "ENV018" not in codes(*UNDERSTOOD[name])


MODES = """
modes:
  default:
    env:
      NCCL_DEBUG: WARN
      NCCL_MIN_CHANNELS: 32
  sharp:
    run:
      env: {NCCL_COLLNET_ENABLE: 1, NCCL_ALGO: [Ring, Tree]}
      mpi_args: [-x, NCCL_BUFFSIZE=8M, -x, UCX_TLS]
      launcher: "mpirun -np 8 -x NCCL_P2P_DISABLE=true ./a"
describe: "about NCCL_DEBUG"
"""


def test_an_environment_within_modes_is_read_by_its_names():
    reading = read(MODES, "modes.yaml")

    assert {each.name: (each.value, *each.alternatives) for each in reading.assignments} == {
        "NCCL_DEBUG": ("WARN",),
        "NCCL_MIN_CHANNELS": ("32",),
        "NCCL_COLLNET_ENABLE": ("1",),
        "NCCL_ALGO": (None, "Ring", "Tree"),
        "NCCL_BUFFSIZE": ("8M",),
        "NCCL_P2P_DISABLE": ("true",),
    }
    assert codes(MODES, "modes.yaml") == ["ENV020", "ENV030", "ENV031"]


def test_yaml_on_standard_input_is_known_by_its_keys():
    assert read("env:\n  NCCL_DEBUG: INFO\n", "stdin").language == "kubernetes"
    assert read("echo a:\nNCCL_DEBUG=INFO\n", "stdin").language == "shell"


PAGE = """Running the tests on our cluster

The cluster has eight GPUs in each node, and four NICs of 200 Gb/s.
Set these before you start anything on several nodes.

export NCCL_IB_HCA=mlx5_0,mlx5_1
export NCCL_MIN_CHANNELS=32

The tests are started with the mpirun of the HPC-X toolkit on the login node.

    mpirun -np 16 \\
        --bind-to numa \\
        -x NCCL_BUFFSIZE=8M ./all_reduce_perf

It's about 190 GB/s then, as NCCL_DEBUG=INFO shows in the log of each rank.
"""


def test_a_page_without_fences_is_read_between_its_sentences():
    reading = read(PAGE, "page.txt")

    assert [each.name for part in reading.parts for each in part.assignments] == [
        "NCCL_IB_HCA",
        "NCCL_MIN_CHANNELS",
        "NCCL_BUFFSIZE",
    ]
    assert codes(PAGE, "page.txt") == ["ENV049", "ENV020", "ENV030"]


@pytest.mark.parametrize(
    ("machine", "names", "says"),
    [
        ("BM.GPU.H200.8", "mlx5_0 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_9 mlx5_10", "leaves out mlx5_11"),
        ("bm.gpu.h200.8", "mlx5_0 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_9 mlx5_10 mlx5_11", None),
        ("BM.GPU.Z900.8", "mlx5_0", None),
    ],
)
def test_a_table_of_nics_is_held_against_the_machine_it_names(machine: str, names: str, says: str | None):
    text = f"DEVICES = {{'{machine}': {names.split()!r}}}\n"
    found = lint(read(text, "check.py"), CheckContext())

    assert [each.code for each in found] == ([] if says is None else ["ENV050"])
    assert all(says in each.title for each in found if says is not None)


HEALTH_CHECK = """
def check(shape):
    nics = {
        "BM.GPU.H200.8": {"device": "eth0", "NCCL_IB_HCA": "=mlx5_0,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_9,mlx5_10"},
        "BM.GPU.B4.8": {"device": "eth0", "threshold": 440},
    }
    command = None
    if shape in ("BM.GPU.H200.8",):
        command = f"source x.sh && mpirun -x NCCL_BUFSIZE=8M -x NCCL_IB_HCA={nics[shape]['NCCL_IB_HCA']} ./a -b 8"
    elif shape == "BM.GPU.B4.8":
        command = "mpirun -x NCCL_DEBUGG=INFO ./a"
    return run_as_user(command, timeout=120)
"""


def test_commands_that_branches_put_together_and_tables_of_several_values_are_read():
    found = lint(read(HEALTH_CHECK, "check.py"), CheckContext())

    assert sorted(
        (each.code, each.place.line) for each in found if each.place is not None and each.code != "ENV001"
    ) == [
        ("ENV020", 9),
        ("ENV020", 11),
        ("ENV050", 4),
    ]


def test_the_beginning_of_a_command_that_is_added_to_is_no_command_by_itself():
    text = "if a:\n    c = 'mpirun'\nelse:\n    c = 'srun'\nc += ' -x NCCL_DEBUG=INFO ./a'\nrun(c)\n"
    assert [each.forwards for each in read(text, "x.py").launches] == [("NCCL_DEBUG",)]


def test_silence_ends_with_4_and_names_what_was_not_read(tmp_path: Path):
    file = tmp_path / "x.py"
    file.write_text(SILENT["a program that asks elsewhere"][0])

    done = CliRunner().invoke(busbw, ["env", "lint", str(file)])
    told = json.loads(CliRunner().invoke(busbw, ["env", "lint", str(file), "--json"]).stdout)

    assert done.exit_code == 4
    assert "1 name of settings, and no setting was read" in done.stdout
    assert told["findings"][0]["where"] == {"file": str(file), "line": 1, "column": 17}
    assert told["settings"]["count"] == 0
