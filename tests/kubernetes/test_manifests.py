"""Manifests: what Kubernetes and the MPI operator take, what is in them, and that values arrive as asked."""

import json
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.measure.launchers import kubernetes_job, mpijob
from busbw.measure.launchers.pods import MountedText, Pods
from busbw.model.launch import Start
from busbw.model.request import Bind

from .makers import MAKERS, VERSIONS, documents, expanded, pods, ranks_container, start
from .mpijob_schema import SCHEMA

NCCL_CONF = MountedText(path="/etc/nccl.conf", text="NCCL_IB_HCA==mlx5_0,mlx5_1\n")
TOPOLOGY = MountedText(path="/opt/site/topology.xml", text='<system version="1">\n</system>\n')
# Every way a manifest can be asked for, by what is special in it.
ASKED: dict[str, tuple[Start, Pods]] = {
    "plain": (start(), pods()),
    "one process a node": (start(each=1), pods()),
    "everything": (
        start(env={"NCCL_IB_HCA": "=mlx5_0", "ODD": "$(A) {{b}} \n'\"#:\t✓"}, unset=("LD_PRELOAD",)),
        pods(
            namespace="hpc",
            resources=(("rdma/ib", "1"), ("cpu", "96"), ("memory", "512Gi")),
            host_network=True,
            binds=(Bind(source="/dev/infiniband", read_only=False),),
            privileged=True,
            shared_memory_bytes=64 << 30,
            texts=(NCCL_CONF, TOPOLOGY),
            claim="runs",
            node_labels=(("node.kubernetes.io/instance-type", "BM.GPU.H100.8"),),
        ),
    ),
    "EFA": (start(), pods(resources=(("vpc.amazonaws.com/efa", "32"),))),
    "AMD": (start(), pods(gpu_resource="amd.com/gpu")),
    "no GPU": (start(gpus_per_host=None), pods(lock_memory=False)),
    "MPICH": (start(mpi="MPICH", env={"A": "1"}), pods()),
    "Intel MPI": (start(mpi="Intel MPI", env={"A": "1"}), pods()),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("asked", ASKED)
def test_kubernetes_takes_every_manifest(asked: str, maker: str, version: str) -> None:
    for document in documents(MAKERS[maker](*ASKED[asked])):
        if document["kind"] != "MPIJob":
            kubernetes_validate.validate(document, version, strict=True)
            continue
        jsonschema.validate(document, SCHEMA)
        for replica in document["spec"]["mpiReplicaSpecs"].values():
            template = replica["template"]
            whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", **template.get("metadata", {})}}
            kubernetes_validate.validate({**whole, "spec": template["spec"]}, version, strict=True)


def test_the_schemas_can_fail() -> None:
    (document,) = documents(mpijob.job(start(), pods()))
    document["spec"]["slotPerWorker"] = document["spec"].pop("slotsPerWorker")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)
    _service, plain = documents(kubernetes_job.job(start(), pods()))
    ranks_container(plain)["volumeMount"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(plain, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("asked", ["plain", "everything", "EFA"])
def test_busbw_reads_its_own_manifests_without_a_finding(asked: str, maker: str, tmp_path: Path) -> None:
    (file,) = MAKERS[maker](*ASKED[asked]).files
    (tmp_path / file.path).write_text(file.text)
    done = CliRunner().invoke(busbw, ["env", "lint", "--json", str(tmp_path / file.path)])
    assert (done.exit_code, json.loads(done.stdout)["findings"]) == (0, [])


def test_an_mpijob_has_its_slots_pods_and_ranks() -> None:
    (document,) = documents(
        mpijob.job(start(hosts=3, each=8, env={"NCCL_ALGO": "Ring", "OMPI_MCA_pml": "ucx"}), pods())
    )
    spec = document["spec"]
    launcher, worker = spec["mpiReplicaSpecs"]["Launcher"], spec["mpiReplicaSpecs"]["Worker"]
    assert (spec["slotsPerWorker"], worker["replicas"], launcher["replicas"]) == (8, 3, 1)
    (mpirun,) = launcher["template"]["spec"]["containers"]
    # Open MPI hands its own settings on by itself.
    assert [*mpirun["command"], *mpirun["args"]] == [
        "mpirun",
        "--allow-run-as-root",
        "-n",
        "24",
        "--hostfile",
        "/etc/mpi/hostfile",
        "--map-by",
        "ppr:8:node",
        "--bind-to",
        "numa",
        "-x",
        "NCCL_ALGO",
        "all_reduce_perf",
        "-b",
        "8",
    ]
    both = [{"name": "NCCL_ALGO", "value": "Ring"}, {"name": "OMPI_MCA_pml", "value": "ucx"}]
    assert mpirun["env"] == both
    container = ranks_container(document)
    assert container["env"] == both
    assert container["command"] == ["/usr/sbin/sshd", "-De"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    # The pod of mpirun takes no GPU from those who measure.
    assert "resources" not in mpirun
    assert container["volumeMounts"][0] == {"name": "shared-memory", "mountPath": "/dev/shm"}
    assert worker["template"]["spec"]["volumes"][0] == {"name": "shared-memory", "emptyDir": {"medium": "Memory"}}
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}


def test_the_words_of_hydra_are_its_own() -> None:
    (document,) = documents(mpijob.job(start(mpi="Intel MPI", each=2, env={"A": "1", "B": "2"}), pods()))
    assert document["spec"]["mpiImplementation"] == "Intel"
    (mpirun,) = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    assert mpirun["args"] == (
        [
            "-n",
            "4",
            "-f",
            "/etc/mpi/hostfile",
            "-ppn",
            "2",
            "-bind-to",
            "numa",
            "-genvlist",
            "A,B",
            "all_reduce_perf",
            "-b",
            "8",
        ]
    )


def test_files_and_volumes_are_mounted_where_ranks_look() -> None:
    asked = ASKED["everything"]
    config, document = documents(mpijob.job(*asked))
    assert config["metadata"] == {"name": "nccl-files", "namespace": "hpc"}
    assert list(config["data"].values()) == [NCCL_CONF.text, TOPOLOGY.text]
    mounts = {each["mountPath"]: each for each in ranks_container(document)["volumeMounts"]}
    assert set(mounts) == {"/dev/shm", "/runs/1", "/etc/nccl.conf", "/opt/site/topology.xml", "/dev/infiniband"}
    for text in (NCCL_CONF, TOPOLOGY):
        assert config["data"][mounts[text.path]["subPath"]] == text.text
    spec = document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert {each["name"] for each in spec["volumes"]} >= {each["name"] for each in mounts.values()}


def test_a_plain_job_tells_each_pod_which_it_is() -> None:
    service, document = documents(kubernetes_job.job(start(hosts=4, each=1), pods()))
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == document["spec"]["template"]["metadata"]["labels"]
    spec = document["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 4, 4)
    assert spec["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    container = ranks_container(document)
    assert [*container["command"], *container["args"]] == ["all_reduce_perf", "-b", "8"]
    env = {each["name"]: each for each in container["env"]}
    assert env["RANK"]["valueFrom"]["fieldRef"]["fieldPath"].endswith("job-completion-index']")
    assert (env["WORLD_SIZE"]["value"], env["LOCAL_RANK"]["value"]) == ("4", "0")
    assert env["MASTER_ADDR"]["value"] == "nccl-0.nccl"


def test_several_processes_a_pod_are_started_by_torchrun() -> None:
    _service, document = documents(kubernetes_job.job(start(hosts=2, each=8), pods()))
    container = ranks_container(document)
    assert [*container["command"], *container["args"]] == [
        "torchrun",
        "--nnodes=2",
        "--nproc-per-node=8",
        "--node-rank=$(NODE_RANK)",
        "--master-addr=nccl-0.nccl",
        "--master-port=29500",
        "--no-python",
        "all_reduce_perf",
        "-b",
        "8",
    ]
    assert container["env"][0]["name"] == "NODE_RANK"


HOSTILE = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
    st.text("$() {}:#'\"\n\t-=!&*%@`\\x1", max_size=12),
    st.sampled_from(["yes", "null", "~", "1e3", "0x10", "2001-01-01", "=", "<<", "\u2028", "\x85", "\ufeff", "😀"]),
)


@pytest.mark.parametrize("maker", MAKERS)
@settings(max_examples=80)
@given(value=HOSTILE, word=HOSTILE)
@example(value="$$(HOME)$(id)$", word="$(NODE_RANK)")
def test_every_value_and_word_arrives_as_asked(maker: str, value: str, word: str) -> None:
    asked = start("prog", word, env={"VALUE": value}, each=1)
    if word == ":":
        return
    document = documents(MAKERS[maker](asked, pods()))[-1]
    container = ranks_container(document)
    commands = [container]
    if maker == "mpijob":
        commands = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    for each in (container, *commands):
        env = {entry["name"]: entry.get("value") for entry in each["env"]}
        assert expanded(env["VALUE"]) == value
    (command,) = commands
    assert [expanded(each) for each in (*command["command"], *command["args"])][-2:] == ["prog", word]


@pytest.mark.parametrize(
    ("asked", "fields", "said"),
    [
        (start(), {"name": "Nccl"}, "cannot be the name of a job"),
        (start(), {"name": "1nccl"}, "cannot be the name of a job"),
        (start(), {"name": "a" * 60}, "cannot be the host name of its last pod"),
        (start(), {"namespace": "a_b"}, "cannot be a namespace"),
        (start(), {"claim": "../runs"}, "cannot be a volume claim"),
        (start(), {"image": "a image"}, "cannot be an image"),
        (start(), {"image": "--x"}, "cannot be an image"),
        (start(), {"resources": (("rdma/ib/2", "1"),)}, "cannot be a resource"),
        (start(), {"resources": (("rdma/ib", "many"),)}, "cannot be a quantity"),
        (start(), {"node_labels": (("a b", "c"),)}, "cannot be a label"),
        (start(), {"binds": (Bind(source="relative"),)}, "cannot be mounted"),
        (start(), {"binds": (Bind(source="/a/../etc"),)}, "cannot be mounted"),
        (start(), {"binds": (Bind(source="/x", target="/dev/shm"),)}, "two things"),
        (start(), {"texts": (MountedText(path="/a", text="\udc80"),)}, "UTF-8 only"),
        (start(), {"texts": (MountedText(path="/a", text="x" * 2**20),)}, "Kubernetes takes"),
        (start(env={"NVIDIA_VISIBLE_DEVICES": "all"}), {}, "what lets GPUs into pods"),
        (start(env={"A": "\udc80"}), {}, "UTF-8 only"),
        (start(env={"A B": "1"}), {}, "cannot be the name"),
        (start(forward=("HOME",)), {}, "do not see the launching shell: HOME"),
        (start(prepend=(("LD_LIBRARY_PATH", "/a"),)), {}, "do not see the launching shell"),
    ],
)
@pytest.mark.parametrize("maker", MAKERS)
def test_what_a_manifest_cannot_say_is_refused(maker: str, asked: Start, fields: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        MAKERS[maker](asked, pods(**fields))


def test_what_others_set_is_refused() -> None:
    with pytest.raises(InputError, match="the operator sets this itself"):
        mpijob.job(start(env={"OMPI_MCA_plm_rsh_args": "-v"}), pods())
    with pytest.raises(InputError, match="needs Open MPI"):
        mpijob.job(start(mpi="unknown"), pods())
    with pytest.raises(InputError, match="tells each rank who it is"):
        kubernetes_job.job(start(env={"RANK": "0"}), pods())


def test_the_commands_around_a_job_name_it() -> None:
    asked = pods(namespace="hpc")
    assert mpijob.follow(asked) == ("kubectl", "logs", "--namespace=hpc", "--follow", "job/nccl-launcher")
    assert mpijob.remove(asked) == ("kubectl", "delete", "--namespace=hpc", "--wait=true", "mpijob/nccl")
    assert kubernetes_job.follow(pods())[:3] == ("kubectl", "logs", "--follow")
    assert kubernetes_job.remove(pods())[-2:] == ("job/nccl", "service/nccl")
