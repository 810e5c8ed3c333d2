"""Groups of real hosts with one of them throttled: all_reduce over TCP, and a program of a user."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.e2e.runner import clean_environment, environment_of
from tests.lab.host import ENVIRONMENT
from tests.lab.lab import Lab
from tests.lab.ranks import OPEN_MPI

pytestmark = pytest.mark.root
# So slow that no busy core makes another host look like it.
THROTTLED = "2mbit"
# Two runs of each pair of three hosts, and three to confirm: as few starts as there can be.
FEW = ("--hosts", "n[0-2]", "--repeats", "2", "--no-whole", "--seed", "1", "--rounds", "9")


def isolated(lab: Lab, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    path = clean_environment(environment_of("Open MPI"), folder)["PATH"]
    done = lab.run(
        "n0",
        [environment_of("Open MPI") / "bin" / "busbw", "isolate", *FEW, *words],
        env={**ENVIRONMENT, "PATH": path, "BUSBW_RUNS": str(folder), **OPEN_MPI},
        cwd=str(folder),
        timeout_s=280,
    )
    assert "Traceback" not in done.stderr, done
    return done


def test_a_throttled_host_slows_every_all_reduce_that_it_is_in(lab: Lab, tmp_path: Path) -> None:
    lab.shape("n1", THROTTLED)

    done = isolated(
        lab, tmp_path, "all_reduce", "-b", "128K", "--ranks-per-node", "1", "--interface", "eth0", "--bind-to", "none",
        "--time-limit", "2", "--calls", "1", "-w", "1", "--min-samples", "2", "--max-samples", "2", "--json",
    )  # fmt: skip

    assert done.returncode == 1, done
    found = json.loads(done.stdout)
    assert [answer["hosts"] for answer in found["answers"]] == [["n1"]], found["answers"]
    assert found["answers"][0]["loss"] > 0.5


def test_a_program_of_a_user_over_all_hosts_of_a_group_finds_it_too(lab: Lab, tmp_path: Path) -> None:
    lab.shape("n2", THROTTLED)
    program = tmp_path / "copy.sh"
    program.write_text(
        "#!/bin/sh\n"
        "# Sends 512 KiB to each host of its list, and prints how long the slowest took.\n"
        "begin=$(date +%s%N)\n"
        'for host in $(cat "$1"); do\n'
        '  head -c 524288 /dev/zero | ssh -o BatchMode=yes "$host" cat | wc -c\n'
        "done >/dev/null\n"
        'echo "took $(( ($(date +%s%N) - begin) / 1000 )) us"\n'
    )
    program.chmod(0o755)

    done = isolated(lab, tmp_path, "--read", r"took ([0-9]+) us", "--lower-is-better", "--", str(program), "{hostfile}")

    assert done.returncode == 1, done
    assert done.stdout.startswith("slow: node n2 slows every group it is in"), done
