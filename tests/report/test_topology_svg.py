"""A node as a drawing: well-formed, the same every time, and no text over another in a real browser."""

from xml.etree import ElementTree as ET

import msgspec
import pytest
from playwright.sync_api import Browser
from tests.topo.nodes import (
    four_gh200,
    four_h200,
    make_device,
    make_numa,
    shared_switches,
    switched_links,
    two_sockets,
)

from busbw.model.topology import Gpu, Net, Topology
from busbw.show.page.pictures import topology_svg
from busbw.topo.paths.view import view_of

_OVERLAPS = """() => {
  const drawing = document.querySelector("svg").getBoundingClientRect();
  const texts = [...document.querySelectorAll("svg text")].map((text) => [
    text.textContent, text.getBoundingClientRect(),
  ]);
  const faults = [];
  texts.forEach(([one, a], place) => {
    if (a.right > drawing.right || a.bottom > drawing.bottom) faults.push(one);
    for (const [other, b] of texts.slice(place + 1)) {
      if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3) {
        faults.push(one + " over " + other);
      }
    }
  });
  return faults;
}"""


def large_node(gpus: int, ports: int) -> Topology:
    """Return GPUs and ports with long names, all below switches of four, on as many NUMA nodes as that takes."""
    devices, cards, nets = [], [], []
    for place in range(max(gpus, ports)):
        numa = place // 4
        switch = f"{numa:04x}:ff:00.0"
        if place % 4 == 0:
            devices.append(make_device(switch, "switch", numa=numa))
        if place < gpus:
            cards.append(Gpu(bus_id=f"{place:04x}:01:00.0", dev=place, sm=90))
            devices.append(make_device(cards[-1].bus_id, "gpu", numa=numa, parent=switch))
        if place < ports:
            nic = f"{place:04x}:02:00.0"
            devices.append(make_device(nic, "nic", numa=numa, parent=switch))
            nets.append(Net(name=f"rocep{place}s0f0np0", bus_id=nic, numa=numa, speed_Mbps=400_000))
    return Topology(
        numa=tuple(make_numa(number, cpus=tuple(range(28 * number, 28 * number + 28))) for number in range(8)),
        devices=tuple(devices),
        gpus=tuple(cards),
        nvlinks=switched_links(tuple(cards)),
        nets=tuple(nets),
    )


NODES = {
    "one GPU": large_node(1, 0),
    "four in a row": four_h200(),
    "two sockets": two_sockets(),
    "two levels": shared_switches(),
    "modules": four_gh200(),
    "sixteen GPUs and 32 ports": large_node(16, 32),
    "a long name": msgspec.structs.replace(two_sockets(), name="x" * 500),
    "long ports": msgspec.structs.replace(
        two_sockets(), nets=tuple(msgspec.structs.replace(net, name=net.name + "y" * 200) for net in two_sockets().nets)
    ),
    "nothing": Topology(),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_text_stands_over_another_or_outside(browser: Browser, scheme: str) -> None:
    page = browser.new_context(offline=True, color_scheme=scheme).new_page()
    for name, node in NODES.items():
        page.set_content(f"<body style='margin: 0'>{topology_svg(view_of(node))}</body>")
        assert page.evaluate(_OVERLAPS) == [], name


def test_text_is_told_from_the_ground_in_both_schemes(browser: Browser) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        page = browser.new_context(color_scheme=scheme).new_page()
        page.set_content(topology_svg(view_of(two_sockets())))
        colours[scheme] = page.evaluate(
            """() => ["rect.ground", "rect.gpu", "rect.nic", "text"]
              .map((part) => getComputedStyle(document.querySelector(part)).fill.match(/\\d+/g).slice(0, 3)
                .reduce((sum, channel) => sum + Number(channel), 0))"""
        )
    assert all(ground - colours["light"][3] > 300 for ground in colours["light"][:3])
    assert all(colours["dark"][3] - ground > 300 for ground in colours["dark"][:3])


@pytest.mark.parametrize("name", NODES)
def test_the_drawing_is_well_formed_and_the_same_every_time(name: str) -> None:
    drawn = topology_svg(view_of(NODES[name]))
    assert ET.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
    assert topology_svg(view_of(NODES[name])) == drawn
    assert "<script" not in drawn
    assert "href" not in drawn


def test_names_from_a_file_are_text_only():
    hostile = '"><script>alert(1)</script>&\x1b\ufffe'
    nets = tuple(msgspec.structs.replace(net, name=hostile) for net in two_sockets().nets)
    drawn = topology_svg(view_of(msgspec.structs.replace(two_sockets(), name=hostile, nets=nets)))
    root = ET.fromstring(drawn)
    assert {each.tag.rpartition("}")[2] for each in root.iter()} == {"svg", "title", "style", "rect", "text"}


def test_every_gpu_port_and_numa_node_is_in_the_drawing():
    texts = {each.text for each in ET.fromstring(topology_svg(view_of(two_sockets()))).iter() if each.text}
    assert {f"GPU{place}" for place in range(8)} <= texts
    assert {f"mlx5_{place}" for place in range(8)} <= texts
    assert {"NUMA 0, Intel: CPUs 0-47", "NUMA 1, Intel: CPUs 48-95"} <= texts
