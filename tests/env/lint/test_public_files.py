"""Classes that files of public projects showed: what was said wrongly, what was not read, and a neighbour of each."""

import pytest

from busbw.env.lint import lint
from busbw.env.reading import read

from .corpus import context_of


def codes(text: str, file: str, platform: str | None = None) -> list[str]:
    return [each.code for each in lint(read(text, file), context_of(platform=platform))]


WAITING = 'export NCCL_NET=IB\nMPIRUN="mpirun --allow-run-as-root --hostfile hostfile"\n'


@pytest.mark.parametrize("program", ["true", "hostname", "/bin/hostname -s", 'sh -c "echo done > /tmp/fifo"'])
def test_a_command_that_only_asks_whether_hosts_answer_needs_no_setting(program: str):
    assert "ENV100" not in codes(f"{WAITING}$MPIRUN -n 2 -N 1 {program}\n", "job.sh")


@pytest.mark.parametrize("program", ["./all_reduce_perf", "./true", 'sh -c "cd /tmp; ./all_reduce_perf"'])
def test_a_program_of_the_job_does(program: str):
    is_ours = "ENV100" in codes(f"{WAITING}$MPIRUN -n 2 -N 1 {program}\n", "job.sh")

    assert is_ours == (program != "./true")


def test_where_a_command_that_only_asks_hosts_runs_is_nobodys_loss():
    line = "mpirun -np 8 --map-by ppr:8:node --bind-to core "

    assert "ENV120" not in codes(f"{line} hostname\n", "job.sh", "azure-ndv4")
    assert "ENV120" in codes(f"{line} ./all_reduce_perf\n", "job.sh", "azure-ndv4")


TASK = "type: task\nnodes: 2\ncommands:\n  - apt-get install -y git openmpi-bin\n  - {0}\n  - {1}\n"


def test_a_list_of_command_lines_is_lines_and_not_one_command():
    assert codes(TASK.format("pip install torch", "mpirun --hostfile h -n 2 ./a"), "task.yaml") == []
    assert "ENV020" in codes(TASK.format("export NCCL_MIN_CHANNELS=4", "torchrun a.py"), "task.yaml")


def test_a_list_of_words_is_one_command():
    words = "steps:\n  run_it: [mpirun, -n, '2', -x NCCL_MIN_CHANNELS=4, ./a]\n"

    assert "ENV020" in codes(words, "task.yaml")


PAGE = "# Tuning\n\nSet this on each node before the job.\n\n```\n{0}\n```\n"


def test_a_block_without_a_language_that_begins_with_a_remark_and_exports_settings_is_a_script():
    assert "ENV020" in codes(PAGE.format("# NUMA\nnvidia-smi topo -m\n\nexport NCCL_MIN_CHANNELS=4"), "page.md")


def test_a_log_in_such_a_block_is_none():
    assert "ENV020" not in codes(PAGE.format("rank 0 starts\nexport NCCL_MIN_CHANNELS=4\nrank 1 starts"), "page.md")


OPTIONS = "{0}-e 'NCCL_ALGO=Ring'\n# network\n-e 'NCCL_NET=IB'\n-e 'NCCL_CROSS_NIC=1'"


def test_options_that_a_page_shows_alone_below_a_remark_are_no_commands():
    page = "# Options\n\nThese are given to it.\n\n```bash\n{0}\n```\n"

    assert "ENV005" not in codes(page.format(OPTIONS.format("# what docker is given\n")), "page.md")
    assert "ENV005" in codes(page.format(OPTIONS.format("docker run image\n")), "page.md")


TWO = """import os, sys
def run_cmd() :
  if nnodes == 0 :
    print '\\n\\nERROR: you must specify --nodes=<int>'
    print >>sys.stderr, help()
    exit(9)
  try :
    check()
  except ValueError, error :
    raise RuntimeError, 'no'
  return 'srun --nodes=' + str(nnodes) + ' --{0}=' + str(tasks) + ' ' + bindir() + '/lbann '
"""


def test_a_program_of_python_2_is_read():
    assert codes(TWO.format("ntasks_per_node"), "run.py") == ["ENV110"]
    assert codes(TWO.format("ntasks-per-node"), "run.py") == []


def test_what_is_found_in_it_stands_where_the_file_has_it():
    text = TWO.format("ntasks_per_node")

    (found,) = lint(read(text, "run.py"), context_of())

    assert found.place is not None
    assert found.place.line == 11


def test_a_line_that_is_no_python_does_not_keep_the_others_from_being_read():
    broken = TWO.format("ntasks_per_node") + "          todo TODO\n"

    assert sorted(codes(broken, "run.py")) == ["ENV001", "ENV110"]
    (left_out,) = (each for each in lint(read(broken, "run.py"), context_of()) if each.code == "ENV001")
    assert left_out.place is not None
    assert left_out.place.line == 12


def test_a_text_that_is_no_program_at_all_is_told():
    assert "ENV001" in codes("\n".join(f"x{number} = = NCCL_ALGO" for number in range(9)), "run.py")


@pytest.mark.parametrize(
    ("behind", "is_found"),
    [
        ('"mpirun" + " ".join(options)', True),
        ("f\"/opt/bin/srun{' '.join(options)} ./a\"", True),
        ('"mpirun " + " ".join(options)', False),
        ('"mpirun" + options', False),
        ('"mpirun" + "".join(options)', False),
        ('"no mpirun" + " ".join(reasons)', False),
        ('"mpirun" + ",".join(options)', False),
    ],
)
def test_words_that_are_joined_right_behind_a_launcher(behind: str, is_found: bool):
    assert ("ENV124" in codes(f"import os\noptions = site()\nos.system({behind})\n", "run.py")) == is_found


LISTED = "# Our settings\n\nThis is what docker inspect says.\n\n```bash\nLD_PRELOAD=/opt/a.so /opt/b.so.2\n{0}\n```\n"


def test_an_environment_that_a_page_lists_is_not_left_in_a_shell():
    settings = "NCCL_NET=IB\nNCCL_CROSS_NIC=1"

    assert "ENV102" not in codes(LISTED.format(settings), "page.md")
    assert "ENV102" in codes(LISTED.format(f"{settings}\nmpirun -n 2 ./a"), "page.md")
