"""The constants that are shipped are those that `scripts/calibrate.py` fits, and the page shows what is left."""

import sys
from pathlib import Path

import pytest

from busbw.base.errors import InputError
from busbw.predict.cells import read_cells

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import calibrate  # noqa: E402 - a program beside the package


def test_the_shipped_constants_and_the_table_of_residuals_are_what_calibrating_gives() -> None:
    constants, residuals, carried = calibrate.calibrated()
    assert calibrate.CONSTANTS.read_text() == calibrate.written(constants)
    page = (ROOT / "docs" / "measurements" / "2026-11-25-predictor.md").read_text()
    assert calibrate.table(residuals, constants) in page
    assert calibrate.calibrated_table(residuals, constants) in page
    assert calibrate.sizes_table(residuals) in page
    assert calibrate.table(residuals, constants, "sends") in page
    assert calibrate.carried_table(carried, constants) in page
    assert {group.document for group in calibrate.training_groups() if group.is_fitted} >= {"T02", "T12", "W1", "W2"}


HEAD = "document,platform_id,nodes,gpus,collective,size_bytes,busbw_GBps,algorithm\n"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("D,aws-p5,2,16,all_reduce,1024,nan,default", "is no bandwidth"),
        ("D,aws-p5,2,16,all_reduce,1024,-3,default", "is no bandwidth"),
        ("D,aws-p5,2,16,all_reduce,1024,0,default", "is no bandwidth"),
        ("D,aws-p5,2,16,all_reduce,1024,1e400,default", "is no bandwidth"),
        ("D,aws-p5,0,16,all_reduce,1024,1,default", "nodes '0' is no number"),
        ("D,aws-p5,3,16,all_reduce,1024,1,default", "16 GPUs on 3 nodes"),
        ("D,aws-p5,2,16,nonsense,1024,1,default", "is not a collective"),
        ("D,aws-p5,2,16,all_reduce,\u0663,1,default", "is no number"),
        ("D,,2,16,all_reduce,1024,1,default", "no platform is named"),
        ("D,aws-p5,2,18,all_reduce,1024,1,default", "9 of the GPUs"),
        ("D,aws-p5", "is not a collective"),
    ],
)
def test_a_row_that_cannot_be_is_left_out_and_named(row: str, words: str) -> None:
    kept = "K,aws-p5,2,16,all_reduce,1024,0.01,default\n"
    found = read_cells(f"{HEAD}{kept}{row}\n".encode(), "cells.csv", calibrate.machine)
    assert [group.document for group in found.groups] == ["K"]
    assert words in found.left_out[0]


def test_a_table_without_its_columns_is_refused() -> None:
    with pytest.raises(InputError, match="lacks the column platform_id"):
        read_cells(b"document,nodes\n", "cells.csv", calibrate.machine)
