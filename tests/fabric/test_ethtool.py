"""Statistics of drivers: asked of the kernel, and read as `ethtool -S` prints them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from busbw.api.sweeping.evidence import changed_counters
from busbw.base.errors import InputError
from busbw.facts.port_counters import port_counters
from busbw.machine.read.ethtool import is_ethtool, read_ethtool
from busbw.machine.read.state import counters_of
from busbw.model.host import Answer, Snapshot
from busbw.rank.ethtool import driver_statistics, ethtool_text, network_ports
from busbw.rank.network import driver_counters

SAMPLE = Path(__file__).parent / "samples" / "ethtool-virtio_net.txt"
# What mlx5 counts of priority 3 where flow control is on, by the kernel's list of its counters.
MLX5 = {
    "rx_packets": 5487361, "rx0_xdp_drop": 0, "rx_prio3_bytes": 84719203847362, "rx_prio3_discards": 0,
    "rx_prio3_pause": 41927, "rx_prio3_pause_duration": 8134, "tx_prio3_pause": 1290418, "rx_discards_phy": 0,
    "rx_pcs_symbol_err_phy": 0,
}  # fmt: skip
_VETH = """
import json, socket
from busbw.rank.ethtool import driver_statistics
print(json.dumps([driver_statistics("one"), socket.if_nametoindex("other")]))
"""


def test_what_ethtool_printed_of_a_virtual_machine_is_read_whole_and_tells_nothing_of_a_link() -> None:
    text = f"# n1 eth0\n{SAMPLE.read_text()}"
    assert is_ethtool(text)
    assert is_ethtool(SAMPLE.read_text())
    assert read_ethtool(text, "t") == ()


def test_what_a_driver_counts_is_printed_and_read_again() -> None:
    (found,) = read_ethtool(ethtool_text("n1", "mlx5_0/1", MLX5), "t")
    assert found.host == "n1"
    assert found.counters == {
        "mlx5_0/1 rx_prio3_discards": 0,
        "mlx5_0/1 rx_prio3_pause": 41927,
        "mlx5_0/1 tx_prio3_pause": 1290418,
        "mlx5_0/1 rx_discards_phy": 0,
        "mlx5_0/1 rx_pcs_symbol_err_phy": 0,
    }


def test_a_rank_keeps_of_a_driver_every_counter_that_is_known_and_none_of_its_queues() -> None:
    assert set(driver_counters("mlx5_0/1", MLX5)) == set(
        read_ethtool(ethtool_text("n1", "mlx5_0/1", MLX5), "t")[0].counters
    )
    files = {
        "rx_errors",
        "rx_crc_errors",
        "rx_missed_errors",
        "rx_fifo_errors",
        "rx_dropped",
        "tx_errors",
        "tx_dropped",
    }
    known = [
        name
        for owner, name in port_counters()
        if owner == "net" and name not in {*files, "tx_carrier_errors", "carrier_changes", "rx_bytes", "tx_bytes"}
    ]
    assert len(known) > 80
    assert [name for name in known if not driver_counters("eth0", {name: 1})] == []


def test_names_with_colons_and_spaces_are_passed_over_and_an_interface_without_statistics_too() -> None:
    text = "# n1 eth0\nNIC statistics:\n     [0]: rx_discards: 4\n     rxq0: rx_bytes: 7\n# n1 lo\nno stats available\n"
    assert read_ethtool(text, "t") == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("NIC statistics:\n     rx_discards_phy: 4\n", "nothing says whose"),
        ("# n1 eth0\nNIC statistics:\n     rx_discards_phy: many\n", "no line of ethtool"),
        ("# n1 eth0\nNIC statistics:\n     rx_discards_phy: -4\n", "no line of ethtool"),
        ("# n1 eth0\nNIC statistics:\n     rx_discards_phy: \u0664\n", "no line of ethtool"),
        ("rx_discards_phy: 4\n", "no line of ethtool"),
    ],
)
def test_what_ethtool_never_prints_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_ethtool(text, "t")


def test_numbers_with_leading_zeros_are_decimal_and_what_no_counter_reaches_is_left_out() -> None:
    (found,) = read_ethtool(f"# n1 eth0\nrx_discards_phy: 007\ntx_discards_phy: {2**64 - 1}\n", "t")
    assert found.counters == {"eth0 rx_discards_phy": 7}


def test_pauses_between_two_readings_by_hand_are_congestion_of_that_port(tmp_path: Path) -> None:
    for name, pauses in (("before.txt", 0), ("after.txt", 88)):
        texts = [ethtool_text(host, "ens1", {"rx_prio3_pause": pauses if host == "n2" else 0}) for host in ("n1", "n2")]
        (tmp_path / name).write_text("".join(texts))
    found = changed_counters([str(tmp_path / "before.txt")], [str(tmp_path / "after.txt")], None, ["n1", "n2"])
    assert [(each.place, each.kind, each.counted) for each in found.changes] == [
        ("n2 ens1", "congestion", "pauses asked of it (priority 3) +88")
    ]


def test_a_file_without_a_counter_that_tells_anything_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "before.txt"
    path.write_text(f"# n1 eth0\n{SAMPLE.read_text()}")
    with pytest.raises(InputError, match="none of its counters tells"):
        changed_counters([str(path)], [str(path)], None, ["n1"])


def test_a_snapshot_holds_what_drivers_count() -> None:
    answer = Answer(
        name="driver-statistics", argv=(), ended="ok", output=ethtool_text("n1", "eth0", {"rx_discards_phy": 3})
    )
    snapshot = Snapshot(
        busbw_version="0", captured="2026-11-24T09:00:00+00:00", hostname="n1", root=True, container=None, files=(),
        links=(), answers=(answer,),
    )  # fmt: skip
    assert counters_of(snapshot).counters == {"eth0 rx_discards_phy": 3}


def test_the_interface_of_an_adapter_of_roce_is_its_port(tmp_path: Path) -> None:
    port = tmp_path / "sys/class/infiniband/mlx5_3/ports/1/gid_attrs/ndevs"
    port.mkdir(parents=True)
    (port / "0").write_text("ens1f0np0\n")
    for name in ("ens1f0np0", "eno1", "lo"):
        (tmp_path / "sys/class/net" / name).mkdir(parents=True)
    assert network_ports(tmp_path) == {"eno1": "eno1", "ens1f0np0": "mlx5_3/1"}


def test_an_interface_that_is_not_there_has_no_statistics() -> None:
    assert driver_statistics("nosuch0") == {}
    assert driver_statistics("a-name-that-is-too-long") == {}
    assert driver_statistics("") == {}


@pytest.mark.root
@pytest.mark.skipif(shutil.which("unshare") is None or shutil.which("ip") is None, reason="no unshare or no ip here")
def test_the_kernel_tells_the_statistics_of_a_real_pair_of_interfaces_without_ethtool() -> None:
    made = "ip link add one type veth peer name other && ip link set one up && ip link set other up"
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", f'{made} && exec "$0" -c "$1"', sys.executable, _VETH],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    statistics, peer = json.loads(done.stdout)
    assert statistics["peer_ifindex"] == peer
    assert all(value >= 0 for value in statistics.values())
    assert any("queue_0" in name for name in statistics)
