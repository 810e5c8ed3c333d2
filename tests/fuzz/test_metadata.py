"""Whatever a service, a firmware or a driver says, detection answers, and no name but a plain one comes out."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.facts.clouds import clouds
from busbw.facts.platforms import all_platforms
from busbw.machine.detect.ladder import detect
from busbw.machine.detect.names import name_in_answer
from busbw.model.host import Answer, Hardware, HostGpu, HostNuma, HostPort, PciFunction
from busbw.topo.origins.from_hardware import topology_of_hardware

PLATFORMS = all_platforms()
ASKS = tuple(ask for cloud in clouds() for ask in cloud.asks)
WORDS = st.sampled_from(
    ["", "Standard_ND96isr_H100_v5", "p5.48xlarge", "BM.GPU.H100.8", '{"shape": "x"}', "[", "*", "\x00", "a" * 300]
)
TEXT = WORDS | st.text(max_size=60)
BUS = st.sampled_from(
    [f"000{domain}:{bus:02x}:00.{number}" for domain in (0, 1) for bus in (1, 2) for number in (0, 1)]
)
INTEGER = st.none() | st.integers(-(2**63), 2**63 - 1)
NUMBER = st.none() | st.floats(allow_nan=False)
FUNCTION = st.builds(
    PciFunction,
    bus_id=BUS,
    parent=st.none() | BUS,
    device_class=st.sampled_from(["0x030200", "0x020700", "0x060400", ""]),
    vendor=st.sampled_from(["0x10de", "0x15b3", "0x1af4", ""]),
    device=TEXT,
    numa=st.integers(-1, 3),
    max_link_speed=st.none() | st.sampled_from(["16.0 GT/s PCIe", "Unknown", "x"]),
    max_link_width=INTEGER,
)
GPU = st.builds(HostGpu, index=st.integers(0, 9), bus_id=BUS, name=st.none() | TEXT, memory_bytes=INTEGER)
PORT = st.builds(
    HostPort,
    name=TEXT,
    port=st.integers(0, 4),
    bus_id=st.none() | BUS,
    kind=st.sampled_from(["InfiniBand", "RoCE", "EFA", "Slingshot", "Ethernet"]),
    rate_bps=NUMBER,
    up=st.none() | st.booleans(),
    guid=st.none() | TEXT,
)
NODE = st.builds(HostNuma, id=st.integers(0, 3), cpus=st.tuples(st.integers(0, 9)))
HOSTS = st.builds(
    Hardware,
    hostname=TEXT,
    architecture=st.none() | st.sampled_from(["x86_64", "aarch64", "riscv64"]),
    dmi=st.dictionaries(st.sampled_from(["chassis_asset_tag", "product_name", "sys_vendor"]), TEXT),
    cpu_model=st.none() | TEXT,
    memory_bytes=INTEGER,
    numa=st.lists(
        st.builds(HostNuma, id=st.integers(0, 3), cpus=st.tuples(st.integers(0, 9))),
        max_size=3,
        unique_by=lambda n: n.id,
    ).map(tuple),
    pci=st.lists(FUNCTION, max_size=6, unique_by=lambda each: each.bus_id).map(tuple),
    gpus=st.lists(GPU, max_size=4, unique_by=lambda each: each.bus_id).map(tuple),
    ports=st.lists(PORT, max_size=4).map(tuple),
)
ANSWERS = st.lists(
    st.builds(
        Answer,
        name=st.sampled_from(["metadata-azure", "metadata-oci", "metadata-aws", "metadata-gcp", "metadata-x", "lscpu"]),
        argv=st.just(("GET", "http://169.254.169.254/")),
        ended=st.sampled_from(["ok", "failed", "timeout", "absent", "cut"]),
        output=TEXT,
        error=TEXT,
    ),
    max_size=4,
).map(tuple)


@settings(max_examples=133, deadline=None, derandomize=True)
@given(st.sampled_from(ASKS), TEXT | st.recursive(st.just("1"), lambda inner: inner.map('{{"compute": {}}}'.format)))
def test_a_name_is_plain_whatever_was_answered(ask, text) -> None:
    name = name_in_answer(ask, text)
    assert name is None or re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(HOSTS, ANSWERS)
def test_any_host_gets_an_answer(hardware: Hardware, answers: tuple[Answer, ...]) -> None:
    found = detect(hardware, answers, PLATFORMS)
    assert (found.platform is None) == (found.confidence is None) == (found.rung is None)
    assert found.platform is None or found.candidates[0].platform == found.platform


@settings(max_examples=66, deadline=None, derandomize=True)
@given(HOSTS)
def test_any_host_has_a_topology_whose_parents_stand_before_their_children(hardware: Hardware) -> None:
    made = topology_of_hardware(hardware)
    seen: set[str] = set()
    for device in made.devices:
        assert device.parent is None or device.parent in seen
        seen.add(device.bus_id)
    assert {gpu.bus_id for gpu in made.gpus} <= seen
    assert {net.bus_id for net in made.nets if net.bus_id is not None} <= seen
    assert {device.numa for device in made.devices} | {net.numa for net in made.nets} <= {node.id for node in made.numa}
