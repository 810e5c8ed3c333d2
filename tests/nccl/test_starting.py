"""Ranks start by mpirun, by busbw alone, or by what sets torchrun's or srun's variables; who is missing is named."""

import json
import socket
import time
from collections.abc import Callable

import pytest
from tests.e2e.runner import TIMEOUT_S, read_records
from tests.patience import wait_until

from busbw.model.record import Hello

from .by_hand import ByHand, srun, torchrun
from .harness import BRIEF, NcclBusbw, assert_all_right

ONE = ("all_reduce", *BRIEF, "-b", "1K", "-e", "1K", "--time-limit", 0.5)
# Where somebody is missing: two thirds of this is how long the others wait for each other and for them.
IMPATIENT = ("--stall-timeout", 9)
ABORT_CODE, WRONG_SIZE_CODE = 3, 4


@pytest.mark.parametrize(("launcher", "met_over"), [("mpirun", "Open MPI"), ("processes", "no MPI")])
@pytest.mark.parametrize("per_process", [1, 2])
def test_a_launcher_starts_a_process_for_its_gpus(busbw: NcclBusbw, launcher: str, met_over: str, per_process: int):
    result = busbw.nccl(*ONE, "--ranks", 4, "-g", per_process, launcher=launcher)

    assert_all_right(busbw, result)
    run = busbw.run_of()
    hellos = [read_records(busbw.directory(), rank)[0] for rank in range(4)]
    assert [hello.rank for hello in hellos if isinstance(hello, Hello)] == [0, 1, 2, 3]
    assert len({hello.process_id for hello in run.ranks}) == 4 // per_process
    assert [hello.gpu.ordinal for hello in run.ranks if hello.gpu is not None] == [0, 1, 2, 3]
    assert {hello.ranks for hello in run.ranks} == {4}
    assert all(hello.mpi_version.startswith(met_over) for hello in run.ranks)


@pytest.mark.parametrize("told", [torchrun, srun])
def test_ranks_find_each_other_by_their_launchers_variables(
    busbw: NcclBusbw, told: Callable[[int, int], dict[str, str]]
):
    run = ByHand(busbw, *ONE, "--ranks", 3)
    # The first rank comes last: the others wait for its address.
    for rank in (2, 1, 0):
        run.start(told(rank, 3))

    assert [left.code for left in run.finish()] == [0, 0, 0]
    run.assert_complete()


def test_a_process_without_gpus_of_its_own_uses_those_it_is_shown(busbw: NcclBusbw):
    run = ByHand(busbw, *ONE, "--ranks", 2)
    for rank in range(2):
        run.start({**torchrun(rank, 2), "CUDA_VISIBLE_DEVICES": str(rank)})

    assert [left.code for left in run.finish()] == [0, 0]
    run.assert_complete()


def test_a_rank_that_does_not_come_is_named(busbw: NcclBusbw):
    run = ByHand(busbw, *ONE, "--ranks", 3, *IMPATIENT)
    for rank in (0, 1):
        run.start(torchrun(rank, 3))

    first, second = run.finish()

    assert (first.code, second.code) == (ABORT_CODE, ABORT_CODE)
    assert "busbw rank failed at meeting the others: rank 2 did not come within 6 s" in first.err
    assert "Traceback" not in first.err


def test_a_first_rank_that_does_not_come_is_named(busbw: NcclBusbw):
    run = ByHand(busbw, *ONE, "--ranks", 2, *IMPATIENT)
    run.start(torchrun(1, 2))

    (left,) = run.finish()

    assert left.code == ABORT_CODE
    assert "rank 1 did not reach rank 0 within 6 s: it left no address" in left.err


@pytest.mark.parametrize("started", [1, 3])
def test_more_or_fewer_processes_than_planned_are_told(busbw: NcclBusbw, started: int):
    run = ByHand(busbw, *ONE, "--ranks", 2, *IMPATIENT)
    for rank in range(started):
        run.start(torchrun(rank, started))

    left = run.finish()

    assert WRONG_SIZE_CODE in {one.code for one in left}
    assert 0 not in {one.code for one in left}
    plural = "es" if started > 1 else ""
    words = f"busbw does not measure: {started} process{plural} started, 2 planned"
    assert any(words in one.err for one in left), left


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, "no launcher says which rank this is"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "no launcher says which rank this is"),
        ({"RANK": "-1", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, "no launcher says which rank this is"),
        (torchrun(2, 2), "RANK=2 is not one of WORLD_SIZE=2"),
        (srun(5, 2), "SLURM_PROCID=5 is not one of SLURM_NTASKS=2"),
    ],
)
def test_variables_that_make_no_rank_are_told(busbw: NcclBusbw, variables: dict[str, str], words: str):
    run = ByHand(busbw, *ONE, "--ranks", 2)
    run.start(variables)

    (left,) = run.finish()

    assert left.code == ABORT_CODE
    assert words in left.err
    assert "Traceback" not in left.err


def test_strangers_at_the_door_keep_nobody_out(busbw: NcclBusbw):
    run = ByHand(busbw, *ONE, "--ranks", 2)
    run.start(torchrun(0, 2))
    wait_until(run.meeting.exists, TIMEOUT_S, "the address of rank 0")
    where = json.loads(run.meeting.read_bytes())
    assert run.meeting.stat().st_mode & 0o077 == 0
    door = (where["address"], where["port"])

    with (
        socket.create_connection(door) as silent,
        socket.create_connection(door) as wrong,
        socket.create_connection(door) as garbage,
    ):
        socket.create_connection(door).close()
        # Rank 1 by its number, but not by the secret of this run.
        wrong.sendall(bytes(len(where["secret"]) // 2) + (1).to_bytes(4, "little"))
        garbage.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
        run.start(torchrun(1, 2))
        codes = [left.code for left in run.finish()]
        assert silent.fileno() > 0

    assert codes == [0, 0]
    run.assert_complete()


def test_the_address_of_an_earlier_start_misleads_nobody(busbw: NcclBusbw):
    run = ByHand(busbw, *ONE, "--ranks", 2)
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    run.meeting.write_text(json.dumps({"address": "127.0.0.1", "port": port, "secret": "00" * 16}))
    run.start(torchrun(1, 2))
    time.sleep(0.5)
    run.start(torchrun(0, 2))

    assert [left.code for left in run.finish()] == [0, 0]
    run.assert_complete()
