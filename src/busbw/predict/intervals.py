"""How far an interval of 90 % reaches: of documents that had no part in the constants, by kind of cell.

What is left of a document is the largest |ln(predicted / measured)| of its cells, less what stretches it. Documents
count alike, by its logarithm: they scatter as if that were normal, some a few times as far off as others. The mean of a
class is drawn towards that of all documents of the band, which counts as three more: a few may be alike by chance. The
interval holds all cells of a further document in four cases of five by Student's quantile, which is nine cells of ten.
"""

import math
from collections.abc import Sequence

from busbw.base.text import counted
from busbw.model.predict.prediction import Band, Exchange, HeldKinship, HeldOut, Scope
from busbw.predict.machines import CannotTellError
from busbw.stats.distributions import student_quantile

_LARGE_BYTES = 2**30
_MIDDLE_BYTES = 2**20
_BANDS = {"large": "from 1 GiB on", "middle": "from 1 MiB on", "small": "below 1 MiB"}
_SCOPES: dict[Scope, str] = {"one node": "within a node", "several nodes": "between nodes"}
_LIKE: dict[HeldKinship, str] = {
    "in family": "such machines known from others",
    "across": "such machines not known from others",
    "calibrated": "with measured sizes of their own",
    "carried": "their collective not known from others",
}
# Where so much of a call's time is hops and what fills, that counts as much as the rest. A round number: from 0.3 to 1
# as many documents are inside.
_LOOSE = 0.5
# All documents of a band count as so many of a class.
_DRAWN = 3
# Of further documents so many lie inside with all of their cells.
_WHOLE = 0.8
# Nodes of one kind differ by as much between documents (two p5 and two BM.GPU.H100.8 by 0.3 to 3.9 % from 1 GiB on):
# a document that lies nearer does so by chance.
_LEAST = 0.03


def band_of(size_bytes: int) -> Band:
    """Return the band of a size."""
    return "large" if size_bytes >= _LARGE_BYTES else "middle" if size_bytes >= _MIDDLE_BYTES else "small"


def bands_words(band: Band) -> str:
    """Return which sizes a band has."""
    return _BANDS[band]


def stretch_of(loose: float) -> float:
    """Return how many times as far an interval reaches as that of a call which is all bytes at the rate of its links.

    `loose`: the share of hops and of what fills, which are known less well.
    """
    return math.hypot(1.0, loose / _LOOSE)


def reach_of(
    left_out: Sequence[HeldOut], band: Band, kinship: HeldKinship, scope: Scope, exchange: Exchange = "collective"
) -> tuple[float, str]:
    """Return how far the 90 % interval reaches on the logarithm, less what stretches it, and where that is from.

    Sends are pooled with all documents of the band, other collectives with those of other collectives. Raises
    CannotTellError where nothing of that band was left out.
    """
    rows = [row for row in left_out if row.band == band and _pool(row.kinship) == _pool(kinship)]
    if exchange != "sends" and _pool(kinship) != "carried":
        rows = [row for row in rows if row.exchange != "sends"]
    alike = [row for row in rows if (row.kinship, row.scope) == (kinship, scope)]
    # What is carried is from one collective to another, whichever they are.
    own = _farthest([row for row in alike if kinship == "carried" or row.exchange == exchange])
    wide = _farthest(rows)
    if not wide:
        raise CannotTellError("no document of such sizes was left out of the fit: an interval cannot be told")
    of_all = math.fsum(wide) / len(wide)
    count = len(own) + _DRAWN
    middle = (math.fsum(own) + _DRAWN * of_all) / count
    freedom = max(1, len(wide) - 1)
    spread = math.sqrt(math.fsum((each - of_all) ** 2 for each in wide) / freedom * (1 + 1 / count))
    alike_words = {0: "none of them is", 1: "1 of them is"}.get(len(own), f"{len(own)} of them are")
    words = f"by how far {counted(len(wide), 'document')} lay off when left out of the fit; {alike_words} like this"
    words += f" ({_SCOPES[scope]}, {_LIKE[kinship]})"
    return math.exp(middle + student_quantile(_WHOLE, freedom) * spread), words


def _pool(kinship: HeldKinship) -> str:
    """Return which documents are pooled: by whether a cell of the machine, or the collective, was known."""
    return kinship if kinship in ("calibrated", "carried") else "left out"


def _farthest(rows: Sequence[HeldOut]) -> list[float]:
    """Return the logarithm of the farthest cell of each document."""
    by: dict[str, float] = {}
    for row in rows:
        by[row.document] = max(by.get(row.document, _LEAST), *row.residuals)
    return [math.log(value) for value in by.values()]
