"""Starts and pods for tests, and a manifest read back as a cluster would."""

from collections.abc import Mapping

import yaml

from busbw.measure.launchers import kubernetes_job, mpijob
from busbw.measure.launchers.pods import Pods
from busbw.model.launch import Start
from busbw.model.machine import MpiFamily, MpiLibrary
from busbw.model.plan import Job, Placement, Program

# The version that is newest where the schemas come from; of older ones all that is used here is part too.
VERSIONS = ("1.28", "1.37")
MAKERS = {"mpijob": mpijob.job, "kubernetes_job": kubernetes_job.job}


def start(
    *argv: str,
    env: Mapping[str, str] | None = None,
    hosts: int = 2,
    each: int = 8,
    mpi: MpiFamily = "Open MPI",
    **fields: object,
) -> Start:
    whole = {
        "program": Program(argv=argv or ("all_reduce_perf", "-b", "8"), env=tuple((env or {}).items())),
        "placement": Placement(
            ranks=hosts * each,
            hosts=tuple(f"worker-{number}" for number in range(hosts)),
            ranks_of_hosts=(each,) * hosts,
            binding="numa",
            oversubscribed=False,
        ),
        "directory": "/runs/1",
        "mpi": MpiLibrary(family=mpi, version=None, mpirun="mpirun", library="", origin="chosen"),
        "gpus_per_host": 8,
        "as_root": True,
        "measuring_s": 60.0,
        "stall_s": 60.0,
        **fields,
    }
    return Start(**whole)


def pods(**fields: object) -> Pods:
    return Pods(**{"name": "nccl", "image": "ghcr.io/site/nccl-tests:1", **fields})


def documents(job: Job) -> list[dict[str, object]]:
    """Return what kubectl would send."""
    (file,) = job.files
    assert job.argv == ("kubectl", "apply", "-f", f"/runs/1/{file.path}")
    return list(yaml.safe_load_all(file.text))


def expanded(text: str) -> str:
    """Return a value or a word as Kubernetes hands it on, none of whose references is known.

    Kubernetes, third_party/forked/golang/expansion: `$$` is `$`, `$(NAME)` is the variable, or itself where unknown.
    """
    found, at = [], 0
    while at < len(text):
        if text.startswith("$$", at):
            found.append("$")
            at += 2
        elif text.startswith("$(", at) and ")" in text[at:]:
            raise AssertionError(f"{text!r} would be expanded")
        else:
            found.append(text[at])
            at += 1
    return "".join(found)


def ranks_container(document: Mapping[str, object]) -> dict[str, object]:
    """Return the container that ranks run in."""
    spec = document["spec"]
    template = spec["mpiReplicaSpecs"]["Worker"]["template"] if document["kind"] == "MPIJob" else spec["template"]
    (container,) = template["spec"]["containers"]
    return container
