"""How far an interval of 90 % reaches: of documents that had no part in the constants, by kind of cell.

What is left of a document is |ln(predicted / measured)| of its cells; documents count alike, each by its mean square.
The mean over the documents of a class is drawn towards that of all documents, which counts as three more: a few of
them may be alike by chance. A further document lies within Student's quantile times the root of that, if its logarithm
scatters normally; of how many documents it is from the quantile knows.
"""

import math
from collections.abc import Sequence

from busbw.base.text import counted
from busbw.model.predict.prediction import Band, HeldOut, Kinship, Scope
from busbw.predict.machines import CannotTellError
from busbw.stats.distributions import student_quantile

_LARGE_BYTES = 2**30
_MIDDLE_BYTES = 2**20
_BANDS = {"large": "from 1 GiB on", "middle": "from 1 MiB on", "small": "below 1 MiB"}
# All documents of a band count as so many of a class.
_DRAWN = 3
_UPPER = 0.95


def band_of(size_bytes: int) -> Band:
    """Return the band of a size."""
    return "large" if size_bytes >= _LARGE_BYTES else "middle" if size_bytes >= _MIDDLE_BYTES else "small"


def bands_words(band: Band) -> str:
    """Return which sizes a band has."""
    return _BANDS[band]


def reach_of(left_out: Sequence[HeldOut], band: Band, kinship: Kinship, scope: Scope) -> tuple[float, str]:
    """Return how far the 90 % interval reaches on the logarithm, and where that is from.

    Raises CannotTellError where nothing of that band was left out.
    """
    rows = [row for row in left_out if row.band == band and (row.kinship == "calibrated") is (kinship == "calibrated")]
    own = _scatters([row for row in rows if (row.kinship, row.scope) == (kinship, scope)])
    wide = _scatters(rows)
    if not wide:
        raise CannotTellError("no document of such sizes was left out of the fit: an interval cannot be told")
    drawn = min(_DRAWN, len(wide))
    count = len(own) + drawn
    scatter = math.sqrt((math.fsum(own) + drawn * math.fsum(wide) / len(wide)) / count)
    words = f"scatter of {counted(len(own), 'document')} ({scope}, {kinship})"
    words += f", pooled with that of all {len(wide)} (weight {drawn}), each left out of the fit"
    return student_quantile(_UPPER, count) * scatter, words


def _scatters(rows: Sequence[HeldOut]) -> list[float]:
    """Return the mean square of each document."""
    by: dict[str, list[float]] = {}
    for row in rows:
        by.setdefault(row.document, []).extend(row.residuals)
    return [math.fsum(value**2 for value in values) / len(values) for values in by.values()]
