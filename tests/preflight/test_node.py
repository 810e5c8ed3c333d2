"""A host as its first rank finds it, and the gathering of all, on this machine."""

import os
import socket
from pathlib import Path

import pytest

from busbw import __version__
from busbw.model import codec
from busbw.model.record import AnyRecord, Node
from busbw.rank.admission import read_plan
from busbw.rank.preflight import describe_node
from busbw.rank.socket_world import SocketWorld


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SocketWorld:
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0")):
        monkeypatch.setenv(name, value)
    return SocketWorld(tmp_path, 0, timeout_s=5.0)


def test_this_host_is_described_as_it_is(world: SocketWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "nccl.conf").write_text("NCCL_DEBUG=WARN\n", encoding="ascii")
    monkeypatch.setenv("NCCL_CONF_FILE", str(tmp_path / "nccl.conf"))
    monkeypatch.setenv("UCX_TLS", "tcp,self")
    monkeypatch.setenv("SOME_TOKEN", "secret")

    node = describe_node(world, None, sees_directory=True)

    assert codec.decode(codec.encode(node), AnyRecord, where="test") == node
    assert (node.host, node.busbw, node.kernel.split()[1]) == (socket.gethostname(), __version__, os.uname().release)
    assert node.cpus >= 1
    assert 0 < node.memory_available_bytes <= node.memory_bytes
    assert ("UCX_TLS", "tcp,self") in node.environment
    assert not any("secret" in value for _name, value in node.environment)
    assert node.settings_files[0][0] == str(tmp_path / "nccl.conf")
    assert {limit.name for limit in node.limits} == {"memlock", "nofile", "stack"}


def test_what_busbw_has_loaded_has_a_fingerprint_that_its_files_decide(world: SocketWorld) -> None:
    first = describe_node(world, None, sees_directory=True)
    assert first.busbw_fingerprint == describe_node(world, None, sees_directory=True).busbw_fingerprint
    assert len(first.busbw_fingerprint) == 16


def test_a_settings_file_of_other_content_has_another_fingerprint(
    world: SocketWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NCCL_CONF_FILE", str(tmp_path / "nccl.conf"))
    found: list[Node] = []
    for text in ("NCCL_ALGO=Ring\n", "NCCL_ALGO=Tree\n"):
        (tmp_path / "nccl.conf").write_text(text, encoding="ascii")
        found.append(describe_node(world, None, sees_directory=True))
    assert found[0].settings_files != found[1].settings_files


def test_a_host_without_the_run_directory_says_so(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="every host must see the run directory at the same path") as refused:
        read_plan(tmp_path / "none")
    assert str(refused.value).startswith(f"{socket.gethostname()} cannot read")


def test_every_rank_brings_its_content_to_the_first(world: SocketWorld) -> None:
    assert world.to_first(b"content") == [b"content"]
