"""Training jobs of several sizes: the tables of the interconnect write-up, and jobs read from logs."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from tests.house.tree import ROOT
from tests.train.reading import megatron

from busbw.api.training.scaling import TrainScaleRequest, job_of_log, train_scale
from busbw.base.errors import InputError
from busbw.model.scaling import Scaling, ScalingReport
from busbw.train.replayed_jobs import Replay, check_alike, replay_in, replayed_job, with_replays
from busbw.train.scaling import ScaleQuestion, train_scaling

from .stepping import replayed_run

TABLES = ROOT / "docs" / "data" / "grok1-tables.csv"
TWO_SYSTEMS = ROOT / "docs" / "write-ups" / "data" / "grok1-two-systems.csv"


def report_of(*sources: object, **asked: object) -> ScalingReport:
    return train_scale(TrainScaleRequest(sources=tuple(map(str, sources)), **asked))  # type: ignore[arg-type]


def efficiencies(view: Scaling) -> dict[str, tuple[str, str, str]]:
    """Return value, low and high of the last point of each line, in percent with two decimals."""
    found = {}
    for series in view.series:
        share = series.points[-1].efficiency
        assert share is not None
        assert share.low is not None
        assert share.high is not None
        found[series.label] = (f"{100 * share.value:.2f}", f"{100 * share.low:.2f}", f"{100 * share.high:.2f}")
    return found


def test_all_sixteen_throughputs_follow_to_the_unit_from_the_printed_steps() -> None:
    (view,) = report_of(TABLES).views

    assert len(view.checks) == 16
    assert {check.answer for check in view.checks} == {"follows"}
    assert [round(check.computed_per_s) for check in view.checks] == [check.printed_per_s for check in view.checks]
    assert any("16 of 16 throughputs follow to the unit" in note for note in view.notes)


def test_the_efficiency_from_512_to_1024_gpus_has_the_interval_of_the_printed_steps() -> None:
    report = report_of(TABLES)

    (view,) = report.views
    assert (view.kind, {series.base for series in view.series}) == ("weak", {512})
    assert efficiencies(view) == {"FP8": ("97.28", "96.75", "97.82"), "BF16": ("98.21", "97.77", "98.66")}
    assert report.verdict is not None
    assert "FP8: 97.28 % efficiency on 1024 GPUs against 512 (96.75 to 97.82 % by rounding)" in report.verdict.sentence


def test_a_throughput_shows_the_zero_that_a_step_lost() -> None:
    (view,) = report_of(TABLES).views

    (check,) = (each for each in view.checks if (each.line, each.at) == ("BF16", 512))
    assert (check.step_s.low, check.step_s.high) == (pytest.approx(21.95), pytest.approx(22.05))
    assert "381,300 tokens/s is 8,388,608 over the printed step of 22 s, which has 3 digits" in check.words


def test_a_throughput_that_was_measured_by_itself_is_more_exact_and_one_that_contradicts_is_told(
    tmp_path: Path,
) -> None:
    table = tmp_path / "table.csv"
    rows = ["gpus,step_s,tokens_per_s,seqlen,gbs", "8,2.0,4200,8192,1", "16,2.0,8123,8192,2", "32,2.0,90000,8192,4"]
    table.write_text("\n".join(rows))

    (view,) = report_of(table).views

    assert [check.answer for check in view.checks] == ["within_digits", "within_digits", "apart"]
    assert view.checks[0].step_s.value == pytest.approx(8192 / 4200)
    assert any("90,000 tokens/s is a step of" in note for note in view.notes)


def test_the_difference_to_bare_metal_has_its_interval_and_one_that_is_published_alone_is_shown_alone() -> None:
    report = report_of(TWO_SYSTEMS, against="DGX H100", differences=("EOS=-2.3",))

    (view,) = report.views
    (bf16,) = (each for each in view.differences if each.words.startswith("BF16"))
    assert "2.4 % below DGX H100" in bf16.words
    assert "0.4 to 4.3 % below, 8 points" in bf16.words
    assert any("2.3 % below EOS, 2.25 to 2.35 % by its digits" in note for note in view.notes)
    # The work of these rows is not told, and an efficiency of 226 % is none.
    assert report.verdict is not None
    assert "efficiency" not in report.verdict.sentence


def test_logs_stand_beside_each_other_by_their_gpus_and_intervals(tmp_path: Path) -> None:
    for gpus, batch, ms in ((64, 256, 18000.0), (128, 512, 18400.0)):
        head = f"  seq_length ...... 8192\n  world_size ...... {gpus}\n  global_batch_size ...... {batch}\n"
        steps = "".join(megatron(step, ms + step % 5, batch=batch) for step in range(1, 41))
        (tmp_path / f"job-{gpus}.log").write_text(head + steps)

    report = report_of(tmp_path / "job-64.log", tmp_path / "job-128.log")

    (view,) = report.views
    assert view.kind == "weak"
    share = view.series[0].points[1].efficiency
    assert share is not None
    assert share.low is not None
    assert share.high is not None
    assert share.value == pytest.approx(18002 / 18402)
    assert share.low < share.value < share.high
    assert share.basis == "samples"


def replay(ranks: int) -> Replay:
    return replay_in(replayed_run(ranks), f"replay-{ranks}")


def test_replayed_steps_are_jobs_and_say_which_collective_a_loss_is_made_of() -> None:
    found = train_scaling([replayed_job(replay(ranks)) for ranks in (8, 64)], ScaleQuestion())

    (view,) = found.views
    (loss,) = view.losses
    assert (loss.base, loss.at) == (8, 64)
    assert sum(share for _, share in loss.parts) == pytest.approx(loss.communication)
    assert loss.parts[0][0] in loss.words or abs(loss.more) < 0.005
    assert any("at a rate that is of the test" in note for note in view.notes)


def test_replays_of_two_jobs_are_no_figure() -> None:
    one = replay(8)
    with pytest.raises(InputError, match="steps of different jobs do not scale"):
        check_alike((one, replace(one, plan=structs.replace(one.plan, dtype="fp32"))))


def test_a_replay_says_what_a_log_of_as_many_gpus_exposes(tmp_path: Path) -> None:
    logs = []
    for gpus, batch, ms in ((8, 8, 9000.0), (64, 64, 9500.0)):
        head = f"  seq_length ...... 64\n  world_size ...... {gpus}\n  global_batch_size ...... {batch}\n"
        steps = "".join(megatron(step, ms + step % 5, batch=batch) for step in range(1, 41))
        (tmp_path / f"job-{gpus}.log").write_text(head + steps)
        logs.append(job_of_log(str(tmp_path / f"job-{gpus}.log"), TrainScaleRequest(sources=())))
    replays = [replay(8), replay(64)]

    found = train_scaling(with_replays(logs, replays), ScaleQuestion())

    (loss,) = found.views[0].losses
    exposed = [each.step.exposed_s / log.step_s.value for each, log in zip(replays, logs, strict=True) if log.step_s]
    assert loss.communication == pytest.approx((9502 * exposed[1] - 9502 * exposed[0] * 9002 / 9502) / 9002, rel=1e-3)
    with pytest.raises(InputError, match="two replays of 8 ranks"):
        with_replays(logs, [replays[0], replays[0]])
    with pytest.raises(InputError, match="no job on 64 GPUs whose communication is not told"):
        with_replays(logs[:1], replays)
    other = replace(logs[0], settings=(("seqlen", "128"), ("gbs", "8")))
    with pytest.raises(InputError, match="not the same step"):
        with_replays([other], replays[:1])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpus,loss\n8,1\n", "one column of step times"),
        ("gpus,step_s,other_s\n8,1.0,2.0\n", "one column of step times"),
        ("nothing", "no step of"),
        ("gpus,step_s\n8,0\n", "not a number above zero"),
    ],
)
def test_what_cannot_be_drawn_is_an_error_of_few_lines(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "job.csv"
    path.write_text(text)

    with pytest.raises(InputError, match=words) as error:
        report_of(path)
    assert len(str(error.value).splitlines()) <= 4


def test_a_log_that_does_not_say_its_gpus_has_no_place(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("".join(megatron(step, 18400) for step in range(1, 20)))

    with pytest.raises(InputError, match="on how many GPUs"):
        report_of(path)
    with pytest.raises(InputError, match="is not a difference"):
        report_of(TABLES, differences=("EOS",))
