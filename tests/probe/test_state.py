"""The state of a host is taken as it is, and read back."""

from pathlib import Path

import pytest

from busbw.machine.capture.files import Collection
from busbw.machine.capture.snapshot import take_state
from busbw.machine.read.pci import acs_of, acs_word
from busbw.machine.read.state import state_of
from busbw.model.host import CapturedFile

from .hosts import snapshot_of
from .machines import MACHINES
from .test_hardware import replace_fields


def config(*capabilities: tuple[int, bytes]) -> bytes:
    """Return a configuration space with these extended capabilities, one after the other."""
    space, at = bytearray(4096), 0x100
    for place, (number, content) in enumerate(capabilities):
        following = at + 4 + len(content) if place + 1 < len(capabilities) else 0
        space[at : at + 4] = (number | 1 << 16 | following << 20).to_bytes(4, "little")
        space[at + 4 : at + 4 + len(content)] = content
        at = following
    return bytes(space)


def test_the_control_word_is_behind_the_capabilities_before_it():
    serial = (3, bytes(8))
    acs = (13, (0x1F).to_bytes(2, "little") + (0x1D).to_bytes(2, "little"))

    assert acs_of(config(serial, acs)) == "001d"
    assert acs_word("001d") == 0x1D


@pytest.mark.parametrize(
    ("space", "said"),
    [(config((3, bytes(8))), "none"), (bytes(64), "unread"), (bytes(256), "unread"), (bytes(4096), "none")],
)
def test_no_capability_is_told_from_nothing_to_read(space, said):
    assert acs_of(space) == said
    assert acs_word(said) is None


def test_a_list_of_capabilities_that_goes_in_circles_comes_to_an_end():
    space = bytearray(4096)
    space[0x100:0x104] = (3 | 0x100 << 20).to_bytes(4, "little")

    assert acs_of(bytes(space)) == "none"


def test_of_a_bridge_only_the_control_word_is_taken(tmp_path):
    bridge = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    bridge.mkdir(parents=True)
    (bridge / "class").write_text("0x060400\n")
    (bridge / "config").write_bytes(config((13, bytes([0x1F, 0, 0x1D, 0])), (3, b"SERIALNO")))
    taken = Collection(tmp_path, timeout_s=10)

    take_state(taken)

    texts = {file.path: file.text for file in taken.files}
    assert texts["/sys/bus/pci/devices/0000:01:00.0/config"] == "001d\n"


def test_counters_of_every_port_are_taken(tmp_path):
    counters = tmp_path / "sys/class/infiniband/mlx5_0/ports/1/counters"
    counters.mkdir(parents=True)
    (counters / "symbol_error").write_text("12\n")
    (counters / "port_xmit_data").write_text("99\n")
    taken = Collection(tmp_path, timeout_s=10)

    take_state(taken)

    assert [Path(file.path).name for file in taken.files] == ["port_xmit_data", "symbol_error"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/proc/self/limits", "Max locked memory   " + "9" * 40),
        ("/proc/uptime", "soon"),
        ("/proc/modules", "\x00\n\n  \n"),
        ("/sys/class/infiniband/mlx5_0/ports/one/state", "4: ACTIVE"),
        ("/sys/bus/pci/devices/nowhere/config", "001d"),
        ("/proc/self/status", "Cpus_allowed_list:\t0-99999999999"),
    ],
)
def test_nonsense_is_not_known(path, text):
    node = snapshot_of(MACHINES["aws-p5"])

    state = state_of(replace_fields(node, files=(CapturedFile(path=path, text=text),)), ())

    assert (state.limits, state.uptime_s, state.acs, state.ports) == ({}, None, {}, ())
