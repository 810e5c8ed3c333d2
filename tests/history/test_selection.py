"""Which runs a question means."""

import contextlib
import datetime as dt
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.judge.factories import make_hello

from busbw.base.errors import InputError
from busbw.base.moment import parse_moment
from busbw.model.finding import Verdict
from busbw.model.machine import GpuDevice, GpuHost, Library
from busbw.model.record import GpuHello
from busbw.store import tags

from .asking import listed, names
from .stored import START, keep, make_run

DAY_S = 86_400


@pytest.fixture
def several(base: Path) -> Path:
    """Return a folder with five runs that differ in what they can be chosen by."""
    slow = Verdict(outcome="slow", sentence="slow: it is.", because=("PERF001",))
    keep(make_run(0, host="node00", platform="azure-nd-h100-v5", tag="nightly"), base)
    keep(make_run(1, host="node01", platform="azure-ndv4"), base)
    keep(make_run(2, host="node10", verdict=slow), base)
    over_nccl = make_run(3, host="gpu0")
    keep(replace(over_nccl, plan=replace(over_nccl.plan, backend="native-nccl")), base)
    keep(make_run(4, host="node00", tag="weekly"), base)
    return base


def test_without_a_word_all_runs_are_meant_oldest_first(several: Path):
    assert names(several) == ["0000", "0001", "0002", "0003", "0004"]


def test_hosts_and_platforms_are_chosen_by_patterns(several: Path):
    assert names(several, host="node0*") == ["0000", "0001", "0004"]
    assert names(several, host="node10") == ["0002"]
    assert names(several, host="node?0") == ["0000", "0002", "0004"]
    assert names(several, platform="azure-*") == ["0000", "0001"]


def test_collective_backend_and_verdict_are_chosen_by_name(several: Path):
    assert names(several, collective="all_reduce") == ["0000", "0001", "0002", "0003", "0004"]
    assert names(several, collective="AllReduce") == ["0000", "0001", "0002", "0003", "0004"]
    assert names(several, collective="broadcast") == []
    assert names(several, backend="native-nccl") == ["0003"]
    assert names(several, outcomes=("slow",)) == ["0002"]
    assert names(several, outcomes=("slow", "ok")) == ["0000", "0001", "0002", "0003", "0004"]


def test_since_is_included_and_until_is_not(several: Path):
    third = START.timestamp() + 2 * DAY_S
    assert names(several, since_unix_s=third) == ["0002", "0003", "0004"]
    assert names(several, until_unix_s=third) == ["0000", "0001"]


def test_tags_of_the_run_and_tags_given_later_count_alike(several: Path):
    first = next(path for path in several.iterdir() if path.name.endswith("0000"))
    tags.add(first, "golden")
    assert names(several, tags=("nightly",)) == ["0000"]
    assert names(several, tags=("golden",)) == ["0000"]
    assert names(several, tags=("golden", "nightly")) == ["0000"]
    assert names(several, tags=("golden", "weekly")) == []
    assert listed(several)[0].tags == ("nightly", "golden")


def test_every_part_of_a_selection_must_hold(several: Path):
    assert names(several, host="node00", tags=("weekly",)) == ["0004"]
    assert names(several, host="node01", tags=("weekly",)) == []


def test_a_word_with_quotes_is_a_word(several: Path):
    assert names(several, host="' OR true --") == []
    assert names(several, tags=("'; DROP TABLE tagged; --",)) == []


def test_the_last_of_an_order_are_kept(several: Path):
    assert names(several, limit=2) == ["0003", "0004"]
    assert names(several, order="host") == ["0003", "0000", "0004", "0001", "0002"]
    assert names(several, order="verdict", limit=1) == ["0002"]


def test_versions_of_nccl_are_chosen_by_their_beginning(base: Path):
    for number, version in enumerate(("2.28.9", "2.2.8", "2.28.90")):
        gpu = GpuHello(
            ordinal=0, model="H200", bus_id="0", free_bytes=1, nccl=version, nccl_path="/n", driver=13000,
            driver_path="/d", nvrtc_path=None, environment=(),
        )  # fmt: skip
        keep(make_run(number, ranks=(make_hello(0, gpu=gpu),)), base)
    assert names(base, nccl="2.28") == ["0000", "0002"]
    assert names(base, nccl="2.28.9") == ["0000"]


@given(st.text(max_size=40))
def test_any_text_is_a_moment_or_bad_input(text: str):
    with contextlib.suppress(InputError):
        assert math.isfinite(parse_moment(text, where="--since"))


def test_a_moment_is_a_date_or_an_age():
    now = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
    assert parse_moment("2026-11-22", where="x") == now.timestamp() - 12 * 3600
    assert parse_moment("2026-11-22T13:00+01:00", where="x") == now.timestamp()
    assert parse_moment("36h", where="x", now=now) == now.timestamp() - 36 * 3600
    assert parse_moment("2w", where="x", now=now) == now.timestamp() - 14 * DAY_S
    for wrong in ("", "yesterday", "7 d", "-3d", "2026-13-01", "\u0661d"):
        with pytest.raises(InputError):
            parse_moment(wrong, where="--since", now=now)


def test_a_machine_of_no_known_platform_goes_by_its_processor_or_its_gpus(base: Path):
    run = make_run(0)
    keep(run, base)
    device = GpuDevice(
        ordinal=0, model="NVIDIA H200", bus_id="0", memory_bytes=1, free_bytes=1, l2_bytes=1, multiprocessors=1,
        capability=90,
    )  # fmt: skip
    library = Library(path="/l", version="2.28.9", origin="system")
    gpus = GpuHost(
        devices=(device,) * 8, driver=library, nccl=library, nvrtc=None, config_fields=(), dtypes=("float32",)
    )
    later = make_run(1)
    keep(replace(later, plan=replace(later.plan, gpus=gpus)), base)
    assert [row.platform for row in listed(base)] == [run.plan.host.cpu_model, "8x NVIDIA H200"]
    assert names(base, platform="*H200") == ["0001"]
