"""What a change of the machine is worth: ratios whose shared errors cancel, and ends where something is not known."""

import pytest
from msgspec import structs

from busbw.base.errors import InputError
from busbw.model.predict.prediction import ChangedCall
from busbw.predict.changes import changed_call, changes_of
from busbw.predict.closed import predicted
from busbw.predict.machines import CannotTellError

from .test_closed import machine


def worth(text: str, *, nodes: int = 32, size_bytes: int = 2**34, name: str = "azure-nd-h100-v5") -> ChangedCall:
    call = predicted(machine(name), nodes=nodes, collective="all_reduce", size_bytes=size_bytes)[0]
    changes = changes_of((text,))
    assert changes is not None
    return changed_call(machine(name), call, "all_reduce", changes)


# By LL, LL128 and Simple.
@pytest.mark.parametrize("size_bytes", [2**12, 2**20, 2**26, 2**34])
def test_what_changes_nothing_is_worth_nothing(size_bytes: int) -> None:
    found = worth("nic=400G,nics=8", size_bytes=size_bytes)
    assert (found.ratio, found.low_ratio, found.high_ratio) == pytest.approx((1.0, 1.0, 1.0))


def test_a_slightly_faster_nic_gives_as_much_and_another_part_stops_a_much_faster_one() -> None:
    little = worth("nic=420G")
    assert little.ratio == pytest.approx(1.05, abs=0.01)
    assert little.high_ratio / little.low_ratio < 1.02
    much = worth("nic=800G")
    assert 1.1 < much.ratio < 1.5
    assert much.limited_by == "slot of a GPU"
    # Other constants: their errors do not cancel.
    assert much.high_ratio / much.low_ratio > 1.2


def test_a_small_message_gains_less_than_a_large_one() -> None:
    assert worth("nic=420G", size_bytes=2**20).ratio < worth("nic=420G").ratio


def test_of_a_blocking_spine_both_ends_are_told() -> None:
    found = worth("oversubscription=2")
    assert found.low_ratio == pytest.approx(0.5, abs=0.06)
    assert found.high_ratio == pytest.approx(1.0)


def test_another_algorithm_keeps_the_spread_of_both_constants() -> None:
    found = worth("nvls=off")
    assert found.algorithm == "tree"
    assert found.high_ratio / found.low_ratio > 1.1


def test_a_calibrated_prediction_keeps_its_ratio() -> None:
    call = predicted(machine("aws-p5"), nodes=16, collective="all_reduce", size_bytes=2**34)[0]
    shifted = structs.replace(call, busbw_Bps=call.busbw_Bps / 2, time_s=call.time_s * 2)
    changes = changes_of(("nics=16",))
    assert changes is not None
    ratios = [changed_call(machine("aws-p5"), each, "all_reduce", changes).ratio for each in (call, shifted)]
    assert ratios[0] == ratios[1]


@pytest.mark.parametrize(
    "text",
    [
        "", "nic", "nic=", "nic=0G", "nic=800", "nic=\u0668G", "nics=0", "nics=1.5", "nics=999999999", "nvls=on",
        "oversubscription=0.5", "oversubscription=nan", "nic=800G,nic=400G", "slow=1", "nics=007e9",
        "sharp=off", "sharp=", "nic=800GB/s", "nic=1601G", "nics=65", "oversubscription=65", "Nic=800G,nic=400G",
    ],
)  # fmt: skip
def test_other_changes_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        changes_of((text,))


def test_changes_are_read_in_the_units_that_people_write_and_a_refusal_says_the_range() -> None:
    for text in ("nic=800G", " NIC = 800 Gb/s ", "nic=800Gbps", "nic=800GbE", "nic=800.0g"):
        changes = changes_of((text,))
        assert changes is not None
        assert changes.nic_Bps == 100e9
    with pytest.raises(InputError, match="hint: nic=1G to nic=1600G"):
        changes_of(("nic=99999G",))
    with pytest.raises(InputError, match="hint: nics=1 to nics=64"):
        changes_of(("nics=100000",))


def test_what_sharp_gives_is_told_by_no_document() -> None:
    with pytest.raises(
        CannotTellError, match=r"nobody has published enough of it; it is bounded by 796.9 GB/s, nvlstree without"
    ):
        worth("sharp=on")
    # The bound is that of the machine with the other changes.
    with pytest.raises(CannotTellError, match=r"bounded by 398.4 GB/s"):
        worth("sharp=on,nic=200G")
    with pytest.raises(CannotTellError, match="no bound of SHARP is known for all_reduce on 1 node"):
        worth("sharp=on", nodes=1)


def test_what_is_not_there_cannot_be_off() -> None:
    with pytest.raises(InputError, match="no NVLS that could be off"):
        worth("nvls=off", name="aws-p4de", nodes=2)


def test_a_slow_nic_costs_a_large_message_what_it_lacks_and_a_small_one_less() -> None:
    large, small = (worth("slow-nic=node7:0.5", size_bytes=size) for size in (2**34, 2**20))
    assert large.tier == small.tier == "steps"
    assert large.ratio == pytest.approx(0.5, abs=0.02)
    assert large.ratio < small.ratio < 1


def test_what_is_not_known_of_leaves_makes_both_ends() -> None:
    open_ends = worth("oversubscription=2,leaf=8")
    known = worth("oversubscription=2,leaf=8,routing=adaptive,placement=ordered")
    assert len(open_ends.assumed) == 4
    assert open_ends.low_ratio < known.low_ratio <= known.high_ratio <= open_ends.high_ratio + 1e-9
    # Without leaves of a known size all of the traffic may meet the spine, and none.
    assert worth("oversubscription=2").low_ratio < known.low_ratio
