"""Counters of ports: what they counted between two readings, and what that adds to the answers of a sweep."""

import re
from pathlib import Path

import pytest
from tests.probe.hosts import snapshot_of
from tests.probe.machines import MACHINES

from busbw.api.sweeping.evidence import changed_counters, counter_lines
from busbw.base.errors import InputError
from busbw.fabric.answers import FabricAnswer, Kind
from busbw.fabric.counters.evidence import CountedAgain, counter_notes, weighed, with_retests
from busbw.fabric.counters.perfquery import is_perfquery, named_by, read_perfquery
from busbw.fabric.counters.ports import PortChanges, called_as, changes, moved, port_words, risen, span_words
from busbw.facts.port_counters import names_of, perfquery_names, port_counters
from busbw.machine.read.state import counters_of
from busbw.model import codec
from busbw.model.finding import Confidence
from busbw.model.host import CapturedFile, Snapshot
from busbw.model.machine import CountersRead
from busbw.rank.network import host_counters, read_counters, virtual_interfaces

from .test_ib_topology import sample

PERFQUERY = """# Port counters: Lid 6 port 1 (CapMask: 0x1200)
PortSelect:......................1
CounterSelect:...................0x0000
SymbolErrorCounter:..............{errors}
LinkErrorRecoveryCounter:........0
PortXmitWait:....................0
# Port extended counters: Lid 1 port 2 (CapMask: 0x1300 CapMask2: 0x0000002)
PortSelect:......................2
SymbolErrorCounter:..............{errors}
# Port counters: Lid 1 port 255 (CapMask: 0x1300)
SymbolErrorCounter:..............999
"""


def read(host: str, *, at_s: float = 0.0, uptime_s: float | None = None, **counters: int) -> CountersRead:
    """Return a reading; `mlx5_0__symbol_error` is a counter of mlx5_0, port 1."""
    named = {f"{key.partition('__')[0]}/1 {key.partition('__')[2]}": count for key, count in counters.items()}
    return CountersRead(host=host, unix_s=at_s, uptime_s=uptime_s, counters=named)


def answer(kind: Kind = "nic", *parts: str, confidence: Confidence = "possible") -> FabricAnswer:
    ends = parts or ("n7:mlx5_3",)
    return FabricAnswer(
        kind=kind, place="NIC", loss=0.1, confidence=confidence, evidence=("a test",), slow_tests=3, of_tests=3,
        otherwise="its cable", clears="a test", nodes=tuple(each.partition(":")[0] for each in ends), parts=ends,
    )  # fmt: skip


def sweep(*hosts: str, **risen_at: dict[str, int]) -> PortChanges:
    """Return changes within 41 s of hosts with two adapters each, in which these counters rose."""
    zero = {"mlx5_2__symbol_error": 0, "mlx5_3__symbol_error": 0, "mlx5_3__np_cnp_sent": 0, "mlx5_3__packet_seq_err": 0}
    before = [read(host, **zero) for host in hosts]
    after = [read(host, at_s=41.0, **{**zero, **risen_at.get(host, {})}) for host in hosts]
    return changes(before, after)


def test_every_counter_has_a_source_and_a_reason_for_its_limit() -> None:
    known = port_counters().values()
    assert len(known) > 60
    assert all(each.source and each.least_source and each.least >= 1 for each in known)
    assert all(each.total is None or each.kind != "traffic" for each in known)
    assert {each.bits for each in known if each.at_end == "stays"} <= {4, 8, 16, 32, None}


def test_a_rise_is_told_from_a_counter_at_its_end_and_from_one_that_began_anew() -> None:
    assert risen(5, 17, 65535) == (12, False)
    assert risen(65000, 65535, 65535) == (535, True)
    assert risen(400, 3, 65535) == (3, True)
    assert risen(3, 9, 65535, anew=True) == (9, True)


def test_changes_name_port_count_and_time() -> None:
    found = sweep("n7", "n8", n7={"mlx5_3__symbol_error": 412})
    (one,) = found.changes
    assert (one.place, one.counted, found.when) == ("n7 mlx5_3 port 1", "symbol errors +412", "in 41 s")
    assert found.ports == 4


def test_a_counter_at_its_maximum_before_is_not_silently_no_change() -> None:
    full = {"mlx5_0__symbol_error": 65535, "mlx5_0__local_link_integrity_errors": 15}
    found = changes([read("n1", **full)], [read("n1", at_s=5, **full)])
    assert found.changes == ()
    assert found.stuck == (
        "n1 mlx5_0 port 1: symbol errors at their maximum of 65535",
        "n1 mlx5_0 port 1: link integrity errors at their maximum of 15",
    )


def test_a_host_that_started_again_a_port_that_went_and_a_host_without_a_second_reading_are_said() -> None:
    before = [
        read("n1", uptime_s=9000, mlx5_0__link_downed=7, mlx5_1__link_downed=0),
        read("n2", mlx5_0__link_downed=0),
    ]
    after = [read("n1", at_s=300, uptime_s=60, mlx5_0__link_downed=9)]
    found = changes(before, after)
    assert found.restarted == ("n1",)
    assert found.gone == ("n1 mlx5_1 port 1",)
    assert found.unpaired == ("n2",)
    assert found.changes[0].counted == "times down at least +9"


def test_over_a_long_time_symbol_errors_matter_by_their_rate() -> None:
    for errors, matter in ((412, False), (20_000, True)):
        found = changes([read("n1", mlx5_0__symbol_error=0)], [read("n1", at_s=86_400, mlx5_0__symbol_error=errors)])
        assert bool(found.changes) is matter
        assert found.when == "in 24.0 h"


def test_of_a_port_that_is_there_twice_the_first_before_and_the_last_after_count() -> None:
    before = [read("n1", mlx5_0__symbol_error=1), read("n1", at_s=1, mlx5_0__symbol_error=50)]
    after = [read("n1", at_s=8, mlx5_0__symbol_error=60), read("n1", at_s=9, mlx5_0__symbol_error=101)]
    assert changes(before, after).changes[0].change == 100


def test_link_errors_of_the_suspect_alone_make_a_possible_answer_likely() -> None:
    (made,) = weighed([answer()], sweep("n7", "n8", n7={"mlx5_3__symbol_error": 412}))
    assert made.confidence == "likely"
    assert made.evidence[-1] == "n7 mlx5_3 port 1: symbol errors +412 in 41 s; the other 3 ports none"


def test_errors_on_another_nic_of_the_host_say_nothing_about_the_suspect() -> None:
    (made,) = weighed([answer()], sweep("n7", "n8", n7={"mlx5_2__symbol_error": 412}))
    assert made.confidence == "possible"
    assert made.evidence[-1] == "the ports of n7 counted no error and no congestion in 41 s"


def test_an_ordinary_interface_strengthens_only_where_there_is_no_other_port() -> None:
    def reading(host: str, at_s: float, errors: int, **more: int) -> CountersRead:
        return CountersRead(
            host=host, unix_s=at_s, counters={"eno1 rx_crc_errors": errors, "eth0 rx_errors": 0, **more}
        )

    for more, word in (({}, "likely"), ({"mlx5_0/1 symbol_error": 0}, "possible")):
        before = [reading(host, 0.0, 0, **more) for host in ("n7", "n8")]
        after = [reading("n7", 5.0, 9, **more), reading("n8", 5.0, 0, **more)]
        (made,) = weighed([answer("node", "n7")], changes(before, after))
        assert made.confidence == word
        assert made.evidence[-1].startswith("n7 eno1: checksum errors +9 in 5 s")


def test_link_errors_everywhere_strengthen_nothing() -> None:
    everywhere = {"mlx5_3__symbol_error": 412}
    (made,) = weighed([answer()], sweep("n7", "n8", "n9", n7=everywhere, n8=everywhere, n9=everywhere))
    assert made.confidence == "possible"
    assert "2 of the other 5 ports too" in made.evidence[-1]


def test_congestion_weakens_the_word_about_a_part_and_strengthens_that_about_congestion() -> None:
    counted = sweep("n7", "n8", n7={"mlx5_3__np_cnp_sent": 88_120})
    (part,) = weighed([answer(confidence="likely")], counted)
    assert part.confidence == "possible"
    assert part.otherwise.startswith("congestion on the way, which its ports counted")
    (congested,) = weighed([answer("congestion", "n7")], counted)
    assert congested.confidence == "likely"


def test_lost_packets_are_evidence_and_change_no_word() -> None:
    (made,) = weighed([answer()], sweep("n7", "n8", n7={"mlx5_3__packet_seq_err": 30}))
    assert made.confidence == "possible"
    assert "requests to send again +30" in made.evidence[-1]


def test_hosts_without_counters_leave_an_answer_as_it_was() -> None:
    assert weighed([answer()], sweep("n8", "n9")) == (answer(),)


def test_what_a_suspects_counters_cannot_tell_is_said() -> None:
    full = {"mlx5_3__symbol_error": 65535}
    (made,) = weighed([answer()], changes([read("n7", **full)], [read("n7", at_s=5, **full)]))
    assert made.evidence[-1].endswith("symbol errors at their maximum of 65535: what they count is not seen")
    (once,) = weighed([answer()], changes([read("n7", **full), read("n8", **full)], [read("n8", at_s=5, **full)]))
    assert once.evidence[-1] == "counters of n7 were read once only"


def test_errors_without_a_slow_test_and_congestion_are_notes_and_those_of_an_answer_are_not_told_twice() -> None:
    found = sweep(
        "n7", "n8", n7={"mlx5_3__symbol_error": 412, "mlx5_3__np_cnp_sent": 5}, n8={"mlx5_2__symbol_error": 30}
    )
    notes = counter_notes([answer()], found)
    assert [each.code for each in notes] == ["FAB011", "FAB012"]
    assert notes[0].title == "n8 mlx5_2 port 1 counted link errors or lost packets in 41 s"
    assert not any(each.is_serious for each in notes)


def test_many_ports_with_errors_are_a_few_notes() -> None:
    hosts = [f"n{number:02d}" for number in range(40)]
    found = sweep(*hosts, **{host: {"mlx5_2__symbol_error": 99} for host in hosts})
    notes = counter_notes([], found)
    assert len(notes) == 9
    assert notes[-1].title.startswith("32 more ports")


def test_a_port_that_went_is_a_note() -> None:
    found = changes(
        [read("n1", mlx5_0__link_downed=0, mlx5_1__link_downed=0)], [read("n1", at_s=3, mlx5_0__link_downed=0)]
    )
    (note,) = counter_notes([], found)
    assert note.title.startswith("n1 mlx5_1 port 1")


def again(host: str, *tests: tuple[str, str], at: int = 5, **risen_by: int) -> CountedAgain:
    """Return what one host counted around some of its retests, at 23:18 and a few seconds."""
    before, after = (read(host, **{key: value * side for key, value in risen_by.items()}) for side in (0, 1))
    moved_before, moved_after = moved(before, after)
    found = changes([moved_before], [moved_after], "")
    return CountedAgain(host=host, round=at, tests=tests, changes=found.changes, unix_s=1764026280.0 + at)


def test_what_ports_counted_in_retests_of_exactly_that_pair_stands_beside_it() -> None:
    there, back = ("n3:mlx5_3", "n7:mlx5_3"), ("n7:mlx5_3", "n3:mlx5_3")
    readings = [
        again("n7", there, mlx5_3__symbol_error=30),
        again("n3", there),
        again("n7", back, at=6, mlx5_3__symbol_error=12, mlx5_2__symbol_error=99),
        again("n7", ("n7:mlx5_3", "n4:mlx5_3"), at=7),
        again("n8", ("n8:mlx5_3", "n9:mlx5_3"), mlx5_3__symbol_error=50),
    ]
    (made,) = with_retests([answer()], readings)
    (line,) = made.evidence[1:]
    assert line == (
        "n7 mlx5_3 port 1: symbol errors +42 in 2 of its 3 retests: n3:mlx5_3 -> n7:mlx5_3 (round 6, 23:18:05 UTC), "
        "n7:mlx5_3 -> n3:mlx5_3 (round 7, 23:18:06 UTC); in other retests ports of 1 more host counted too"
    )
    assert made.confidence == "possible"


def test_the_partners_port_that_counted_in_a_retest_is_told_too() -> None:
    (made,) = with_retests([answer()], [again("n3", ("n3:mlx5_3", "n7:mlx5_3"), mlx5_3__link_downed=1)])
    assert made.evidence[-1].startswith("n3 mlx5_3 port 1: times down +1 in 1 of its 1 retests: n3:mlx5_3 -> n7:mlx5_3")


def test_retests_of_others_and_ports_that_counted_nothing_leave_an_answer_as_it_was() -> None:
    readings = [again("n7", ("n3:mlx5_3", "n7:mlx5_3")), again("n8", ("n8:a", "n9:a"), mlx5_3__symbol_error=50)]
    assert with_retests([answer()], readings) == (answer(),)


def test_of_counters_that_moved_only_those_are_kept_that_are_a_sign_of_something() -> None:
    before = CountersRead(
        host="n1",
        counters={
            "mlx5_0/1 port_xmit_data": 1,
            "mlx5_0/1 rx_prio3_pause": 1,
            "eth0 rx_errors": 4,
            "eth0 rx_crc_errors": 0,
        },
    )
    after = CountersRead(
        host="n1", counters={"mlx5_0/1 port_xmit_data": 9, "mlx5_0/1 rx_prio3_pause": 5, "eth0 rx_errors": 4}
    )
    assert [each.counters for each in moved(before, after)] == [
        {"mlx5_0/1 rx_prio3_pause": 1},
        {"mlx5_0/1 rx_prio3_pause": 5},
    ]


def test_perfquery_is_read_and_its_ports_are_named_by_a_topology() -> None:
    assert is_perfquery(PERFQUERY)
    before, after = (read_perfquery(PERFQUERY.format(errors=count), "t") for count in (0, 412))
    assert [each.host for each in before] == ["lid 6", "lid 1"]
    assert [each.extended for each in before] == [False, True]
    fabric = sample("opensm-subnet.lst")
    found = changes(named_by(before, fabric), named_by(after, fabric))
    assert [(each.place, each.linked) for each in found.changes] == [
        ("leaf0 port 2", "n1 HCA-1 port 1"),
        ("n1 HCA-1 port 1", "leaf0 port 2"),
    ]
    (made,) = weighed([answer("nic", "n1")], found)
    assert made.evidence[-2].startswith("n1 HCA-1 port 1 (to leaf0 port 2): symbol errors +412")
    assert made.evidence[-1].startswith("leaf0 port 2 (to n1 HCA-1 port 1)")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# Port counters: Lid 6 port 1\nhello\n", "no line of perfquery"),
        ("# Port counters: Lid 6 port 255\nSymbolErrorCounter:..1\n", "no counters of a port"),
        ("", "no counters of a port"),
    ],
)
def test_what_perfquery_never_prints_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_perfquery(text, "t")


@pytest.mark.parametrize(("printed", "value"), [("037", 37), ("0x25", 37), ("0", 0)])
def test_numbers_of_perfquery_are_decimal_unless_they_begin_with_0x(printed: str, value: int) -> None:
    (read_port,) = read_perfquery(f"# Port counters: Lid 6 port 1\nSymbolErrorCounter:....{printed}\n", "t")
    assert list(read_port.counters.values()) == [value]


def test_lines_of_counters_are_read_strictly() -> None:
    line = codec.encode(read("n1", mlx5_0__symbol_error=1))
    assert [each.host for each in counter_lines(line + b"\n\n" + line + b"\n", "t")] == ["n1", "n1"]
    for wrong in (b"", b"hello\n", b'{"host": "n1"}\n', b'{"host": "n1", "counters": {"a": "b"}}\n', line + b"{\n"):
        with pytest.raises(InputError):
            counter_lines(wrong, "t")


def test_counters_of_different_hosts_cannot_be_compared(tmp_path: Path) -> None:
    for name in ("n1", "n2"):
        (tmp_path / name).write_bytes(codec.encode(read(name, mlx5_0__symbol_error=1)))
    with pytest.raises(InputError, match="no host is in the counters before and in those after"):
        changed_counters([str(tmp_path / "n1")], [str(tmp_path / "n2")], None, ["n1", "n2"])
    with pytest.raises(InputError, match="no tested host is in the counters, which are of n1"):
        changed_counters([str(tmp_path / "n1")], [str(tmp_path / "n1")], None, ["x1", "x2"])


def test_a_host_with_its_domain_is_the_same_host() -> None:
    named = called_as([read("n1.site.org"), read("n2"), read("n3")], ["n1", "n2.site.org", "n3"])
    assert [each.host for each in named] == ["n1", "n2.site.org", "n3"]


def tree(root: Path) -> Path:
    """Return a root with an adapter of InfiniBand, one of Slingshot and an interface."""
    files = {
        "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error": "7\n",
        "sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent": "5\n",
        "sys/class/infiniband/mlx5_0/ports/1/hw_counters/lifespan": "12\n",
        "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait": "N/A (no PMA)\n",
        "sys/class/cxi/cxi0/device/telemetry/hni_pcs_uncorrected_cw": "90049@1699999999.123456789\n",
        "sys/class/cxi/cxi0/device/telemetry/pct_spt_timeouts": "3@1699999999.1\n",
        "run/cxi/cxi0/spt_timeouts": "2\n",
        "run/cxi/cxi0/config/config_file_path": "/etc/cxi_rh.conf\n",
        "sys/class/net/eth0/carrier_changes": "4\n",
        "sys/class/net/eth0/statistics/rx_crc_errors": "1\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_rank_reads_the_counters_of_every_kind_of_adapter(tmp_path: Path) -> None:
    assert read_counters(tree(tmp_path)) == {
        "mlx5_0/1 symbol_error": 7,
        "mlx5_0/1 np_cnp_sent": 5,
        "mlx5_0/1 lifespan": 12,
        "cxi0 hni_pcs_uncorrected_cw": 90049,
        "cxi0 pct_spt_timeouts": 3,
        "cxi0 rh:spt_timeouts": 2,
        "eth0 carrier_changes": 4,
        "eth0 rx_crc_errors": 1,
    }
    assert host_counters().unix_s is not None


def test_interfaces_without_a_device_are_left_out_where_others_have_one(tmp_path: Path) -> None:
    for name in ("eth0", "veth12", "br0"):
        (tmp_path / "sys/class/net" / name).mkdir(parents=True)
    assert virtual_interfaces(tmp_path) == frozenset()
    (tmp_path / "sys/class/net/eth0/device").mkdir()
    assert virtual_interfaces(tmp_path) == {"veth12", "br0"}


def test_a_snapshot_holds_them_under_the_same_names(tmp_path: Path) -> None:
    root = tree(tmp_path)
    files = tuple(
        CapturedFile(path=f"/{path.relative_to(root)}", text=path.read_text())
        for path in root.rglob("*")
        if path.is_file()
    )
    snapshot = Snapshot(
        busbw_version="0", captured="2026-11-24T09:00:00+00:00", hostname="n1", root=True, container=None, files=files,
        links=(), answers=(),
    )  # fmt: skip
    found = counters_of(snapshot)
    assert found.host == "n1"
    assert found.counters == {**read_counters(root)}


def test_old_snapshots_are_read() -> None:
    for machine in MACHINES.values():
        assert all(re.fullmatch(r"\S+ \S+", key) for key in counters_of(snapshot_of(machine)).counters)


def test_ports_are_named_as_people_say_them() -> None:
    assert port_words("n7", "mlx5_3/1") == "n7 mlx5_3 port 1"
    assert port_words("leaf3", "/12") == "leaf3 port 12"
    assert port_words("n7", "eth0") == "n7 eth0"
    assert [span_words(each) for each in (41, 600, 20_000, 300_000)] == [
        "in 41 s",
        "in 10 min",
        "in 5.6 h",
        "in 3.5 days",
    ]
    assert "symbol_error" in names_of("rdma")
    assert perfquery_names()["PortXmitWait"] == "port_xmit_wait"
