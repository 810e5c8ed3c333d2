"""MPIJob of kubeflow's mpi-operator, v2beta1: a pod with mpirun, and pods with sshd that it starts the ranks in."""

from busbw.base.errors import InputError
from busbw.measure.launchers import hosts, pods
from busbw.measure.launchers.hosts import check_arguments
from busbw.measure.launchers.launcher import LaunchWords
from busbw.measure.launchers.pods import Node, Pods
from busbw.model.launch import LaunchRequest, Start
from busbw.model.machine import MpiFamily
from busbw.model.plan import Job, JobFile

name = "mpijob"

FILE = "mpijob.yaml"
# What the operator calls the kinds of MPI it knows, and where it lists the pods for them.
_IMPLEMENTATIONS: dict[MpiFamily, str] = {
    "Open MPI": "OpenMPI",
    "MPICH": "MPICH",
    "MVAPICH": "MPICH",
    "Intel MPI": "Intel",
}
_HOST_FILE = "/etc/mpi/hostfile"
# The operator sets these in the pod of mpirun, after ours.
_OF_THE_OPERATOR = {
    "HYDRA_HOST_FILE",
    "HYDRA_LAUNCH_EXTRA_ARGS",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
    "I_MPI_HYDRA_HOST_FILE",
    "I_MPI_PERHOST",
    "K_MPI_JOB_ROLE",
    "OMPI_MCA_orte_default_hostfile",
    "OMPI_MCA_orte_keep_fqdn_hostnames",
    "OMPI_MCA_orte_set_default_slots",
    "OMPI_MCA_plm_rsh_args",
}
# mpirun of Open MPI hands these on by itself.
_OF_OPEN_MPI = ("OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_")
# Pods come, and images are fetched.
_SCHEDULING_S = 600.0


def job(start: Start, asked: Pods) -> Job:
    """Return `kubectl apply` of the job; applying it ends at once, `follow` shows what it prints.

    Raises InputError for an MPI the operator does not know, and for what a manifest cannot say.
    """
    slots = pods.check(start, asked)
    mpi = start.mpi
    implementation = _IMPLEMENTATIONS.get(mpi.family) if mpi is not None else None
    if mpi is None or implementation is None:
        raise InputError("an MPIJob needs Open MPI, MPICH, MVAPICH or Intel MPI in its image", hint="--mpi FAMILY")
    for each, _value in start.program.env:
        if each in _OF_THE_OPERATOR:
            raise InputError("the operator sets this itself", where=each, hint="take it out of the settings")
    check_arguments(start, "mpirun")
    limit_s = start.measuring_s + hosts.MPI_GRACE_S + _SCHEDULING_S
    document: dict[str, Node] = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": pods.metadata(asked),
        "spec": {
            "slotsPerWorker": slots,
            "mpiImplementation": implementation,
            "sshAuthMountPath": asked.ssh_directory,
            # mpirun gives up on pods that do not answer yet.
            "launcherCreationPolicy": "WaitForWorkersReady",
            # A run that failed is looked at, not repeated.
            "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0, "activeDeadlineSeconds": round(limit_s)},
            "mpiReplicaSpecs": {
                "Launcher": {
                    "replicas": 1,
                    "restartPolicy": "Never",
                    "template": {"spec": _launcher(start, asked, mpi.family, slots)},
                },
                "Worker": {
                    "replicas": len(start.placement.hosts),
                    "restartPolicy": "Never",
                    "template": {"metadata": {"labels": pods.labels(asked)}, "spec": _worker(start, asked)},
                },
            },
        },
    }
    text = pods.manifest_text([*pods.files(asked), document])
    return Job(
        argv=("kubectl", "apply", "-f", f"{start.directory}/{FILE}"),
        env=(),
        files=(JobFile(path=FILE, text=text),),
        timeout_s=limit_s,
        stall_s=start.stall_s,
    )


def follow(asked: Pods) -> tuple[str, ...]:
    """Return the command that shows what mpirun and the ranks print, as they do."""
    return ("kubectl", "logs", *_within(asked), "--follow", f"job/{asked.name}-launcher")


def remove(asked: Pods) -> tuple[str, ...]:
    """Return the command that ends the job and takes its pods away."""
    return ("kubectl", "delete", *_within(asked), "--wait=true", f"mpijob/{asked.name}")


def _within(asked: Pods) -> tuple[str, ...]:
    return (f"--namespace={asked.namespace}",) if asked.namespace is not None else ()


def _launcher(start: Start, asked: Pods, family: MpiFamily, slots: int) -> dict[str, Node]:
    """Return the pod of mpirun: no GPU, no NIC, and the variables that it hands on."""
    words = pods.literals(_open_mpi(start, slots) if family == "Open MPI" else _hydra(start, slots))
    return {
        **pods.network(asked),
        "containers": [
            {
                "name": "mpirun",
                "image": asked.image,
                "command": words[:1],
                "args": words[1:],
                "env": pods.environment(start),
            }
        ],
    }


def _worker(start: Start, asked: Pods) -> dict[str, Node]:
    # Its variables are for whoever looks into the pod: ranks come over ssh, with what mpirun hands on.
    command: dict[str, Node] = {"command": ["/usr/sbin/sshd", "-De"], "env": pods.environment(start)}
    return pods.pod(start, asked, command)


def _open_mpi(start: Start, slots: int) -> tuple[str, ...]:
    binding = _binding(start)
    handed_on = (each for each, _value in start.program.env if not each.startswith(_OF_OPEN_MPI))
    return (
        "mpirun",
        *(("--allow-run-as-root",) if start.as_root else ()),
        *("-n", str(slots * len(start.placement.hosts)), "--hostfile", _HOST_FILE),
        *("--map-by", f"ppr:{slots}:node", *(("--bind-to", binding) if binding != "default" else ())),
        *(word for each in handed_on for word in ("-x", each)),
        *_ranks(start),
    )


def _hydra(start: Start, slots: int) -> tuple[str, ...]:
    names = ",".join(each for each, _value in start.program.env)
    binding = _binding(start)
    return (
        "mpirun",
        *("-n", str(slots * len(start.placement.hosts)), "-f", _HOST_FILE, "-ppn", str(slots)),
        *(("-bind-to", binding) if binding not in ("none", "default") else ()),
        *(("-genvlist", names) if names else ()),
        *_ranks(start),
    )


def _binding(start: Start) -> str:
    if start.placement.binding == "masks":
        raise InputError("the CPUs of pods are not known before they start", hint="--bind core, numa or none")
    return start.placement.binding


def _ranks(start: Start) -> tuple[str, ...]:
    unset = tuple(word for each in start.unset for word in ("-u", each))
    return (*start.options, *(("env", *unset) if unset else ()), *start.program.argv)


def _of_words(start: Start, request: LaunchRequest) -> Job:
    return job(*pods.asked_of(start, request))


WORDS = LaunchWords(job=_of_words, hosts_of="pods")
