"""A node in the terminal: what is said of it, within 80 columns, and nothing that moves the cursor."""

import msgspec
import pytest
from tests.topo.nodes import four_gh200, four_h200, make_device, make_numa, shared_switches, two_sockets

from busbw.model.topology import Net, NvLink, Topology
from busbw.show.text.topology import matrix_text, topology_text
from busbw.show.topology_tree import DEEPEST, boxes_of, link_lines, short_list
from busbw.topo.paths.matrix import path_matrix
from busbw.topo.paths.view import view_of


def printed(node: Topology, capsys: pytest.CaptureFixture[str]) -> list[str]:
    topology_text(view_of(node))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def sixteen_ports_on_eight_nodes() -> Topology:
    """Return a node as large as they come: 8 GPUs, 16 ports with long names, 8 NUMA nodes of two threads a core."""
    node = two_sockets()
    spread = {device.bus_id: place // 3 for place, device in enumerate(node.devices)}
    nets = tuple(
        msgspec.structs.replace(net, name=f"rdmap{place:03}s27p{port}", numa=spread[net.bus_id])
        for place, net in enumerate(node.nets)
        for port in range(2)
    )
    return msgspec.structs.replace(
        node,
        numa=tuple(
            make_numa(
                number, cpus=(*range(24 * number, 24 * number + 24), *range(192 + 24 * number, 216 + 24 * number))
            )
            for number in range(8)
        ),
        devices=tuple(msgspec.structs.replace(device, numa=spread[device.bus_id]) for device in node.devices),
        nets=nets,
    )


def test_the_picture_shows_what_hangs_below_what(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(two_sockets(), capsys)
    assert lines[0] == "two-sockets: 8 GPUs, 8 ports, 2 NUMA nodes"
    assert lines[3:7] == [
        "NUMA 0, Intel  CPUs 0-47",
        "├─ switch  ffff:ff:01.0                                   48",
        "│  ├─ GPU0  0001:00:00.0                                  48",
        "│  └─ mlx5_0  0101:00:00.0                                48 port 50",
    ]


def test_a_gpu_that_ranks_share_is_one_with_their_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    node = two_sockets()
    again = tuple(msgspec.structs.replace(gpu, dev=gpu.dev + 8) for gpu in node.gpus)
    lines = printed(msgspec.structs.replace(node, gpus=(*node.gpus, *again)), capsys)
    assert lines[0] == "two-sockets: 8 GPUs, shared by 16 parts or ranks, 8 ports, 2 NUMA nodes"
    assert any(line.startswith("│  ├─ GPU0/8  0001:00:00.0") for line in lines)


def test_the_table_says_where_each_gpu_sits(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(two_sockets(port_Mbps=100_000), capsys)
    start = next(place for place, line in enumerate(lines) if line.startswith("GPU  NUMA"))
    assert lines[start + 5].split() == ["4", "1", "48-95", "mlx5_4", "PIX", "12.5", "port"]


def test_ports_of_one_card_stand_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(shared_switches(), capsys)
    assert any("mlx5_0-1  0000:20:00.0-1" in line and "port 2x12.5" in line for line in lines)
    assert any(line.endswith("shared by") for line in lines)


def test_the_largest_node_fits_into_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    lines = printed(sixteen_ports_on_eight_nodes(), capsys)
    assert max(len(line) for line in lines) <= 80
    assert sum("GPU" in line for line in lines) >= 8


def test_control_characters_of_a_file_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    node = two_sockets(gpus_each=1)
    nets = (Net(name="\x1b[31mred\x07", bus_id="0101:00:00.0", numa=0),)
    topology_text(view_of(msgspec.structs.replace(node, name="\x1b]0;title\x07", nets=nets)))
    matrix_text(path_matrix(msgspec.structs.replace(node, nets=nets)))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert r"\x1b[31mred" in out


def test_markup_of_a_terminal_library_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    node = msgspec.structs.replace(two_sockets(), name="[bold]x[/bold] :smile:")
    assert printed(node, capsys)[0].startswith("[bold]x[/bold] :smile:")


def test_an_empty_topology_is_a_picture_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(Topology(), capsys)[0] == "node: 0 GPUs, 0 NICs, 0 NUMA nodes"


@pytest.mark.parametrize(
    ("node", "line"),
    [
        (four_h200(), "NVLink: GPU0-3 each 18 to NVSwitches, 370.8"),
        (four_gh200(), "NVLink: every pair of GPUs, 6 links, 123.6"),
        (four_gh200(), "NVLink-C2C: 4 GPUs to the own CPU, 450"),
        (two_sockets(), "between NUMA nodes: 22"),
    ],
)
def test_what_joins_the_parts_is_said_in_a_line(node: Topology, line: str) -> None:
    assert line in link_lines(node)


def test_links_that_differ_from_gpu_to_gpu_are_said_of_each():
    node = four_h200()
    ends = [gpu.bus_id for gpu in node.gpus]
    links = tuple(
        NvLink(gpu=ends[one], target=ends[other], count=count, target_class="0x030200")
        for one, other, count in ((0, 1, 2), (1, 0, 2), (0, 2, 1), (2, 0, 1), (3, 3, 4))
    )
    lines = link_lines(msgspec.structs.replace(node, nvlinks=links))
    assert lines[:4] == (
        "NVLink: GPU0 2 to GPU1, 1 to GPU2, 61.8 in all",
        "NVLink: GPU1 2 to GPU0, 41.2",
        "NVLink: GPU2 1 to GPU0, 20.6",
        "NVLink: GPU3 4 to GPU3, 82.4",
    )


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["mlx5_0", "mlx5_1", "mlx5_2"], "mlx5_0-2"),
        (["mlx5_0", "mlx5_2"], "mlx5_0, mlx5_2"),
        (["GPU0", "GPU1", "GPU4"], "GPU0-1, GPU4"),
        (["eth0", "mlx5_1"], "eth0, mlx5_1"),
        (["a01", "a02"], "a01, a02"),
        (["0000:0c:00.0", "0000:0c:00.0#2", "0000:0d:00.0"], "0000:0c:00.0 x2, 0000:0d:00.0"),
        ([], ""),
    ],
)
def test_names_are_drawn_together_where_they_count_up(names: list[str], text: str) -> None:
    assert short_list(names) == text


def test_many_interfaces_on_no_device_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    node = four_h200()
    containers = tuple(
        Net(name=f"cali{place:08x}", bus_id=None, numa=-1, dev=place, speed_Mbps=10_000) for place in range(60)
    )

    lines = printed(msgspec.structs.replace(node, nets=(*node.nets, *containers)), capsys)

    assert lines[0] == "node: 4 GPUs, 61 ports, 1 NUMA node"
    assert "└─ 61 interfaces without a PCI device" in lines
    assert not [line for line in lines if "cali" in line and line.startswith(("├", "└"))]


def test_a_few_interfaces_on_no_device_have_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert "└─ eth0                                                      port 1.2" in printed(four_h200(), capsys)


def test_what_is_nested_deeper_than_anything_real_stands_side_by_side():
    chain = tuple(
        make_device(f"{place:04x}:00:00.0", "switch", parent=f"{place - 1:04x}:00:00.0" if place else None)
        for place in range(200)
    )
    depth, count, boxes = 0, 0, boxes_of(Topology(numa=(make_numa(0),), devices=chain))
    while boxes:
        depth, count = depth + 1, count + len(boxes)
        boxes = tuple(inner for box in boxes for inner in box.below)
    assert depth <= DEEPEST + 1
    assert count == 201


def test_the_matrix_has_a_row_and_column_for_each_and_its_legend(capsys: pytest.CaptureFixture[str]) -> None:
    matrix_text(path_matrix(two_sockets(gpus_each=1)))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0].split() == "GPU0 GPU1 NIC0 NIC1 CPU Affinity NUMA Affinity GPU NUMA ID".split()  # noqa: SIM905
    assert lines[1].split() == ["GPU0", "X", "NV18", "PIX", "SYS", "0-47", "0", "N/A"]
    assert lines[3].split() == ["NIC0", "PIX", "SYS", "X", "SYS"]
    assert lines[-2:] == ["NIC0: mlx5_0", "NIC1: mlx5_1"]
