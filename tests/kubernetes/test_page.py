"""The manifest of docs/kubernetes.md is the one that busbw writes, and Kubernetes takes it."""

import re
from pathlib import Path

import yaml

from busbw.measure.launchers import mpijob
from busbw.measure.launchers.pods import MountedText

from .makers import documents, pods, start

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "kubernetes.md").read_text()


def test_the_manifest_on_the_page_is_the_one_that_is_written() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    asked = pods(
        namespace="hpc",
        resources=(("rdma/ib", "1"),),
        texts=(MountedText(path="/etc/nccl.conf", text="NCCL_SOCKET_IFNAME=eth0\n"),),
        claim="runs",
        shared_memory_bytes=64 << 30,
    )
    written = documents(mpijob.job(start(env={"NCCL_IB_HCA": "=mlx5_0,mlx5_1"}), asked))
    assert list(yaml.safe_load_all(block)) == written


def test_the_commands_on_the_page_are_those_of_the_job() -> None:
    text = " ".join(PAGE.split())
    for command in (mpijob.follow(pods(namespace="hpc")), mpijob.remove(pods(namespace="hpc"))):
        assert f"`{' '.join(command)}`" in text
