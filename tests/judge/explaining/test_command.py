"""`busbw judge` as people run it: exit codes, JSON, narrow terminals, hostile text."""

import json
import re
import shutil

import pytest
from click.testing import CliRunner
from msgspec import json as msgspec_json

from busbw.cli.command import busbw
from busbw.model.verdict import ExplainedVerdict

from .tables import HOST, SAMPLES, GiB, nccl_table

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def run(*arguments):
    return CliRunner().invoke(busbw, ["judge", *map(str, arguments)])


def exit_code(*arguments):
    result = run(*arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return getattr(result.exception, "exit_code", result.exception)
    return result.exit_code


@pytest.fixture
def log(tmp_path):
    def written(rate, ranks=8, size_bytes=16 * GiB):
        path = tmp_path / "all_reduce.log"
        path.write_text(nccl_table([(size_bytes, rate)], ranks))
        return path

    return written


@pytest.mark.parametrize(
    ("rate", "code"),
    [(481.42, 0), (150.0, 1), (367.0, 4), (900.0, 4)],
    ids=["ok", "slow", "either", "impossible"],
)
def test_the_exit_code_is_that_of_the_verdict(log, rate, code):
    assert exit_code(log(rate), "--platform", "azure-nd-h100-v5") == code


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("no-such-run",),
        (SAMPLES / "four-h200.log", "--platform", "nobody's"),
        (SAMPLES / "four-h200.log", "--nodes", "0"),
        (SAMPLES / "four-h200.log", "--gpus-per-node", "-4"),
        (SAMPLES / "four-h200.log", "--algorithm", "star"),
        (SAMPLES / "four-h200.log", "--host", SAMPLES / "four-h200.log"),
        (SAMPLES / "four-h200.log", "--host", HOST, "--here"),
        (SAMPLES / "azure-table-1.txt",),
        (SAMPLES / "four-h200.log", "no-such-run"),
        (SAMPLES / "four-h200.log", "--size", "eight"),
    ],
)
def test_bad_input_is_refused(arguments):
    assert exit_code(*arguments) == 2


def test_saying_that_nvls_was_off_decides(log):
    path = log(367.0)
    platform = ("--platform", "azure-nd-h100-v5")
    assert exit_code(path, *platform, "--nvls", "off") == 0
    assert exit_code(path, *platform, "--nvls", "on", "--algorithm", "nvls") == 1


def test_json_is_the_value_and_holds_every_size():
    result = run(SAMPLES / "four-h200.log", "--host", HOST, "--nvls", "off", "--json")
    explained = msgspec_json.decode(result.stdout.encode(), type=ExplainedVerdict)
    assert json.loads(result.stdout)["verdict"]["outcome"] == "ok"
    assert len(explained.series) == 12
    assert {len(series.sizes) for series in explained.series} >= {31}


def test_a_size_that_is_asked_for_is_explained():
    result = run(SAMPLES / "four-h200.log", "--host", HOST, "--nvls", "off", "--size", "16M")
    assert "all_reduce 16 MiB: 251.8 GB/s" in result.stdout
    assert "all_reduce 8 GiB: 365.2 GB/s\n" not in result.stdout


def test_an_import_is_judged_as_the_file_it_was_read_from(tmp_path, monkeypatch):
    monkeypatch.setenv("BUSBW_RUNS", str(tmp_path / "runs"))
    CliRunner().invoke(busbw, ["import", str(SAMPLES / "isambard-with-plugin.log"), "-o", str(tmp_path / "imported")])
    result = run(tmp_path / "imported", "--platform", "isambard-ai-phase2")
    assert "ok: all_reduce 8 GiB: 162.7 GB/s" in result.stdout


def test_judging_files_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("BUSBW_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    shutil.copy(SAMPLES / "isambard-with-plugin.log", tmp_path / "copy.log")
    run(tmp_path / "copy.log", "--platform", "isambard-ai-phase2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.log"]


def test_control_codes_of_a_log_do_not_reach_the_terminal(tmp_path):
    text = (SAMPLES / "isambard-with-plugin.log").read_text()
    hostile = text.replace("nid001024", "\x1b]0;owned\x07nid").replace("all_reduce_perf", "all_reduce_perf\x1b[31m")
    path = tmp_path / "\x1b[2Jname.log"
    path.write_text(hostile)
    result = run(path, "--platform", "isambard-ai-phase2")
    assert not CONTROL.search(result.stdout)
    assert "162.7 GB/s" in result.stdout


def test_a_name_of_a_gpu_without_its_maker_is_that_gpu():
    """Drivers before 465 print `A100-SXM4-40GB`."""
    log = SAMPLES.parents[2] / "formats" / "samples" / "nccl-tests-2.9-all_reduce-c0.log"

    assert "NVIDIA A100" not in log.read_text()
    assert "101 % of the 232.6 GB/s expected (measured on 8 GPUs at 16 GiB: mleng)" in run(log).stdout
    assert exit_code(log, "--platform", "azure-ndv4") == 0


def test_nodes_of_a_named_platform_have_all_of_its_gpus(tmp_path):
    """The rates of a thousand ranks and of two thousand differ by less than what is printed."""
    log = tmp_path / "all_reduce.log"
    log.write_text(nccl_table([(16 * GiB, 354.2)], 1024))

    said = run(log, "--platform", "azure-nd-h100-v5", "--nodes", 128)

    assert "1024 ranks, 128 nodes" in said.stdout
    assert said.exit_code == 0


def test_what_to_say_next_is_what_would_help(log, tmp_path):
    unknown = run(log(361.06, ranks=32)).stdout
    assert "--platform ID (`busbw platform list`), --nodes N" in unknown
    assert "(rates no platform" not in unknown

    path = tmp_path / "hypercube.log"
    path.write_text(nccl_table([(GiB, 268.0)], 4, "hypercube"))
    assert "next:" not in run(path, "--nodes", 1).stdout


def test_small_messages_that_nobody_has_measured_say_which_evidence_is_missing(tmp_path):
    path = tmp_path / "all_reduce.log"
    path.write_text(nccl_table([(8 << 3 * step, 4e-4 * 8**step) for step in range(4)], 8))

    # 35 us, where a model expects 5 to 14.
    said = run(path, "--platform", "azure-ndv4", "--nodes", 1, "--size", 8)

    assert said.exit_code == 4
    assert "no time of such a small message is published" in said.stdout
    assert "hold it against a run of the same machine when it was sound: `busbw compare SOUND THIS`" in said.stdout


def test_a_stored_import_keeps_what_nccl_logged(tmp_path):
    log = SAMPLES.parents[2] / "doctor" / "logs" / "healthy.log"
    CliRunner().invoke(busbw, ["import", str(log), "-o", str(tmp_path / "imported")])
    result = run(tmp_path / "imported")
    assert "NVLS off" in result.stdout
    assert "ring SIMPLE" in result.stdout
