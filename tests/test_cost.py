"""What bounds CPU time in other tests: it lets pass what is late once, and fails what is always too much."""

import time
from collections.abc import Callable

import pytest
from tests.cost import check_cost, check_growth


def spend(cpu_s: float) -> None:
    ends_s = time.thread_time() + cpu_s
    while time.thread_time() < ends_s:
        pass


def spending(*costs_s: float) -> Callable[[], int]:
    """Return work that costs so much the first time, then so much, and the last for ever; it counts."""
    done = iter(range(100))

    def work() -> int:
        number = next(done)
        spend(costs_s[min(number, len(costs_s) - 1)])
        return number

    return work


def test_what_is_cheap_is_done_once() -> None:
    assert check_cost(spending(0), most_s=1) == 0


def test_what_is_late_once_is_tried_again() -> None:
    assert check_cost(spending(0.1, 0), most_s=0.02) == 1


def test_waiting_costs_nothing() -> None:
    check_cost(lambda: time.sleep(0.2), most_s=0.1)


def test_what_is_always_too_much_fails_and_says_how_much() -> None:
    with pytest.raises(AssertionError, match=r"took \d+\.\d+, .* s of CPU time, not under 0\.01 s"):
        check_cost(spending(0.09), most_s=0.01)


def test_what_is_hopeless_is_not_tried_again() -> None:
    with pytest.raises(AssertionError, match=r"took \d+\.\d+ s of CPU time"):
        check_cost(spending(0.1), most_s=0.001)


def test_what_grows_with_its_input_passes() -> None:
    check_growth(spend, 0.01, 0.08, most=24, negligible_s=0)


def test_what_grows_with_the_square_of_its_input_fails() -> None:
    with pytest.raises(AssertionError, match="24 times or more"):
        check_growth(lambda length: spend(0.0004 * length**2), 1, 8, most=24, negligible_s=0)


def test_what_grows_too_fast_is_let_pass_while_it_is_over_in_no_time() -> None:
    check_growth(lambda length: spend(0.0001 * length**2), 1, 8, most=24, negligible_s=1)
