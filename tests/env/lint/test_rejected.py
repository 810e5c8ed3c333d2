"""What a shell refuses is an error at its line; bash itself says which of these it refuses."""

import subprocess

import pytest

from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.env.rules.subject import CheckContext

HEAD = "#!/bin/bash\n#SBATCH -N 2\n"
REJECTED = {
    "a loop without do": ("for a in Ring Tree;\n  srun ./app\ndone\n", 5, "`done` without `do`"),
    "a while without do": ("while read -r a\n  srun ./app\ndone < list\n", 5, "`done` without `do`"),
    "a done too many": ("srun ./app\ndone\n", 4, "`done` closes nothing here"),
    "a fi too many": ("srun ./app\nfi\n", 4, "`fi` closes nothing here"),
    "an if without then": ("if [ $a = b ]\n  srun ./app\nfi\n", 5, "`fi` without `then`"),
    "an if without fi": ("if [ $a = b ]; then\n  srun ./app\n", 3, "`if` without `fi`"),
    "a loop without done": ("for a in b c; do\n  srun ./app\n", 3, "a loop without `done`"),
    "a case without esac": ("case $a in\n  b) srun ./app ;;\n", 3, "`case` without `esac`"),
    "if and bracket": ("if[ $a = b ]\nthen\n  srun ./app\nfi\n", 3, "`if[` is taken for a command"),
    "while and brackets": ("while[[ $a = b ]]; do\n  srun ./app\ndone\n", 3, "`while[[` is taken for a command"),
    "elif and bracket": ("if [ a ]; then :\nelif[ $a = b ]; then\n  srun ./app\nfi\n", 4, "`elif[` is taken"),
    "a placeholder": ("export A=1\n#SBATCH -A <x>\nTOPO=<path>\nsrun ./app\n", 5, "<path> is to be replaced"),
    "an else alone": ("srun ./app\nelse\n  srun ./b\nfi\n", 4, "`else` without `if`"),
    "a then alone": ("a=b\nthen srun ./app\n", 4, "`then` without `if`"),
    "a quote": ("export NCCL_IB_HCA='mlx5_0\nsrun ./app\n", 3, "' is never closed"),
    "a brace": ("f() {\n  srun ./app\n", 3, "a bracket that is never closed"),
    "inner first": ("for a in b; do\n  if [ $a ]; then\n    srun ./app\ndone\n", 3, "a loop without"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_bash_refuses_is_an_error_at_its_line(name: str):
    text, line, reason = REJECTED[name]
    found = lint(read(HEAD + text, "job.sh"), CheckContext())
    told = [(each.severity, each.place.line) for each in found if each.code == "ENV019" and each.place]
    bash = subprocess.run(["bash", "-n"], input=HEAD + text, text=True, capture_output=True, check=False)

    assert told == [("error", line)]
    assert reason in next(each.title for each in found if each.code == "ENV019")
    assert bash.returncode != 0


ACCEPTED = {
    "a template": ("job.sh", HEAD + "{% if a %}\nfor a in b\n{% endif %}\ndone\n"),
    "another shell": ("job.sh", "#!/usr/bin/env zsh\nfor a (b c) { srun ./app }\ndone\n"),
    "a fragment in a page": ("x.md", "```bash\nsrun -A <account> ./app\ndone\n```\n"),
    "a fragment in a string": ("x.py", "run('for a in b; do mpirun -n 2 ./app')\n"),
    "a placeholder in quotes": ("job.sh", HEAD + 'export A="<path>"\nsrun ./app\n'),
    "a directive with a placeholder": ("job.sh", HEAD + "#SBATCH -A <account>\nsrun ./app\n"),
    "redirections": ("job.sh", HEAD + "srun ./app <in >out 2>&1\n"),
    "words that look like them": ("job.sh", HEAD + "echo done fi then else\nfor done in a; do :; done\n"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_a_shell_takes_or_never_sees_is_none(name: str):
    file, text = ACCEPTED[name]

    assert "ENV019" not in [each.code for each in lint(read(text, file), CheckContext())]


HANDED = {
    "an if and bracket": ("bash -c 'if[ $a = 0 ]; then ./app; fi'", "`if[` is taken for a command"),
    "a loop without do": ('bash -lc "for i in 1 2; ./app; done"', "`done` without `do`"),
    "an if without fi": ("sh -c 'cd /a; if true; then ./app'", "`if` without `fi`"),
    "what is not known": ('bash -c "$LOOP ./app; done"', None),
    "another shell": ("tcsh -c 'if ($a) then; ./app; endif; done'", None),
    "what is right": ("bash -c 'if [ $a = 0 ]; then ./app; fi'", None),
    "another host": ("ssh h 'for i in 1 2; ./app; done'", None),
}


@pytest.mark.parametrize("name", HANDED)
def test_what_a_shell_is_handed_is_refused_too(name: str):
    command, reason = HANDED[name]
    found = lint(read(f"{HEAD}export NCCL_DEBUG=WARN\nsrun -n 2 {command}\n", "job.sh"), CheckContext())
    told = [(each.title.partition(": ")[2], each.place.line) for each in found if each.code == "ENV019" and each.place]

    assert [line for _reason, line in told] == ([] if reason is None else [4])
    assert all(text.startswith(reason) for text, _line in told if reason is not None)


def test_a_blank_that_is_missing_is_told_in_a_page_too():
    page = "```bash\nif[ $shape == a ]\nthen\n  srun ./app\nfi\n```\n"
    found = lint(read(page, "x.md"), CheckContext())

    assert [(each.code, each.place.line) for each in found if each.place] == [("ENV019", 2)]


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("export NCCL_TOPO_FILE=/opt/Microsoft/own.xml", "/opt/microsoft/own.xml"),
        ("export NCCL_TOPO_FILE=/opt/microsoft/NDv4/topo.xml", "/opt/microsoft/ndv4/topo.xml"),
        ("mount -t tmpfs x /Dev/shm", "/dev/shm"),
        ("export NCCL_TOPO_FILE=/opt/microsoft/ndv4/topo.xml", None),
        ("export NCCL_TOPO_FILE=/data/Opt/microsoft/topo.xml", None),
        ("wget https://example.com/Opt/Microsoft/x", None),
        ("cat $HOME/Dev/shm ~/Usr/local", None),
        ("ls /Data/Models /opt/Mine # /Dev/shm", None),
    ],
)
def test_a_path_of_the_wrong_case_is_an_error(line: str, meant: str | None):
    found = [
        each
        for each in lint(read(f"#!/bin/bash\n{line}\nsrun ./app\n", "job.sh"), CheckContext())
        if each.code == "ENV131"
    ]

    assert [(each.severity, each.fix) for each in found] == ([] if meant is None else [("error", meant)])
