"""Slips that maintainers of public projects mended, each as a class: what it finds, and a neighbour that is silent."""

import pytest

from busbw.base.errors import InputError
from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.env.rules.subject import CheckContext


def codes(text: str, file: str) -> list[str]:
    return [each.code for each in lint(read(text, file), CheckContext())]


# What is wrong, the same where it is right, the file they stand in, and the rule.
PAIRS = {
    "a quote that takes the program along": (
        'mpirun -np 4 --machinefile "${HOME}/hosts ./hello"\n',
        'mpirun -np 4 --machinefile "${HOME}/hosts" ./hello\n',
        "job.sh",
        "ENV111",
    ),
    "an option without its value": (
        "mpirun --hostfile -np 16 ./app\n",
        "mpirun --hostfile $HOSTS -np 16 ./app\n",
        "job.sh",
        "ENV111",
    ),
    "options without a blank between": (
        'o="-genv I_MPI_FABRICS shm:ofi"\no+="-genv I_MPI_DEBUG 5"\nmpiexec.hydra $o -np 4 ./app\n',
        'o="-genv I_MPI_FABRICS shm:ofi"\no+=" -genv I_MPI_DEBUG 5"\nmpiexec.hydra $o -np 4 ./app\n',
        "job.sh",
        "ENV112",
    ),
    "an option of srun behind the program": (
        "srun ./all_reduce_perf --kill-on-bad-exit=1 -b 8\n",
        "srun --kill-on-bad-exit=1 ./all_reduce_perf -b 8\n",
        "job.sh",
        "ENV113",
    ),
    "an option that a script may take": (
        "mpirun -np 2 ./app -x NCCL_DEBUG=WARN\n",
        "mpirun -np 2 ./wrap.sh -x NCCL_DEBUG=WARN\n",
        "job.sh",
        "ENV113",
    ),
    "a type of MPI": ("srun --mpi=mpix ./app\n", "srun --mpi=pmix_v6 ./app\n", "job.sh", "ENV114"),
    "a type that a site may have": ("srun --mpi=pmx ./app\n", "srun --mpi=pspmi ./app\n", "job.sh", "ENV114"),
    "an option a letter off": ("srun --nnodes=2 ./app\n", "srun --nodes=2 --auto-resume=1 ./app\n", "job.sh", "ENV110"),
    "a beginning of an option": ("srun --ntasks_per_node=2 ./a\n", "srun --ntasks-per-n=2 ./a\n", "job.sh", "ENV110"),
    "a directive of another batch system": (
        "#!/bin/bash\n#SBATCH --project=p1\nsrun ./app\n",
        "#!/bin/bash\n#SBATCH --account=p1\nsrun ./app\n",
        "job.sh",
        "ENV110",
    ),
    "another variable passed on": (
        "HOROVOD_CYCLE_TIME=3 mpirun -np 4 -x HOROVOD_FUSION_THRESHOLD ./a\n",
        "HOROVOD_CYCLE_TIME=3 mpirun -np 4 -x HOROVOD_CYCLE_TIME -x PATH ./a\n",
        "job.sh",
        "ENV109",
    ),
    "a wait for nothing": (
        "srun -N1 ./a\nsrun -N1 ./b\nwait\n",
        "srun -N1 ./a &\nsrun -N1 ./b &\nwait\n",
        "job.sh",
        "ENV117",
    ),
    "a wait behind one command": ("mpirun ./a\nmpirun ./b\nwait\n", "mpirun ./a\nwait\n", "job.sh", "ENV117"),
    "a variable that nothing uses": (
        'case $1 in\na) CMD="mpirun -np 8 ./a" ;;\nb) MD="mpirun -np 4 ./a" ;;\nesac\n$CMD\nmpirun -np 2 ./c\n',
        'case $1 in\na) CMD="mpirun -np 8 ./a" ;;\nb) CMD="mpirun -np 4 ./a" ;;\nesac\n$CMD\nmpirun -np 2 ./c\n',
        "job.sh",
        "ENV115",
    ),
    "an ending too many": (
        'case $1 in\na) ARGS="--bind-to core -np 2" ;;\nb) ARGS_2="--bind-to core -np 4" ;;\nesac\nmpirun $ARGS ./a\n',
        'ARGS="--bind-to core -np 2"\nARGS_2="--bind-to core -np 4"\nmpirun $ARGS ./a\nmpirun $ARGS_2 ./b\n',
        "job.sh",
        "ENV115",
    ),
    "one that is exported, for others": (
        'MPI_ARG="-np 2 --bind-to core"\nmpirun $MPI_ARGS ./a\n',
        'export MPI_ARG\nMPI_ARG="-np 2 --bind-to core"\nmpirun $MPI_ARGS ./a\n',
        "job.sh",
        "ENV115",
    ),
    "a here-document": (
        'cat > run.sh << EOF\nFLAGS="--bind-to core"\nmpirun $FLAGS ./a\nEOF\n',
        'cat > run.sh << EOF\nFLAGS="--bind-to core"\nmpirun \\$FLAGS ./a\nEOF\n',
        "job.sh",
        "ENV116",
    ),
    "a here-document of values from outside": (
        "cat > run.sh << EOF\nHOSTS=4\nmpirun -np ${HOSTS} ./a\nEOF\n",
        "HOSTS=4\ncat > run.sh << EOF\nHOSTS=$HOSTS\nmpirun -np ${HOSTS} ./a\nEOF\n",
        "job.sh",
        "ENV116",
    ),
    "setenv in bash": (
        "#!/bin/bash\nsetenv NCCL_DEBUG WARN\nsrun ./a\n",
        "#!/bin/csh\nsetenv NCCL_DEBUG WARN\nsrun ./a\n",
        "job.sh",
        "ENV118",
    ),
    "export in a Dockerfile": (
        "FROM a\nENV export UCX_VFS_ENABLE=no\n",
        "FROM a\nENV UCX_VFS_ENABLE=no\nRUN export A=b\n",
        "Dockerfile",
        "ENV118",
    ),
    "a library's ending": (
        "FROM a\nENV NCCL_TUNER_PLUGIN=libnccl-tuner.io\n",
        "FROM a\nENV NCCL_TUNER_PLUGIN=/opt/libnccl-tuner.so.1\nENV NCCL_NET_PLUGIN=v1.2\n",
        "Dockerfile",
        "ENV038",
    ),
    "a number in os.environ": (
        "import os\nos.environ['NCCL_BUFFSIZE'] = 2097152\n",
        "import os\nos.environ['NCCL_BUFFSIZE'] = '2097152'\nnumbers['NCCL_BUFFSIZE'] = 1\n",
        "a.py",
        "ENV010",
    ),
    "a number among texts": (
        'import os\nJOB_ENV_VARS["NCCL_ALGO"] = "Ring"\nJOB_ENV_VARS["NCCL_NTHREADS"] = 256\n',
        'import os\nJOB_ENV_VARS["NCCL_NTHREADS"] = 256\n',
        "a.py",
        "ENV010",
    ),
    "an option and its value as one argument": (
        'import subprocess\nsubprocess.run(["mpirun", "-n", "8", "-x NCCL_DEBUG=WARN", "./a"])\n',
        'import os\ncommand = ["mpirun", "-n 8", "-x NCCL_DEBUG=WARN", "./a"]\nos.system(" ".join(command))\n',
        "a.py",
        "ENV119",
    ),
    "an option and its value as one argument, in a list that grows": (
        "command = ['mpirun', '-n', '8']\nfor k, v in e.items():\n    command += [f'-x {k}={v}']\nstart(command)\n",
        "c = ['mpirun', '-n']\nfor k, v in e.items():\n    c += ['-x', f'{k}={v}']\nstart(c)\ns(['srun', '-n 8'])\n",
        "a.py",
        "ENV119",
    ),
    "a fabric of Intel MPI": (
        "module load mpi/impi-2019\nmpirun -genv I_MPI_FABRICS shm:ofa -n 2 ./a\n",
        "module load mpi/impi-2018\nmpirun -genv I_MPI_FABRICS shm:ofa -n 2 ./a\n",
        "job.sh",
        "ENV031",
    ),
    "a name in TOML": (
        '[extra_env_vars]\n"NCCL_TEST_SPLIT_MASK" = "0x7"\n',
        '[extra_env_vars]\n"NCCL_TESTS_SPLIT_MASK" = "0x7"\n',
        "test.toml",
        "ENV020",
    ),
    "lines that end as on Windows": (
        "export NCCL_DEBUG=WARN\r\nsrun ./a\r\n",
        "import os\r\nos.environ['NCCL_DEBUG'] = 'WARN'\r\n",
        None,
        "ENV007",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_slip_that_was_mended_in_public_is_found(name: str):
    text, _right, file, code = PAIRS[name]

    assert code in codes(text, file or "job.sh")


@pytest.mark.parametrize("name", PAIRS)
def test_its_neighbour_is_left_alone(name: str):
    _wrong, text, file, code = PAIRS[name]

    assert code not in codes(text, file or "a.py")


HANDED_ON = {
    "quoted, under an option that is known": 'starccm+ -mppflags "-x NCCL_ALGO=Rin -np 4" -batch\n',
    "behind an equals sign": 'fluent 3d -mpiopt="--mca pml ucx -x NCCL_ALGO=Rin" -g\n',
    "of an option nobody knows": 'solver -mpiext "-genv NCCL_ALGO Rin -genv I_MPI_DEBUG 5"\n',
    "by the arms of a case": (
        'case $1 in\n1) o="-x NCCL_ALGO=Rin -np 2" ;;\n2) o="-np 4" ;;\nesac\nstarccm+ -mppflags "$o"\n'
    ),
    "with a list of semicolons": 'starccm+ -mppflags "-mca mca_base_env_list UCX_TLS=rc;NCCL_ALGO=Rin" -batch\n',
    "in a variable for another file": 'export mpi_options="-env NCCL_ALGO=Rin"\nabaqus job=e1\n',
}


@pytest.mark.parametrize("name", HANDED_ON)
def test_options_for_the_launcher_of_an_application_are_those_of_mpirun(name: str):
    reading = read(HANDED_ON[name], "job.sh")

    assert "NCCL_ALGO" in {each.name for each in reading.assignments}
    assert "ENV033" in codes(HANDED_ON[name], "job.sh")


@pytest.mark.parametrize("line", ['grep "-x NCCL_ALGO=Rin" log', 'solver -title "a -b NCCL_ALGO"', "solver -np 4"])
def test_other_quoted_words_are_no_options(line: str):
    assert read(f"{line}\n", "job.sh").assignments == ()


LOOP = """for NCCL_ALGO in DEFAULT Tree; do
  if [ "${NCCL_ALGO}" = "DEFAULT" ]; then o=""; else o="-x NCCL_ALGO=${NCCL_ALGO}"; fi
  mpirun -np 4 $o ./all_reduce_perf
done
"""


def test_a_value_that_a_loop_treats_otherwise_is_not_judged():
    assert "ENV033" not in codes(LOOP, "job.sh")
    assert "ENV033" in codes(LOOP.replace("DEFAULT", "Tres", 1), "job.sh")


OF_RESULTS = """import os
result["NCCL_ALL_REDUCE"] = str(value)
os.environ["NCCL_ALL_REDUCE"] = "1"
"""


def test_a_dictionary_of_results_is_no_environment():
    assert [each.line for each in read(OF_RESULTS, "a.py").assignments] == [3]


def test_a_pattern_for_a_command_is_no_command():
    text = 'expected = "mpirun -np 2 -x NCCL_SOCKET_IFNAME=[^ ]+ ./a"\ncheck(expected)\n'

    assert read(text, "a.py").launches == ()
    assert len(read(text.replace("[^ ]+", "eth0"), "a.py").launches) == 1


def test_a_name_that_a_workflow_uses_itself_is_its_own():
    text = "env:\n  NCCL_MINBYTES: 8\nsteps:\n- run: ./a -b ${{ env.NCCL_MINBYTES }}\n"

    assert "ENV021" not in codes(text, "a.yml")
    assert "ENV021" in codes(text.replace("env.NCCL_MINBYTES", "env.OTHER"), "a.yml")


ON_TWO_WAYS = """if [ "$1" ]; then
  MORE=""
else
  MORE="--jobid=7 --gres=gpu:8 --time=01:00:00 --job-name=a --exact"
fi
srun $MORE --wait=0 torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d a.py
"""


def test_options_behind_the_program_are_its_own_on_each_way_through_a_script():
    assert "ENV110" not in codes(ON_TWO_WAYS, "job.sh")
    assert "ENV110" in codes(ON_TWO_WAYS.replace("--wait=0", "--nnodes=2"), "job.sh")


def test_the_options_of_older_versions_and_of_pyxis_are_options():
    line = "srun --ntasks-per-tres=1 --pack-group=0 --no-container-remap-root --no-container-mount-home ./a\n"

    assert codes(line, "job.sh") == []
    assert codes(line.replace("pack-group", "pack_group"), "job.sh") == ["ENV110"]


def test_an_option_of_another_batch_system_may_be_one_of_a_plug_in():
    found = lint(read("srun --project=p1 ./a\nsrun --nnodes=2 ./a\n", "job.sh"), CheckContext())

    assert [each.confidence for each in found] == ["likely", "certain"]


def test_a_value_that_a_test_asserts_about_is_made_up():
    text = "import os\nos.environ['NCCL_ALGO'] = 'HELLO'\nassert os.environ['NCCL_ALGO'] == 'HELLO'\n"

    assert "ENV033" not in codes(text, "test_a.py")
    assert "ENV033" in codes(
        text.replace("assert os.environ['NCCL_ALGO']", "assert os.environ['UCX_TLS']"), "test_a.py"
    )


def test_a_log_with_the_lines_of_a_terminal_is_no_script_of_windows():
    log = "+ docker exec -it --env=NCCL_DEBUG a ./run\nbegin\r\nnum_gpus=8 sockets = 2\r\n"

    assert "ENV007" not in codes(log, "result.txt")
    assert "ENV007" in codes(f"{log}export NCCL_DEBUG=INFO\r\n", "result.txt")


@pytest.mark.parametrize("name", ["alltoallv_init.c.in", "CMakeLists.txt", "job.c.j2"])
def test_what_a_file_is_made_from_is_in_the_language_of_the_file(name: str):
    with pytest.raises(InputError, match="which is not read"):
        read("UCX_CFLAGS = -O2\n", name)


def test_a_script_is_read_from_what_it_is_made_from():
    assert [each.name for each in read("export NCCL_DEBUG=INFO\n", "job.sh.in").assignments] == ["NCCL_DEBUG"]


PART = "# A page\n\n```bash\n{0}-x NCCL_DEBUG=INFO\n-x UCX_TLS=rc\n\n-x NCCL_ALGO=Ring\n```\n"


def test_a_page_may_show_some_options_alone():
    assert "ENV005" not in codes(PART.format(""), "a.md")
    assert "ENV005" in codes(PART.format("mpirun -np 4\n"), "a.md")
    assert "ENV005" in codes("mpirun -np 4 ./a\n\n  --np 4 ./b\n", "job.sh")
