"""What each runtime's command line is, word for word; two of them are lines of the write-ups."""

import shlex
from itertools import pairwise

import pytest

from busbw.measure.containers.place import ContainerPlace
from busbw.measure.plan.containing import wrap
from busbw.model.request import Container, RuntimeName

from .makers import SRUN, bind, container, program

# docs.isambard.ac.uk, NCCL, bench_nccl.sh, as a shell reads it with HOME=/home/me.
ISAMBARD = """
    singularity exec --nv
    --bind /opt/cray/libfabric/1.22.0:/host/opt/cray/libfabric/1.22.0:ro
    --bind /usr/lib64:/host/usr/lib64:ro
    --bind /home/me/nccl_build:/opt/slingshot
    /home/me/sif-images/pytorch.sif /opt/slingshot/nccl-tests/all_reduce_perf -b 32KB -e 8GB -f 2 -g 4
"""
# techcommunity.microsoft.com, Performance at scale: the Grok-1 launch, as a shell reads it.
AZURE = """
    --container-image=IMAGE
    --container-mounts=/opt/microsoft/ndv5-topo.xml,/shared/results,/shared/index,/shared/cfg:/cfg,/shared/configure.sh:/gsw/configure.sh
    --container-env=NCCL_TOPO_FILE,NCCL_P2P_NET_CHUNKSIZE,NCCL_MIN_NCHANNELS,NCCL_IB_QPS_PER_CONNECTION,NCCL_PXN_DISABLE,NCCL_IGNORE_CPU_AFFINITY
    --container-writable
    --no-container-mount-home
"""


def test_the_guide_of_isambard_starts_nccl_tests_so() -> None:
    built = Container(
        runtime="singularity",
        program="singularity",
        image="/home/me/sif-images/pytorch.sif",
        gpus=True,
        binds=(
            bind("/opt/cray/libfabric/1.22.0", "/host/opt/cray/libfabric/1.22.0"),
            bind("/usr/lib64", "/host/usr/lib64"),
            bind("/home/me/nccl_build", "/opt/slingshot", writable=True),
        ),
    )
    tests = program("/opt/slingshot/nccl-tests/all_reduce_perf", "-b", "32KB", "-e", "8GB", "-f", "2", "-g", "4")
    wrapped = wrap(built, tests, ContainerPlace(starter="srun", pmi="descriptor", fabric="Slingshot"))
    assert wrapped.program.argv == tuple(shlex.split(ISAMBARD))
    assert wrapped.program.env == ()
    assert wrapped.options == ()


def test_azure_starts_the_training_container_so() -> None:
    settings = {
        "NCCL_TOPO_FILE": "/opt/microsoft/ndv5-topo.xml",
        "NCCL_P2P_NET_CHUNKSIZE": "2097152",
        "NCCL_MIN_NCHANNELS": "32",
        "NCCL_IB_QPS_PER_CONNECTION": "4",
        "NCCL_PXN_DISABLE": "1",
        "NCCL_IGNORE_CPU_AFFINITY": "1",
    }
    built = Container(
        runtime="pyxis",
        program="",
        image="IMAGE",
        options=("--container-writable", "--no-container-mount-home"),
        binds=(
            *(
                bind(path, writable=True)
                for path in ("/opt/microsoft/ndv5-topo.xml", "/shared/results", "/shared/index")
            ),
            bind("/shared/cfg", "/cfg", writable=True),
            bind("/shared/configure.sh", "/gsw/configure.sh", writable=True),
        ),
    )
    launch = program("bash", "-c", "source /gsw/configure.sh && launch", **settings)
    wrapped = wrap(built, launch, SRUN)
    assert wrapped.options == tuple(shlex.split(AZURE))
    assert wrapped.program.argv == launch.argv
    assert dict(wrapped.program.env) == settings


# One call with everything: GPUs, a fabric, a folder, a variable that is plain and one that is not.
EVERYTHING: dict[RuntimeName, str] = {
    "apptainer": """
        apptainer exec --nv --bind /etc/nccl.conf:/etc/nccl.conf:ro --bind /runs/1 --pwd /runs/1 --extra image.sif
        env 'MONEY=$5' prog -b 8""",
    "charliecloud": """
        ch-run --bind=/etc/nccl.conf --bind=/runs/1 --cd=/runs/1
        --unset-env=PYTHONHOME --unset-env=PYTHONPATH --unset-env=PYTHONSTARTUP --unset-env=PYTHONUSERBASE
        --unset-env=LD_AUDIT --unset-env=LD_PRELOAD --unset-env=LD_LIBRARY_PATH --unset-env=I_MPI_ROOT
        --unset-env=MPI4PY_LIBMPI --unset-env=OPAL_PREFIX --unset-env=PMIX_PREFIX --unset-env=PRTE_PREFIX
        --env-no-expand "--set-env=NCCL_DEBUG='INFO'" "--set-env=MONEY='"'$5'"'" --extra image.sif -- prog -b 8""",
    "podman": """
        podman run --rm --network host --ipc host --pid host --userns keep-id --security-opt label=disable
        --device nvidia.com/gpu=all --ulimit memlock=-1:-1
        --mount type=bind,source=/etc/nccl.conf,target=/etc/nccl.conf,readonly
        --mount type=bind,source=/runs/1,target=/runs/1 --device /dev/infiniband --workdir /runs/1
        --env 'OMPI_COMM_*' --env 'OMPI_MCA_*' --env OMPI_UNIVERSE_SIZE --env 'PMIX_BFROP_*' --env 'PMIX_DSTORE_*'
        --env 'PMIX_GDS_*' --env PMIX_HOSTNAME --env 'PMIX_MCA_*' --env PMIX_NAMESPACE --env 'PMIX_PTL_*'
        --env PMIX_RANK --env PMIX_SECURITY_MODE --env 'PMIX_SERVER_*' --env 'PMIX_SYSTEM_*' --env PMIX_VERSION
        --env 'SLURM_*' --env BUSBW_RUN --env NCCL_DEBUG=INFO --env 'MONEY=$5' --extra
        --entrypoint prog image.sif -b 8""",
    "docker": """
        docker run --rm --network host --ipc host --pid host --user 1000:1000 --gpus all --ulimit memlock=-1:-1
        --mount type=bind,source=/etc/nccl.conf,target=/etc/nccl.conf,readonly
        --mount type=bind,source=/runs/1,target=/runs/1 --device /dev/infiniband --workdir /runs/1
        NAMES --env BUSBW_RUN --env NCCL_DEBUG=INFO --env 'MONEY=$5' --extra --entrypoint prog image.sif -b 8""",
}


@pytest.mark.parametrize("runtime", EVERYTHING)
def test_a_runtime_is_told_everything(runtime: RuntimeName) -> None:
    binds = (bind("/etc/nccl.conf"), bind("/runs/1", writable=True), bind("/dev/infiniband", writable=True))
    built = container(runtime, gpus=True, binds=binds, options=("--extra",))
    place = ContainerPlace(
        starter="srun", pmi="pmix", directory="/runs/1", fabric="InfiniBand", forward=("BUSBW_RUN",), user="1000:1000"
    )
    wrapped = wrap(built, program(NCCL_DEBUG="INFO", MONEY="$5"), place)
    words = list(wrapped.program.argv)
    if runtime == "docker":
        # The names of PMIx are many, and those that matter are looked for below.
        first, last = words.index("OMPI_COMM_WORLD_LOCAL_RANK") - 1, words.index("BUSBW_RUN") - 1
        assert {"PMIX_RANK", "PMIX_NAMESPACE", "PMIX_SERVER_URI41", "SLURM_PROCID"} <= set(words[first:last])
        words[first:last] = ["NAMES"]
    assert words == shlex.split(EVERYTHING[runtime])
    expected = {"APPTAINERENV_NCCL_DEBUG": "INFO"} if runtime == "apptainer" else {}
    assert dict(wrapped.program.env) == expected


def test_pyxis_lets_gpus_and_nics_in_through_the_hooks_of_enroot() -> None:
    place = ContainerPlace(starter="srun", pmi="pmix", fabric="InfiniBand", directory="/runs/1")
    wrapped = wrap(container("pyxis", gpus=True, binds=(bind("/dev/infiniband"), bind("/a"))), program(X="1"), place)
    assert wrapped.program.env == (
        ("NVIDIA_VISIBLE_DEVICES", "all"),
        ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
        ("MELLANOX_VISIBLE_DEVICES", "all"),
        ("X", "1"),
    )
    assert wrapped.options == (
        "--container-image=image.sif",
        "--container-mounts=/a:/a:ro",
        "--container-workdir=/runs/1",
        "--container-env=X",
    )
    chosen = wrap(container("pyxis", gpus=True), program(NVIDIA_VISIBLE_DEVICES="0,1"), SRUN)
    assert dict(chosen.program.env)["NVIDIA_VISIBLE_DEVICES"] == "0,1"


@pytest.mark.parametrize(
    ("runtime", "words"),
    [
        ("apptainer", ["--rocm"]),
        ("podman", ["--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video"]),
        ("docker", ["--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video"]),
    ],
)
def test_gpus_of_amd_have_words_of_their_own(runtime: RuntimeName, words: list[str]) -> None:
    argv = wrap(container(runtime, gpus=True), program(), ContainerPlace(gpu_vendor="amd")).program.argv
    at = argv.index(words[0])
    assert list(argv[at : at + len(words)]) == words


def test_what_mpirun_sets_for_its_ranks_stays_outside() -> None:
    for runtime in ("apptainer", "singularity"):
        argv = wrap(container(runtime), program(), ContainerPlace(starter="mpirun", pmi="pmix")).program.argv
        inside = argv[argv.index("image.sif") + 1 :]
        assert inside[:3] == ("env", "-u", "I_MPI_ROOT")
        assert ("-u", "OPAL_PREFIX") in pairwise(inside)
    podman = wrap(container("podman"), program(), ContainerPlace(starter="mpirun", pmi="pmix")).program.argv
    assert "PMIX_*" not in podman


def test_what_the_program_sets_itself_is_not_dropped() -> None:
    wrapped = wrap(container("charliecloud"), program(PYTHONPATH="/inside"), ContainerPlace())
    assert "--unset-env=PYTHONPATH" not in wrapped.program.argv
    assert "--set-env=PYTHONPATH='/inside'" in wrapped.program.argv
    assert "PYTHONPATH" not in wrap(container("apptainer"), program(PYTHONPATH="/inside"), SRUN).unset
    assert "PYTHONPATH" in wrap(container("apptainer"), program(), SRUN).unset


def test_ranks_of_one_host_share_a_namespace_in_charliecloud() -> None:
    def words(**fields: object) -> tuple[str, ...]:
        return wrap(container("charliecloud"), program(), ContainerPlace(**fields)).program.argv

    assert "--join-ct=8" in words(starter="mpirun", ranks_per_host=8)
    assert not [word for word in words(starter="mpirun") if word.startswith("--join")]
    apart = wrap(container("charliecloud"), program(), ContainerPlace(starter="srun", ranks_per_host=None))
    assert not [word for word in apart.program.argv if word.startswith("--join")]
    assert "user namespaces of their own" in apart.notes[0]
