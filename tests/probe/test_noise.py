"""Noise is measured on every CPU, kept in the snapshot, read back, summed up, and held against another host's."""

import json
import subprocess
import sys

import pytest
from tests.warm import warm_busbw

from busbw import _core
from busbw.machine.read.commands import NOISE, noise_command
from busbw.machine.read.index import SnapshotIndex
from busbw.machine.read.noise import noise_of, summary
from busbw.model import codec
from busbw.model.host import Answer, Snapshot
from busbw.model.machine import NoiseTest
from busbw.show.text.noise import noise_comparison_text, noise_text
from busbw.store.snapshots import write_snapshot

from .noise_texts import noise_answer, noise_test, one


def snapshot(text: str, *, hostname: str = "h") -> Snapshot:
    answer = Answer(name=NOISE, argv=("python",), ended="ok", exit_code=0, output=text)
    return Snapshot(busbw_version="1", captured="", hostname=hostname, root=False, answers=(answer,))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return warm_busbw("probe", *arguments, timeout=120)


def test_fixed_work_fills_the_time_on_every_cpu() -> None:
    found = _core.noise_on([0], 100_000, 100_000_000)

    (cpu,) = found
    assert (cpu.cpu, cpu.repeats > 0) == (0, True)
    assert 0.1e9 <= cpu.total_ns <= 30e9
    assert cpu.least_ns <= cpu.median_ns <= cpu.p99_ns <= cpu.p999_ns <= cpu.most_ns
    assert sum(cpu.excess) == cpu.repeats


def test_a_cpu_that_is_not_there_is_an_error_that_names_it() -> None:
    with pytest.raises(RuntimeError, match="CPU 100000"):
        _core.noise_on([100_000], 100_000, 1_000_000)


def test_what_is_printed_is_what_is_read() -> None:
    assert noise_of(SnapshotIndex(snapshot(noise_answer()))) == noise_test()


@pytest.mark.parametrize(
    "text",
    [
        "", "none\n", "{}", noise_answer()[:-20], noise_answer(least_s=1.0), noise_answer(detours=10**9),
        noise_answer(repeats=0), noise_answer(detoured=2.0), noise_answer(total_s=-1.0), noise_answer(cpus=0),
    ],
)  # fmt: skip
def test_what_cannot_have_been_measured_is_no_test(text) -> None:
    assert noise_of(SnapshotIndex(snapshot(text))) is None


def test_a_host_without_a_test_has_none() -> None:
    assert noise_of(SnapshotIndex(Snapshot(busbw_version="1", captured="", hostname="h", root=False))) is None


def test_a_summary_has_the_middle_of_the_cpus_and_the_worst() -> None:
    found = summary(noise_test(cpus=3))

    assert found.cpus == 3
    assert (found.lost, found.worst_lost) == pytest.approx((0.02, 0.03))
    assert found.detours_per_s == pytest.approx(250)
    assert found.preempted == 9


def test_the_screen_names_the_worst_cpus_first_and_the_period_of_the_tick(capsys) -> None:
    noise_text(noise_test(cpus=30))

    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if line.split()[:1] and line.split()[0].isdigit()]
    assert [row[0] for row in rows][:3] == ["29", "28", "27"]
    assert len(lines) <= 24
    assert max(len(line) for line in lines) <= 100
    assert any("every 4.00 ms on 30 of 30 CPUs" in line for line in lines)


def test_without_a_common_period_none_is_told(capsys) -> None:
    noise_text(NoiseTest(duration_s=10.0, quantum_s=1e-4, cpus=(one(0), one(1, period_s=None), one(2, period_s=None))))

    assert "regular" not in capsys.readouterr().out


def test_two_hosts_stand_beside_each_other_with_ratios(capsys) -> None:
    noise_comparison_text(noise_test(most_s=5e-3), "vm", noise_test(), "metal")

    out = capsys.readouterr().out
    assert "noise of vm against metal" in out
    (longest,) = [line.split() for line in out.splitlines() if line.startswith("longest")]
    assert longest[-3:] == ["5", "2.5", "2.00"]
    assert "not the same test" not in out


def test_tests_of_different_length_are_said_to_be_so(capsys) -> None:
    noise_comparison_text(noise_test(), "a", noise_test(duration_s=60.0), "b")

    assert "not the same test" in capsys.readouterr().out


def test_the_command_is_this_python_and_has_time_beyond_the_test() -> None:
    command = noise_command("/usr/bin/python3", 10.0)

    assert command.arguments[-2:] == ("busbw.rank.noise", "10")
    assert command.timeout_s > 10


def test_this_hosts_noise_is_measured_kept_and_read_again(tmp_path) -> None:
    kept = str(tmp_path / "host.tar")

    done = run("--noise", "0.5", "-o", kept, "--json")

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["noise"]
    assert told["duration_s"] == 0.5
    assert told["cpus"]
    again = run(kept, "--against", kept)
    assert again.returncode == 0, again.stderr
    assert "time lost, worst CPU" in again.stdout
    assert run(kept, "--anonymous", "--json").stdout.count('"repeats"') == len(told["cpus"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--noise", "nan"), "--noise takes up to 600 s"),
        (("--noise", "0"), "--noise takes up to 600 s"),
        (("--noise", "1e9"), "--noise takes up to 600 s"),
        (("--against", "none.tar"), "none.tar"),
    ],
)
def test_bad_input_is_one_error(arguments, says) -> None:
    done = run(*arguments)

    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_host_that_was_not_measured_is_not_compared(tmp_path) -> None:
    path = tmp_path / "plain.tar"
    write_snapshot(path, Snapshot(busbw_version="1", captured="", hostname="h", root=False))

    done = run(str(path), "--against", str(path))

    assert (done.returncode, "its noise was not measured" in done.stderr) == (2, True)


def test_a_captured_host_is_not_measured(tmp_path) -> None:
    done = run(str(tmp_path / "host.tar"), "--noise", "1")

    assert (done.returncode, "cannot be measured any more" in done.stderr) == (2, True)


def test_the_program_itself_refuses_what_is_no_time() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "busbw.rank.noise", "-1"], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("cannot measure: ")


def test_a_test_is_one_line_of_json() -> None:
    assert codec.encode(noise_test()).count(b"\n") == 0
