"""What launchers are asked for: bindings and the lack of them, masks, shares of a node, options that are none."""

import pytest

from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.model.finding import Finding

from .corpus import context_of


def found(text: str, code: str, platform: str | None = None) -> list[Finding]:
    return [each for each in lint(read(text, "job.sh"), context_of(platform=platform)) if each.code == code]


NDV4 = "mpirun -np 16 --map-by ppr:8:node -hostfile h ./all_reduce_perf -b 8\n"


def test_what_each_mpi_does_without_a_binding_is_told_by_name():
    (each,) = found("mpirun -np 8 ./all_reduce_perf -b 8\n", "ENV120", "azure-ndv4")

    assert each.title.startswith("default puts ranks")
    assert "under HPC-X 2" in each.title
    assert "under Open MPI 5.0" in each.title
    assert "Open MPI 4.1" in each.title


@pytest.mark.parametrize(
    "text",
    [
        "module load intel-oneapi-mpi/2021.13\nmpirun -n 16 -ppn 8 -hosts a,b ./all_reduce_perf\n",
        "export I_MPI_FABRICS=shm:ofi\nmpiexec.hydra -n 8 -ppn 8 ./all_reduce_perf\n",
        "mpirun -genv I_MPI_DEBUG 5 -n 8 -ppn 8 ./all_reduce_perf\n",
    ],
)
def test_intel_mpi_deals_out_even_shares_of_neighbours_where_nothing_is_said(text: str):
    (each,) = found(text, "ENV120", "azure-ndv4")
    assert each.title.startswith("default puts ranks 0-7 under Intel MPI on another")
    assert "rank 0 would run on CPUs 0-11 under Intel MPI" in each.evidence
    # There the GPUs lie in the order of the NUMA nodes.
    assert found(text, "ENV120", "azure-nd-h100-v5") == []


@pytest.mark.parametrize(
    "text",
    [
        "module load intel-mpi\nexport I_MPI_PIN=0\nmpirun -n 8 -ppn 8 ./app\n",
        "module load impi/2021.9\nmpirun -n 8 -ppn 8 -genv I_MPI_PIN_DOMAIN numa ./app\n",
        "module load mpich/4.2\nmpiexec -n 8 ./app\n",
        "module load mpich/4.2\nmpiexec -n 8 -bind-to numa ./app\n",
        "mpiexec.hydra -n 8 -bind-to numa ./app\n",
        "module load mvapich2\nmpirun -n 8 ./app\n",
    ],
)
def test_what_another_mpi_is_told_or_does_not_bind_is_left_alone(text: str):
    assert found(text, "ENV120", "azure-ndv4") == []


@pytest.mark.parametrize(
    "line",
    [
        "mpirun -np 8 ./bind.sh ./all_reduce_perf",
        "mpirun -np 8 numactl --cpunodebind=0 ./app",
        "mpirun -np 2 -npernode 1 ./all_reduce_perf -g 8",
        "mpirun -np 8 --rankfile rf ./app",
        "mpirun -np 8 --bindto core ./app",
        "mpirun -np 8 --bind-to none ./app",
        "mpirun -np 8 --mca hwloc_base_binding_policy none ./app",
        "mpirun -np $N ./app",
        "mpiexec.hydra -ppn 8 -n 8 -genv NCCL_SOCKET_IFNAME eth0 ./app",
        "srun -n 8 ./app",
        "mpirun -np 16 -hostfile h ./app",
    ],
)
def test_a_binding_from_elsewhere_and_one_that_nobody_can_tell_are_left_alone(line: str):
    assert found(f"{line}\n", "ENV120", "azure-ndv4") == []


@pytest.mark.parametrize(
    "line",
    [
        "mpirun -np 16 --map-by ppr:8:node -hostfile h ./all_reduce_perf -b 4\n",
        "mpirun -hostfile h -N 8 -n 16 ./all_reduce_perf -b 4\n",
    ],
)
def test_ranks_that_are_counted_by_node_and_not_bound_are_bound_by_their_mapping(line: str):
    (each,) = found(line, "ENV120", "azure-nd-h100-v5")

    assert each.title.startswith("--map-by ppr:8:node puts ranks 4-7 under HPC-X 2, ranks 1,3-4,6 under Open MPI 4.1")


def test_fewer_ranks_than_a_node_has_gpus_are_left_alone():
    assert found("mpirun -np 4 --map-by ppr:8:node ./app\n", "ENV120", "azure-nd-h100-v5") == []


def test_each_mpi_has_its_own_wrong_ranks():
    (each,) = found("mpirun -np 8 --bind-to numa --map-by ppr:8:node ./app\n", "ENV120", "azure-nd-h100-v5")

    assert "under" in each.title
    assert each.title.count("rank") >= 2


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("srun --cpu-bind=mask_cpu:fff,ff8,fff000 ./app\n", ["ENV121"]),
        ("srun --cpu-bind=verbose,mask_cpu:0xff,0xff0 ./app\n", ["ENV121"]),
        ("srun --cpu-bind map_cpu:0,4,4,8 ./app\n", ["ENV121"]),
        ("export I_MPI_PIN_DOMAIN=[ff,1fe]\nmpirun -n 2 ./app\n", ["ENV121"]),
        # Tasks of one NUMA node may share all of it.
        ("srun --cpu-bind=mask_cpu:ffffff,ffffff,ffffff000000 ./app\n", []),
        ("srun --cpu-bind=mask_cpu:fff,fff000 ./app\n", []),
        ("srun --cpu-bind=mask_cpu:$MASKS ./app\n", []),
        ("export I_MPI_PIN_DOMAIN=numa\nmpirun -n 2 ./app\n", []),
    ],
)
def test_masks_that_overlap_are_told(text: str, codes: list[str]):
    assert [each.code for each in found(text, "ENV121")] == codes


ISAMBARD = "isambard-ai-phase2"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("srun -N 2 --gpus 8 --cpus-per-task 72 ./all_reduce_perf -g 4\n", "ENV122", "72 CPUs for a task with 4 GPUs"),
        ("#!/bin/bash\n#SBATCH -N 1\n#SBATCH --gpus-per-node=4\n#SBATCH -c 64\nsrun ./train\n", "ENV122", "64 CPUs"),
        ("srun -N 2 --ntasks-per-node=4 --gpus-per-task=1 --cpus-per-task=72 ./app\n", "ENV122", None),
        ("srun -N 2 --gpus 8 --cpus-per-task 288 ./all_reduce_perf -g 4\n", "ENV122", None),
        ("srun -N 2 --ntasks-per-node=4 -c 96 ./app\n", "ENV123", "--cpus-per-task=96 cannot be had"),
        ("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks=8\n#SBATCH -c80\nsrun a\n", "ENV123", "--cpus-per-task=80"),
        ("srun -N 1 --gpus-per-node=8 ./app\n", "ENV123", "8 GPUs of a node"),
        ("#!/bin/bash\n#SBATCH --gres=gpu:h100:8\nsrun ./app\n", "ENV123", "8 GPUs of a node"),
        ("srun -N 2 --ntasks-per-node=4 -c 72 --gpus-per-node=4 ./app\n", "ENV123", None),
        ("srun --gres=gpu:gh200:4 -c $C ./app\n", "ENV123", None),
    ],
)  # fmt: skip
def test_shares_of_a_node_are_held_against_the_node(text: str, code: str, says: str | None):
    titles = [each.title for each in found(text, code, ISAMBARD)]

    assert len(titles) == (says is not None)
    assert all(says in title for title in titles if says is not None)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("mpirun --bindto numa -np 8 ./app", "--bind-to"),
        ("mpirun -np 8 --mapby ppr:8:node ./app", "--map-by"),
        ("mpirun -np 8 --map_by node ./app", "--map-by"),
        ("srun --cpubind=none ./app", "--cpu-bind"),
        ("srun --cpus_per_task=8 ./app", "--cpus-per-task"),
        ("mpirun -bind-to numa -map-by node -np 8 ./app", None),
        ("srun --cpu_bind=none --cpu-bind=none ./app", None),
        ("mpirun -np 8 ./app --bindto x", None),
    ],
)
def test_an_option_that_is_none_is_an_error_and_says_what_was_meant(line: str, meant: str | None):
    assert [(each.severity, each.fix) for each in found(f"{line}\n", "ENV110")] == (
        [] if meant is None else [("error", meant)]
    )


@pytest.mark.parametrize("option", ["--bindto core", "--bind_to core", "-mapby node", "--mapBy node", "--bind-to core"])
def test_what_follows_an_option_of_the_wrong_name_is_not_the_program(option: str):
    text = f"mpirun -np 8 {option} -x NCCL_DEBUG=WARN --bind-to none ./all_reduce_perf -g 1\n"

    assert [each.code for code in ("ENV018", "ENV113") for each in found(text, code)] == []
    assert len(found(text.replace("DEBUG", "DEBUGG"), "ENV020")) == 1


def test_a_flag_of_the_wrong_name_takes_no_value():
    text = "mpirun -np 8 --report_bindings ./all_reduce_perf --bind-to none -g 1\n"

    assert [each.fix for each in found(text, "ENV113")] == ["--bind-to none before ./all_reduce_perf"]


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("export FI_CXI_RDZV_PROTO=alt_read\nsrun -N 2 ./app\n", True),
        ("export FI_CXI_RDZV_PROTO=alt_read\nsrun -N 2 --network=single_node_vni ./app\n", True),
        ("export FI_CXI_RDZV_PROTO=alt_read\nsrun -N 2 --network=disable_rdzv_get ./app\n", False),
        ("#!/bin/bash\n#SBATCH --network=disable_rdzv_get\nexport FI_CXI_RDZV_PROTO=alt_read\nsrun ./app\n", False),
        ("export FI_CXI_RDZV_PROTO=default\nsrun -N 2 ./app\n", False),
        ("export FI_CXI_RDZV_PROTO=alt_read\nsrun -N 2 --network=$NET ./app\n", False),
        ("srun -N 2 --network=disable_rdzv_get ./app\n", False),
    ],
)
def test_the_other_rendezvous_needs_nics_that_are_switched(text: str, *, is_told: bool):
    assert bool(found(text, "ENV071")) == is_told


@pytest.mark.parametrize(
    ("setting", "is_told"),
    [
        ("UCX_NET_DEVICES==mlx5_0:1", True),
        ("UCX_NET_DEVICES===mlx5_0:1,mlx5_1:1", True),
        ("GLOO_SOCKET_IFNAME==eth0", True),
        ("UCX_NET_DEVICES=mlx5_0:1", False),
        ("UCX_NET_DEVICES=^mlx5_0:1", False),
        ("NCCL_SOCKET_IFNAME==eth0", False),
    ],
)
def test_an_operator_of_nccl_is_part_of_the_name_elsewhere(setting: str, *, is_told: bool):
    assert bool(found(f"export {setting}\nmpirun -np 2 ./app\n", "ENV041")) == is_told


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("UCX_NET_DEVICES==mlx5_0:1,mlx5_1:1", 'there is no device "=mlx5_0:1"'),
        ("UCX_TLS==rc,cuda_copy", 'there is no transport "=rc"'),
    ],
)
def test_what_is_not_there_is_named_by_its_kind_and_once(setting: str, says: str):
    (each,) = found(f"export {setting}\nmpirun -np 2 ./app\n", "ENV041")

    assert (each.effect or "").endswith(says)


@pytest.mark.parametrize(
    ("settings", "chunk"),
    [
        ("NCCL_P2P_NET_CHUNKSIZE=2097152", "524288"),
        ("NCCL_P2P_NVL_CHUNKSIZE=1048576 NCCL_BUFFSIZE=4194304", "524288"),
        ("NCCL_P2P_PCI_CHUNKSIZE=1048576 NCCL_BUFFSIZE=2097152", "262144"),
        ("NCCL_P2P_NET_CHUNKSIZE=524288", None),
        ("NCCL_P2P_NET_CHUNKSIZE=2097152 NCCL_BUFFSIZE=16777216", None),
        ("NCCL_P2P_NET_CHUNKSIZE=2097152 NCCL_BUFFSIZE=$B", None),
    ],
)
def test_a_chunk_is_an_eighth_of_the_buffer_at_most(settings: str, chunk: str | None):
    effects = [each.effect or "" for each in found(f"export {settings}\nsrun ./app\n", "ENV066")]

    assert [effect.rpartition(" ")[2] for effect in effects] == ([] if chunk is None else [chunk])


@pytest.mark.parametrize(
    ("algorithms", "program", "code"),
    [
        ("Tree", "broadcast_perf", "ENV061"),
        ("Tree", "reduce_scatter_perf", "ENV061"),
        ("CollNetDirect,CollNetChain", "all_gather_perf", None),
        ("Tree", "all_reduce_perf", None),
        ("Tree", "alltoall_perf", None),
        ("Ring", "broadcast_perf", None),
        ("Tree", "train", "ENV067"),
    ],
)
def test_a_list_without_what_the_program_calls_fails(algorithms: str, program: str, code: str | None):
    text = f"mpirun -np 16 -H a:8,b:8 -x NCCL_ALGO={algorithms} -x NCCL_COLLNET_ENABLE=1 ./{program}\n"
    codes = [each.code for name in ("ENV061", "ENV067") for each in found(text, name)]

    assert codes == ([] if code is None else [code])


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("bash -c './build/reduce_scatter_perf -b 1M -g 1'", "ENV061"),
        ('bash -c "cd /tmp; (./broadcast_perf -g 1)"', "ENV061"),
        ("bash -c './all_reduce_perf -g 1 > all_gather_perf.txt'", None),
    ],
)
def test_what_a_shell_is_handed_is_the_program_too(command: str, code: str | None):
    text = f"mpirun -np 16 -H a:8,b:8 -x NCCL_ALGO=Tree {command}\n"
    codes = [each.code for name in ("ENV061", "ENV067") for each in found(text, name)]

    assert codes == ([] if code is None else [code])


def test_the_name_of_a_queue_of_ucx_is_known():
    (each,) = found("export UCX_RX_QUEUE_LEN=1024\nmpirun -np 2 ./app\n", "ENV020")

    assert each.fix is not None
    assert "UCX_IB_RX_QUEUE_LEN" in each.fix
    assert found("export UCX_IB_RX_QUEUE_LEN=1024\nmpirun -np 2 ./app\n", "ENV020") == []


SCRIPT = "#!/bin/bash\nmodule purge\n{0}\nmpirun -np 8 ./all_reduce_perf -b 8\n"


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("module load openmpi/4.1.5", "0,2-5,7"),
        ("module load gcc/13 openmpi4/4.1.1 cuda", "0,2-5,7"),
        ("ml OpenMPI/5.0.3-GCC-13.3.0", "0-1,4-7"),
        ("module load hpcx", "0,2-5,7"),
    ],
)
def test_where_a_script_loads_its_mpi_the_ranks_of_that_alone_are_told(line: str, ranks: str):
    (each,) = found(SCRIPT.format(line), "ENV120", "azure-ndv4")

    assert each.title.startswith(f"default puts ranks {ranks} under ")
    assert each.title.endswith(" on another NUMA node than their GPUs")


@pytest.mark.parametrize("module", ["mpich/4.2", "cray-mpich", "mvapich2", "mpi/mpich-x86_64"])
def test_what_open_mpi_does_unasked_says_nothing_of_another_mpi(module: str):
    assert found(SCRIPT.format(f"module load {module}"), "ENV120", "azure-ndv4") == []


@pytest.mark.parametrize("module", ["cuda/12.4", "mpi", "mpi/openmpi-x86_64"])
def test_a_module_that_does_not_say_which_mpi_leaves_it_open(module: str):
    (each,) = found(SCRIPT.format(f"module load {module}"), "ENV120", "azure-ndv4")

    assert "under Open MPI 4.1" in each.title
    assert "under Open MPI 5.0" in each.title
