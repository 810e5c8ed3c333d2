"""What an interface offers to be measured: MPI, or the NCCL at hand."""

from dataclasses import dataclass

from busbw.base.collectives import (
    COLLECTIVES,
    MPI_COLLECTIVES,
    MPI_DTYPES,
    MPI_OPERATIONS,
    NCCL_COLLECTIVES,
    NCCL_IN_PLACE,
    OPERATIONS,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """Names a request is checked against, and the sizes it gets when it asks for none."""

    interface: str
    collectives: tuple[str, ...]
    # Those that have an in-place form of their own.
    in_place: tuple[str, ...]
    dtypes: tuple[str, ...]
    operations: tuple[str, ...]
    # Elements that one call can count; None: more than memory holds.
    most_elements: int | None
    largest_bytes: int
    suite_largest_bytes: int


MPI_OFFER = Offer(
    interface="MPI",
    collectives=MPI_COLLECTIVES,
    in_place=tuple(name for name in MPI_COLLECTIVES if COLLECTIVES[name].in_place),
    dtypes=MPI_DTYPES,
    operations=MPI_OPERATIONS,
    most_elements=2**31 - 1,
    largest_bytes=64 * 2**20,
    # A whole suite has to fit into the time of one collective.
    suite_largest_bytes=16 * 2**20,
)


def nccl_offer(dtypes: tuple[str, ...]) -> Offer:
    """Return what an NCCL with these data types offers."""
    return Offer(
        interface="NCCL",
        collectives=NCCL_COLLECTIVES,
        in_place=NCCL_IN_PLACE,
        dtypes=dtypes,
        operations=OPERATIONS,
        most_elements=None,
        largest_bytes=2**30,
        suite_largest_bytes=2**30,
    )


def nccl_tests_offer(operations: tuple[str, ...]) -> Offer:
    """Return what nccl-tests offers; its own usage text lists the operations. Which types it has shows at its start."""
    from busbw.measure.backends import nccl_tests  # noqa: PLC0415 - it brings the readers of logs, which our own loops do not need

    return Offer(
        interface="nccl-tests",
        collectives=nccl_tests.COLLECTIVES,
        in_place=nccl_tests.IN_PLACE,
        dtypes=tuple(nccl_tests.DTYPES),
        operations=operations,
        most_elements=None,
        largest_bytes=2**30,
        suite_largest_bytes=2**30,
    )


def osu_offer() -> Offer:
    """Return what OSU's programs offer."""
    from busbw.measure.backends import osu  # noqa: PLC0415 - the same

    return Offer(
        interface="OSU",
        collectives=tuple(osu.PROGRAMS),
        in_place=(),
        dtypes=osu.DTYPES,
        operations=("sum",),
        most_elements=None,
        largest_bytes=4 * 2**20,
        suite_largest_bytes=4 * 2**20,
    )
