"""How tests of one pair scattered in sweeps that were measured, by name: for `busbw fabric --simulate --noise`.

Alone because facts are read in this room, and nothing below `api` may know both these and the simulation's noise.
"""

import datetime as dt
from collections import defaultdict
from functools import cache
from importlib.resources import files

import msgspec

from busbw.base.value import Value

_UNIT = 1e-5


class PairNoise(Value, frozen=True, kw_only=True):
    """The scatter of one metric in one network."""

    name: str
    metric: str
    # What was measured, where, and beside what.
    words: str
    # Of each repeated test, in 1e-5: the logarithm of its slowness less the mean of its pair, as `noise_of` has it.
    residuals: tuple[int, ...]
    source: str
    measured: dt.date

    @property
    def drawn(self) -> tuple[float, ...]:
        """Logarithms of slowness, each as likely."""
        return tuple(_UNIT * each for each in self.residuals)


class _Stored(Value, frozen=True, kw_only=True):
    noise: tuple[PairNoise, ...]


@cache
def stored_noise() -> dict[str, dict[str, PairNoise]]:
    """Return what is stored, by name and then by metric."""
    raw = files("busbw").joinpath("data", "pair_noise.toml").read_bytes()
    # Only the codec floor may decode for users; this file is part of the package, so an error in it is a bug.
    found: dict[str, dict[str, PairNoise]] = defaultdict(dict)
    for each in msgspec.toml.decode(raw, type=_Stored).noise:
        if found[each.name].setdefault(each.metric, each) is not each:
            raise ValueError(f"data/pair_noise.toml has {each.metric} of {each.name} twice")
    return dict(found)
