"""What shell scripts set, without being run."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.env.reading import read

from .wording import of, slips_of

# A script, and what it sets.
CORPUS = {
    "an export": ("export NCCL_DEBUG=INFO", ["export NCCL_DEBUG=INFO"]),
    "two on one line": ("export A=b C=d", ["export A=b", "export C=d"]),
    "a variable of the shell alone": ("A=b", ["shell A=b"]),
    "set, then exported": ("A=b; export A", ["export A=b"]),
    "exported, then set": ("export A\nA=b", ["export A=b"]),
    "declare -x": ("declare -x A=b", ["export A=b"]),
    "typeset -gx": ("typeset -gx A=b", ["export A=b"]),
    "export -p prints": (
        'declare -x NCCL_NET="AWS Libfabric"\ndeclare -rx B="c"',
        ["export NCCL_NET=AWS Libfabric", "export B=c"],
    ),
    "local": ("f() { local A=b; }", ["shell A=b"]),
    "export -n takes back": ("export -n A=b", ["shell A=b"]),
    "unset": ("unset A B", ["export A unset", "export B unset"]),
    "unset of a function": ("unset -f a", []),
    "single quotes": ("export A='b c $D'", ["export A=b c $D"]),
    "double quotes": ('export A="b \\"c\\" \\x"', ['export A=b "c" \\x']),
    "quotes in the middle": ("export A=b'c d'\"e\"", ["export A=bc de"]),
    "quotes of C": ("export A=$'a\\tb\\x41\\101\\n'", ["export A=a\tbAA\n"]),
    "an escape": (r"export A=b\ c", ["export A=b c"]),
    "an empty value": ("export A=", ["export A="]),
    "an equals sign in the value": ("export NCCL_IB_HCA==mlx5_0", ["export NCCL_IB_HCA==mlx5_0"]),
    "a comment behind": ("export A=b # export C=d", ["export A=b"]),
    "a hash inside": ("export A=b#c", ["export A=b#c"]),
    "a comment": ("# export A=b", []),
    "a line that goes on": ("export A=b \\\n  C=d", ["export A=b", "export C=d"]),
    "a line that goes on inside quotes": ('export A="b \\\nc"', ["export A=b c"]),
    "a semicolon": ("export A=b;export C=d", ["export A=b", "export C=d"]),
    "a variable of the same script": ("D=/opt\nexport A=$D/x", ["shell D=/opt", "export A=/opt/x"]),
    "a variable in braces": ("D=/opt; export A=${D}x", ["shell D=/opt", "export A=/optx"]),
    "a variable from outside": ("export A=$HOME/x", ["export A ?"]),
    "a command": ("export A=$(hostname)", ["export A ?"]),
    "a command in backticks": ("export A=`nproc`", ["export A ?"]),
    "arithmetic": ("export A=$((8 * 2))", ["export A ?"]),
    "a home": ("export A=~/x B='~'/x", ["export A ?", "export B=~/x"]),
    "a default": ("export NCCL_DEBUG=${NCCL_DEBUG:-INFO}", ["export NCCL_DEBUG=INFO"]),
    "a default that is not needed": ("A=b; export C=${A:-d}", ["shell A=b", "export C=b"]),
    "a default in quotes": ('export A="${B:-"c d"}"', ["export A=c d"]),
    "a default with another in it": ("export A=${B:-${C-d}}", ["export A=d"]),
    "a default that is not known": ("export A=${B:-$C}", ["export A ?"]),
    "an alternative": ("B=1; export A=${B:+c}", ["shell B=1", "export A=c"]),
    "a part of a value": ("B=abc; export A=${B%c}", ["shell B=abc", "export A ?"]),
    "added to a value": ("A=b; A+=c; export D=$A", ["shell A=b", "shell A=bc", "export D=bc"]),
    "before a command": ("NCCL_DEBUG=INFO ./a.out", ["prefix@0 NCCL_DEBUG=INFO"]),
    "several before a command": ("A=b C=d python x.py", ["prefix@0 A=b", "prefix@0 C=d"]),
    "env": ("env A=b", ["prefix@0 A=b"]),
    "env before a command": ("env -i A=b C=d ./x", ["prefix@0 A=b", "prefix@0 C=d"]),
    "env that unsets": ("env -u A ./x", ["prefix@0 A unset"]),
    "sudo": ("sudo -E -u root A=b ./x", ["prefix@0 A=b"]),
    "set -a": ("set -a\nA=b\nset +a\nC=d", ["export A=b", "shell C=d"]),
    "set -o allexport": ("set -o allexport; A=b", ["export A=b"]),
    "an if": ("if x; then export A=b; else export A=c; fi", ["export A=b", "export A=c"]),
    "what an if decides": ("if x; then H=b; else H=c; fi; export A=$H", ["shell H=b", "shell H=c", "export A=b|c"]),
    "what an if may decide": ("if x; then H=b; fi; export A=$H", ["shell H=b", "export A=b"]),
    "a chain of elif": (
        "if x; then H=b; elif y; then H=c; else H=d; fi; export A=$H",
        ["shell H=b", "shell H=c", "shell H=d", "export A=b|c|d"],
    ),
    "a case": ("case $x in a|b) H=1;; *) H=2;; esac\nexport A=$H", ["shell H=1", "shell H=2", "export A=1|2"]),
    "a loop over words": ("for n in 1 2 4; do A=$n ./x; done", ["prefix@0 A=1|2|4"]),
    "a loop over what is not known": ("for n in $(seq 8); do A=$n ./x; done", ["prefix@0 A ?"]),
    "a while": ("while read l; do export A=$l; done < f", ["export A ?"]),
    "a function": ("setup() {\n export A=b\n}\nsetup", ["export A=b"]),
    "a function by its word": ("function setup { export A=b; }", ["export A=b"]),
    "a subshell": ("(A=b; export C=$A); export D=$A", ["shell A=b", "export C=b", "export D ?"]),
    "a test before": ('[ -n "$X" ] && export A=b', ["export A=b"]),
    "tests with operators": ("[[ $a == b && -n $c ]] && export A=b", ["export A=b"]),
    "arithmetic as a command": ("((n++)); for ((i=0; i<3; i++)); do export A=b; done", ["export A=b"]),
    "eval": ("eval 'export A=b'", ["export A=b"]),
    "another shell": ("bash -c 'export A=b; export C=\"d e\"'", ["export A=b", "export C=d e"]),
    "another shell with a value from here": ('V=1; bash -lc "export A=$V"', ["shell V=1", "export A=1"]),
    "a shell of csh": ("setenv A b\nunsetenv C", ["export A=b", "export C unset"]),
    "a here-document that is nccl.conf": (
        "cat > /etc/nccl.conf <<EOF\nA=b c\n#x\nEOF\nexport D=e",
        ["nccl_conf A=b c -> /etc/nccl.conf", "export D=e"],
    ),
    "its variables": (
        "D=1\ncat <<EOF > nccl.conf\nA=$D\nB=\\$D\nEOF",
        ["shell D=1", "nccl_conf A=1 -> nccl.conf", "nccl_conf B=$D -> nccl.conf"],
    ),
    "a quoted delimiter": ("D=1\ncat <<'EOF' > nccl.conf\nA=$D\nEOF", ["shell D=1", "nccl_conf A=$D -> nccl.conf"]),
    "tabs before a here-document": (
        "tee nccl.conf <<-E\n\tA=b\n\tE\nexport C=d",
        ["nccl_conf A=b -> nccl.conf", "export C=d"],
    ),
    "a script in a here-document": (
        "cat > job.sh <<'EOF'\n#!/bin/bash\nexport A=b\nEOF\nsbatch job.sh",
        ["export A=b -> job.sh"],
    ),
    "a here-document for a shell": ("bash <<EOF\nexport A=b\nEOF", ["export A=b"]),
    "a here-document for something else": ("python3 <<EOF\nA=b\nEOF", []),
    "echo into nccl.conf": ('echo "A=b" | sudo tee -a /etc/nccl.conf', ["nccl_conf A=b -> /etc/nccl.conf"]),
    "echo into a profile": ("echo 'export A=b' >> ~/.bashrc", ["export A=b -> ~/.bashrc"]),
    "printf": ("printf 'A=b\\nC=d\\n' > nccl.conf", ["nccl_conf A=b -> nccl.conf", "nccl_conf C=d -> nccl.conf"]),
    "a prompt in front": ("$ export A=b", ["export A=b"]),
    "redirections": ("A=b ./x > out.txt 2>&1 < in.txt", ["prefix@0 A=b"]),
    "a value to fill in": ("export A=<your value>", ["export A ?"]),
    "a command whose output is kept": (
        "out=$(NCCL_DEBUG=INFO ./x)\nB=`C=d ./x`",
        ["prefix@0 NCCL_DEBUG=INFO", "shell out ?", "prefix@1 C=d", "shell B ?"],
    ),
    "a here-document in a variable": (
        "S=$(cat <<'EOF'\nexport A='b'\nEOF\n)\nsrun bash -c \"$S\"",
        ["shell S=export A='b'", "export@0 A=b"],
    ),
    "a here-document that is read into a variable": (
        "read -r -d '' S <<EOF\nexport A=b\nEOF\nsrun bash -c \"$S\"",
        ["export@0 A=b"],
    ),
    "a here-document for a cat that another shell starts": (
        "sudo bash -c 'cat > /etc/nccl.conf' <<'EOF'\nA=b\nEOF",
        ["nccl_conf A=b -> /etc/nccl.conf"],
    ),
    "a here-document in an export": (
        "export A=$(cat <<'E'\nb ) \" ' c\nE\n)\nexport D=e",
        ["export A=b ) \" ' c", "export D=e"],
    ),
    "a here-document in double quotes": (
        'B=1; export A="$(cat <<E\nit\'s $B (\nE\n)"; export D=e',
        ["shell B=1", "export A=it's 1 (", "export D=e"],
    ),
    "a here-document whose tabs are not part of it": ("export A=$(cat <<-E\n\t\tb\n\tc\n\tE\n)", ["export A=b\nc"]),
    "a here-document without a line end behind it": (
        "export A=$(cat <<E\nb\nE)\nexport D=e",
        ["export A=b", "export D=e"],
    ),
    "a here-document within another command": (
        "export A=$(tr b c $(cat <<E\n)\nE\n) <<'F G'\n'\nF G\n)\nexport D=e",
        ["export A ?", "export D=e"],
    ),
    "two here-documents on a line": (
        "export A=$(paste <(cat <<E) - <<F\n(\nE\n)\nF\n)\nexport D=e",
        ["export A ?", "export D=e"],
    ),
    "a here-document in backticks": ("export A=`cat <<E\nit's (\nE\n`\nexport D=e", ["export A ?", "export D=e"]),
    "a here-document in a list": ("A=($(cat <<E\nit's (\nE\n) c)\nexport D=e", ["export D=e"]),
    "a case in a command": (
        "export A=$(case $x in a) echo 1;; (b) echo 2;; esac)\nexport D=e",
        ["export A ?", "export D=e"],
    ),
    "subshells in brackets": ("((A=b); (export C=d))\nexport E=f", ["shell A=b", "export C=d", "export E=f"]),
    "variables for a container": (
        "export APPTAINERENV_NCCL_DEBUG=INFO SINGULARITYENV_A=b",
        ["container NCCL_DEBUG=INFO", "container A=b"],
    ),
}


@pytest.mark.parametrize(("script", "expected"), CORPUS.values(), ids=CORPUS.keys())
def test_a_script_sets_what_the_shell_would_set(script: str, expected: list[str]) -> None:
    assert of(script) == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("export NCCL_DEBUG= INFO", ["space_after_equals 1:8 NCCL_DEBUG"]),
        ("NCCL_DEBUG= INFO", ["space_after_equals 1:1 NCCL_DEBUG"]),
        ('NCCL_IB_HCA= "=mlx5_0"', ["space_after_equals 1:1 NCCL_IB_HCA"]),
        ("NCCL_DEBUG =INFO", ["space_before_equals 1:1 NCCL_DEBUG"]),
        ("NCCL_DEBUG = INFO", ["space_before_equals 1:1 NCCL_DEBUG"]),
        ("export NCCL_DEBUG =INFO", ["space_before_equals 1:8 NCCL_DEBUG"]),
        ("export NCCL_DEBUG = INFO", ["space_before_equals 1:8 NCCL_DEBUG"]),
        ("mpirun -x NCCL_DEBUG= INFO -x A=b ./x", ["space_after_equals 1:11 NCCL_DEBUG"]),
        ("docker run -e NCCL_DEBUG= INFO image", ["space_after_equals 1:15 NCCL_DEBUG"]),
        ("mpirun -np 8 \\ \n -x A=b ./x", ["lost_line_end 1:14 \\ "]),
        ("mpirun -np 8 \\ -x A=b \\ ./x", ["lost_line_end 1:14 \\ ", "lost_line_end 1:23 \\ "]),
        ("mpirun -np 8 \\\n # -x C=d \\\n -x A=b ./x", ["lost_line_end 3:2 -x"]),
        ("mpirun -np 8\n-x A=b ./x", ["lost_line_end 2:1 -x"]),
        ("export A=\u201cb\u201d", ["typographic 1:10 \u201c"]),
        ("mpirun \u2013x A=b ./x", ["typographic 1:8 \u2013"]),
        ("export A=b\r\nexport C=d\r\n", ["carriage_return 1:11 \\r"]),
        ("srun --export=ALL,NCCL_IB_HCA=mlx5_0,mlx5_1 ./x", ["comma_in_list 1:38 NCCL_IB_HCA"]),
        ("mpirun --mca coll_hcoll_enable=0 -x A=b ./x", ["option_equals 1:14 coll_hcoll_enable=0"]),
    ],
)
def test_a_slip_is_said(script: str, expected: list[str]) -> None:
    assert slips_of(script) == expected


@pytest.mark.parametrize(
    "script",
    [
        "IFS= read -r line",
        "LD_PRELOAD= ls",
        "CUDA_VISIBLE_DEVICES= python train.py",
        "NCCL_DEBUG= ./run.sh",
        '[ "$A" = "$B" ]',
        "test A = B",
        "export A= C=d",
        "mpirun -x NCCL_DEBUG= ./x",
        "srun --export=ALL,NCCL_DEBUG=INFO,PATH,NCCL_ALGO ./x",
        "srun --export=ALL,\"NCCL_IB_HCA='mlx5_0,mlx5_1'\" ./x",
        "cp My\\ File x",
        "mpirun -np 8 \\\n\\\n -x A=b ./x",
        "ls\n\n# - a list\necho -n x",
        "A=(\n  --one\n  --two b\n)",
        'case "$1" in\n  --suite) ;;\n  --other) ;;\nesac',
        'local A="" B=""',
        'export A="" B',
    ],
)
def test_what_is_meant_so_is_no_slip(script: str) -> None:
    assert slips_of(script) == []


def test_places_are_those_of_name_and_value() -> None:
    reading = read('#!/bin/bash\n  export NCCL_IB_HCA="=mlx5_0"  # x\n', "job.sh")
    (found,) = reading.assignments
    assert (found.line, found.column, found.value_column, found.written) == (2, 10, 22, '"=mlx5_0"')
    assert reading.lines[1][found.column - 1 :].startswith("NCCL_IB_HCA")


def test_a_value_out_of_a_variable_stands_where_it_is_written() -> None:
    reading = read('ARGS="-x A=b \\\n  -x C=d"\nmpirun $ARGS ./x', "job.sh")
    places = [(each.name, each.line, each.column, each.value_column) for each in reading.assignments[1:]]
    assert places == [("A", 1, 10, 12), ("C", 2, 6, 8)]


def test_ways_through_an_if_exclude_each_other() -> None:
    first, second, third = read("if x; then export A=b; else export A=c; fi; export A=d", "script", "shell").assignments
    assert (first.arms[0].construct, first.arms[0].arm) == (0, 0)
    assert (second.arms[0].construct, second.arms[0].arm) == (0, 1)
    assert third.arms == ()


def test_a_carriage_return_is_no_part_of_the_value() -> None:
    assert of("export A=b\r\nmpirun -x C=d \\\r\n -x E=f ./x\r\n") == ["export A=b", "mpirun@0 C=d", "mpirun@0 E=f"]


def test_what_stands_before_an_open_quote_is_read_and_the_rest_is_named() -> None:
    reading = read("export A=b\nexport C='d\nexport E=f\n", "script", "shell")
    assert [each.name for each in reading.assignments] == ["A", "C", "E"]
    assert reading.assignments[1].value is None
    assert [(each.line, each.column) for each in reading.unread] == [(2, 10)]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("if x; then export A=b", "without `fi`"),
        ("for i in 1 2; do export A=b", "without `done`"),
        ("fi", "closes nothing"),
        ("cat > nccl.conf <<EOF\nA=b", "no line ends the here-document"),
        ("source env.sh", "is not read"),
        (". /opt/env.sh", "is not read"),
        ("docker run --env-file list image", "--env-file"),
        ("A=" + "${B:-" * 40 + "}" * 40, None),
    ],
)
def test_what_cannot_be_read_is_said(script: str, reason: str | None) -> None:
    reasons = [each.reason for each in read(script, "script", "shell").unread]
    assert (reasons == []) if reason is None else any(reason in each for each in reasons)


# Everything a variable can hold, but what stands for the unknown, what no file can hold, and what makes it no text.
CONTROLS = "".join(map(chr, (*range(9), *range(14, 27), *range(28, 32), 127)))
VALUES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters=f"{CONTROLS}\r\ufffe\uffff"), max_size=40)


@given(VALUES)
def test_an_export_quoted_for_the_shell_is_read_as_it_was(value: str) -> None:
    (found,) = read(f"export A={shlex.quote(value)}\n", "script", "shell").assignments
    assert (found.value, found.computed, found.written) == (value, False, shlex.quote(value))


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_a_command_line_quoted_for_the_shell_is_read_as_it_was(values: list[str]) -> None:
    options = " ".join(f"-x {shlex.quote(f'V{number}={value}')}" for number, value in enumerate(values))
    reading = read(f"mpirun -np 2 {options} ./x\n", "script", "shell")
    assert [each.value for each in reading.assignments] == values


@given(VALUES)
def test_a_script_within_a_script_is_read_as_it_was(value: str) -> None:
    inner = f"export A={shlex.quote(value)}"
    (found,) = read(f"srun bash -c {shlex.quote(inner)}\n", "script", "shell").assignments
    assert (found.value, found.launch) == (value, 0)
