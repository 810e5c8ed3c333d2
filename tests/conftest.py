"""What holds for all tests: those that time something, or are alone with something, may try twice more, and say so.

`--timed` picks one part: `scripts/test.sh` runs `no` on all processors; then `waiting`, those on hosts of the lab, of
ranks that fail and whatever else waits more than it works, three at a time; and after that `only`, the others, one test
at a time.
"""

import gc
import re
import signal
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.sleeping import SLEEPING

HERE = Path(__file__).parent
# They start ranks on as many cores as there are, and something else may hold those cores for seconds; or, the
# containers, use names that a machine has once. What is wrong in busbw is wrong the second time too; the summary names
# every test that was tried again (`-r R`). Single tests elsewhere carry the marker themselves.
TIMED = ("containers/test_real.py", "e2e", "gpu", "nccl")
# These wait for ranks, programs and starts more than they work: they run three at a time, with those on hosts.
WAITING = {
    HERE / "compare" / "test_verb.py",
    HERE / "containers" / "test_run.py",
    HERE / "e2e" / "test_disk.py",
    HERE / "e2e" / "test_foreign_nccl_tests.py",
    HERE / "e2e" / "test_foreign_osu.py",
    HERE / "e2e" / "test_hang_up.py",
    HERE / "e2e" / "test_interrupts.py",
    HERE / "e2e" / "test_launcher_failures.py",
    HERE / "e2e" / "test_main_job.py",
    HERE / "e2e" / "test_other_packages.py",
    HERE / "e2e" / "test_rank_failures.py",
    HERE / "e2e" / "test_started_several_times.py",
    HERE / "history" / "test_killed.py",
    HERE / "house" / "test_documentation.py",
    HERE / "nccl" / "test_failures.py",
    HERE / "nccl" / "test_mpi_gpu_buffers.py",
    HERE / "nccl" / "test_msccl.py",
    HERE / "nccl" / "test_nothing_left.py",
    HERE / "nccl" / "test_recommended.py",
    HERE / "nccl" / "test_starting.py",
    HERE / "nccl" / "test_train_run.py",
    HERE / "preflight" / "test_count.py",
}
# Of these files the results are right or wrong, however busy the cores are: they run beside others, in twice the time.
BESIDE_OTHERS = {
    "e2e": {"arguments", "collectives", "stored_runs", "two_level", "wrong_results"},
    "nccl": {
        "collectives",
        "contract",
        "exchanges",
        "kernels",
        "libraries",
        "shapes",
        "unaligned",
        "versions",
        "wrong_results",
    },
}
# The hosts of the lab: whoever asks for them starts ranks there.
TIMED_FIXTURES = {"cluster_of_session", "hosts_of_session", "open_mpi_4"}
# Without one of these in a file or in the conftest.py beside it, no test of the file times processes.
SIGNS = re.compile(r"\btimed\b|\blab\b|\bslurm_cluster\b|" + "|".join(sorted(TIMED_FIXTURES)))
# Who reads one of these bounds a time, or CPU time (tests/cost.py).
CLOCKS = {"process_time", "perf_counter", "monotonic", "getrusage", "check_cost", "check_growth", "with_more_time"}
# The cores of a machine may be held by something else for longer than one more try takes.
RERUNS = 2

# How long an example takes says nothing where others use the same cores.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let one part of the tests be picked, apart from what `-m` and `-k` pick."""
    parser.addoption(
        "--timed",
        choices=("yes", "no", "waiting", "only"),
        default="yes",
        help="all tests; those that time no processes; those that wait for hosts and ranks; the others that do",
    )


def pytest_configure() -> None:
    """Look for garbage less often; have programs that tests start end at Ctrl-C, as from a terminal.

    What a shell runs behind itself ignores it.
    """
    # Every seven hundred objects Python looks for cycles among those that are new; most here stay until a test ends.
    gc.set_threshold(50_000, 20, 20)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@cache
def may_be_timed(path: Path) -> bool:
    """Return whether a file of tests can hold one that times processes, as far as its text says."""
    texts = [each.read_text(encoding="utf-8") for each in (path, path.with_name("conftest.py")) if each.is_file()]
    return any(map(SIGNS.search, texts)) or lies_among_timed(path)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import the nine in ten files that have no test of the parts asked for: it takes as long as a part."""
    is_of_timed = config.getoption("timed") in {"waiting", "only"}
    return True if is_of_timed and collection_path.suffix == ".py" and not may_be_timed(collection_path) else None


@cache
def reads_a_clock(path: Path) -> bool:
    """Return whether tests of a file bound how long something takes."""
    return not CLOCKS.isdisjoint(re.findall(r"\w+", path.read_text(encoding="utf-8")))


@cache
def starts_ranks(path: Path) -> bool:
    """Return whether tests of a file start real launchers, which on busy cores may give up: a thread of PMIx did."""
    return "tests.e2e.runner" in path.read_text(encoding="utf-8")


def spins(item: pytest.Item) -> bool:
    """Return whether ranks of a test keep their cores while they wait, whatever they are told: those of MPICH."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    return item.path.parent.name == "e2e" and params.get("mpi") in {"MPICH", "Intel MPI"}


@cache
def lies_among_timed(path: Path) -> bool:
    """Return whether all tests of a file or folder time processes."""
    return any(path.is_relative_to(HERE / name) for name in TIMED) and not runs_beside_others(path)


@cache
def runs_beside_others(path: Path) -> bool:
    """Return whether the tests of a file start ranks and judge no times."""
    names = BESIDE_OTHERS.get(str(path.parent.relative_to(HERE)), set())
    return path.stem.removeprefix("test_") in names


@pytest.fixture
def settings_of_mpi(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return what ranks of Open MPI get, so that those that wait leave the cores to the tests beside this one."""
    return SLEEPING if request.path in WAITING else {}


@pytest.hookimpl(tryfirst=True)  # before `-m` picks by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test that times processes, let those that time anything try again, and keep the part asked for."""
    parts: dict[str, list[pytest.Item]] = {"no": [], "waiting": [], "only": []}
    for item in items:
        is_on_hosts = not TIMED_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
        if lies_among_timed(item.path) or is_on_hosts:
            item.add_marker(pytest.mark.timed)
        is_timed = item.get_closest_marker("timed") is not None
        if is_timed and not may_be_timed(item.path):
            raise pytest.UsageError(f"{item.nodeid} is timed and its file does not say so: see SIGNS in {__file__}")
        if is_timed or any(sign(item.path) for sign in (reads_a_clock, starts_ranks, runs_beside_others)):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS, reruns_delay=3))
        is_waiting = is_on_hosts or (item.path in WAITING and not spins(item))
        parts["no" if not is_timed else "waiting" if is_waiting else "only"].append(item)
    # The longest are among those on hosts: whoever begins with them has no worker that waits for the last one.
    parts["waiting"].sort(key=lambda item: TIMED_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())))
    wanted = config.getoption("timed")
    if wanted != "yes":
        items[:] = parts.pop(wanted)
        config.hook.pytest_deselected(items=[item for left in parts.values() for item in left])


def pytest_collection_finish() -> None:
    """Keep the thousands of tests out of every later collection of garbage, whose time some tests would count."""
    gc.collect()
    gc.freeze()
