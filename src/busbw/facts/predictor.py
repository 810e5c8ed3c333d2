"""The constants of the closed form, as `scripts/calibrate.py` fits them. Alone because `predict` reads no files."""

from functools import cache
from importlib.resources import files

import msgspec

from busbw.model.predict.prediction import PredictorConstants


@cache
def predictor_constants() -> PredictorConstants:
    """Return the constants that are shipped."""
    raw = files("busbw").joinpath("data", "predictor.toml").read_bytes()
    return msgspec.toml.decode(raw, type=PredictorConstants)
