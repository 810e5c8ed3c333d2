"""Slips that a grammar makes are found in each variable and option, and what is right beside them is silent."""

import random
import runpy
from itertools import islice
from pathlib import Path

import pytest

from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.env.rules.subject import CheckContext

MADE = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "env" / "slips.py"))
# Each is one of so many; `benchmarks/env/slips.py` tries all of them.
ONE_OF = 160


def codes(text: str, file: str = "job.sh") -> list[str]:
    return [each.code for each in lint(read(text, file), CheckContext()) if each.is_serious]


def sample(kind: str) -> list[tuple[str, str, str]]:
    return list(islice(MADE[kind]("7"), 3, None, ONE_OF))


@pytest.mark.parametrize(("kind", "share"), [("settings", 0.88), ("command_lines", 0.93)])
def test_most_of_the_slips_of_any_variable_and_option_are_found(kind: str, share: float):
    slips = sample(kind)
    missed = [slip.text.splitlines()[1] for slip in slips if not MADE["found"](slip.text)]

    assert len(slips) > 60
    assert len(missed) <= (1 - share) * len(slips), missed


def test_what_variables_and_options_take_is_silent():
    scripts = list(MADE["right"]())
    told = [text for text in random.Random(7).sample(scripts, 120) if MADE["found"](text)]

    assert told == []


# A slip, the same where it is right, and the rule.
SETTINGS = {
    "a word of a manual": ("MPICH_OFI_NIC_POLICY=NUMMA", "MPICH_OFI_NIC_POLICY=numa", "ENV039"),
    "another release's fabric": ("I_MPI_FABRICS=shm,ofi", "I_MPI_FABRICS=shm:tmi", "ENV039"),
    "a list where one may stand": ("OMP_PROC_BIND=spred", "OMP_PROC_BIND=spread,close", "ENV039"),
    "a word for a number": ("SHARP_COLL_LOG_LEVEL=info", "SHARP_COLL_LOG_LEVEL=3", "ENV039"),
    "a name that is put in": ("MASTER_PORT=many", "MASTER_PORT=PORT", "ENV039"),
    "levels of nesting": ("OMP_NUM_THREADS='4;2'", "OMP_NUM_THREADS=4,2", "ENV039"),
    "out of range": ("OMP_NUM_THREADS=0", "OMP_NUM_THREADS=1", "ENV037"),
    "what stoi refuses": ("TORCH_NCCL_ASYNC_ERROR_HANDLING=true", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "ENV033"),
    "a switch of PyTorch": ("TORCH_NCCL_BLOCKING_WAIT=on", "TORCH_NCCL_BLOCKING_WAIT=Yes", "ENV033"),
    "blanks in a list": ("UCX_NET_DEVICES='mlx5_0:1 mlx5_1:1'", "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1", "ENV047"),
    "commas for colons": ("MV2_IBA_HCA=mlx5_0,mlx5_1", "MV2_IBA_HCA=mlx5_0:mlx5_1", "ENV047"),
    "a list with blanks of its own": ("FI_PROVIDER='efa tcp'", "LD_PRELOAD='/a.so /b.so'", "ENV047"),
    "layers of providers": ("FI_PROVIDER=efaa", "FI_PROVIDER='tcp;ofi_rxm'", "ENV047"),
    "a domain": ("I_MPI_PIN_DOMAIN=sockets", "I_MPI_PIN_DOMAIN=socket:compact", "ENV047"),
    "a neighbour's name": ("UCX_IB_DISABLE=1", "UCX_IB_GID_INDEX=1", "ENV020"),
    "a component of MPI for PRRTE": ("PRTE_MCA_btl=tcp", "PRTE_MCA_plm=ssh", "ENV020"),
    "a word twice": ("UCX_LOG_LOG_LEVEL=info", "UCX_LOG_LEVEL=info", "ENV020"),
    "a word left out": ("FI_USE_SM2=1", "FI_OFI_RXM_USE_SRX=1", "ENV020"),
    "a short prefix": ("UX_RNDV_THRESH=8k", "MP_RNDV_THRESH=8k", "ENV020"),
}


@pytest.mark.parametrize(("wrong", "right", "code"), SETTINGS.values(), ids=SETTINGS)
def test_a_setting_is_told_and_its_neighbour_is_not(wrong: str, right: str, code: str):
    assert code in codes(f"#!/bin/bash\nexport {wrong}\nsrun ./app\n")
    assert codes(f"#!/bin/bash\nexport {right}\nsrun ./app\n") == []


LINES = {
    "a word for a number": ("srun -n four ./a", "srun -n ntasks ./a", "ENV111"),
    "an option of another launcher": ("torchrun --npernode 4 t.py", "torchrun --nproc-per-node 4 t.py", "ENV110"),
    "one with one dash": ("srun -np 4 ./a", "srun -n4 ./a", "ENV110"),
    "a launcher in a variable": ("srun --map-by node ./a", 'R=srun\n"$L" --map-by node ./a', "ENV110"),
    "words moved": ("srun --per-task-cpus=4 ./a", "srun --cpus-per-task=4 ./a", "ENV110"),
    "hyphens where underscores are": ("deepspeed --num-gpus 8 t.py", "torchrun --nproc-per-node=8 t.py", "ENV110"),
    "a letter with two dashes": ("jsrun --n 4 ./a", "jsrun -n 4 ./a", "ENV110"),
    "a beginning of several": ("horovodrun -np 8 --host a:8 x", "horovodrun -np 8 --hosts a:8 x", "ENV110"),
    "twice": ("mpirun -np 8 -np 16 ./a", "mpirun -np 8 ./a : -np 16 ./b", "ENV134"),
    "once more the same": ("srun -n 8 --ntasks=4 ./a", "srun -n 8 --ntasks=8 ./a", "ENV134"),
    "ppr the wrong way round": ("mpirun --map-by ppr:node:4 ./a", "mpirun --map-by ppr:4:node:PE=2 ./a", "ENV111"),
    "a runtime's option": ("docker run --gpu all img", "docker run --gpus all -it --rm -m=4g img", "ENV110"),
    "another runtime's": ("apptainer exec --nvidia a.sif ./a", "apptainer exec --nv a.sif ./a --nvidia", "ENV110"),
    "Ray": ("ray start --head --num-gpu=8", "ray start --head --num-gpus=8 --block", "ENV110"),
    "mpirun_rsh": ("mpirun_rsh -np 2 -hostfiles h ./a", "mpirun_rsh -np 2 -hostfile h ./a", "ENV110"),
    "behind the script": (
        "torchrun t.py --nproc_per_node=8",
        "torchrun --nproc_per_node=8 t.py --nproc_per_node=8",
        "ENV113",
    ),
    "behind jsrun's program": ("jsrun ./a --gpu_per_rs 4", "jsrun -c {{ n }} --gpu_per_rs 4 ./a", "ENV113"),
    "an empty variable before": ("horovodrun -H --verbose x", "h=\nhorovodrun -H $h --verbose x", "ENV111"),
    "a unit apart": ("#SBATCH --mem=64 GB\nsrun ./a", "#SBATCH --mem=64GB\nsrun ./a", "ENV133"),
    "pyxis": ("#SBATCH --container-image a b\nsrun ./a", "#SBATCH --container-image a\nsrun ./a", "ENV133"),
    "directives that differ": (
        "#SBATCH -N 2\n#SBATCH --nodes=4\nsrun ./a",
        "#SBATCH -N 2\n#SBATCH hetjob\n#SBATCH --nodes=4\nsrun ./a",
        "ENV134",
    ),
    "a chunk of PBS": ("#PBS -l select=2:ncpu=4\n./a", "#PBS -l select=2:ncpus=4:model=ivy+1:ncpus=1\n./a", "ENV129"),
    "a comma in a chunk": ("#PBS -l nodes=2,ppn=4\n./a", "#PBS -l nodes=2:ppn=4,walltime=1:00:00\n./a", "ENV111"),
    "a site's word": ("#PBS -l nodes=1:ppn=8x\n./a", "#PBS -l nodes=1:ppn=all\n./a", "ENV111"),
    "a time of PBS": ("#PBS -l walltime=24h\n./a", "#PBS -l walltime=<%= hours %>\n./a", "ENV111"),
    "a blank in a list": ("#PBS -l nodes=1, mem=2gb\n./a", "#PBS -l nodes=1 -l mem=2gb\n./a", "ENV111"),
    "a long option of qsub": ("#PBS --walltime=1:00\n./a", "#PBS --group=G1\n./a", "ENV110"),
    "a section of LSF": ('#BSUB -R "span[ptiles=4]"\n./a', '#BSUB -R "span[ptile=4] affinity[core(1)]"\n./a', "ENV129"),
    "a bracket": ('#BSUB -R "span[ptile=4"\n./a', '#BSUB -R "select[ngpus>0] rusage[mem=4]"\n./a', "ENV111"),
    "a mode of GPUs": ('#BSUB -gpu "num=4:mode=exclusive"\n./a', '#BSUB -gpu "num=4:mode=shared"\n./a', "ENV111"),
    "a time of LSF": ("#BSUB -W 24:00:00\n./a", "#BSUB -W 24:00\n./a", "ENV111"),
}


@pytest.mark.parametrize(("wrong", "right", "code"), LINES.values(), ids=LINES)
def test_a_line_is_told_and_its_neighbour_is_not(wrong: str, right: str, code: str):
    assert code in codes(f"#!/bin/bash\n{wrong}\n")
    assert codes(f"#!/bin/bash\n{right}\n") == []


# What public files showed to be no slip.
SILENT = {
    "numbered ones to choose from": 'OPTS1="--phen a"\nOPTS2="--phen b"\nsrun ./a $OPTS1\n',
    "a remark behind a command": "srun ./a $SLURM_JOB_ID # and its $SLURM_TASK_ID\n",
    "a blank more that is printed": "echo a \\ b\nsrun ./a\n",
    "a subshell that is timed": "{ time ( srun ./a ) } 2> t\n",
    "a statement of a template": '{% set mpiexec = "aprun" %}\nsrun ./a\n',
}


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_what_is_no_slip_is_silent(text: str):
    assert codes(f"#!/bin/bash\n{text}") == []


def test_a_log_may_begin_with_its_script():
    text = "#!/bin/bash\nsrun ./a\nCut-off's: 1\n"
    assert codes(text, "a.log") == []
    assert codes(text, "a.sh") == ["ENV019"]


# Command lines of batch systems and clusters: a slip, the same where it is right, and the rule.
SUBMITTED = {
    "a resource": ("qsub -l select=2:ncpu=64 job.sh", "qsub -l select=2:ncpus=64 job.sh", "ENV129"),
    "a time": ("JOB=$(qsub -l walltime=2h job.sh)", "JOB=$(qsub -l walltime=2:00:00 job.sh)", "ENV111"),
    "a resource as an option": ("qsub --walltime=1:00 job.sh", "qsub -j y -pe mpi 16 job.sh", "ENV110"),
    "slots": ("qsub -pe mpi job.sh", "qsub -pe mpi 4-16 job.sh", "ENV111"),
    "an option of bsub": ("bsub -gpus num=4 ./a", "bsub -gpu num=4 ./a -gpus 4", "ENV110"),
    "minutes of bsub": ("bsub -n 4 -W 1h ./a", "bsub -n 4 -W 1:00 ./a -W 1h", "ENV111"),
    "enroot": ("enroot start --mounts /a:/b img ./a", "enroot start --mount /a:/b img ./a --mounts", "ENV110"),
    "helm": ("helm install j ./c --sets e.NCCL_DEBUG=WARN", "helm install j ./c --set e.NCCL_DEBUG=WARN", "ENV110"),
    "a comma of helm": (
        "helm install j c --set NCCL_IB_HCA=a,b",
        "helm install j c --set 'NCCL_IB_HCA=a\\,b,x=1'",
        "ENV008",
    ),
    "kubectl": ("kubectl set env job/t NCCL_DBUG=WARN", "kubectl set env job/t NCCL_DEBUG=WARN", "ENV020"),
    "a word for GPUs": ("srun --gpus-per-task=one ./a", "srun --gpus-per-task=l4 ./a", "ENV111"),
    "a beginning": ("accelerate launch --num_process 8 t.py", "accelerate launch --num_processes 8 t.py", "ENV110"),
}


@pytest.mark.parametrize(("wrong", "right", "code"), SUBMITTED.values(), ids=SUBMITTED)
def test_a_line_of_a_batch_system_or_cluster_is_told_and_its_neighbour_is_not(wrong: str, right: str, code: str):
    assert code in codes(f"#!/bin/bash\n{wrong}\n")
    assert codes(f"#!/bin/bash\n{right}\n") == []


@pytest.mark.parametrize(
    "said", ["of threads, use the\n--use-hwthread-cpus option.", "$> eb --version\n-bash: eb: not found"]
)
def test_a_sentence_or_a_message_is_no_command_that_goes_on(said: str):
    assert "ENV005" not in codes(f"```bash\n{said}\n```\n", "a.md")
    assert "ENV005" in codes("```bash\nmpirun -np 4\n--bind-to core ./a\n```\n", "a.md")


def test_a_path_of_a_maker_with_other_capitals_is_left_alone():
    assert "ENV131" not in codes("export ACL=/opt/Intel/OpenCLFPGA/oneAPI\n")
    assert "ENV131" in codes("export ACL=/opt/Intel/oneapi\n")
