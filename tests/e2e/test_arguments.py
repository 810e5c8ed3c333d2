"""Bad arguments: one clear error of at most four lines, exit code 2, and nothing started."""

import pytest

from .runner import Busbw, Result


def assert_refused(result: Result, *words: str) -> None:
    assert result.code == 2, result
    assert result.out == ""
    assert len(result.err.splitlines()) <= 4, result
    for word in words:
        assert word in result.err, result


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["all_reduc"], ["error: 'all_reduc' is not a collective", "hint: maybe: all_reduce"]),
        (["nonsense"], ["'nonsense' is not a collective", "one of: all_reduce, "]),
        (["--suite", "sixx"], ["'sixx' is not a suite", "maybe: six"]),
        (["all_reduce", "--suite", "six"], ["both collectives and a suite"]),
        (["all_reduce", "-n", "1"], ["1 ranks cannot exchange anything", "--ranks 2"]),
        (["all_reduce", "-n", "-3"], ["-3 ranks cannot"]),
        (["all_reduce", "-n", "70000"], ["70000 ranks are too many"]),
        (["latency", "-n", "3"], ["latency pairs ranks, and 3 ranks leave one over", "--ranks 4"]),
        (["all_reduce", "-b", "1M", "-e", "1K"], ["1 KiB, is below the smallest, 1 MiB", "exchange -b and -e"]),
        (["all_reduce", "-b", "0"], ["sizes begin at 1 byte"]),
        (["all_reduce", "-b", "-8"], ["size"]),
        (["all_reduce", "-b", "eight"], ["'eight' is not a size", "8, 64K, 1M, 4G"]),
        (["all_reduce", "-e", "2E"], ["'2E' is not a size"]),
        (["all_reduce", "-e", "999999999G"], ["is more than 1 PiB"]),
        (["all_reduce", "-f", "1"], ["the factor is at least 2"]),
        (["all_reduce", "-f", "2", "-i", "8"], ["a factor (-f) or by a step (-i), not both"]),
        (["all_reduce", "-b", "8", "-e", "1G", "-i", "8"], ["more than 10000 sizes"]),
        (["all_gather", "-n", "4", "-b", "8", "-e", "32"], ["no size is left of 8 B to 32 B", "-e 64"]),
        (["all_reduce", "-n", "1024", "-b", "4G", "-e", "4G"], ["1024 ranks need ", " of memory", " are free"]),
        (["all_reduce", "-b", "16G", "-e", "16G"], ["more than the 2147483647 elements", "hint: a smaller -e"]),
        (["all_reduce", "-d", "floats"], ["'floats' is not a data type", "float32"]),
        (["all_reduce", "--op", "avg"], ["'avg' is not an operation", "sum"]),
        (["broadcast", "-n", "2", "-r", "2"], ["root 2 is not one of the 2 ranks", "-r 0 to 1"]),
        (["all_reduce", "-r", "-1"], ["'-1' is not a rank", "--> -r", "-r 0, or -r all"]),
        (["all_reduce", "--mode", "nonsense"], ["'nonsense' is not one of 'isolated', 'stream'"]),
        (["all_reduce", "--time-limit", "0"], ["must be more than 0", "--time-limit 0"]),
        (["all_reduce", "--time-limit", "-1"], ["must be more than 0", "--time-limit -1"]),
        (["all_reduce", "--time-limit", "nan"], ["must be more than 0", "--time-limit nan"]),
        (["all_reduce", "--time-limit", "inf"], ["at most", "--time-limit inf"]),
        (["all_reduce", "--stall-timeout", "nan"], ["must be more than 0", "--stall-timeout nan"]),
        (["all_reduce", "--min-samples", "0"], ["at least one sample"]),
        (["all_reduce", "--max-samples", "0"], ["at least one sample", "--max-samples 0"]),
        (
            ["all_reduce", "--min-samples", "9", "--max-samples", "7"],
            ["at least 9 samples and at most 7 cannot both be"],
        ),
        (["all_reduce", "-n", "two"], ["'two' is not a valid integer"]),
        (["all_reduce", "--mpirun", "no-such-mpirun"], ["no program 'no-such-mpirun'"]),
        (["all_reduce", "--no-such-option"], ["--no-such-option"]),
        (["all_gather", "-n", "2", "--resume", "last"], ["leave out COLLECTIVES, -n"]),
        (["--resume", "no-such-run"], ["no run 'no-such-run'", "busbw runs"]),
    ],
)
def test_a_bad_argument_is_refused_with_its_cause(busbw: Busbw, arguments: list[str], words: list[str]):
    result = busbw.forked("run", *arguments)

    assert_refused(result, *words)
    assert not busbw.runs.exists()


@pytest.mark.parametrize("verb", ["show", "load", "report"])
def test_a_run_that_is_not_there_is_refused(busbw: Busbw, verb: str):
    assert_refused(busbw(verb, "20200101"), "no run '20200101'", "busbw runs")
    assert_refused(busbw(verb, "last"), "there is no run yet", "busbw run")


def test_a_folder_that_is_no_run_is_refused(busbw: Busbw):
    (busbw.folder / "empty").mkdir()

    assert_refused(busbw.forked("run", "--resume", busbw.folder / "empty"), "no run ")
    assert_refused(busbw("show", busbw.folder / "empty"), "no run ")


def test_a_listing_of_nothing_is_empty_and_says_where_it_looked(busbw: Busbw):
    listed = busbw("runs")

    assert (listed.code, listed.out) == (0, "")
    assert str(busbw.runs) in listed.err
    assert busbw("runs", "--json").out == "[]\n"
