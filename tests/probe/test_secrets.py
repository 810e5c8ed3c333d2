"""What is secret on a machine is in no byte of its snapshot."""

import gzip
import os
from pathlib import Path

import pytest

from busbw.machine.capture.environment import environment
from busbw.machine.capture.files import Collection
from busbw.machine.capture.snapshot import capture, take_kernel
from busbw.store.snapshots import write_snapshot

SECRETS = {
    "HF_TOKEN": "hf_AbCdEfGhIjKlMnOpQrStUv0123",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMIxK7MDENGxbPxRfiCYEXAMPLEKEY",
    "WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567",
    "SLURM_JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
    "NCCL_SECRET_TOKEN": "planted-in-an-allowed-family",
    "DATABASE_PASSWORD": "correct horse battery staple",
    "MY_OWN_THING": "nobody-has-asked-for-this",
    "UCX_NET_DEVICES": "mlx5_0:1",
}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plant secrets in the environment, in a settings file and in what a program says; return the home folder."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".nccl.conf").write_text(
        "NCCL_DEBUG=INFO\n"
        "# the password is comment-secret\n"
        "MY_PASSWORD=settings-secret\n"
        "NCCL_IB_HCA==mlx5_0\n"
        "NCCL_NOTE=Bearer abcdefghijklmnop\n"
        "no setting at all: line-secret\n"
        "lower_case_token=lower-secret\n"
    )
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\necho 'HF_TOKEN=program-secret'\necho 'serve --api-key=option-secret'\n"
        "echo '<processes><process_name>train --name command-secret</process_name></processes>'\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


PLANTED = [value for name, value in SECRETS.items() if name != "UCX_NET_DEVICES"] + [
    "comment-secret", "settings-secret", "line-secret", "lower-secret", "abcdefghijklmnop",
    "program-secret", "option-secret", "command-secret",
]  # fmt: skip


def test_no_planted_secret_is_in_a_written_snapshot(planted: Path) -> None:
    write_snapshot(planted / "host.tar.gz", capture())
    content = gzip.decompress((planted / "host.tar.gz").read_bytes()).decode("utf-8", "replace")
    assert [secret for secret in PLANTED if secret in content] == []
    # It is not empty for the wrong reason.
    assert "NCCL_IB_HCA==mlx5_0" in content
    assert '"UCX_NET_DEVICES": "mlx5_0:1"' in content
    assert "HF_TOKEN=<withheld>" in content


def test_the_environment_has_search_paths_and_settings_of_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in {**SECRETS, "LD_LIBRARY_PATH": "/opt/lib", "NCCL_DEBUG": "INFO"}.items():
        monkeypatch.setenv(name, value)
    assert environment() == {"LD_LIBRARY_PATH": "/opt/lib", "NCCL_DEBUG": "INFO", "UCX_NET_DEVICES": "mlx5_0:1"}


@pytest.mark.parametrize("name", ["LD_LIBRARY_PATH", "LD_PRELOAD", "NCCL_TOPO_FILE"])
def test_no_value_that_is_taken_holds_a_password(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "/opt/lib:https://me:hunter2@mirror.example.org/lib")
    assert environment()[name] == "/opt/lib:https://<withheld>@mirror.example.org/lib"


def test_of_the_kernels_command_line_only_words_about_the_machine_are_taken(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cmdline").write_text(
        "root=/dev/x luks.key=hunter2 iommu=pt pci=realloc isolcpus=1-3 init=/x\n"
    )
    taken = Collection(tmp_path, timeout_s=10)
    take_kernel(taken)
    assert {file.path: file.text for file in taken.files} == {"/proc/cmdline": "iommu=pt pci=realloc isolcpus=1-3\n"}


def test_a_file_named_as_a_topology_is_taken_only_when_it_is_one(tmp_path: Path, monkeypatch) -> None:
    secret, topology = tmp_path / "shadow", tmp_path / "topo.xml"
    secret.write_text("root:$6$hash:19000:0:99999:7:::\n")
    topology.write_text('<system version="1">\n</system>\n')
    monkeypatch.setenv("NCCL_TOPO_FILE", str(secret))
    monkeypatch.setenv("NCCL_GRAPH_FILE", str(topology))
    files = {file.path: file for file in capture().files}
    assert files[str(secret)].text is None
    assert files[str(topology)].text == '<system version="1">\n</system>\n'
