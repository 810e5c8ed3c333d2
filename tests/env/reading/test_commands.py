"""What command lines set, through every program on them, and what the launchers pass on."""

import pytest

from busbw.env.reading import read

from .wording import launches_of, of

# A command line, what it sets, and what its launchers pass on.
CORPUS = {
    "Open MPI": (
        "mpirun -np 8 --bind-to numa -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -mca coll_hcoll_enable 0 ./x -x NO=1",
        ["mpirun@0 NCCL_DEBUG=INFO", "mca@0 OMPI_MCA_coll_hcoll_enable=0"],
        ["mpirun Open MPI [NCCL_DEBUG,LD_LIBRARY_PATH] False"],
    ),
    "Open MPI 5's runtime": (
        "mpirun --prtemca ess_base_verbose 5 --pmixmca a b --omca c d ./x",
        ["mca@0 PRTE_MCA_ess_base_verbose=5", "mca@0 PMIX_MCA_a=b", "mca@0 OMPI_MCA_c=d"],
        ["mpirun Open MPI [] False"],
    ),
    "mca_base_env_list": (
        "mpirun --mca mca_base_env_list 'A=b;C;D=e f' ./x",
        ["mpirun@0 A=b", "mpirun@0 D=e f"],
        ["mpirun Open MPI [A,C,D] False"],
    ),
    "patterns": ("mpirun -x 'NCCL_*' ./x", [], ["mpirun Open MPI [NCCL_*] False"]),
    "several programs": (
        "mpirun -n 1 -x A=b ./x : -n 2 -x C=d ./y",
        ["mpirun@0 A=b", "mpirun@0 C=d"],
        ["mpirun Open MPI [A,C] False"],
    ),
    "an mpirun that may be any": ("mpirun -np 4 ./x", [], ["mpirun None [] None"]),
    "an absolute path": ("/opt/hpcx/ompi/bin/mpirun -x A=b ./x", ["mpirun@0 A=b"], ["mpirun Open MPI [A] False"]),
    "prterun": ("prterun -n 4 ./x", [], ["mpirun Open MPI [] False"]),
    "MPICH": ("mpiexec -genv A b -env C d -n 4 ./x", ["mpirun@0 A=b", "mpirun@0 C=d"], ["mpirun MPICH [A,C] True"]),
    "MPICH with one word": ("mpiexec.hydra -genv A=b -n 4 ./x", ["mpirun@0 A=b"], ["mpirun MPICH [A] True"]),
    "MPICH with a list": ("mpiexec -genvlist A,B -n 4 ./x", [], ["mpirun MPICH [A,B] False"]),
    "MPICH with nothing": ("mpiexec -genvnone -n 4 ./x", [], ["mpirun MPICH [] False"]),
    "Intel MPI": (
        "mpirun -ppn 8 -genv I_MPI_FABRICS shm:ofi ./x",
        ["mpirun@0 I_MPI_FABRICS=shm:ofi"],
        ["mpirun Intel MPI [I_MPI_FABRICS] True"],
    ),
    "MVAPICH": (
        "mpirun_rsh -np 2 -hostfile h A=b C=d ./x E=f",
        ["mpirun@0 A=b", "mpirun@0 C=d"],
        ["mpirun MVAPICH [A,C] False"],
    ),
    "jsrun": ("jsrun -n 2 -E A=b -ED=e ./x", ["mpirun@0 A=b", "mpirun@0 D=e"], ["mpirun IBM Spectrum MPI [A,D] True"]),
    "aprun": ("aprun -n 2 -e A=b ./x", ["mpirun@0 A=b"], ["mpirun ALPS [A] True"]),
    "flux": ("flux run -n 2 --env=A=b ./x", ["mpirun@0 A=b"], ["mpirun Flux [A] True"]),
    "srun": ("srun -N2 --mpi=pmix ./x --export=NONE", [], ["srun Slurm [] True"]),
    "srun that exports": (
        "srun --export=ALL,A=b,C ./x",
        ["srun@0 A=b"],
        ["srun Slurm [ALL,A,C] True"],
    ),
    "srun that exports this only": ("srun --export A=b ./x", ["srun@0 A=b"], ["srun Slurm [A] False"]),
    "srun that exports nothing": ("srun --export=NONE ./x", [], ["srun Slurm [NONE] False"]),
    "a list with commas for Slurm": (
        "srun --export=ALL,\"NCCL_IB_HCA='mlx5_0,mlx5_1'\" ./x",
        ["srun@0 NCCL_IB_HCA=mlx5_0,mlx5_1"],
        ["srun Slurm [ALL,NCCL_IB_HCA] True"],
    ),
    "a list that Slurm cuts": (
        "srun --export=ALL,NCCL_IB_HCA=mlx5_0,mlx5_1 ./x",
        ["srun@0 NCCL_IB_HCA=mlx5_0"],
        ["srun Slurm [ALL,NCCL_IB_HCA,mlx5_1] True"],
    ),
    "a directive": (
        "#SBATCH --export=NONE\n#SBATCH --nodes=2\nsrun ./x",
        [],
        ["srun Slurm [] False"],
    ),
    "a directive that sets": ("#SBATCH --export=ALL,A=b\nsrun ./x", ["srun A=b"], ["srun Slurm [] True"]),
    "a directive of PBS": ("#PBS -l select=2 -v A=b,C\n./x", ["srun A=b"], []),
    "sbatch": ("sbatch --export=ALL,A=b job.sh", ["srun@0 A=b"], ["other Slurm sbatch [ALL,A] True"]),
    "sbatch --wrap": (
        "sbatch --wrap='export A=b; srun ./x'",
        ["export@0 A=b"],
        ["other Slurm sbatch [] True", "srun Slurm [] True"],
    ),
    "pyxis": (
        "srun --container-image=i --container-env=A,B --container-mounts=/a:/b bash -c 'C=d ./x'",
        ["prefix@0 C=d"],
        ["srun Slurm [A,B] True"],
    ),
    "docker": (
        "docker run --rm -it --gpus all --network host -e A=b -eC=d --env E=f --env=G=h -e I image ./x -e NO=1",
        ["container@0 A=b", "container@0 C=d", "container@0 E=f", "container@0 G=h"],
        ["container docker [A,C,E,G,I] False"],
    ),
    "podman": ("podman run --env-host --env A=b i ./x", ["container@0 A=b"], ["container podman [A] True"]),
    "docker build": ("docker build -t x .", [], []),
    "apptainer": (
        "apptainer exec --nv --env A=b,C=d --bind /a:/b i.sif ./x",
        ["container@0 A=b", "container@0 C=d"],
        ["container apptainer [A,C] True"],
    ),
    "apptainer with one list": (
        "apptainer exec --env NCCL_IB_HCA=mlx5_0,mlx5_1 i.sif ./x",
        ["container@0 NCCL_IB_HCA=mlx5_0,mlx5_1"],
        ["container apptainer [NCCL_IB_HCA] True"],
    ),
    "singularity that keeps the host out": (
        "singularity exec --cleanenv i.sif ./x",
        [],
        ["container singularity [] False"],
    ),
    "enroot": ("enroot start -e A=b -m /a:/b i ./x", ["container@0 A=b"], ["container enroot [A] None"]),
    "Charliecloud, which takes one pair of single quotes off": (
        "ch-run \"--set-env=A='^b'\" '--set-env=B=\"c\"' ./img -- ./x",
        ["container@0 A=^b", 'container@0 B="c"'],
        ["container ch-run [A,B] True"],
    ),
    "Charliecloud": ("ch-run --set-env=A=b ./img -- ./x", ["container@0 A=b"], ["container ch-run [A] True"]),
    "a container inside a container's launcher": (
        "mpirun -x A=b apptainer exec --env C=d i.sif bash -c 'export E=f; env G=h ./x'",
        ["mpirun@0 A=b", "container@1 C=d", "export@1 E=f", "prefix@1 G=h"],
        ["mpirun Open MPI [A] False", "container apptainer [C] True"],
    ),
    "mpirun in a container": (
        'docker run -e A=b i bash -c "mpirun --allow-run-as-root -x C=d ./x"',
        ["container@0 A=b", "mpirun@1 C=d"],
        ["container docker [A] False", "mpirun Open MPI [C] False"],
    ),
    "torchrun": ("A=b torchrun --nproc-per-node 8 train.py", ["prefix@0 A=b"], ["torchrun torchrun [] True"]),
    "torch.distributed": ("python3 -m torch.distributed.run --nnodes 2 x.py", [], ["torchrun torchrun [] True"]),
    "deepspeed": ("A=b deepspeed --hostfile h x.py", ["prefix@0 A=b"], ["torchrun deepspeed [] True"]),
    "ssh": ("export A=b\nssh host1 'C=d ./x'", ["export A=b", "prefix@0 C=d"], ["other ssh [] False"]),
    "pdsh": ("pdsh -w n[1-4] A=b ./x", ["prefix@0 A=b"], ["other pdsh [] False"]),
    "programs in front": (
        "time nice -n 5 numactl --cpunodebind=0 -m 0 taskset -c 0-3 timeout -k 5 60 mpirun -x A=b ./x",
        ["mpirun@0 A=b"],
        ["mpirun Open MPI [A] False"],
    ),
    "a profiler in front": (
        "nsys profile -o out -t cuda env A=b mpirun ./x",
        ["prefix@0 A=b"],
        ["mpirun None [] None"],
    ),
    "a prefix before a launcher": ("A=b mpirun -x A ./x", ["prefix@0 A=b"], ["mpirun Open MPI [A] False"]),
    "remarks within a command": (
        "docker run \\\n `# --- a remark ---` \\\n -e A=b \\\n image ./x",
        ["container@0 A=b"],
        ["container docker [A] False"],
    ),
    "a command line that a function is given": (
        'M="mpirun -np 2 -x A=b"\nM+=" -x C=d ./x"\nrun_test "$M" "failed"',
        ["shell M=mpirun -np 2 -x A=b", "shell M=mpirun -np 2 -x A=b -x C=d ./x", "mpirun@0 A=b", "mpirun@0 C=d"],
        ["mpirun Open MPI [A,C] False"],
    ),
    "a command that a function is given": (
        "retry 3 mpirun -x A=b ./x",
        ["mpirun@0 A=b"],
        ["mpirun Open MPI [A] False"],
    ),
    "a command that is only named": ("echo mpirun -x A=b; which mpirun; log 'mpirun -x A=b ./x'", [], []),
    "options in a list": (
        'ARGS=(-x A=b --mca pml ucx)\nARGS+=(-x "C=d e")\nmpirun "${ARGS[@]}" ./x',
        ["mpirun@0 A=b", "mca@0 OMPI_MCA_pml=ucx", "mpirun@0 C=d e"],
        ["mpirun Open MPI [A,C] False"],
    ),
    "options in a text": (
        'O="-x A=b"\nO="$O -x C=d"\nmpirun $O ./x',
        ["shell O=-x A=b", "shell O=-x A=b -x C=d", "mpirun@0 A=b", "mpirun@0 C=d"],
        ["mpirun Open MPI [A,C] False"],
    ),
    "options that a branch adds": (
        "O=(-x A=b)\nif x; then O+=(-x C=d); fi\nmpirun ${O[@]} ./x",
        ["mpirun@0 A=b", "mpirun@0 C=d"],
        ["mpirun Open MPI [A,C] False"],
    ),
    "a value that branches decide": (
        "if x; then H==mlx5_0; else H==mlx5_1; fi\nmpirun -x NCCL_IB_HCA=$H ./x",
        ["shell H==mlx5_0", "shell H==mlx5_1", "mpirun@0 NCCL_IB_HCA==mlx5_0|=mlx5_1"],
        ["mpirun Open MPI [NCCL_IB_HCA] False"],
    ),
    "a command in a variable": (
        "M='mpirun -x A=b'\n$M ./x\n$M ./y",
        ["shell M=mpirun -x A=b", "mpirun@0 A=b", "mpirun@1 A=b"],
        ["mpirun Open MPI [A] False"] * 2,
    ),
}


@pytest.mark.parametrize(("line", "sets", "launches"), CORPUS.values(), ids=CORPUS.keys())
def test_a_command_line_sets_and_passes_on(line: str, sets: list[str], launches: list[str]) -> None:
    assert of(line) == sets
    assert launches_of(line) == launches


def test_a_launch_says_where_its_program_begins_and_what_starts_it() -> None:
    reading = read("mpirun -np 2 -x A=b apptainer exec --nv i.sif ./x -n 1", "script", "shell")
    outer, inner = reading.launches
    assert outer.program is not None
    assert inner.program is not None
    assert outer.argv[outer.program] == "apptainer"
    assert inner.argv[inner.program :] == ("./x", "-n", "1")
    assert (outer.within, inner.within) == (None, 0)


@pytest.mark.parametrize(
    "line", ["mpirun $ARGS ./x", 'srun "$@"', "docker run ${OPTIONS[@]} image", "mpirun $(args) ./x"]
)
def test_a_launch_with_options_from_elsewhere_says_that_it_may_pass_on_more(line: str) -> None:
    (launch,) = read(line, "script", "shell").launches
    assert launch.computed


def test_arguments_that_are_not_known_are_shown_as_written() -> None:
    (launch,) = read('mpirun -np $(( 2 * 8 )) -H "$HOSTS" ./x', "script", "shell").launches
    assert launch.argv == ("mpirun", "-np", "$(( 2 * 8 ))", "-H", '"$HOSTS"', "./x")
