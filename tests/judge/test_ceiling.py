"""Ceilings: formulas against a byte count of the minimal algorithm, and where a ceiling applies."""

from itertools import product

import pytest
from msgspec.structs import replace

from busbw.base.collectives import COLLECTIVES, MPI_COLLECTIVES
from busbw.judge.ceiling import TRAFFIC, ceiling_of, copy_rate_Bps, slowest_copy_rate_Bps, working_set_bytes
from busbw.model.run import CopyRate, Rates, StreamRate

from .factories import MiB, make_measurement, make_plan, make_rates, make_views

CASES = [
    (name, ranks) for name, ranks in product(COLLECTIVES, range(2, 9)) if not COLLECTIVES[name].pairs or ranks % 2 == 0
]
# Those whose least traffic is known; the times of a two-level alltoall on one host say nothing of nodes.
JUDGED = [(name, ranks) for name, ranks in CASES if name in TRAFFIC]


def test_every_collective_of_mpi_has_a_ceiling_but_the_two_level_one():
    assert set(MPI_COLLECTIVES) - set(TRAFFIC) == {"alltoall_2dh"}
    assert set(TRAFFIC) <= set(MPI_COLLECTIVES)


def touched(collective: str, n: int) -> int:
    """Count the parts of S/n bytes that the minimal algorithm reads and writes, one by one; the root is rank 0."""
    ranks = blocks = range(n)
    pairs = [(rank, block) for rank in ranks for block in blocks]
    # (receiving rank, part) of every part that is copied from another rank.
    copied = {
        "all_gather": [pair for pair in pairs if pair[0] != pair[1]],
        "alltoall": [pair for pair in pairs if pair[0] != pair[1]],
        "broadcast": [pair for pair in pairs if pair[0] != 0],
        "gather": [pair for pair in pairs if pair[0] == 0 != pair[1]],
        "scatter": [pair for pair in pairs if pair[0] == pair[1] != 0],
        "sendrecv": pairs,
        "latency": [pair for pair in pairs if pair[0] >= n / 2],
        "bandwidth": [pair for pair in pairs if pair[0] >= n / 2],
        "message_rate": [pair for pair in pairs if pair[0] >= n / 2],
        "bibw": pairs,
    }
    if collective in copied:
        return 2 * len(copied[collective])
    # A reduction reads every part of every rank once, and writes each result where it is wanted.
    written = {
        "all_reduce": pairs,
        "reduce_scatter": [pair for pair in pairs if pair[0] == pair[1]],
        "reduce": [pair for pair in pairs if pair[0] == 0],
    }
    return len(pairs) + len(written[collective])


@pytest.mark.parametrize(("collective", "n"), JUDGED)
def test_copied_bytes_are_those_of_the_minimal_algorithm(collective, n):
    parts = touched(collective, n)

    assert TRAFFIC[collective].copied(n) * n * 2 == pytest.approx(parts)


@pytest.mark.parametrize(("collective", "n"), CASES)
def test_crossing_bytes_are_what_ranks_receive_from_others(collective, n):
    received = {  # in units of S, summed over ranks
        "all_reduce": 2 * (n - 1),
        "all_gather": n - 1,
        "reduce_scatter": n - 1,
        "broadcast": n - 1,
        "reduce": n - 1,
        "alltoall": n - 1,
        "alltoallv": n - 1,  # at most: as many for every rank as for the busiest
        "alltoall_2dh": n - 1,  # at least: without what passes twice
        "hypercube": n - 1,
        "gather": (n - 1) / n,
        "scatter": (n - 1) / n,
        "sendrecv": n,
        "latency": n / 2,
        "bandwidth": n / 2,
        "message_rate": n / 2,
        "bibw": n,
    }

    assert COLLECTIVES[collective].crossing(n) == pytest.approx(received[collective])


@pytest.mark.parametrize(("collective", "n"), JUDGED)
def test_the_usual_algorithm_never_beats_the_ceiling(collective, n):
    traffic = TRAFFIC[collective]

    assert traffic.usual(n) * n >= traffic.copied(n) - 1e-9
    streams = n if traffic.stream == "ring" else n / 2
    assert traffic.usual_sent(n) * streams >= COLLECTIVES[collective].crossing(n) - 1e-9


@pytest.mark.parametrize(
    ("collective", "in_place"),
    [(name, False) for name in TRAFFIC] + [(name, True) for name in TRAFFIC if COLLECTIVES[name].in_place],
)
@pytest.mark.parametrize("n", [2, 4, 8])
def test_the_working_set_is_that_of_the_buffers_of_all_ranks(collective, n, in_place):
    size = 1024 * n
    part = size // n
    out_of_place = {
        "all_reduce": 2 * n * size,
        "all_gather": n * (part + size),
        "reduce_scatter": n * (part + size),
        "broadcast": n * size,
        "reduce": n * size + size,
        "alltoall": 2 * n * size,
        "gather": n * part + size,
        "scatter": size + n * part,
        "sendrecv": 2 * n * size,
        "latency": 2 * n * size,
        "bandwidth": n * size,
        "message_rate": n * size,
        "bibw": 2 * n * size,
    }
    one_buffer = dict.fromkeys(TRAFFIC, n * size)
    one_buffer |= {"gather": size + (n - 1) * part, "scatter": size + (n - 1) * part}
    held = (one_buffer if in_place else out_of_place)[collective]

    measurement = make_measurement(collective, size, ranks=n, in_place=in_place)

    assert working_set_bytes(TRAFFIC[collective], measurement) == pytest.approx(held / (2 * n))


def test_all_gather_is_bounded_by_the_copy_rate_over_n():
    ceiling = ceiling_of(make_plan(), make_rates(40e9), make_measurement("all_gather", 4 * MiB, ranks=4))

    assert ceiling is not None
    assert ceiling.basis == "memory"
    assert ceiling.busbw_Bps == pytest.approx(40e9 / 4)
    assert "(n-1)/n S" in ceiling.formula


def test_all_reduce_over_loopback_is_bounded_by_the_ring_stream():
    measurement = make_measurement("all_reduce", 4 * MiB, ranks=4, tcp_share=(("lo", 0.98),))

    ceiling = ceiling_of(make_plan(), make_rates(40e9, 6e9), measurement)

    assert ceiling is not None
    assert ceiling.basis == "loopback"
    assert ceiling.moves == 6
    assert ceiling.busbw_Bps == pytest.approx(6e9 * 1.5 / 6)


def test_only_streams_of_the_same_pattern_bound_an_exchange():
    measurement = make_measurement("all_reduce", 4 * MiB, ranks=4, tcp_share=(("lo", 0.98),))
    streams = (StreamRate(pattern="ring", rate_Bps=6e9), StreamRate(pattern="pairs", rate_Bps=9e9))

    ceiling = ceiling_of(make_plan(), replace(make_rates(40e9, 6e9), streams=streams), measurement)

    assert ceiling is not None
    assert ceiling.busbw_Bps == pytest.approx(6e9 * 1.5 / 6)


def test_a_share_that_other_programs_may_have_sent_is_not_taken_for_tcp():
    foreign = make_measurement("all_gather", 4 * MiB, tcp_share=(("lo", 0.6),))

    ceiling = ceiling_of(make_plan(), make_rates(40e9, 6e9), foreign)

    assert ceiling is not None
    assert ceiling.basis == "memory"


def test_small_messages_have_no_ceiling():
    assert ceiling_of(make_plan(), make_rates(), make_measurement(size_bytes=2**16)) is not None
    assert ceiling_of(make_plan(), make_rates(), make_measurement(size_bytes=2**16 - 64)) is None


def test_a_ceiling_needs_a_measured_rate():
    assert ceiling_of(make_plan(), Rates(), make_measurement()) is None


def test_ranks_on_several_hosts_have_no_memory_ceiling():
    views = make_views()
    elsewhere = (
        *views[:3],
        type(views[3])(**{f: getattr(views[3], f) for f in views[3].__struct_fields__} | {"host": "b"}),
    )

    assert ceiling_of(make_plan(), make_rates(), make_measurement(per_rank=elsewhere)) is None


def test_bytes_over_an_interface_that_leaves_the_host_have_no_ceiling():
    measurement = make_measurement(tcp_share=(("eth0", 0.9),))

    assert ceiling_of(make_plan(), make_rates(40e9, 6e9), measurement) is None


def test_the_copy_rate_is_interpolated_in_log_size_and_held_at_the_ends():
    rates = Rates(
        copies=(
            CopyRate(size_bytes=2**16, rate_Bps=80e9, kernel="memcpy"),
            CopyRate(size_bytes=2**16, rate_Bps=60e9, kernel="loop"),
            CopyRate(size_bytes=2**20, rate_Bps=40e9, kernel="memcpy"),
        )
    )

    assert copy_rate_Bps(rates, 2**10) == 80e9
    assert copy_rate_Bps(rates, 2**18) == pytest.approx(60e9)
    assert copy_rate_Bps(rates, 2**30) == 40e9


def test_an_expectation_takes_the_slowest_rate_from_the_working_set_on():
    rates = Rates(
        copies=(
            CopyRate(size_bytes=2**16, rate_Bps=10e9, kernel="loop"),
            CopyRate(size_bytes=2**20, rate_Bps=80e9, kernel="memcpy"),
            CopyRate(size_bytes=2**24, rate_Bps=30e9, kernel="memcpy"),
        )
    )

    assert slowest_copy_rate_Bps(rates, 2**18) == 30e9
    assert slowest_copy_rate_Bps(rates, 2**30) == 30e9
    assert slowest_copy_rate_Bps(Rates(), 2**20) is None
