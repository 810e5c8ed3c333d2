"""A plain indexed Job of Kubernetes: one pod a node, whose ranks find each other without MPI, as torchrun's do."""

from busbw.base.errors import InputError
from busbw.measure.launchers import pods
from busbw.measure.launchers.hosts import JOINING_GRACE_S
from busbw.measure.launchers.launcher import LaunchWords
from busbw.measure.launchers.pods import Node, Pods
from busbw.model.launch import LaunchRequest, Start
from busbw.model.plan import Job, JobFile

name = "kubernetes-job"

FILE = "job.yaml"
PORT = 29500
_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_SCHEDULING_S = 600.0
# What tells a rank who it is.
_PLACE = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"}


def job(start: Start, asked: Pods) -> Job:
    """Return `kubectl apply` of the job; applying it ends at once, `follow` shows what rank 0 prints.

    A pod with one process runs the program itself; one with several starts them with torchrun, which the image has.
    Raises InputError for what a manifest cannot say.
    """
    processes = pods.check(start, asked)
    for each, _value in start.program.env:
        if each in _PLACE:
            raise InputError("this tells each rank who it is, and is set for it", where=each)
    nodes = len(start.placement.hosts)
    limit_s = start.measuring_s + JOINING_GRACE_S + _SCHEDULING_S
    documents = [*pods.files(asked), _service(asked), _job(start, asked, nodes, processes, round(limit_s))]
    return Job(
        argv=("kubectl", "apply", "-f", f"{start.directory}/{FILE}"),
        env=(),
        files=(JobFile(path=FILE, text=pods.manifest_text(documents)),),
        timeout_s=limit_s,
        stall_s=start.stall_s,
    )


def follow(asked: Pods) -> tuple[str, ...]:
    """Return the command that shows what the pod of rank 0 prints, as it does."""
    selector = f"--selector=batch.kubernetes.io/job-name={asked.name},batch.kubernetes.io/job-completion-index=0"
    return ("kubectl", "logs", *_within(asked), "--follow", selector)


def remove(asked: Pods) -> tuple[str, ...]:
    """Return the command that ends the job and takes its pods and its service away."""
    return ("kubectl", "delete", *_within(asked), "--wait=true", f"job/{asked.name}", f"service/{asked.name}")


def _within(asked: Pods) -> tuple[str, ...]:
    return (f"--namespace={asked.namespace}",) if asked.namespace is not None else ()


def _service(asked: Pods) -> dict[str, Node]:
    """Return what gives each pod a host name, before it is ready too: ranks meet before anything answers."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": pods.metadata(asked),
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": pods.labels(asked)},
    }


def _job(start: Start, asked: Pods, nodes: int, processes: int, limit_s: int) -> dict[str, Node]:
    words = _command(start, asked, nodes, processes)
    container: dict[str, Node] = {
        "command": words[:1],
        "args": words[1:],
        "env": [*_place(asked, nodes, processes), *pods.environment(start)],
    }
    pod = {"restartPolicy": "Never", "subdomain": asked.name, **pods.pod(start, asked, container)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": pods.metadata(asked),
        "spec": {
            "completionMode": "Indexed",
            "completions": nodes,
            "parallelism": nodes,
            # A run that failed is looked at, not repeated.
            "backoffLimit": 0,
            "activeDeadlineSeconds": limit_s,
            "template": {"metadata": {"labels": pods.labels(asked)}, "spec": pod},
        },
    }


def _place(asked: Pods, nodes: int, processes: int) -> list[Node]:
    index: dict[str, Node] = {"valueFrom": {"fieldRef": {"fieldPath": _INDEX}}}
    meeting: list[Node] = [
        {"name": "MASTER_ADDR", "value": f"{asked.name}-0.{asked.name}"},
        {"name": "MASTER_PORT", "value": str(PORT)},
    ]
    if processes > 1:
        return [{"name": "NODE_RANK", **index}, *meeting]
    ranks: list[Node] = [
        {"name": "RANK", **index},
        {"name": "WORLD_SIZE", "value": str(nodes)},
        {"name": "LOCAL_RANK", "value": "0"},
    ]
    return [*ranks, *meeting]


def _command(start: Start, asked: Pods, nodes: int, processes: int) -> tuple[str, ...]:
    unset = tuple(word for each in start.unset for word in ("-u", each))
    ranks = pods.literals((*(("env", *unset) if unset else ()), *start.program.argv))
    if processes == 1:
        return ranks
    return (
        "torchrun",
        f"--nnodes={nodes}",
        f"--nproc-per-node={processes}",
        # Kubernetes puts the number of the pod in.
        "--node-rank=$(NODE_RANK)",
        f"--master-addr={asked.name}-0.{asked.name}",
        f"--master-port={PORT}",
        *pods.literals(start.options),
        "--no-python",
        *ranks,
    )


def _of_words(start: Start, request: LaunchRequest) -> Job:
    return job(*pods.asked_of(start, request))


WORDS = LaunchWords(job=_of_words, hosts_of="pods")
