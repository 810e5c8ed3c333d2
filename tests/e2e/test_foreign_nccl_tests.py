"""`busbw run --backend nccl-tests` with programs that answer as versions of nccl-tests do."""

import json
from pathlib import Path

import pytest
from tests.patience import wait_until

from .foreign_programs import nccl_tests
from .runner import STALL_S, Busbw, Result

SIZES = ("-b", "1K", "-e", "4K")


def run(busbw: Busbw, folder: Path, *more: object, mpi: bool = False, ranks: int = 2) -> Result:
    launcher = "mpirun" if mpi else "direct"
    command = ("run", "all_reduce", "--backend", "nccl-tests", "--bin", folder, "--launcher", launcher, "--json")
    return busbw(*command, "--ranks", ranks, *SIZES, *more)


def printed_by(busbw: Busbw, step: int) -> bytes:
    found = list(busbw.runs.glob(f"*/raw/launcher.0.{step}.stdout"))
    return found[0].read_bytes() if found else b""


def test_a_program_that_times_every_call_gives_each_as_a_sample(busbw: Busbw, tmp_path: Path):
    result = run(busbw, nccl_tests(tmp_path / "bin", "nccl-tests-2.19.6", mpi=True), mpi=True)

    found = result.run()
    assert [(one.size_bytes, one.samples, one.verified) for one in found.measurements] == [
        (1024, 30, True), (2048, 30, True), (4096, 30, True),
    ]  # fmt: skip
    first = found.measurements[0]
    assert first.median_s == pytest.approx((10 + 0.1024 + 2) * 1e-6, rel=1e-6)
    assert first.busbw_Bps == pytest.approx(1024 / first.median_s)
    assert first.mode == "stream"
    assert found.verdict.outcome == "cannot_tell", result


def test_no_secret_of_the_environment_is_kept(busbw: Busbw, tmp_path: Path):
    run(busbw, nccl_tests(tmp_path / "bin", "nccl-tests-2.19.6"))

    report = (busbw.directory() / "raw" / "step-0.json").read_text(encoding="utf-8")
    assert "abc123" not in report
    assert json.loads(report)["env"] == ["NCCL_ALGO=Ring"]


def test_a_program_with_cycles_gives_each_mean_as_a_sample(busbw: Busbw, tmp_path: Path):
    result = run(busbw, nccl_tests(tmp_path / "bin", "nccl-tests-2.17"), "--min-samples", 9)

    (first, *_rest) = result.run().measurements
    assert (first.samples, first.calls_per_sample) == (9, 20), result
    assert first.median_s == pytest.approx(11.1024e-6, rel=1e-4)


@pytest.mark.parametrize("version", ["nccl-tests-2.0", "nccl-tests-2.13"])
def test_an_old_program_is_started_several_times(busbw: Busbw, tmp_path: Path, version: str):
    result = run(busbw, nccl_tests(tmp_path / "bin", version))

    found = result.run()
    assert [one.samples for one in found.measurements] == [6, 6, 6], result
    assert found.verdict.outcome == "cannot_tell"
    assert "RUN004" in {finding.code for finding in found.findings}
    assert len(list((busbw.directory() / "raw").glob("launcher.0.*.stdout"))) == 6


def test_separate_runs_of_one_rank_are_a_failure_that_says_so(busbw: Busbw, tmp_path: Path):
    result = run(busbw, nccl_tests(tmp_path / "bin", "nccl-tests-2.13", mpi=False), mpi=True)

    found = result.run()
    assert result.code == 3, result
    assert found.measurements == ()
    assert "2 separate runs of one rank" in found.verdict.sentence


def test_wrong_data_is_the_verdict_whatever_the_exit_code(busbw: Busbw, tmp_path: Path):
    result = run(busbw, nccl_tests(tmp_path / "bin", "nccl-tests-2.17", wrong=3), "--min-samples", 1)

    found = result.run()
    assert found.verdict.outcome == "wrong", result
    assert "3 wrong" in found.verdict.sentence
    assert all(one.samples == 0 for one in found.measurements)


def test_unchecked_data_are_not_verified(busbw: Busbw, tmp_path: Path):
    found = run(busbw, nccl_tests(tmp_path / "bin", "nccl-tests-2.19.6"), "-c", 0).run()

    assert not any(one.verified for one in found.measurements)
    assert "RUN020" in found.verdict.because


def test_a_program_that_falls_silent_is_ended_and_its_last_row_named(busbw: Busbw, tmp_path: Path):
    folder = nccl_tests(tmp_path / "bin", "nccl-tests-2.13", hangs_at=4096)
    result = run(busbw, folder, "--stall-timeout", STALL_S)

    assert result.code == 3, result
    assert f"printed nothing for {STALL_S} s, after all_reduce 2 KiB" in result.run().verdict.sentence


def test_the_programs_own_words_and_its_process_are_named(busbw: Busbw, tmp_path: Path):
    says = "node7: Test NCCL failure all_reduce.cu:44 'unhandled system error'\n"
    says += " .. node7 pid {pid}: Test failure common.cu:9"
    result = run(busbw, nccl_tests(tmp_path / "bin", "nccl-tests-2.13", says=says, exits=3))

    found = result.run()
    assert result.code == 3, result
    assert found.outcome is not None
    assert found.outcome.culprit is not None
    assert (found.outcome.culprit.rank, found.outcome.culprit.host) == (1, "node7")
    assert "unhandled system error" in found.verdict.sentence


def test_a_rank_that_is_killed_under_mpirun_is_named(busbw: Busbw, tmp_path: Path):
    folder = nccl_tests(tmp_path / "bin", "nccl-tests-2.13", mpi=True, dies=1, hangs_at=1024)
    result = run(busbw, folder, mpi=True)

    found = result.run()
    assert result.code == 3, result
    assert found.outcome is not None
    assert found.outcome.culprit is not None, result
    assert found.outcome.culprit.rank == 1
    assert "SIGKILL" in found.outcome.culprit.what


def test_the_time_limit_ends_the_program_and_keeps_its_rows(busbw: Busbw, tmp_path: Path):
    folder = nccl_tests(tmp_path / "bin", "nccl-tests-2.17", row_s=0.6)
    result = run(busbw, folder, "--time-limit", 6)

    found = result.run()
    assert found.outcome is not None
    assert found.outcome.ended == "time", result
    assert 1 <= found.measurements[0].samples < 30


@pytest.mark.parametrize(("version", "samples"), [("nccl-tests-2.13", 2), ("nccl-tests-2.19.6", 60)])
def test_ctrl_c_ends_the_program_and_resume_repeats_what_is_missing(
    busbw: Busbw, tmp_path: Path, version: str, samples: int
):
    folder = nccl_tests(tmp_path / "bin", version, row_s=0.3)
    started = busbw.start(
        "run", "all_reduce", "--backend", "nccl-tests", "--bin", folder, "--launcher", "direct", "--ranks", 2,
        *SIZES, "--launches", 2,
    )  # fmt: skip
    wait_until(lambda: b" float " in printed_by(busbw, 1), 60.0, "a row of the second start")
    started.interrupt()
    stopped = started.finish()
    assert "cannot tell" in stopped.out, stopped

    result = busbw("run", "--resume", busbw.directory(), "--json")
    assert [one.samples for one in result.run().measurements] == [samples] * 3, result
    raw = busbw.directory() / "raw"
    assert sorted(path.name for path in raw.glob("*.stdout")) == [
        "launcher.0.0.stdout", "launcher.0.1.stdout", "launcher.1.1.stdout",
    ]  # fmt: skip
    assert busbw("run", "--resume", busbw.directory()).code == 2


def test_the_plan_prints_the_line_that_runs(busbw: Busbw, tmp_path: Path):
    folder = nccl_tests(tmp_path / "bin", "nccl-tests-2.19.6")
    planned = busbw(
        "run", "all_reduce", "--backend", "nccl-tests", "--bin", folder, "--launcher", "direct", "--ranks", 4, *SIZES,
        "-n", 50, "-w", 3, "--plan",
    )  # fmt: skip

    line = planned.out.splitlines()[-1]
    assert line.startswith(
        f"{folder}/all_reduce_perf -b 1024 -e 4096 -f 2 -g 4 -d float -o sum -r 0 -w 3 -c 1 -a 1 -n 50 -I 1 -J /"
    ), planned


@pytest.mark.parametrize(
    ("version", "more", "says"),
    [
        ("nccl-tests-2.0", ("-G", 1), "replays no CUDA graphs"),
        ("nccl-tests-2.13", ("-R", 1), "registers no buffers"),
        ("nccl-tests-2.17", ("--mode", "isolated"), "no isolated mode"),
        ("nccl-tests-2.0", ("-o", "mulsum"), "not an operation"),
    ],
)
def test_what_a_version_cannot_do_is_refused_before_it_starts(
    busbw: Busbw, tmp_path: Path, version: str, more: tuple[object, ...], says: str
):
    result = run(busbw, nccl_tests(tmp_path / "bin", version), *more)

    assert result.code == 2, result
    assert says in result.err


def test_a_script_whose_launcher_nobody_told_is_refused(busbw: Busbw, tmp_path: Path):
    folder = nccl_tests(tmp_path / "bin", "nccl-tests-2.13")
    result = busbw("run", "all_reduce", "--backend", "nccl-tests", "--bin", folder, "--ranks", 2)

    assert result.code == 2, result
    assert "--launcher direct" in result.err


def test_a_program_that_does_not_answer_is_given_up(busbw: Busbw, tmp_path: Path):
    (tmp_path / "bin").mkdir()
    silent = tmp_path / "bin" / "all_reduce_perf"
    silent.write_text("#!/bin/sh\necho libnccl.so.2: cannot open shared object file >&2; exit 127\n")
    silent.chmod(0o755)
    result = run(busbw, tmp_path / "bin")

    assert result.code == 2, result
    assert "libnccl.so.2" in result.err


def test_recommended_settings_are_in_the_command_of_every_step(busbw: Busbw, tmp_path: Path):
    folder = nccl_tests(tmp_path / "bin", "nccl-tests-2.19.6")
    asked = ("--goal", "nic-check", "--platform", "azure-nd-h100-v5")

    plan = json.loads(run(busbw, folder, *asked, "--plan").out)
    for step in plan["steps"]:
        assert ["NCCL_P2P_DISABLE", "1"] in step["job"]["env"]
        assert "NCCL_TOPO_FILE" not in dict(step["job"]["env"])

    without = json.loads(run(busbw, folder, "--platform", "azure-nd-h100-v5", "--plan").out)
    assert (without["recommended"], dict(without["steps"][0]["job"]["env"]).get("NCCL_P2P_DISABLE")) == (None, None)
