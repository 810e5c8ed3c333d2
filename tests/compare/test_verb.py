"""`busbw compare` and `busbw bisect` as a user starts them, with real launches."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from tests.e2e.foreign_programs import nccl_tests
from tests.sleeping import SLEEPING
from tests.warm import warm_busbw

from busbw.base.errors import ExitCode
from busbw.model.request import Request
from busbw.show.reproduce import bisect_command

SMALL = (
    "all_reduce",
    "-n",
    "2",
    "-b",
    "8",
    "-e",
    "8",
    "--time-limit",
    "5",
    *("--min-samples", "5", "--max-samples", "20"),
)
LEAVING_OUT = ("--set", "default", "--set", "OMPI_MCA_mpi_yield_when_idle=1 -u BUSBW_NOBODY")


def started(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    own = {"BUSBW_RUNS": str(folder), "NO_COLOR": "1", "COLUMNS": "80"}
    environment = {**os.environ, **SLEEPING, **own, **more}
    return warm_busbw(*words, env=environment, cwd=folder, timeout=120)


@pytest.mark.timed
def test_launches_are_planned_first_and_a_comparison_goes_on_where_it_ended(tmp_path):
    # So short that one block fits, and no second one.
    short = started(
        tmp_path, "compare", *SMALL, *LEAVING_OUT, "--blocks", "2", "--seed", "5", "--budget", "0.5", "--out", "it"
    )
    plan = json.loads((tmp_path / "it" / "comparison.json").read_text())
    folders = [launch["folder"] for launch in plan["launches"]]
    of_b = json.loads((tmp_path / "it" / next(f for f in folders if f.endswith("B")) / "plan.json").read_text())
    measured = [folder for folder in folders if (tmp_path / "it" / folder / "run.json").is_file()]

    assert short.returncode == ExitCode.CANNOT_TELL, short.stderr
    assert f"go on with: busbw compare --resume {tmp_path / 'it'}" in short.stderr
    assert len(folders) == 4
    assert all((tmp_path / "it" / folder / "plan.json").is_file() for folder in folders)
    assert 1 <= len(measured) < 4
    assert ["OMPI_MCA_mpi_yield_when_idle", "1"] in of_b["job"]["env"]
    assert "BUSBW_NOBODY" in of_b["job"]["unset"]
    assert of_b["surroundings"]["environment"]["OMPI_MCA_mpi_yield_when_idle"] == "1"

    # A launch that was cut off is not patched up with another.
    (tmp_path / "it" / measured[-1] / "outcome.json").unlink()
    plan["budget_s"] = 100.0
    (tmp_path / "it" / "comparison.json").write_text(json.dumps(plan))
    whole = started(tmp_path, "compare", "--resume", "it", "--json")
    found = json.loads(whole.stdout)

    assert whole.returncode == ExitCode.CANNOT_TELL, whole.stderr
    assert (found["blocks"], found["blocks_planned"]) == (2, 2)
    assert found["verdict"]["outcome"] == "cannot_tell"
    assert (tmp_path / "it" / f"{measured[-1]}.cut-off-1" / "plan.json").is_file()
    assert json.loads((tmp_path / "it" / "result.json").read_text()) == found

    shown = started(tmp_path, "compare", "it")
    assert "B  OMPI_MCA_mpi_yield_when_idle=1 -u BUSBW_NOBODY (2 launches)" in shown.stdout
    assert "too few to claim anything of 1 point; 6 are the least" in shown.stdout

    one, other = (f"it/{folder}" for folder in folders[:2])
    stored = started(tmp_path, "compare", one, other, "--csv")
    assert stored.returncode == ExitCode.CANNOT_TELL
    assert stored.stdout.splitlines()[0].startswith("first,other,collective,size_bytes,")
    assert len(stored.stdout.splitlines()) == 2


def test_a_plan_is_printed_and_nothing_is_made(tmp_path):
    done = started(tmp_path, "compare", *SMALL, *LEAVING_OUT, "--plan", "--seed", "1", "--blocks", "4")

    assert done.returncode == ExitCode.OK, done.stderr
    assert "8 launches" in done.stdout
    assert list(tmp_path.iterdir()) == []


REFUSED = {
    "nothing": ((), "nothing to compare"),
    "one setting": (("--set", "default"), "one setting is not a comparison"),
    "no setting": (("--set", "default", "--set", "LL"), "is neither NAME=VALUE"),
    "no option": (("--set", "default", "--set", "--nonsense"), "No such option"),
    "another mode": (("--set", "default", "--set", "--mode stream"), "no fair comparison"),
    "other ranks": (("--set", "default", "--set", "-n 3"), "over different numbers of ranks"),
    "other collectives": (("--set", "-d int32", "--set", "-d float64"), "measures nothing that"),
    "no run": (("nowhere", "neither"), "'nowhere'"),
    "blocks": (("--set", "default", "--set", "A=1", "--blocks", "0"), "0 blocks"),
    "stored, with a seed": (("a", "b", "--seed", "1"), "--seed is for settings"),
    "a batch system": (("--set", "default", "--set", "--launcher sbatch"), "starts its launches itself"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_compared_is_refused_in_words(tmp_path, case):
    words, said = REFUSED[case]
    if "--set" in words:
        words = (*SMALL, *words)

    done = started(tmp_path, "compare", *words)

    assert done.returncode == ExitCode.BAD_INPUT, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_bisection_names_the_differences_it_would_search(tmp_path):
    (tmp_path / "bad.env").write_text("# a job\nexport NCCL_PROTO=LL\nNCCL_ALGO='Ring'\n")

    done = started(tmp_path, "bisect", "--good", "NCCL_PROTO=Simple -u NCCL_ALGO", "--bad", "@bad.env", "--plan")

    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stdout.splitlines() == [
        'NCCL_PROTO ("Simple" before, "LL" after)',
        'NCCL_ALGO (left out before, "Ring" after)',
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--good", "default"), "no two ends"),
        (("--good", "default", "--bad", "A=1"), "differ in 1"),
        (("--good", "A=1", "--bad", "A=1"), "nothing to search"),
        (("--in-order", "A=1", "--in-order", "A=2"), "nothing between them"),
        (("--good", "default", "--bad", "@nowhere"), "cannot read nowhere"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_words(tmp_path, words, said):
    done = started(tmp_path, "bisect", *words)

    assert done.returncode == ExitCode.BAD_INPUT, done.stderr
    assert said in done.stderr


def steady_program(folder: Path, factor: str) -> Path:
    """Write a program of nccl-tests' kind that takes the same time at every start, times `factor` of its variables."""
    made = nccl_tests(folder, "nccl-tests-2.19.6") / "all_reduce_perf"
    text = made.read_text()
    known = text.replace("us = 10 + size", f"us = ({factor}) * (10 + size").replace("cycle % 3", "cycle % 3)")
    assert known != text
    made.write_text(known.replace('time.sleep(PLAN.get("row_s", 0.01))', "pass"))
    return folder


def measured_by(program: Path) -> tuple[str, ...]:
    return (
        "--backend",
        "nccl-tests",
        "--bin",
        str(program),
        "--launcher",
        "direct",
        "--ranks",
        "2",
        "-b",
        "4K",
        "-e",
        "4K",
    )


@pytest.mark.timed
def test_a_program_that_is_slower_with_a_setting_is_found_to_be(tmp_path):
    program = steady_program(tmp_path / "bin", "1.05 if os.environ.get('A') == '1' else 1")

    done = started(
        tmp_path, "compare", "all_reduce", *measured_by(program), "--blocks", "6", "--set", "default", "--set", "A=1"
    )

    assert done.returncode == ExitCode.FINDINGS, done.stderr
    assert "slower: B (A=1) is slower at all_reduce 4 KiB, by 4.0 %\n" in done.stdout


@pytest.mark.timed
def test_two_settings_that_are_slow_only_together_are_found(tmp_path):
    program = steady_program(
        tmp_path / "bin", "1.5 if os.environ.get('A', '') + os.environ.get('B', '') == '12' else 1"
    )

    words = (
        "all_reduce",
        *measured_by(program),
        "--blocks",
        "7",
        "--out",
        "it",
        "--good",
        "default",
        "--bad",
        "A=1 B=2",
    )
    done = started(tmp_path, "bisect", *words)

    assert done.returncode == ExitCode.OK, done.stderr
    assert "together do it; neither half does alone" in done.stdout
    found = json.loads((tmp_path / "it" / "result.json").read_text())
    assert [cause["items"] for cause in found["causes"]] == [[0, 1]]
    assert [step["answer"] for step in found["steps"]] == ["absent", "absent"]

    # What was measured is taken as it is, without another launch; something else does not get into the folder.
    again = started(tmp_path, "bisect", *words)
    other = started(tmp_path, "bisect", *words[:-1], "A=1 B=3")
    assert (again.returncode, again.stdout) == (done.returncode, done.stdout)
    assert "[1/" not in again.stderr
    assert other.returncode == ExitCode.BAD_INPUT
    assert "another bisection is in this folder" in other.stderr


@pytest.mark.timed
def test_the_version_with_which_it_became_slow_is_found(tmp_path):
    folders = [steady_program(tmp_path / name, factor) for name, factor in (("v1", "1"), ("v2", "1"), ("v3", "2"))]
    folders.append(steady_program(tmp_path / "v4", "2"))
    in_order = [word for folder in folders for word in ("--in-order", f"--bin {folder}")]

    done = started(tmp_path, "bisect", "all_reduce", *measured_by(folders[0]), "--blocks", "6", *in_order, "--json")

    found = json.loads(done.stdout)
    assert done.returncode == ExitCode.OK, done.stderr
    assert [cause["items"] for cause in found["causes"]] == [[2]]
    assert f"the change came with --bin {tmp_path / 'v3'}" in found["sentence"]


def test_the_command_that_seeks_the_setting_that_matters_has_each_of_them_as_a_difference(tmp_path):
    request = Request(collectives=("all_reduce",), ranks=2, goal="bandwidth", platform="azure-nd-h100-v5")
    command = bisect_command(request, "default", {"NCCL_MIN_CTAS": "32", "NCCL_IB_HCA": "^mlx5_an0:1"})
    done = started(tmp_path, *shlex.split(command)[1:], "--plan")

    assert "--goal" not in command
    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stdout.splitlines() == [
        'NCCL_MIN_CTAS (as it is here before, "32" after)',
        'NCCL_IB_HCA (as it is here before, "^mlx5_an0:1" after)',
    ]


# A site's own platform, whose recommendation is what ranks of one host should not have: TCP instead of shared memory.
TCP = """
id = "ours"
names = ["ours"]
kind = "gpu"
extends = ["azure-nd-h100-v5"]
""" + "".join(
    f"""
[[settings]]
name = "{name}"
value = "{value}"
scope = "mpi"
reason = "To try what it costs."
source = ["az-cust"]
checked = "2026-11"
"""
    for name, value in (("OMPI_MCA_btl", "tcp,self"), ("OMPI_MCA_pml", "ob1"))
)


@pytest.mark.timed
def test_what_is_recommended_is_measured_and_the_setting_that_matters_can_be_sought(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "ours.toml").write_text(TCP, encoding="utf-8")
    asked = (
        "all_reduce",
        "-n",
        "2",
        "-b",
        "64",
        "-e",
        "64",
        "--time-limit",
        "2",
        "--min-samples",
        "5",
        "--max-samples",
        "40",
    )
    sides = ("--set", "default", "--set", "recommended", "--platform", "ours")
    done = started(tmp_path, "compare", *asked, *sides, "--blocks", "7", "--seed", "1", BUSBW_DATA=str(site))

    assert done.returncode in {ExitCode.FINDINGS, ExitCode.CANNOT_TELL, ExitCode.OK}, done.stderr
    text = " ".join(done.stdout.split())
    assert 'applied: OMPI_MCA_btl = "tcp,self" To try what it costs' in text
    assert 'not applied: NCCL_TOPO_FILE = "/opt/microsoft/ndv5/topo.xml"' in text
    sought = "which of the 2 settings matters: busbw bisect all_reduce" in text
    # On a busy machine seven blocks may show nothing, and then there is nothing to seek.
    assert sought == ("B (recommended) is slower" in text)
    assert not sought or "--good default --bad 'OMPI_MCA_btl=tcp,self OMPI_MCA_pml=ob1'" in text
