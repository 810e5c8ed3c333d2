"""Lines that set nothing though they look so, and scripts that Slurm reads otherwise; each with a neighbour."""

import pytest

from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.env.rules.subject import CheckContext


def codes(text: str, file: str = "job.sh") -> list[str]:
    return [each.code for each in lint(read(text, file), CheckContext())]


def script(line: str) -> str:
    return f"#!/bin/bash\n{line}\nsrun ./app\n"


# A line, the same where it is right, and the rule.
LINES = {
    "a blank in a list": ("export UCX_TLS=self, tcp", "export UCX_TLS=self,tcp", "ENV128"),
    "a list before another setting": (
        "export NCCL_IB_HCA=mlx5_0, mlx5_1",
        "export NCCL_IB_HCA=mlx5_0 NCCL_DEBUG=WARN",
        "ENV128",
    ),
    "a semicolon in a list": ("export NCCL_IB_HCA=mlx5_0;mlx5_1", "export NCCL_IB_HCA=mlx5_0;module list", "ENV128"),
    "a dollar sign before the name": ("export $NCCL_NET=IB", "export NCCL_NET=$NCCL_NET", "ENV128"),
    "a colon for an equals sign": ("export NCCL_NET:IB", "export NCCL_NET=IB:1", "ENV128"),
    "set": ("set NCCL_NET=IB", "set -- NCCL_NET=IB", "ENV128"),
    "a shell of its own": ("(export NCCL_NET=IB)", "(export NCCL_NET=IB; srun ./a)", "ENV128"),
    "in the background": ("export NCCL_NET=IB &", "export NCCL_NET=IB && srun ./a &", "ENV128"),
    "in a pipe": ("export NCCL_NET=IB | tee log", "export NCCL_NET=IB || true", "ENV128"),
    "a variable of Slurm": ("./a -n $SLURM_NNODE", "./a -n $SLURM_NNODES", "ENV029"),
    "two words of one": ("./a $SLURM_LOCAL_ID", "SLURM_LOCAL_ID=3\n./a $SLURM_LOCAL_ID", "ENV029"),
    "a default for what is not set": ("./a ${SLURM_NNODE}", "./a ${SLURM_NNODE:-2}", "ENV029"),
    "a name that a site made up": ("./a $SLURM_JOB_NODELIS", "./a $SLURM_SITE_SCRATCH", "ENV029"),
    "a binding": ("srun --cpu-bind=rank_ldoms ./a", "srun --cpu-bind=v,Cores ./a", "ENV129"),
    "a binding with a list": (
        "srun --cpu-bind=cores,spread ./a",
        "srun --cpu-bind=verbose,mask_cpu:0xff,0xff00 ./a",
        "ENV129",
    ),
    "a program called as a device": (
        "mpirun --mca btl_tcp_if_exclude lo docker0 ./a",
        "mpirun --mca btl_tcp_if_exclude lo,docker0 ./a",
        "ENV125",
    ),
    "variables for torchrun": (
        "torchrun -x NCCL_DEBUG=WARN --nnodes 2 t.py",
        "mpirun -x NCCL_DEBUG=WARN torchrun --nnodes 2 t.py",
        "ENV110",
    ),
    "variables for srun": ("srun -x NCCL_DEBUG=WARN ./a", "srun -x node7 ./a", "ENV110"),
    "a setting behind a program of Python": (
        "mpirun -np 2 python t.py -x NCCL_DEBUG=WARN",
        "mpirun -np 2 python launch.py mpirun -x NCCL_DEBUG=WARN ./a",
        "ENV113",
    ),
    "only some variables": (
        "export LOGLEVEL=3\nsrun --export=NCCL_DEBUG ./a",
        "export LOGLEVEL=3\nsrun --export=PATH,NCCL_DEBUG ./a",
        "ENV103",
    ),
    "all of them in small letters": (
        "export NCCL_NET=IB\nsrun --export=NONE ./a",
        "export NCCL_NET=IB\nsrun --export=All ./a",
        "ENV103",
    ),
    "interfaces for NICs": ("export NCCL_IB_HCA=hsn0,hsn1", "export NCCL_IB_HCA=rocep1s0,mlx5_bond_0", "ENV047"),
    "a transport of UCX": ("export UCX_TLS=rc,cuda_cpy", "export UCX_TLS=^rc_x,cuda,ext_new", "ENV047"),
    "a name without its last letter": (
        "export MPICH_GPU_SUPPORT_ENABLE=1",
        "export MPICH_GPU_SUPPORT_ENABLED=1",
        "ENV020",
    ),
    "a parameter without MCA": ("export OMPI_pml=ucx", "export OMPI_CC=gcc", "ENV020"),
    "export misspelt": ("exprot NCCL_NET=IB", "expect NCCL_NET=IB", "ENV128"),
    "export in capitals": ("EXPORT NCCL_NET=IB", "EXPORT() { :; }\nEXPORT NCCL_NET=IB", "ENV128"),
    "no equals sign": ("export NCCL_NET IB", "NCCL_NET=IB\nexport NCCL_NET NCCL_DEBUG", "ENV128"),
    "two that are set elsewhere": ("export NCCL_DEBUG INFO", "INFO=1\nexport NCCL_DEBUG INFO", "ENV128"),
    "a blank in an exclusion": (
        "export NCCL_SOCKET_IFNAME=^docker0 lo",
        "export NCCL_SOCKET_IFNAME=^docker0 low",
        "ENV128",
    ),
    "a sign within a name": (
        "export NCCL_SOCKET_IFNAME=docker0^,lo",
        "export NCCL_SOCKET_IFNAME=^docker0,lo",
        "ENV041",
    ),
    "semicolons between transports": ("export UCX_TLS='rc;ud'", "export UCX_TLS='rc,ud'", "ENV047"),
    "a blank in what is exported": (
        "srun --export=ALL NCCL_NET=IB ./a",
        "srun --export=ALL env NCCL_NET=IB ./a",
        "ENV125",
    ),
    "a colon behind -x": ("mpirun -x NCCL_NET:IB ./a", "mpirun -x NCCL_SOCKET_IFNAME=eth0:1 ./a", "ENV128"),
    "an option of torchrun": (
        "torchrun --nprocs_per_node 8 t.py",
        "torchrun --nproc-per-nod 8 t.py --nprocs_per_node 8",
        "ENV110",
    ),
    "an option of a module": (
        "torchrun --nprocs_per_node 8 -m t",
        "torchrun --nnodes 2 -m t train --log_dirs x",
        "ENV110",
    ),
    "an option of accelerate": (
        "accelerate launch --num_process_ 2 t.py",
        "accelerate launch --num-processes 2 t.py --num_process_ 2",
        "ENV110",
    ),
    "an option by its name elsewhere": (
        "accelerate launch --nproc_per_node 2 t.py",
        "accelerate launch --num_machines 2 t.py",
        "ENV110",
    ),
    "a precision": (
        "accelerate launch --mixed_precision fp_16 t.py",
        "accelerate launch --mixed_precision BF16 t.py",
        "ENV129",
    ),
    "a rendezvous": ("torchrun --rdzv_backend=c10 t.py", "torchrun --rdzv_backend=c10d t.py", "ENV129"),
    "an option of horovodrun": (
        "horovodrun -np 2 --hostfiles h python t.py",
        "horovodrun -np 2 --hostfil h python t.py --hostfiles h",
        "ENV110",
    ),
    "an option of jsrun": (
        "jsrun --nrs 2 --bind packed:2 --smpi_args=off ./a",
        "jsrun --nrs 2 --bind packed:2 --smpiarg=off ./a --smpi_args=off",
        "ENV110",
    ),
    "a word of jsrun": ("jsrun -n 2 -b pakced:7 ./a", "jsrun -n ALL_HOSTS -b packed:smt:4 ./a -b pakced:7", "ENV129"),
    "a word of aprun": ("aprun -n 2 -cc detph ./a", "aprun -n 2 -cc 0-7:8-15 ./a", "ENV129"),
    "no value": ("aprun -n 2 -S ./a -x", "aprun -n 2 -S 1 ./a -x", "ENV111"),
    "an option of flux": ("flux run -n 2 --gpu-per-task=1 ./a", "flux run -n 2 --gpus-per-t=1 ./a", "ENV110"),
    "an option of mpirun": ("mpirun -np 2 --hosfile h ./a", "mpirun -np 2 --site-file h ./a --hosfile h", "ENV110"),
    "a count of ranks": ("mpirun -npp 2 ./a", "mpirun -ppn 2 ./a -npp 2", "ENV110"),
    "a glued count": ("mpirun -np2 ./a", "mpirun -n2 ./a -np2", "ENV110"),
    "a word of a mapping": ("mpirun --map-by sokcet ./a", "mpirun --map-by ppr:4:node:PE=2 ./a", "ENV129"),
    "a component of its own": ("mpirun --mca pml uxc ./a", "mpirun --mca btl ^tcp,site_ib --mca pml ucx ./a", "ENV129"),
    "a component behind another": (
        "mpirun --mca btl self --mca pml uxc ./a",
        "mpirun --mca btl self --mca mtl psm2 ./a",
        "ENV129",
    ),
    "an option of Hydra": (
        "mpirun -genv I_MPI_DEBUG=5 -lancher ssh ./a",
        "mpirun -genv I_MPI_DEBUG 5 -launcher ssh ./a",
        "ENV110",
    ),
    "a dash too few": ("srun -label ./a", "srun -l ./a -label", "ENV110"),
    "a flag with a value": ("srun --label=yes ./a", "srun --exclusive=user ./a", "ENV110"),
    "yes for a number": ("srun --kill-on-bad-exit=yes ./a", "srun --kill-on-bad-exit ./a", "ENV111"),
    "an option for a value": ("srun --ntasks --exact ./a", "srun --ntasks $N --exact ./a", "ENV111"),
    "a hint": ("srun --hint=compute-bound ./a", "srun --hint=nomultithread ./a", "ENV129"),
    "an option of pyxis": (
        "srun --containter-image=a ./a",
        "srun --container-image=a --mpibind=off ./a",
        "ENV110",
    ),
    "an option of deepspeed": ("deepspeed --host_file h t.py", "deepspeed --hostfile h t.py --host_file h", "ENV110"),
    "an image that nothing runs in": (
        "srun --image=docker:a/b:1 python t.py",
        "srun --image=docker:a/b:1 shifter python t.py",
        "ENV132",
    ),
    "an image for a script": (
        "srun --image docker:a/b:1 ./a.x",
        "srun --image=docker:a/b:1 ./run.sh",
        "ENV132",
    ),
    "a word in small letters again": (
        "export NCCL_DEBUG=INFO\nexport NCCL_DEBUG=WARN",
        "export NCCL_DEBUG=INFO\nexport NCCL_DEBUG=info",
        "ENV068",
    ),
    "unset for export": ("unset NCCL_NET=IB", "unset NCCL_NET", "ENV128"),
    "alias for export": ("alias NCCL_NET=IB", "alias nccl=NCCL_NET=IB", "ENV128"),
    "a hyphen in a name": ("export NCCL-NET=IB", "export NCCL_NET=IB-x", "ENV128"),
    "a word of the list behind it": (
        "export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT NET",
        "export NCCL_DEBUG_SUBSYS=INIT PATH",
        "ENV128",
    ),
    "a binding of GPUs": ("srun --gpu-bind=closests ./a", "srun --gpu-bind=v,map:0,1 ./a", "ENV129"),
    "a binding as a word of its own": ("srun --cpu-bind corse ./a", "srun --cpu-bind cores ./a", "ENV129"),
    "a distribution": ("srun -m blok:cyclic ./a", "srun -m plane=4 -n 2 ./a", "ENV129"),
    "a distribution with stars": (
        "srun --distribution=block:cylic ./a",
        "srun --distribution=*:block:fcyclic,NoPack ./a",
        "ENV129",
    ),
    "a type of MPI behind its option": ("srun --mpi pmixx ./a", "srun --mpi pmix ./a", "ENV114"),
    "two names behind -x": ("mpirun -x NCCL_NET,NCCL_DEBUG ./a", "mpirun -x NCCL_NET -x NCCL_DEBUG ./a", "ENV128"),
    "components with a blank": ("mpirun --mca btl tcp self ./a", "mpirun --mca btl tcp,self ./tcp ./a", "ENV125"),
    "an equals sign for the program": ("mpirun -x NCCL_NET =IB ./a", "mpirun -x NCCL_NET=IB ./a", "ENV125"),
    "a component": ("mpirun --mca pml ucxx ./a", "mpirun --mca pml ^ucx ./a", "ENV129"),
    "what only some programs read": ("export NCCL_TIMEOUT=60", "export TORCH_NCCL_BLOCKING_WAIT=0", "ENV025"),
}


@pytest.mark.parametrize(("wrong", "right", "code"), LINES.values(), ids=LINES)
def test_a_line_that_does_something_else_is_told_and_its_neighbour_is_not(wrong: str, right: str, code: str):
    assert code in codes(script(wrong))
    assert code not in codes(script(right))


BATCH = "#SBATCH -N 2\n"
# A script, another one that is right, and the rule.
SCRIPTS = {
    "no interpreter": (f"{BATCH}srun ./a\n", f"#!/bin/sh\n{BATCH}srun ./a\n", "ENV127"),
    "only directives": (f"\n{BATCH}srun ./a\n", BATCH, "ENV127"),
    "a directive behind a command": (
        f"#!/bin/bash\n{BATCH}set -e\n#SBATCH -n 8\nsrun ./a\n",
        f"#!/bin/bash\n{BATCH}# set -e\n\n#SBATCH -n 8\nsrun ./a\n",
        "ENV126",
    ),
    "a directive of another script": (
        f"#!/bin/bash\nset -e\n{BATCH}srun ./a\n",
        f"#!/bin/bash\nset -e\ncat > b.sh <<EOF\n#!/bin/bash\n{BATCH}srun ./a\nEOF\n",
        "ENV126",
    ),
    "a template": (
        f"#!/bin/bash\n{BATCH}ml mpi\n#SBATCH -n 8\nsrun ./a\n",
        f"#!/bin/bash\n{BATCH}{{% if x %}}\n#SBATCH -n 8\nsrun ./a\n",
        "ENV126",
    ),
    "a here-document with a redirection behind it": (
        "#!/bin/bash\nbash << EOF\nexport NCCL_NET=IB\nEOF > log\n",
        "#!/bin/bash\nbash << EOF > log\nexport NCCL_NET=IB\nEOF\n",
        "ENV002",
    ),
    "an indented end": (
        "#!/bin/bash\ncat << EOF\nexport NCCL_NET=IB\n  EOF\n",
        "#!/bin/bash\ncat <<-EOF\nexport NCCL_NET=IB\n\tEOF\n",
        "ENV002",
    ),
    "a text that is cut off": (
        "#!/bin/bash\ncat << EOF\nexport NCCL_NET=IB\nEOF;\n",
        "#!/bin/bash\ncat << EOF\nexport NCCL_NET=IB\n",
        "ENV002",
    ),
    "a variable of the written file": (
        "cat > a.sh <<EOF\nx=5\nsrun ./a ${x}\nEOF\n",
        'cat > a.sh <<EOF\nx="${x}"\nsrun ./a ${x}\nEOF\n',
        "ENV116",
    ),
    "a wait for what is one after the other anyhow": (
        "#!/bin/bash\nsrun -N1 ./a\nsrun -N1 ./b\nwait\n",
        "#!/bin/bash\nsrun mkdir -p /tmp/x\nsrun ./b\nwait\n",
        "ENV117",
    ),
    "a wait behind commands with others in between": (
        "#!/bin/bash\nsrun ./a \\\n  -x\n\n# then\nsrun ./b\nwait\n",
        "#!/bin/bash\nsrun ./restart.sh\nsleep 10\nsrun ./b\nwait\n",
        "ENV117",
    ),
    "a wait behind something else": (
        "#!/bin/bash\nsrun ./a\nsrun ./b\n# done\nwait\n",
        "#!/bin/bash\nsrun ./restart.sh\nsrun ./b\ncp x y\nwait\n",
        "ENV117",
    ),
    "a remark of the written file": (
        "cat > a.sh <<EOF\nx=5\nsrun ./a ${x}\nEOF\n",
        "cat > a.sh <<EOF\nx=5\n# as ${x} says\nEOF\n",
        "ENV116",
    ),
    "a wait behind branches": (
        "#!/bin/bash\nmpirun ./a\nmpirun ./b\nwait\n",
        '#!/bin/bash\nif [ "$T" ]; then\n  srun ./test\nfi\nsrun ./b\nwait\n',
        "ENV117",
    ),
}


@pytest.mark.parametrize(("wrong", "right", "code"), SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_that_is_read_otherwise_is_told_and_its_neighbour_is_not(wrong: str, right: str, code: str):
    assert code in codes(wrong)
    assert code not in codes(right)


# A directive, the same where it is right, and the rule.
DIRECTIVES = {
    "a long dash": ("\u2014nodes=2", "-N 2 # \u2014", "ENV006"),
    "behind another": ("-N 2 --ntask-per-node=8", "-N 2 --ntasks-per-node=8 # --ntask", "ENV110"),
    "one dash": ("-ntasks=8", "-n8", "ENV110"),
    "no dashes": ("ntasks=8", "--job-name ntasks", "ENV110"),
    "a blank before the equals sign": ("--ntasks = 8", "--ntasks 8", "ENV111"),
    "the beginning of several": ("--ntask=8", "--ntasks-per-n=8", "ENV110"),
    "an equals sign behind a letter": ("-N=2", "-J =2 -N2", "ENV111"),
    "a time": ("--time=7d00:00:00", "--time=7-00:00:00", "ENV111"),
    "a time of four parts": ("-t 1:00:00:00", "-t 1-", "ENV111"),
    "a unit of memory": ("--mem=240GiB", "--mem=240gb --mem-per-cpu={{ mem }}GiB", "ENV111"),
    "a mail": ("--mail-type=END,FAILED", "--mail-type=end,abort,TIME_LIMIT_90", "ENV129"),
    "a word too many": ("--mem=64 G", "--mem=64 # G", "ENV133"),
    "a word too many in a template": ("--exclusive user", "--exclusive {{ user }}", "ENV133"),
    "a unit": ("--cpus-per-task=6GB", "--mem=6GB --cpus-per-task=6", "ENV111"),
}


@pytest.mark.parametrize(("wrong", "right", "code"), DIRECTIVES.values(), ids=DIRECTIVES)
def test_a_directive_that_sbatch_refuses_is_told_and_its_neighbour_is_not(wrong: str, right: str, code: str):
    assert code in codes(f"#!/bin/bash\n#SBATCH {wrong}\nsrun ./a\n")
    assert code not in codes(f"#!/bin/bash\n#SBATCH {right}\nsrun ./a\n")


def test_a_remark_that_was_to_be_a_directive_is_told():
    assert "ENV110" in codes("#!/bin/bash\n#SBTACH --nodes=2\nsrun ./a\n")
    assert "ENV110" not in codes("#!/bin/bash\n#SCRIPT --nodes=2\nsrun ./a\n")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("job.env", 'NCCL_MIN_CHANNELS=4\nNCCL_IB_HCA="mlx5_0"\n'),
        ("values.yaml.j2", 'env:\n{% for n in nodes %}\n  NCCL_MIN_CHANNELS: "{{ n }}"\n{% endfor %}\n'),
        ("compilers.yaml", "- compiler:\n    environment:\n      set:\n        NCCL_MIN_CHANNELS: 4\n"),
        ("recipe.json", '{"env": [{"key": "NCCL_MIN_CHANNELS", "value": "4"}]}\n'),
        ("package.py", 'def setup(self, env):\n    env.set("NCCL_MIN_CHANNELS", "4")\n'),
    ],
)
def test_settings_in_other_places_are_read(file: str, text: str):
    assert "ENV020" in codes(text, file)


@pytest.mark.parametrize("file", ["header.sh", "job.sh.j2", "settings", "-"])
def test_a_part_of_a_script_needs_no_interpreter(file: str):
    assert "ENV127" not in codes(f"{BATCH}srun ./a\n", file)


def test_a_block_of_a_page_needs_no_interpreter():
    assert "ENV127" not in codes(f"# Jobs\n\n```bash\n{BATCH}srun ./a\n```\n", "page.md")


def test_settings_of_a_script_that_is_put_together_line_by_line_are_read():
    line = 'echo "export {0}=4" >> {1}\n'

    assert "ENV020" in codes(line.format("NCCL_MIN_CHANNELS", "$FILE"))
    assert "ENV020" not in codes(line.format("MY_CHANNELS", "$FILE"))


def test_what_a_function_evaluates_is_read():
    function = 'cmd() {{\n  echo "+ $@"\n  {0} "$@"\n}}\ncmd "export NCCL_MIN_CHANNELS=4"\nsrun ./a\n'

    assert "ENV020" in codes(function.format("eval"))
    assert "ENV020" not in codes(function.format("echo"))


NOTEBOOK = """{{
 "cells": [
  {{"cell_type": "markdown", "source": ["export NCCL_MAX_CHANNELS=4\\n"]}},
  {{
   "cell_type": "code",
   "outputs": [{{"data": {{"image/png": "iVBORw0KGgo"}}}}],
   "source": [
    "import os\\n",
    {0}
    "x = 1"
   ]
  }}
 ]
}}
"""


@pytest.mark.parametrize(
    "line",
    [
        'os.environ[\\"NCCL_MIN_CHANNELS\\"] = \\"4\\"',
        "%env NCCL_MIN_CHANNELS=4",
        "!mpirun -np 2 -x NCCL_MIN_CHANNELS=4 ./a",
    ],
)
def test_cells_of_a_notebook_are_read(line: str):
    found = lint(read(NOTEBOOK.format(f'"{line}\\n",'), "a.ipynb"), CheckContext())

    assert [(each.code, each.place and each.place.line) for each in found if each.code != "ENV001"] == [("ENV020", 9)]


def test_what_a_notebook_only_says_is_not_set():
    assert codes(NOTEBOOK.format('"%matplotlib inline\\n",'), "a.ipynb") in ([], ["ENV027"], ["ENV018"])


def test_tildes_under_a_title_of_restructuredtext_open_no_block():
    page = "Jobs\n~~~~\n\n.. code-block:: bash\n\n   export NCCL_MIN_CHANNELS=4\n   srun ./a\n\nMore\n~~~~\n"

    assert "ENV020" in codes(page, "page.rst")
    assert "ENV020" not in codes(page, "page.md")


POD = """apiVersion: v1
kind: Pod
spec:
  containers:
    - name: a
      image: b
      command: [{0}]
"""


def test_an_option_and_its_value_are_two_arguments_of_a_pod():
    assert "ENV119" in codes(POD.format('mpirun, "-np", "2", "-x NCCL_DEBUG=WARN", ./a'), "pod.yaml")
    assert "ENV119" not in codes(POD.format('sh, "-c", "mpirun -np 2 -x NCCL_DEBUG=WARN ./a"'), "pod.yaml")
    assert "ENV119" not in codes(POD.format('./train, "--nodes 2", "--mpi yes"'), "pod.yaml")


RUNAI = "runai training submit x -g 8 {0} NCCL_MIN_CHANNELS=4 -- bash -c 'torchrun t.py'\n"


@pytest.mark.parametrize("option", ["-e", "--environment", "--environment-variable"])
def test_what_a_submission_is_given_for_its_command_is_read(option: str):
    assert "ENV020" in codes(RUNAI.format(option), "submit.sh")


@pytest.mark.parametrize("line", ["ml NCCL/2.4.6", "module load CUDA/10.1 nccl/2.4.8-CUDA-10.1 # the last"])
def test_a_name_that_the_loaded_nccl_still_reads_is_not_called_removed(line: str):
    setting = "export NCCL_TREE_THRESHOLD=0"
    assert "ENV022" not in codes(script(f"{line}\n{setting}"))
    assert "ENV022" in codes(script(f"{line.replace('2.4', '2.18')}\n{setting}"))
    assert "ENV022" in codes(script(f"# {line}\n{setting}"))
    assert "ENV022" in codes(script(f"{line}\nml NCCL/2.18.3\n{setting}"))
