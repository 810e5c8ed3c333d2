"""What a measured cell says of other sizes."""

import pytest
from msgspec import structs
from tests.predict.test_closed import machine

from busbw.model.predict.prediction import PredictedCall
from busbw.predict.closed import predicted
from busbw.predict.shifting import shift_of


def call(size_bytes: int, nodes: int = 2) -> PredictedCall:
    return predicted(
        machine("aws-p5"), nodes=nodes, collective="all_reduce", size_bytes=size_bytes, algorithm="nvlstree"
    )[0]


SMALL, MIDDLE, LARGE = (call(size) for size in (2**10, 2**26, 2**33))


def test_a_cell_moves_itself_nearly_all_the_way() -> None:
    assert shift_of(MIDDLE, [(MIDDLE, 0.2)]) == pytest.approx(0.2, rel=0.02)


def test_a_large_cell_says_little_of_a_call_of_hops_and_a_small_one_little_of_the_rate() -> None:
    assert abs(shift_of(SMALL, [(LARGE, 0.2)])) < 0.02
    assert abs(shift_of(LARGE, [(SMALL, 0.2)])) < 0.02
    assert shift_of(call(2**34), [(LARGE, 0.2)]) > 0.15


def test_between_two_cells_is_between_them_and_the_order_of_cells_does_not_count() -> None:
    cells = [(call(2**24), 0.3), (call(2**28), 0.1)]
    assert 0.1 < shift_of(MIDDLE, cells) < 0.3
    assert shift_of(MIDDLE, cells) == pytest.approx(shift_of(MIDDLE, cells[::-1]))


def test_of_another_way_a_cell_says_what_hops_take_only() -> None:
    other = structs.replace(LARGE, algorithm="ring")
    assert abs(shift_of(LARGE, [(other, 0.2)])) < 0.001
    assert shift_of(SMALL, [(structs.replace(SMALL, algorithm="ring"), 0.2)]) > 0.15
    assert shift_of(LARGE, []) == 0.0
