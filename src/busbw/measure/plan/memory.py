"""Whether a plan fits into this machine's memory, from arithmetic, before anything starts."""

from busbw.base.collectives import COLLECTIVES, LARGEST_COPY_BYTES, LEAST_BUFFER_BYTES
from busbw.base.errors import InputError
from busbw.base.units import format_size
from busbw.model.machine import Host
from busbw.model.plan import MemoryNeed
from busbw.model.sweep import Sweep

# Interpreter, mpi4py and MPI: 40 to 60 MiB resident in Open MPI 5 and MPICH 5, with their shared segments.
_OVERHEAD_PER_RANK_BYTES = 96 * 2**20


def need_of(sweeps: tuple[Sweep, ...], ranks: int) -> MemoryNeed:
    """Return what `ranks` on one host allocate for these sweeps.

    Every rank is counted with the buffers of the rank that needs most, and keeps one set of them for the whole run.
    """
    send_bytes = receive_bytes = copy_bytes = scratch_bytes = 0
    for sweep in sweeps:
        collective = COLLECTIVES[sweep.collective]
        size_bytes = max(sweep.sizes_bytes)
        sent, received = collective.send_bytes(size_bytes, ranks), collective.receive_bytes(size_bytes, ranks)
        if sweep.in_place:
            sent, received = 0, max(sent, received)
        send_bytes, receive_bytes = max(send_bytes, sent), max(receive_bytes, received)
        # A two-level alltoall copies its input.
        copy_bytes = max(copy_bytes, sent if sweep.group is not None else 0)
        # A reduction may hold one more message to combine with.
        scratch_bytes = max(scratch_bytes, size_bytes if collective.reduces else 0)
    buffers_bytes = max(send_bytes, LEAST_BUFFER_BYTES) + max(receive_bytes, LEAST_BUFFER_BYTES) + copy_bytes
    # Memory copies are measured before these buffers are made, in two of their own.
    largest_bytes = max(size_bytes for sweep in sweeps for size_bytes in sweep.sizes_bytes)
    buffers_bytes = max(buffers_bytes, 2 * min(largest_bytes, LARGEST_COPY_BYTES))
    return MemoryNeed(
        buffers_bytes=ranks * buffers_bytes,
        overhead_bytes=ranks * _OVERHEAD_PER_RANK_BYTES,
        scratch_bytes=ranks * scratch_bytes,
    )


def check_fits(need: MemoryNeed, host: Host, ranks: int) -> str | None:
    """Return a note when MPI's own scratch memory may not fit. Raises InputError when the buffers do not."""
    available = host.memory_available_bytes
    if need.needed_bytes > available:
        raise InputError(
            f"{ranks} ranks need {format_size(need.needed_bytes)} of memory, {format_size(available)} are free",
            where=host.name,
            hint="a smaller -e, or fewer ranks with -n",
        )
    if need.needed_bytes + need.scratch_bytes > available:
        return (
            f"buffers take {format_size(need.needed_bytes)} of {format_size(available)} free; reductions may need "
            f"up to {format_size(need.scratch_bytes)} more inside MPI, which is not there"
        )
    return None
