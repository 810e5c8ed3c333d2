"""What becomes of a request: the name of its run, the matrix it names, and the same request with nothing left open."""

import datetime as dt
from pathlib import Path

import msgspec

from busbw.base.collectives import Matrix
from busbw.base.errors import InputError
from busbw.base.hostlist import compressed
from busbw.model.plan import Placement
from busbw.model.request import Request
from busbw.store.files import read_whole


def run_id(request: Request, created: dt.datetime, token: str, ranks: int) -> str:
    """Return the name of a run: when, what, over how many ranks, and a token for runs of the same second."""
    return f"{created:%Y%m%dT%H%M%S}-{run_words(request)}-x{ranks}-{token}"


def run_words(request: Request) -> str:
    """Return what a request measures, for the name of a folder."""
    if request.fabric is not None:
        return "fabric"
    if request.step is not None:
        return f"train-{Path(request.step.workload).stem[:40]}"
    return request.suite or "+".join(request.collectives[:3]) or "six"


_MOST_BYTES = 64 * 2**20
_MOST_CELL = 2**40
_HINT = "one row a rank: bytes to rank 0, 1, 2, ..., separated by blanks or commas; lines with # are left out"


def read_matrix(content: bytes, where: str, ranks: int) -> Matrix:
    """Return the first `ranks` rows and columns of a matrix file, as nccl-tests does. Raises InputError.

    The form is that of NCCL_TESTS_ALLTOALLV_MATRIX_FILE: square, of numbers that are bytes.
    """
    if len(content) > _MOST_BYTES:
        raise InputError(f"a matrix of more than {_MOST_BYTES >> 20} MiB", where=where)
    rows = []
    for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), start=1):
        fields = line.partition("#")[0].replace(",", " ").split()
        if fields:
            rows.append(tuple(_cell(field, f"{where}:{number}") for field in fields))
    if len(rows) < ranks:
        raise InputError(f"{len(rows)} rows for {ranks} ranks", where=where, hint=_HINT)
    for number, row in enumerate(rows):
        if len(row) != len(rows):
            raise InputError(
                f"row {number} has {len(row)} numbers, and the matrix {len(rows)} rows: it is not square",
                where=where,
                hint=_HINT,
            )
    matrix = tuple(row[:ranks] for row in rows[:ranks])
    if not any(cell for row in matrix for cell in row):
        raise InputError("no rank sends anything", where=where)
    return matrix


def _cell(field: str, where: str) -> int:
    if not field.isdecimal() or len(field) > 15 or int(field) > _MOST_CELL:
        raise InputError(f"{field[:40]!r} is not a number of bytes", where=where, hint=_HINT)
    return int(field)


def with_matrix(request: Request) -> Request:
    """Return the request with what its matrix file holds. Raises InputError."""
    if request.matrix_file is None:
        return request
    if request.ranks is None:
        raise InputError("a matrix needs the number of ranks", where="--matrix", hint="--ranks 8")
    content = read_whole(Path(request.matrix_file), _MOST_BYTES)
    return msgspec.structs.replace(request, matrix=read_matrix(content, request.matrix_file, request.ranks))


def with_placement(request: Request, placement: Placement, launcher: str) -> Request:
    """Return the request with the hosts, ranks and launcher that were chosen for it, as if they had been asked for."""
    if not placement.is_spread:
        return msgspec.structs.replace(request, ranks=placement.ranks)
    counts = placement.ranks_of_hosts
    alike = len(set(counts)) == 1
    # Hosts with ranks of their own number come with it, as `n0:2`.
    counted = ",".join(f"{host}:{ranks}" for host, ranks in zip(placement.hosts, counts, strict=False))
    return msgspec.structs.replace(
        request,
        hosts=compressed(placement.hosts) if alike else counted,
        nodes=None,
        ranks=None,
        ranks_per_node=counts[0] if alike else None,
        binding=placement.binding,
        launcher=launcher,
    )
