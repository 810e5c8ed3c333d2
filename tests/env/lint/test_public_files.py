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
