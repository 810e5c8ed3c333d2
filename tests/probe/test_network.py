"""What is read of the network's features: every form of the tools' output, and nothing of what is none."""

import pytest

from busbw.facts.network import card_of, fabric_cards, fabric_features, is_virtual_function
from busbw.machine.capture.files import Collection
from busbw.machine.capture.snapshot import take_kernel
from busbw.machine.read.index import SnapshotIndex
from busbw.machine.read.network import device_limits, network_state, partition_key, ucx_settings, ucx_transports
from busbw.model.host import CapturedFile, CapturedLink, Snapshot

from .network_texts import SETTINGS, devinfo, transports


def test_each_device_says_its_own_tags_and_multicast_groups() -> None:
    text = devinfo("mlx5_0", "mlx5_1") + devinfo("mlx5_2", tags=0, groups=0)

    assert device_limits(text) == (
        {"mlx5_0": 127, "mlx5_1": 127, "mlx5_2": 0},
        {"mlx5_0": 2097152, "mlx5_1": 2097152, "mlx5_2": 0},
    )


def test_an_ibv_devinfo_without_its_details_says_nothing() -> None:
    assert device_limits("hca_id:\tmlx5_0\n\t\tport:\t1\n\t\t\tactive_mtu:\t\t4096 (5)\n") == ({}, {})


@pytest.mark.parametrize("old", [False, True])
def test_transports_have_their_devices_in_both_forms_of_ucx_info(old) -> None:
    text = transports("rc_mlx5", "dc_mlx5", old=old)

    assert ucx_transports(text) == {"rc_mlx5": ("mlx5_0:1",), "dc_mlx5": ("mlx5_0:1",)}


def test_a_transport_of_several_adapters_is_one_with_several_devices() -> None:
    text = transports("dc_mlx5") + transports("dc_mlx5", device="mlx5_1:1")

    assert ucx_transports(text) == {"dc_mlx5": ("mlx5_0:1", "mlx5_1:1")}


@pytest.mark.parametrize("text", ["", "#\n", "ucx_info: command not found\n", "# Transport\n#  Device: mlx5_0:1\n"])
def test_what_is_no_list_of_transports_is_none(text) -> None:
    assert ucx_transports(text) is None


def test_settings_of_ucx_are_read_without_their_comments() -> None:
    assert ucx_settings(SETTINGS)["UCX_TLS"] == "all"
    assert "UCX_NET" not in ucx_settings("# UCX_NET=1\n UCX_TLS=all\nPATH=/bin\n")


@pytest.mark.parametrize(
    ("text", "key"),
    [("0xffff", 0xFFFF), ("0x8023", 0x8023), ("ffff", None), ("0x12345", None), ("", None), (None, None)],
)
def test_a_partition_key_is_what_the_kernel_prints(text, key) -> None:
    assert partition_key(text) == key


def snapshot(files: dict[str, str], links: dict[str, str] | None = None) -> Snapshot:
    return Snapshot(
        busbw_version="1",
        captured="",
        hostname="h",
        root=False,
        files=tuple(CapturedFile(path=path, text=text) for path, text in files.items()),
        links=tuple(CapturedLink(path=path, target=target) for path, target in (links or {}).items()),
    )


def test_empty_entries_of_a_table_of_partition_keys_are_left_out() -> None:
    folder = "/sys/class/infiniband/mlx5_0/ports/1/pkeys"
    captured = snapshot({f"{folder}/0": "0x8023\n", f"{folder}/1": "0x7fff\n", f"{folder}/2": "0x0000\n"})

    (table,) = network_state(SnapshotIndex(captured)).keys

    assert (table.name, table.port, table.keys) == ("mlx5_0", 1, {0: 0x8023, 1: 0x7FFF})


def test_a_virtual_function_is_known_by_its_physical_one_or_by_its_ids() -> None:
    pci = "/sys/bus/pci/devices"
    captured = snapshot(
        {
            f"{pci}/0000:01:00.0/vendor": "0x15b3\n",
            f"{pci}/0000:01:00.0/device": "0x1021\n",
            f"{pci}/0000:01:00.0/sriov_totalvfs": "16\n",
            f"{pci}/0000:01:00.0/sriov_numvfs": "4\n",
            f"{pci}/0000:01:00.2/vendor": "0x15b3\n",
            f"{pci}/0000:02:00.0/vendor": "0x15b3\n",
            f"{pci}/0000:02:00.0/device": "0x101c\n",
        },
        {f"{pci}/0000:01:00.2/physfn": "../0000:01:00.0"},
    )

    told = {each.bus_id: each for each in network_state(SnapshotIndex(captured)).functions}

    assert {address: each.is_virtual for address, each in told.items()} == {
        "0000:01:00.0": False,
        "0000:01:00.2": True,
        "0000:02:00.0": True,
    }
    assert (told["0000:01:00.0"].shown, told["0000:01:00.0"].most) == (4, 16)


def test_keys_and_numbers_of_virtual_functions_are_captured(tmp_path) -> None:
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1/pkeys"
    function = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    port.mkdir(parents=True)
    function.mkdir(parents=True)
    for place in range(128):
        (port / str(place)).write_text("0xffff\n" if place == 0 else "0x0000\n")
    (function / "sriov_totalvfs").write_text("16\n")
    taken = Collection(tmp_path, timeout_s=30)

    take_kernel(taken)

    found = {file.path: file.text for file in taken.files}
    assert found["/sys/class/infiniband/mlx5_0/ports/1/pkeys/0"] == "0xffff\n"
    assert len([path for path in found if "/pkeys/" in path]) == 16
    assert found["/sys/bus/pci/devices/0000:01:00.0/sriov_totalvfs"] == "16\n"


def test_no_adapter_both_has_and_lacks_a_feature_and_no_id_is_of_two() -> None:
    ids = [each for card in fabric_cards() for each in (*card.ids, *card.virtual)]

    assert len(ids) == len(set(ids))
    assert all(not set(card.has) & set(card.lacks) for card in fabric_cards())
    assert all(each.source for each in (*fabric_cards(), *fabric_features()))


def test_a_connectx_7_is_known_and_a_new_card_is_not() -> None:
    card = card_of("0x15b3", "0x1021")

    assert card is not None
    assert "tag_matching" in card.has
    assert card_of("0x15b3", "0xffff") is None
    assert not is_virtual_function("0x15b3", "0x1021")
