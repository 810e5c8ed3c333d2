"""What the OSU programs are asked, from their own usage texts, and what comes of their tables."""

from pathlib import Path
from typing import Any

import pytest

from busbw.base.errors import InputError
from busbw.measure.backends import osu
from busbw.measure.backends.backend import Usage
from busbw.measure.backends.foreign import Rows, read_usage

from .foreign import foreign_plan, printed, read
from .records import make_sweep

USAGES = Path(__file__).parent / "usage"
SAMPLES = Path(__file__).parents[1] / "formats" / "samples"


def usage_of(name: str) -> Usage:
    found = read_usage((USAGES / f"{name}.txt").read_text(encoding="utf-8"))
    assert found is not None
    return found


def arguments(name: str, collective: str, sizes_bytes: tuple[int, ...], ranks: int = 4, **changes: Any) -> str:
    values: dict[str, Any] = {"iterations": None, "warmup": None, "verify": True, "gpu_buffers": False}
    root = changes.pop("root", 0)
    sweep = make_sweep(collective, sizes_bytes, root=root)
    return " ".join(osu.arguments(sweep, usage_of(name), osu.OsuSettings(**(values | changes)), ranks))


@pytest.mark.parametrize(
    ("name", "collective", "sizes_bytes", "expected"),
    [
        ("osu_latency-7.4", "latency", (8, 16), "-m 8:16 -c -T mpi_float"),
        ("osu_bibw-5.3", "bibw", (8, 16), ""),
        # 16 bytes are 4 floats: where the least size counts floats, and where it counts bytes.
        ("osu_allreduce-5.3", "all_reduce", (16, 1024), "-m 4:1024 -f"),
        ("osu_allreduce-7.4", "all_reduce", (16, 1024), "-m 4:1024 -f -c -T mpi_float"),
        ("osu_bcast-7.4", "broadcast", (16, 1024), "-m 16:1024 -f -c -T mpi_float"),
        # busbw's size counts the parts of all four ranks.
        ("osu_bcast-7.4", "all_gather", (64, 4096), "-m 16:1024 -f -c -T mpi_float"),
        ("osu_bcast-7.4", "alltoall", (2**30, 2**30), f"-m {2**28}:{2**28} -f -c -T mpi_float -M {3 * 2**30}"),
    ],
)
def test_a_program_is_asked_what_it_knows(name: str, collective: str, sizes_bytes: tuple[int, ...], expected: str):
    assert arguments(name, collective, sizes_bytes) == expected


def test_iterations_warmup_and_roots_are_passed_on_where_they_are_known():
    line = arguments("osu_latency-7.4", "latency", (8, 16), iterations=500, warmup=10, verify=False)
    assert line == "-m 8:16 -x 10 -i 500 -T mpi_float"
    with pytest.raises(InputError, match="root"):
        arguments("osu_bcast-7.4", "broadcast", (16, 32), root=1)


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [("osu_bibw-5.3", {}, "powers of two"), ("osu_latency-7.4", {"gpu_buffers": True}, "without GPUs")],
)
def test_what_a_program_cannot_do_is_refused(name: str, changes: dict[str, Any], says: str):
    with pytest.raises(InputError, match=says):
        arguments(name, "bibw", (12, 24), **changes)


def test_types_are_those_the_program_moves():
    assert osu.dtype_of("latency", "float32", usage_of("osu_bibw-5.3")) == "int8"
    assert osu.dtype_of("all_reduce", "float32", usage_of("osu_allreduce-5.3")) == "float32"
    assert osu.dtype_of("all_reduce", "int32", usage_of("osu_allreduce-7.4")) == "int32"
    with pytest.raises(InputError, match="float32 only"):
        osu.dtype_of("all_reduce", "int32", usage_of("osu_allreduce-5.3"))
    with pytest.raises(InputError, match="no float64"):
        osu.dtype_of("latency", "float64", usage_of("osu_latency-7.4"))


def table(title: str, header: str, *rows: str) -> str:
    return "\n".join([f"# OSU MPI {title} v7.4", header, *rows, ""])


@pytest.mark.parametrize(
    ("collective", "text", "size_bytes", "time_s", "busbw_Bps"),
    [
        # Half a round trip of one message.
        ("latency", table("Latency Test", "# Size       Avg Latency(us)", "1024   2.00"), 1024, 2e-6, 0.512e9),
        ("bandwidth", table("Bandwidth Test", "# Size      Bandwidth (MB/s)", "1024   512.00"), 1024, 2e-6, 0.512e9),
        # OSU adds both directions, and so does busbw.
        (
            "bibw",
            table("Bi-Directional Bandwidth Test", "# Size      Bandwidth (MB/s)", "1024   1024.00"),
            1024, 2e-6, 1.024e9,
        ),
        # Each of four ranks gives 1 KiB: 4 KiB are gathered, and 3 of 4 parts cross.
        (
            "all_gather",
            table("Allgather Latency Test", "# Size  Avg Latency(us)  Min Latency(us)  Max Latency(us)  Iterations",
                  "1024  4.00  3.00  5.00  1000"),
            4096, 4e-6, 0.75 * 1.024e9,
        ),
    ],
)  # fmt: skip
def test_sizes_times_and_bandwidths_follow_from_a_row(
    collective: str, text: str, size_bytes: int, time_s: float, busbw_Bps: float
):
    ranks = 2 if collective in osu.TWO_RANKS else 4
    plan = foreign_plan("osu", make_sweep(collective, (size_bytes,)), ranks=ranks)

    (one,) = read(osu, plan, printed(text))[0].measurements

    assert (one.size_bytes, one.samples) == (size_bytes, 1)
    assert one.median_s == pytest.approx(time_s)
    assert one.busbw_Bps == pytest.approx(busbw_Bps)
    assert not one.verified
    assert one.calls_per_sample == (1000 if collective == "all_gather" else 0)


def test_all_pairs_of_a_message_rate_count_together():
    plan = foreign_plan("osu", make_sweep("message_rate", (1024,)), ranks=30)
    text = (SAMPLES / "osu-5.7-mbw_mr.log").read_text(encoding="utf-8")

    found, _done = read(osu, plan, printed(text))

    (one,) = found.measurements
    assert 15 / one.median_s == pytest.approx(2019668.41)
    assert 15 * one.busbw_Bps == pytest.approx(2068.14e6, rel=1e-5)


def test_a_failed_validation_is_a_wrong_result_without_a_time():
    plan = foreign_plan("osu", make_sweep("latency", (1024,)), ranks=2)
    text = table("Latency Test", "# Size       Avg Latency(us)        Validation", "1024   2.00   Fail")

    (one,) = read(osu, plan, printed(text))[0].measurements

    assert one.wrong is not None
    assert one.wrong.mismatch.index == -1, "which element it was is not printed"
    assert (one.samples, one.busbw_Bps) == (0, 0.0)


def test_a_step_is_done_when_every_size_came():
    plan = foreign_plan("osu", make_sweep("latency", (1024, 2048)), ranks=2)
    header = "# Size       Avg Latency(us)"

    assert read(osu, plan, printed(table("Latency Test", header, "1024   2.00")))[1] == frozenset()
    assert read(osu, plan, printed(table("Latency Test", header, "1024   2.00", "2048   3.00")))[1] == {0}


def test_a_size_that_was_not_asked_for_is_left_out_however_near():
    plan = foreign_plan("osu", make_sweep("all_reduce", (64, 512)), ranks=2)
    header = "# Size       Avg Latency(us)"
    text = table("Allreduce Latency Test", header, "32   0.20", "64   0.30", "128   0.40", "512   0.50")

    found, _done = read(osu, plan, printed(text))

    assert [(one.size_bytes, one.samples) for one in found.measurements] == [(64, 1), (512, 1)]


@pytest.mark.parametrize(
    ("program", "collective", "gpus", "letters"),
    [
        ("osu_latency", "latency", None, "Tcimx"),
        ("osu_allreduce", "all_reduce", "rocm", "MTcdfimx"),
        ("osu_gather", "gather", None, "MTcfikmx"),
        # These check nothing, and move what they move.
        ("osu_xccl_allreduce", "all_reduce", "cuda", "Mdfimx"),
        ("osu_xccl_latency", "latency", None, "dimx"),
    ],
)
def test_a_version_tells_the_options_where_the_usage_does_not(
    program: str, collective: str, gpus: str | None, letters: str
):
    version = osu.version_of("#Using NCCL\n# OSU MPI Latency Test v7.4\n")

    assert version == (7, 4)
    usage = osu.options_of(f"/opt/{program}", collective, version, gpus)
    assert usage is not None
    assert "".join(sorted(usage.options)) == letters
    assert usage.options.get("d") == (gpus or ("cuda" if "xccl" in program else None))


def test_versions_that_print_their_usage_are_not_guessed():
    assert osu.options_of("osu_latency", "latency", (6, 2), None) is None
    assert osu.version_of("osu_latency: invalid option\n") is None


def test_programs_of_nccl_measure_buffers_on_gpus_and_rows_that_name_no_direction_are_theirs():
    usage = osu.options_of("osu_xccl_bw", "bibw", (7, 4), "cuda")
    assert usage is not None
    settings = osu.OsuSettings(iterations=None, warmup=None, verify=True, gpu_buffers=True)

    assert osu.is_of_gpus("/opt/xccl/pt2pt/osu_xccl_bw")
    assert osu.names_of("bibw")[:2] == ("osu_bibw", "osu_xccl_bibw")
    assert osu.arguments(make_sweep("bibw", (8, 16)), usage, settings, 2) == ("-m", "8:16", "-d", "cuda", "D", "D")

    plan = foreign_plan("osu", make_sweep("bibw", (1024,)), ranks=2)
    text = (
        "# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n# Size      Bandwidth (MB/s)\n1024   1024.00\n"
    )
    (one,) = read(osu, plan, printed(text))[0].measurements
    assert one.busbw_Bps == pytest.approx(1.024e9)


def test_a_crash_with_buffers_on_gpus_says_what_to_look_at():
    plan = foreign_plan("osu", make_sweep("latency", (1024,)), ranks=2)
    rows = Rows(osu, plan, plan.steps[0])
    rows.feed(b"# OSU MPI-CUDA Latency Test v7.4\n# Size       Avg Latency(us)\n")
    rows.finish()
    tables = rows.tables

    found = osu.failure_of((), 139, tables)
    assert found is not None
    assert "mpi_built_with_cuda_support" in found.cause
    assert osu.failure_of((), 1, tables) is None
    assert osu.failure_of((), 139, ()) is None
