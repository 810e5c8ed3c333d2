"""Runs, files of other tools and captured hosts: what they change, what they are refused for."""

import json
from pathlib import Path

import pytest
from tests.warm import warm_busbw

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "tests" / "judge" / "explaining" / "samples"
HOSTS = ROOT / "tests" / "hosts"
FOUR = ("all_reduce", "--platform", "oci-bm-gpu-h200-8", "--gpus", "4", "--calibrate", str(RUNS / "four-h200"))


def test_a_prediction_goes_nearly_through_the_cells_of_a_run_and_says_what_they_changed(tmp_path: Path) -> None:
    done = warm_busbw("predict", *FOUR, "-b", "1M", "-e", "1G", cwd=tmp_path)
    assert done.returncode == 0
    words = " ".join(done.stdout.split())
    assert "6 of 11 measured cells are used" in words
    # As the run has it.
    assert "measured 355.0 GB/s, predicted 356.6 GB/s" in words
    assert "1 GiB on 1 node: 356.6 GB/s -> 355.1 GB/s; 90 %: 320 to 397 -> 319 to 395;" in words
    assert "links of a GPU: 0.823 -> 0.820 of line rate" in words


def test_a_log_of_another_program_calibrates_as_a_run_does(tmp_path: Path) -> None:
    table = "   {size} 1024 float sum -1 {time} {alg} {bus} 0 {time} {alg} {bus} 0\n"
    rows = [(2**28, 1191.0, 225.4, 338.1), (2**30, 4560.0, 235.5, 353.2)]
    ranks = "".join(
        f"#  Rank  {rank} Group  0 Pid  {rank + 7} on  node1 device  {rank} [0x0{rank}] NVIDIA H200\n"
        for rank in range(4)
    )
    head = "# nThread 1 nGpus 4 minBytes 268435456 maxBytes 1073741824 step: 4(factor) warmup iters: 5 iters: 20\n"
    half = "     time   algbw   busbw #wrong"
    columns = f"#       size         count      type   redop    root{half}{half}\n"
    body = "".join(table.format(size=size, time=time, alg=alg, bus=bus) for size, time, alg, bus in rows)
    (tmp_path / "all_reduce_perf.log").write_text(
        f"# Collective test starting: all_reduce_perf\n{head}#\n{ranks}#\n{columns}{body}"
    )
    asked = ("predict", *FOUR[:-1], "all_reduce_perf.log", "--size", "1G", "--json")
    (row,) = json.loads(warm_busbw(*asked, cwd=tmp_path).stdout)["rows"]
    assert row["expected"]["busbw_Bps"] / 1e9 == pytest.approx(353.2, rel=2e-3)
    assert row["before"]["busbw_Bps"] != row["expected"]["busbw_Bps"]


def test_a_captured_host_is_predicted_by_its_own_links(tmp_path: Path) -> None:
    host = str(HOSTS / "vm-h100-x4" / "host.tar.gz")
    done = warm_busbw("predict", "all_reduce", "--host", host, "--size", "1G", cwd=tmp_path)
    assert done.returncode == 0
    assert "by NCCL 2.30.7's choice, from NCCL's search over the topology" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--platform", "aws-p5", "--gpus", "4", "--calibrate", str(RUNS / "four-h200")), "another machine"),
        ((*FOUR[1:-1], str(RUNS / "four-h200-p2p-off")), "through the memory of the host"),
        ((*FOUR[1:-1], "nothing-of-the-kind"), "nothing-of-the-kind"),
        ((*FOUR[1:3], "--calibrate", str(RUNS / "four-h200")), "NVLink SHARP was off"),
        (("--host", str(HOSTS / "vm-epyc-2-cores" / "host.tar.gz")), "shows no GPUs"),
        (("--host", "missing.tar"), "missing.tar"),
        (("--host", str(HOSTS / "vm-h100-x4" / "host.tar.gz"), "--gpus", "9"), "it shows 4"),
        (
            ("--host", str(HOSTS / "vm-h100-x4" / "host.tar.gz"), "--platform", "aws-p5"),
            "the machine is said by more than one of",
        ),
    ],
)
def test_what_says_nothing_of_the_machine_is_refused(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = warm_busbw("predict", "all_reduce", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) <= 4
