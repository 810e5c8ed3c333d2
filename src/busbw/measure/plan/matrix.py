"""The file of an alltoallv: how much each rank sends to each."""

from busbw.base.collectives import Matrix
from busbw.base.errors import InputError

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
        raise InputError("nobody sends anything", where=where)
    return matrix


def _cell(field: str, where: str) -> int:
    if not field.isdecimal() or len(field) > 15 or int(field) > _MOST_CELL:
        raise InputError(f"{field[:40]!r} is not a number of bytes", where=where, hint=_HINT)
    return int(field)
