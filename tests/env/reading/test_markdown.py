"""Scripts in pages of Markdown: which are read, where they stand, and that each is one by itself."""

from busbw.env.lint import corrected, lint
from busbw.env.reading import read
from busbw.env.rules.subject import CheckContext
from busbw.env.versions import newest
from busbw.model.settings import Assignment, SettingsReading

PAGE = """\
# How to
Set NCCL_BUFFSIZE=8M, or
export NCCL_MIN_CHANNELS=3
    export NCCL_MAX_CHANNELS=3
```bash
export NCCL_P2P_DISABLE=1
srun ./app
```
1. Or so:
   ~~~~sh
   export NCCL_P2P_LEVEL=NVL
   cat > /etc/nccl.conf <<EOF
   NCCL_BUFFSIZE=8M
   EOF
   ~~~
   mpirun -x NCCL_P2P_NET_CHUNKSIZE=512K ./a
   ~~~~
```console
$ export NCCL_ALGO=Ring \\
   NCCL_NTHREADS=256
NCCL_MAX_CHANNELS=3 was printed
```
```
[0] NCCL_IB_HCA=mlx5_0
export NCCL_MAX_CHANNELS=4
```
```
export NCCL_CROSS_NIC=1
```
```text
export NCCL_MAX_CHANNELS=4
```
```yaml
kind: Pod
spec:
  containers:
  - name: a
    env:
    - {name: NCCL_SHM_DISABLE, value: "1"}
```
"""


def test_each_block_in_a_language_that_is_read_is_a_script_by_itself():
    parts = read(PAGE, "README.md").parts

    assert [part.language for part in parts] == ["shell", "shell", "shell", "shell", "kubernetes"]
    assert [[each.name for each in part.assignments] for part in parts] == [
        ["NCCL_P2P_DISABLE"],
        ["NCCL_P2P_LEVEL", "NCCL_BUFFSIZE", "NCCL_P2P_NET_CHUNKSIZE"],
        ["NCCL_ALGO", "NCCL_NTHREADS"],
        ["NCCL_CROSS_NIC"],
        ["NCCL_SHM_DISABLE"],
    ]


def test_what_is_set_stands_where_the_page_has_it():
    page = read(PAGE, "README.md")

    for part in page.parts:
        for each in part.assignments:
            assert page.lines[each.line - 1].startswith(each.name, each.column - 1)
    assert page.count == 8


def test_blocks_do_not_contradict_each_other_and_prose_is_never_at_fault():
    found = lint(read(PAGE, "README.md"), CheckContext())

    assert [(each.place and each.place.line, each.code) for each in found] == [
        (13, "ENV030"),
        (16, "ENV030"),
    ]


def test_a_choice_that_is_shown_and_debugging_are_no_faults_of_a_page():
    text = "```sh\nexport NCCL_DEBUG=INFO\nexport NCCL_SOCKET_IFNAME=eth0\nexport NCCL_SOCKET_IFNAME=eth1\n```\n"

    assert lint(read(text, "a.md"), CheckContext()) == ()
    assert len(lint(read(text.replace("```sh", "").replace("```", ""), "a.sh"), CheckContext())) == 2


def test_a_page_is_corrected_in_its_blocks_alone():
    def check(tried: str):
        return lint(read(tried, "README.md"), CheckContext())

    after = corrected(PAGE, read(PAGE, "README.md"), newest(), check)

    assert after == PAGE.replace("=512K", "=524288")


def test_a_here_document_in_a_session_is_read_to_its_end():
    text = "```console\n$ cat > nccl.conf <<'E'\nNCCL_ALGO=Ring\nE\nNCCL_PROTO=LL\n$ export A=b\n```\n"

    part = read(text, "a.md").parts[0]

    assert [each.name for each in part.assignments] == ["NCCL_ALGO", "A"]
    assert part.unread == ()


def test_a_block_that_is_never_closed_goes_on_to_the_end():
    assert [each.name for each in read("```sh\nexport A=b\n", "a.md").parts[0].assignments] == ["A"]


def test_a_session_without_a_prompt_was_printed():
    assert read("```console\nexport A='b\n```\n", "a.md").parts == ()


def test_a_page_without_blocks_has_the_commands_between_its_sentences():
    page = "Set this first of all things:\n\nexport A=b\n\nThen start it.\n\n mpirun -n 2 \\\n\n  -x C=d ./x\n"
    parts = read(page, "a.md").parts

    assert [(each.name, each.line) for part in parts for each in part.assignments][:2] == [("A", 3), ("C", 9)]


def test_marks_of_notes_are_not_part_of_a_script():
    reading = read("```bash\nsrun --mpi=pmix \\ # (1)!\n  -n 8 ./a\n```\n", "a.md")

    assert reading.parts[0].slips == ()
    assert reading.parts[0].launches[0].argv[-1] == "./a"


def _set(text: str, file: str = "page.md") -> dict[str, str | None]:
    return {each.name: each.value for each in _all(read(text, file))}


def _all(reading: SettingsReading) -> tuple[Assignment, ...]:
    return (*reading.assignments, *(each for part in reading.parts for each in _all(part)))


def test_rights_of_a_file_are_no_option_on_a_line_of_its_own():
    listed = "srun ls -lh lmp\n{} 1 user user 236M Mar 28 17:01 lmp\nexport NCCL_CROSS_NIC=1\n"

    def codes(mode: str) -> set[str]:
        return {each.code for each in lint(read(listed.format(mode), "page.sh"), CheckContext(nccl=newest()))}

    assert "ENV005" not in codes("-rwxr-xr-x") | codes("-rw-------.")
    assert "ENV005" in codes("-rwx")


def test_what_stands_behind_a_prompt_that_names_a_host_is_read():
    page = (
        "```\nperlmutter:login15>$ NCCL_DEBUG=INFO srun -n 8 ./app\nNCCL_ALGO=Ring was printed\n"
        "(env) user@n1:~/runs$ export NCCL_P2P_LEVEL=NVL\n[user@n1 runs]$ export NCCL_CROSS_NIC=1\n```\n"
    )

    assert _set(page) == {"NCCL_DEBUG": "INFO", "NCCL_P2P_LEVEL": "NVL", "NCCL_CROSS_NIC": "1"}


def test_a_log_between_fences_is_no_session():
    assert _set("```\nn1:77:99 [0] NCCL INFO NCCL_ALGO set by environment to Ring\nn1: NCCL_ALGO=Ring\n```\n") == {}


def test_a_file_called_readme_is_a_page_whatever_its_ending():
    text = "We don't build here:\n% cc x.c\n\n% export NCCL_CROSS_NIC=1\n% srun -n 8 ./app\n"

    assert _set(text, "CPU/xthi.README") == _set(text, "README_pm.txt") == {"NCCL_CROSS_NIC": "1"}
    assert not [each for each in lint(read(text, "xthi.README"), CheckContext(nccl=newest())) if each.code == "ENV019"]


def test_marks_of_mkdocs_behind_a_backslash_are_not_of_the_script():
    page = "```bash\nsrun \\\n    --mpi=pmix \\ # (1)!\n    --network=single_node_vni \\ #(2)!\n    ./app\n```\n"

    assert not [each for each in lint(read(page, "page.md"), CheckContext(nccl=newest())) if each.code == "ENV005"]
