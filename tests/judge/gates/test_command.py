"""`busbw judge` with gates, as people run it: exit codes, the lines, JSON and JUnit, of runs, imports and logs."""

import json
import re

import pytest
from click.testing import CliRunner
from msgspec import json as msgspec_json
from msgspec.structs import replace
from tests.exports.test_junit import checked
from tests.formats.reading import SAMPLES as LOGS
from tests.judge.explaining.gpu_runs import make_gpu_run, make_point
from tests.judge.explaining.tables import SAMPLES, GiB, nccl_table
from tests.judge.factories import make_sweep

from busbw.cli.command import busbw
from busbw.model import codec
from busbw.model.settings import JobEnvironment
from busbw.model.verdict import ExplainedVerdict
from busbw.store import outcome

RUN, SLOW_RUN, LOG = SAMPLES / "four-h200", SAMPLES / "four-h200-p2p-off", SAMPLES / "four-h200.log"


def run(*arguments):
    return CliRunner().invoke(busbw, ["judge", *map(str, arguments)])


def code(result):
    """Return the exit code that a shell sees."""
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return result.exception.exit_code
    return result.exit_code


def gates_of(*arguments):
    """Return what gates came to, by JSON."""
    return msgspec_json.decode(run(*arguments, "--json").stdout.encode(), type=ExplainedVerdict).gates


@pytest.fixture
def stored(tmp_path):
    """Return what stores a run in a folder of its own."""

    def store(made, name):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "plan.json").write_bytes(codec.encode(made.plan))
        outcome.write_run(folder, made)
        return folder

    return store


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        (("--at-least", "all_reduce@1G=350GB/s"), 0),
        (("--at-least", "all_reduce@1G=360GB/s"), 1),
        (("--at-least", "all_reduce@1G=355.02GB/s"), 4),
        (("--at-least", "all_reduce@2G=355GB/s"), 4),
        (("--at-least", "all_reduce@2G=355GB/s", "--at-least", "all_reduce@1G=400GB/s"), 1),
        (("--at-most", "all_reduce@1K=11us", "--at-least", "all_reduce@16M..=2000Gb/s"), 0),
        (("--at-least", "all_reduce@1G=350GB"), 2),
        (("--at-least", "alreduce@1G=350GB/s"), 2),
        (("--gates", "no-such-file"), 2),
        (("--within", "5%"), 2),
        (("--baseline", SLOW_RUN), 2),
        (("--baseline", "no-such-run", "--within", "5%"), 2),
        (("--baseline", RUN, "--within", "5%"), 2),
        (("--baseline", "a" * 5000, "--within", "5%"), 2),
        (("--gates", "a" * 5000), 2),
        (("--junit", "never.xml"), 2),
    ],
    ids=lambda value: str(value)[:60],
)
def test_the_exit_code_is_that_of_the_gates(gates, expected):
    assert code(run(RUN, *gates)) == expected


def test_a_run_is_as_fast_as_a_slower_one_and_not_the_other_way_round():
    assert code(run(RUN, "--baseline", SLOW_RUN, "--within", "@1M..=5%")) == 0
    assert code(run(SLOW_RUN, "--baseline", RUN, "--within", "@1M..=5%")) == 1


def test_a_line_a_gate_with_its_answer_first_then_the_explained_verdict_and_the_answer_again():
    lines = run(RUN, "--at-least", "all_reduce@1G=350GB/s", "--at-least", "all_reduce@8G=350GB/s").stdout.splitlines()
    assert lines[0] == "pass         all_reduce@1G=350GB/s: 355.0 GB/s (95 %: 354.9 to 355.2)"
    assert lines[1] == "cannot tell  all_reduce@8G=350GB/s: 8 GiB was not measured; the nearest is 1 GiB"
    assert lines[2] == lines[-1] == "cannot tell: 1 of 2 gates; 1 passes"
    assert any(line.startswith("ok: all_reduce 1 GiB") for line in lines)


def test_gates_do_not_need_a_machine_to_hold_the_result_against():
    result = run(LOG, "--at-least", "all_reduce@1G=350GB/s")
    assert (result.exit_code, "cannot tell: " in result.stdout) == (0, True)


def test_a_table_without_intervals_says_so_once():
    said = run(LOG, "--at-least", "all_reduce@1G..=350GB/s", "--at-least", "broadcast@1G..=300GB/s").stdout
    assert said.count("note: where no interval is shown the one number decides: mean over iterations and ranks") == 1


def test_every_point_is_in_the_json():
    found = gates_of(LOG, "--at-least", "all_reduce@1G..=360GB/s")
    (answer,) = found.answers
    assert (found.outcome, answer.outcome, len(answer.points)) == ("fail", "fail", 8)
    assert {point.outcome for point in answer.points} == {"pass", "fail"}
    assert answer.points[0].read_from.endswith("four-h200.log:38")
    assert answer.points[0].value == 354.32e9


def test_an_import_is_held_against_gates_as_the_log_it_was_read_from(tmp_path, monkeypatch):
    monkeypatch.setenv("BUSBW_RUNS", str(tmp_path / "runs"))
    CliRunner().invoke(busbw, ["import", str(LOG), "-o", str(tmp_path / "imported")])
    gate = ("--at-least", "all_reduce@1G..=360GB/s")
    assert gates_of(tmp_path / "imported", *gate).sentence == gates_of(LOG, *gate).sentence
    assert code(run(tmp_path / "imported", "--baseline", LOG, "--within", "0%")) == 0


@pytest.mark.parametrize(
    ("log", "gate", "expected"),
    [
        ("osu-5.6-latency.log", ("--at-most", "latency@0..8=1.05us"), 0),
        ("osu-5.6-latency.log", ("--at-most", "latency@1K=1.9us"), 1),
        ("osu-5.6-latency.log", ("--at-most", "latency@8=2us"), 4),
        ("osu-6.2-reduce-full.log", ("--at-most", "reduce@100000,slowest=800us"), 1),
        ("osu-6.2-reduce-full.log", ("--at-least", "reduce@100000=1GB/s"), 4),
        ("nccl-tests-2.16.7-wrong.log", ("--at-least", "all_reduce@1K..=1MB/s"), 1),
        ("imb_mpi1.txt", ("--at-most", "all_reduce@1K,2ranks=3.8us"), 0),
        ("imb_mpi1.txt", ("--at-most", "all_reduce@1K=3.8us"), 1),
        ("nvbandwidth.json", ("--at-least", "device_to_device_memcpy_write_ce=1GB/s"), 0),
    ],
)
def test_logs_of_other_tools_meet_gates_or_not(log, gate, expected):
    assert code(run(LOGS / log, *gate)) == expected


def test_a_log_that_was_cut_off_cannot_tell_of_larger_sizes(tmp_path):
    cut = tmp_path / "cut.log"
    cut.write_text("".join(LOG.read_text().splitlines(keepends=True)[:40]))
    assert code(run(cut, "--at-least", "all_reduce@1M..=30GB/s")) == 4
    assert code(run(cut, "--at-least", "all_reduce@1M..64M=30GB/s")) == 0


def test_a_line_that_could_not_be_read_may_have_been_a_size(tmp_path):
    torn = tmp_path / "torn.log"
    torn.write_text(re.sub(r"^( *4294967296 .* sum) .*$", r"\1 -1 17.x", LOG.read_text(), count=1, flags=re.MULTILINE))
    assert code(run(torn, "--at-least", "all_reduce@1G..=300GB/s")) == 4
    assert "could not be read" in run(torn, "--at-least", "all_reduce@1G..=300GB/s").stdout


def test_a_file_of_gates_is_what_its_expressions_are(tmp_path):
    file = tmp_path / "gates.toml"
    file.write_text('[[gate]]\ncollective = "all_reduce"\nsize = "1G.."\nat_least = "360GB/s"\nin_place = true\n')
    by_file = gates_of(LOG, "--gates", file)
    assert by_file == gates_of(LOG, "--at-least", "all_reduce@1G..,in-place=360GB/s")
    assert [each.text for each in gates_of(LOG, "--gates", file, "--at-most", "all_reduce@8=1ms").answers] == [
        "all_reduce@1G..,in-place=360GB/s",
        "all_reduce@8=1ms",
    ]


def test_a_baseline_beside_the_file_is_found_and_the_command_line_goes_before_it(tmp_path):
    (tmp_path / "before.log").write_text(nccl_table([(GiB, 400.0)], 8))
    (tmp_path / "now.log").write_text(nccl_table([(GiB, 390.0)], 8))
    (tmp_path / "slow.log").write_text(nccl_table([(GiB, 300.0)], 8))
    (tmp_path / "gates.toml").write_text('[baseline]\nrun = "before.log"\nwithin = "2%"\n')
    gates = (tmp_path / "now.log", "--gates", tmp_path / "gates.toml")
    assert code(run(*gates)) == 1
    assert code(run(*gates, "--within", "3%")) == 0
    assert code(run(*gates, "--baseline", tmp_path / "slow.log")) == 0


def test_a_point_that_only_the_baseline_has_cannot_be_told(tmp_path):
    (tmp_path / "before.log").write_text(nccl_table([(GiB, 400.0), (2 * GiB, 410.0)], 8))
    (tmp_path / "now.log").write_text(nccl_table([(GiB, 400.0)], 8))
    assert code(run(tmp_path / "now.log", "--baseline", tmp_path / "before.log", "--within", "5%")) == 4
    assert code(run(tmp_path / "now.log", "--baseline", tmp_path / "before.log", "--within", "@1G=5%")) == 0


def refused(*arguments):
    """Return why a baseline was refused."""
    result = run(*arguments, "--within", "5%")
    assert code(result) == 2
    assert result.exception.hint is not None
    return result.exception.cause


def a_run(size_bytes=GiB, ranks=4, model="NVIDIA H200"):
    made = make_gpu_run([make_point(0, size_bytes, 4e-3, ranks=ranks)], model=model, ranks=ranks)
    return replace(made, plan=replace(made.plan, sweeps=(make_sweep("all_reduce", (size_bytes,)),)))


def test_a_baseline_that_is_not_comparable_is_refused_with_the_difference(stored, tmp_path):
    now = stored(a_run(), "now")
    other = {
        "ranks": a_run(ranks=8),
        "devices": a_run(model="NVIDIA H100"),
        "nothing": a_run(2 * GiB),
    }
    plan = a_run().plan
    other["mode"] = replace(a_run(), plan=replace(plan, sampling=replace(plan.sampling, mode="graph")))
    spread = replace(plan.placement, hosts=("node1", "node2"))
    other["hosts"] = replace(a_run(), plan=replace(plan, placement=spread))
    causes = {name: refused(now, "--baseline", stored(made, name)) for name, made in other.items()}
    assert causes == {
        "ranks": "the baseline is not comparable: over different numbers of ranks: baseline: 8 ranks; result: 4 ranks",
        "devices": "the baseline is not comparable: measured on different devices: "
        "baseline: NVIDIA H100; result: NVIDIA H200",
        "nothing": "the baseline is not comparable: no point in common: "
        "baseline: all_reduce 2 GiB, float32, sum, out of place, 4 ranks; "
        "result: all_reduce 1 GiB, float32, sum, out of place, 4 ranks",
        "mode": "the baseline is not comparable: measured in different modes: baseline: graph; result: isolated",
        "hosts": "the baseline is not comparable: measured over different numbers of hosts: "
        "baseline: 2 hosts; result: 1 host",
    }
    log = tmp_path / "log.log"
    log.write_text(nccl_table([(GiB, 400.0)], 4))
    assert "measured by different programs, or other statistics" in refused(now, "--baseline", log)


def test_a_baseline_of_another_platform_is_refused(stored):
    def on(platform):
        made = a_run()
        start = JobEnvironment(where="this host", environment={}, platform=platform)
        return stored(replace(made, plan=replace(made.plan, surroundings=start)), platform)

    cause = refused(on("aws-p5"), "--baseline", on("azure-nd-h100-v5"))
    assert cause.endswith("on different platforms: baseline: azure-nd-h100-v5; result: aws-p5")


def test_every_pair_of_ranks_is_a_point(stored):
    pairs = [(0, 1), (0, 2), (0, 3)]
    points = [
        make_point(number, 8, time_s, collective="latency", pair=pair)
        for number, (pair, time_s) in enumerate(zip(pairs, (2e-6, 2.1e-6, 4e-6), strict=True))
    ]
    made = make_gpu_run(points)
    sweeps = tuple(make_sweep("latency", (8,), pair=pair) for pair in pairs)
    folder = stored(replace(made, plan=replace(made.plan, sweeps=sweeps)), "pairs")
    (answer,) = gates_of(folder, "--at-most", "latency@8=3us").answers
    assert answer.sentence.startswith("1 of 3 points, the longest 4.00 us")
    assert "0 to 3" in answer.sentence


def test_other_versions_hosts_and_settings_are_noted(stored):
    made = a_run()
    hellos = tuple(replace(each, gpu=replace(each.gpu, nccl="2.27.3")) for each in made.ranks)
    placement = replace(made.plan.placement, hosts=("node2",))
    older = stored(replace(made, ranks=hellos, plan=replace(made.plan, placement=placement)), "older")
    found = gates_of(stored(made, "now"), "--baseline", older, "--within", "5%")
    assert found.outcome == "pass"
    assert found.baseline.notes == (
        "different versions of NCCL: baseline: NCCL 2.27.3; result: NCCL 2.28.9",
        "different hosts: baseline: node2; result: node1",
    )


def test_a_baseline_that_was_itself_slow_is_said():
    found = gates_of(RUN, "--baseline", SLOW_RUN, "--within", "5%")
    assert "it was itself judged slow: busbw judge four-h200-p2p-off" in found.baseline.notes


def test_what_a_run_did_not_get_to_cannot_be_told(stored):
    made = a_run()
    sweep = make_sweep("all_reduce", (GiB, 2 * GiB))
    outcome = replace(made.outcome, ended="time")
    cut = stored(replace(made, plan=replace(made.plan, sweeps=(sweep,)), outcome=outcome), "cut")
    (answer,) = gates_of(cut, "--at-least", "all_reduce@1G..=1GB/s").answers
    assert (answer.outcome, answer.sentence) == (
        "cannot_tell",
        "1 of 2 points: 2 GiB: not measured: its time limit came first (--time-limit)",
    )


def test_junit_has_a_case_for_each_gate(tmp_path):
    file = tmp_path / "gates.xml"
    gates = ("all_reduce@1G=350GB/s", "all_gather@1G..=340GB/s", "all_reduce@16G=1GB/s")
    run(LOG, *[word for gate in gates for word in ("--at-least", gate)], "--junit", file)
    root = checked(file.read_bytes())
    cases = {case.attrib["name"]: [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {gates[0]: [], gates[1]: ["failure"], gates[2]: ["skipped"]}
    stated = root.find(".//failure").text.splitlines()
    assert stated[0].startswith("4 of 8 points, the least 326.6 GB/s at 1 GiB, out of place")
    assert len(stated) == 5


def test_words_of_a_log_are_no_markup_and_no_control_codes(tmp_path):
    log = tmp_path / 'a"><\x1b[31m.log'
    log.write_text(LOG.read_text())
    (tmp_path / "\x1b[2J.log").write_text(LOG.read_text())
    gates = ("--at-least", "all_reduce@1G=350GB/s", "--baseline", tmp_path / "\x1b[2J.log", "--within", "5%")
    result = run(log, *gates, "--junit", tmp_path / "g.xml")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    checked((tmp_path / "g.xml").read_bytes())


def test_a_platform_alone_has_nothing_to_hold_against_gates():
    assert code(run("--platform", "aws-p5", "--at-least", "all_reduce@1G=1GB/s")) == 2


def test_without_gates_nothing_is_said_of_them():
    assert json.loads(run(LOG, "--json").stdout)["gates"] is None
    assert "gate" not in run(LOG).stdout
