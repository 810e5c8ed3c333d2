"""What busbw plans, word for word, for every MPI family, and what must hold of every plan.

After a wanted change: `GOLDEN=write python -m pytest tests/plans`, then read the difference before it is committed.
"""

import datetime as dt
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.judge.factories import make_host

from busbw.base.collectives import COLLECTIVES, SUITES, part_count
from busbw.base.errors import InputError
from busbw.measure.backends.backend import Found, Surroundings
from busbw.measure.backends.foreign import read_usage
from busbw.measure.plan.planning import compose
from busbw.model.machine import MpiLibrary
from busbw.model.plan import ForeignProgram, Plan, points_of
from busbw.model.request import Request

GOLDEN = Path(__file__).parent / "golden"
USAGES = Path(__file__).parents[1] / "backends" / "usage"
LIBRARIES = {
    "open-mpi": MpiLibrary(
        family="Open MPI",
        version="5.0.11",
        mpirun="/opt/m/bin/mpirun",
        library="/opt/m/lib/libmpi.so.40",
        origin="site",
    ),
    "mpich": MpiLibrary(
        family="MPICH", version="5.0.2", mpirun="/opt/m/bin/mpirun", library="/opt/m/lib/libmpi.so.12", origin="wheel"
    ),
    "debian-mpich": MpiLibrary(
        family="MPICH", version="4.0.2", mpirun="/usr/bin/mpirun", library="/usr/lib/libmpich.so.12", origin="site"
    ),
    "intel": MpiLibrary(
        family="Intel MPI",
        version="2021.18",
        mpirun="/opt/m/bin/mpirun",
        library="/opt/m/lib/libmpi.so.12",
        origin="chosen",
    ),
}
REQUESTS = {
    "default": Request(),
    "p2p": Request(suite="p2p"),
    "crowded": Request(collectives=("alltoall",), ranks=6, largest_bytes=4096, tag="x y"),
    "two-level": Request(
        collectives=("alltoall", "alltoall_2dh"),
        ranks=6,
        group=2,
        unaligned=True,
        dtype="int8",
        smallest_bytes=7,
        largest_bytes=2048,
        factor=3,
    ),
    "both": Request(
        collectives=("all_reduce", "broadcast"), ranks=2, placement="both", mode="stream", dtype="bfloat16"
    ),
}


def composed(request: Request, mpi: MpiLibrary) -> Plan:
    surroundings = Surroundings(
        host=make_host(memory_available_bytes=2**35),
        mpi=mpi,
        python="/opt/venv/bin/python",
        as_root=False,
        created=dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        token="beef",
    )
    return compose(request, surroundings, None, Path("/runs"))[0]


def assert_sound(plan: Plan, request: Request) -> None:
    """Check what must hold of any plan: it starts what was asked, measures what was asked, and fits."""
    argv = plan.job.argv
    assert argv[argv.index("-n") + 1] == str(plan.placement.ranks)
    assert request.ranks in (None, plan.placement.ranks)
    assert argv[0] == plan.mpi.mpirun
    assert argv[-1] == f"/runs/{plan.run_id}"
    assert ("--oversubscribe" in argv) <= plan.placement.oversubscribed
    assert plan.placement.oversubscribed == (plan.placement.ranks > plan.host.cores)
    asked = request.collectives or SUITES[request.suite or "six"]
    assert {sweep.collective for sweep in plan.sweeps} == set(asked)
    assert plan.memory.needed_bytes <= plan.host.memory_available_bytes
    for sweep in plan.sweeps:
        assert sorted(set(sweep.sizes_bytes)) == list(sweep.sizes_bytes) != []
        for size_bytes in sweep.sizes_bytes:
            count = part_count(COLLECTIVES[sweep.collective], size_bytes, plan.placement.ranks, sweep.dtype)
            assert 0 < count < 2**31
        assert (sweep.group is not None) == (sweep.collective == "alltoall_2dh")
        if sweep.group is not None:
            assert plan.placement.ranks % sweep.group == 0
            assert count * max(sweep.group, plan.placement.ranks // sweep.group) < 2**31
            assert plan.memory.buffers_bytes >= 3 * plan.placement.ranks * size_bytes


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_plan_is_as_it_was(library: str, request_name: str):
    plan = composed(REQUESTS[request_name], LIBRARIES[library])
    text = msgspec.json.format(msgspec.json.encode(plan), indent=1).decode() + "\n"
    file = GOLDEN / f"{library}-{request_name}.json"
    if os.environ.get("GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")

    assert text == file.read_text(encoding="utf-8")
    assert_sound(plan, REQUESTS[request_name])


# The user's programs, by the usage text of each, and what is asked of them.
PROGRAMS = {
    "nccl-tests": ("nccl-tests-2.19.6", Request(backend="nccl-tests", collectives=("all_reduce",), largest_bytes=4096)),
    "nccl-tests-direct": (
        "nccl-tests-2.13",
        Request(backend="nccl-tests", collectives=("all_reduce",), placement="both", launches=2, multicast_off=True),
    ),
    "osu": ("osu_latency-7.4", Request(backend="osu", collectives=("latency",), step_bytes=96, largest_bytes=200)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_plan_of_a_program_of_the_user_is_as_it_was(name: str):
    usage_name, request = PROGRAMS[name]
    usage = read_usage((USAGES / f"{usage_name}.txt").read_text(encoding="utf-8"))
    assert usage is not None
    with_mpi = name != "nccl-tests-direct"
    (collective,) = request.collectives
    program = ForeignProgram(
        collective=collective, path="/opt/p", tool=request.backend, version=None, with_mpi=with_mpi, options=()
    )
    surroundings = Surroundings(
        host=make_host(memory_available_bytes=2**35),
        mpi=LIBRARIES["open-mpi"] if with_mpi else None,
        found={collective: Found(program, usage)},
        gpu_count=4,
        python="/opt/venv/bin/python",
        as_root=False,
        created=dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        token="beef",
    )
    plan, _where = compose(request, surroundings, None, Path("/runs"))
    shown = {each: getattr(plan, each) for each in ("launcher", "sweeps", "sampling", "placement", "notes", "steps")}
    text = msgspec.json.format(msgspec.json.encode(shown), indent=1).decode() + "\n"
    file = GOLDEN / f"program-{name}.json"
    if os.environ.get("GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")

    assert text == file.read_text(encoding="utf-8")
    started = [step.job.argv for step in plan.steps]
    assert all(("/opt/p" in argv) and ((argv[0] == "/opt/p") != with_mpi) for argv in started)
    assert {number for step in plan.steps for number in step.points} == set(range(len(points_of(plan.sweeps))))


requests = st.builds(
    Request,
    collectives=st.lists(st.sampled_from(sorted(COLLECTIVES)), max_size=3, unique=True).map(tuple),
    ranks=st.none() | st.integers(-1, 70),
    smallest_bytes=st.none() | st.integers(-1, 2**20),
    largest_bytes=st.none() | st.integers(0, 2**34),
    factor=st.none() | st.integers(0, 9),
    step_bytes=st.none() | st.integers(0, 2**22),
    dtype=st.sampled_from(["int8", "float16", "float32", "float64", "float8"]),
    root=st.integers(-1, 5),
    placement=st.sampled_from(["out", "in", "both"]),
    group=st.none() | st.integers(-1, 9),
    unaligned=st.booleans(),
)


@given(requests, st.sampled_from(sorted(LIBRARIES)))
def test_every_request_gives_a_sound_plan_or_a_clear_error(request: Request, library: str):
    try:
        plan = composed(request, LIBRARIES[library])
    except InputError as error:
        assert 1 <= len(str(error).splitlines()) <= 4  # noqa: PT017 - the plan may be sound instead
        return
    assume(plan.sweeps)
    assert_sound(plan, request)
