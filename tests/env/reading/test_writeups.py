"""The command lines and scripts of the five write-ups, where they are at hand."""

from pathlib import Path

import pytest

from busbw.env.reading import read

from .wording import of, slips_of, told

SEEDS = Path(__file__).parents[3] / ".." / "shared" / "seeds"
pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason=f"the write-ups are not at {SEEDS}")

COMMON = [
    "mca@0 OMPI_MCA_coll_hcoll_enable=0",
    "mpirun@0 UCX_TLS=tcp",
    "mpirun@0 UCX_NET_DEVICES=eth0",
    "mpirun@0 CUDA_DEVICE_ORDER=PCI_BUS_ID",
    "mpirun@0 NCCL_SOCKET_IFNAME=eth0",
    "mpirun@0 NCCL_DEBUG=WARN",
]
TRAINING = {
    "NCCL_TOPO_FILE": "/opt/microsoft/ndv5-topo.xml",
    "NCCL_P2P_NET_CHUNKSIZE": "2097152",
    "NCCL_MIN_NCHANNELS": "32",
    "NCCL_IB_QPS_PER_CONNECTION": "4",
    "NCCL_PXN_DISABLE": "1",
    "NCCL_IGNORE_CPU_AFFINITY": "1",
}


def lines_of(name: str) -> list[str]:
    return (SEEDS / name).read_text().split("\n")


def commands_of(name: str, beginning: str) -> list[str]:
    """Return each command that begins so, with the lines it goes on in."""
    lines = lines_of(name)
    found = []
    for number, line in enumerate(lines):
        if line.startswith(beginning):
            end = number
            while lines[end].rstrip().endswith("\\"):
                end += 1
            found.append("\n".join(lines[number : end + 1]) + "\n")
    return found


def block_of(name: str, first: str, last: str) -> str:
    """Return the lines from one that begins so up to one that ends so."""
    lines = lines_of(name)
    start = next(number for number, line in enumerate(lines) if line.strip().startswith(first))
    end = next(number for number in range(start, len(lines)) if lines[number].rstrip().endswith(last))
    return "\n".join(lines[start : end + 1]) + "\n"


def test_the_command_for_nvlink() -> None:
    nvlink = commands_of("azure-interconnects.txt", "mpirun")[0]
    assert of(nvlink) == ["mpirun@0 LD_LIBRARY_PATH ?", *COMMON, "mpirun@0 NCCL_NVLS_ENABLE=1"]
    assert slips_of(nvlink) == []


def test_the_command_for_the_nics_of_one_node() -> None:
    nics = commands_of("azure-interconnects.txt", "mpirun")[1]
    last = ["mpirun@0 NCCL_SHM_DISABLE=1", "mpirun@0 NCCL_P2P_DISABLE=1", "mpirun@0 NCCL_NVLS_ENABLE=0"]
    assert of(nics) == ["mpirun@0 LD_LIBRARY_PATH ?", *COMMON, *last]


def test_the_command_for_several_nodes_with_sharp() -> None:
    several = commands_of("azure-interconnects.txt", "mpirun")[2]
    sharp = block_of("azure-interconnects.txt", "sharp_args=", '"')
    found = of(sharp + several)[1:]
    assert found == [
        "mpirun@0 LD_LIBRARY_PATH ?",
        "mca@0 OMPI_MCA_coll_hcoll_enable=0",
        "mpirun@0 UCX_TLS=rc",
        "mpirun@0 UCX_NET_DEVICES=mlx5_ib0:1",
        "mpirun@0 NCCL_IB_HCA=^mlx5_an0:1",
        "mpirun@0 CUDA_DEVICE_ORDER=PCI_BUS_ID",
        "mpirun@0 NCCL_SOCKET_IFNAME=eth0",
        "mpirun@0 NCCL_DEBUG=warn",
        "mpirun@0 NCCL_MIN_NCHANNELS=32",
        "mpirun@0 NCCL_NET_GDR_LEVEL=5",
        "mpirun@0 NCCL_TOPO_FILE ?",
        "mpirun@0 NCCL_NVLS_ENABLE=1",
        "mpirun@0 NCCL_COLLNET_ENABLE=1",
        "mpirun@0 NCCL_ALGO=CollnetDirect,CollnetChain,NVLS",
        "mpirun@0 SHARP_COLL_ENABLE_SAT=1",
        "mpirun@0 SHARP_COLL_LOG_LEVEL=3",
        "mpirun@0 SHARP_COLL_ENABLE_PCI_RELAXED_ORDERING=1",
    ]


def test_the_settings_for_training() -> None:
    script = block_of("azure-interconnects.txt", "export NCCL_TOPO_FILE", 'launch"')
    reading = read(script, "launch.sh", "shell")
    assert told(reading) == [f"export {name}={value}" for name, value in TRAINING.items()]
    (launch,) = reading.launches
    assert (launch.kind, launch.forwards_all, launch.forwards) == ("srun", True, tuple(TRAINING))
    assert ["/opt/microsoft/ndv5-topo.xml" in argument for argument in launch.argv].count(True) == 1


def test_the_commands_about_cpus_whose_line_ends_are_lost() -> None:
    default, aware = commands_of("azure-cpu-pinning.txt", "mpirun")
    common = [
        "mca@0 OMPI_MCA_coll_hcoll_enable=0",
        "mpirun@0 CUDA_DEVICE_ORDER=PCI_BUS_ID",
        "mpirun@0 UCX_TLS=rc",
        "mpirun@0 UCX_NET_DEVICES=mlx5_ib0:1",
        "mpirun@0 NCCL_SOCKET_IFNAME=eth0",
        "mpirun@0 NCCL_DEBUG=WARN",
    ]
    assert of(default) == common
    assert of(aware) == [*common, "mpirun@0 NCCL_TOPO_FILE ?", "mpirun@0 NCCL_IGNORE_CPU_AFFINITY=1"]
    assert {slip.split()[0] for slip in slips_of(aware)} == {"lost_line_end"}


def test_the_settings_for_slingshot() -> None:
    script = block_of("isambard-nccl.txt", "# Force NCCL", 'FI_CXI_RX_MATCH_MODE="hybrid"')
    found = of(script)
    assert len(found) == 19
    assert found[:3] == ["export NCCL_NET=AWS Libfabric", "export NCCL_SOCKET_IFNAME=hsn", "export NCCL_DEBUG=VERSION"]
    assert found[-1] == "export FI_CXI_RX_MATCH_MODE=hybrid"
    assert slips_of(script) == []


def test_the_definition_of_the_container() -> None:
    definition = block_of("isambard-nccl.txt", "Bootstrap:", 'exec "$@"')
    reading = read(definition, "pytorch_multinode.def")
    assert reading.language == "apptainer"
    assert told(reading) == [
        "apptainer CUDA_HOME=/usr/local/cuda",
        "apptainer NCCL_HOME=/opt/slingshot/nccl",
        "apptainer LIBFABRIC_HOME=/host/opt/cray/libfabric/1.22.0",
        "apptainer MPI_HOME=/usr/local/mpi",
        "apptainer TMPDIR=/tmp",
        "apptainer LD_LIBRARY_PATH ?",
    ]
    assert ["`.`" in each.reason for each in reading.unread] == [True]


def test_the_job_that_runs_in_the_container() -> None:
    jobs = "\n".join(lines_of("isambard-nccl.txt"))
    reading = read(jobs[jobs.rindex("#!/bin/bash") : jobs.rindex("Click here")], "bench.sh")
    assert reading.language == "slurm"
    assert [(each.kind, each.within, each.forwards_all) for each in reading.launches] == [
        ("srun", None, True),
        ("container", 0, True),
    ]
    container = reading.launches[1]
    assert container.program is not None
    assert container.argv[container.program].endswith("all_reduce_perf")


def test_the_script_with_spaces_behind_its_equals_signs() -> None:
    script = block_of("oci-nccl.txt", "if[ $shape", "-n $iterations")
    reading = read(script, "oci.sh", "shell")
    found = [f"{each.name}={each.value}" for each in reading.assignments if each.form in {"mpirun", "mca"}]
    assert found == [
        "OMPI_MCA_pml=ucx",
        "NCCL_IB_SL=0",
        "NCCL_IB_TC=41",
        "UCX_TLS=tcp",
        "OMPI_MCA_coll_hcoll_enable=0",
        "NCCL_IB_GID_INDEX=3",
        "NCCL_IB_HCA=",
    ]
    spaces = [slip for slip in reading.slips if slip.kind == "space_after_equals"]
    assert [slip.name for slip in spaces] == ["var_NCCL_IB_HCA", "var_NCCL_IB_HCA", "NCCL_IB_HCA"]
    assert spaces[0].meant is not None
    assert spaces[0].meant.split(",")[:2] == ["=mlx5_1", "mlx5_2"]
    assert "option_equals" in {slip.kind for slip in reading.slips}


@pytest.mark.parametrize("name", [path.name for path in sorted(SEEDS.glob("*.txt"))])
def test_a_whole_article_is_read_without_harm(name: str) -> None:
    reading = read((SEEDS / name).read_text(), name, "shell")
    assert len(reading.assignments) < 200
