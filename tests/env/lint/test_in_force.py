"""An error or a warning needs a sign that the text is a setting in force; what is only spoken of is a note."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.env.rules.subject import CheckContext


def severities(text: str, file: str) -> list[tuple[str, str]]:
    return [(each.code, each.severity) for each in lint(read(text, file), CheckContext())]


RST = "A page about modules\n====================\n\nThe module has this:\n\n{0}\n"
WRONG = "NCCL_MIN_CHANNELS"
# The sign, and the same setting without it.
PAIRS = {
    "a script, and a text for people": (
        (f"pwd\nexport {WRONG}=4\n", "x.sh"),
        (f"### 1\npwd\nexport {WRONG}=4\n", "x.txt"),
    ),
    "a command that acts, and another language": (
        (f"export {WRONG}=4\n./a\n", "job"),
        (f"provider = a\n{{\n  add {WRONG}=4 ./a\n}}\nexec env {WRONG}=4 ./a\n", "quick.test"),
    ),
    "a block of code, and lines of a page": (
        (RST.format(f".. code-block:: bash\n\n   {WRONG}=4 ./a"), "x.rst"),
        (RST.format(f"   {WRONG}=4 ./a"), "x.rst"),
    ),
    "an environment, and another mapping": (
        (f"job:\n  env:\n    {WRONG}: 4\n    NCCL_DEBUG: INFO\n", "x.yaml"),
        (f"job:\n  found:\n    {WRONG}: 4\n    NCCL_DEBUG: INFO\n", "x.yaml"),
    ),
    "what is laid over an environment, and a table": (
        (f'import os\nA = {{"{WRONG}": "4"}}\nos.environ.update(A)\n', "x.py"),
        (f'A = {{"{WRONG}": "4"}}\nwrite(A)\n', "x.py"),
    ),
    "a program, and its test": (
        (f'import os\nos.environ["{WRONG}"] = "4"\n', "x.py"),
        (f'import os\ndef test_a():\n    os.environ["{WRONG}"] = "4"\n', "test_x.py"),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_fault_in_force_is_a_warning_and_one_that_is_spoken_of_a_note(name: str):
    in_force, spoken_of = PAIRS[name]

    assert ("ENV020", "warn") in severities(*in_force)
    assert ("ENV020", "note") in severities(*spoken_of)
    assert all(severity == "note" for _code, severity in severities(*spoken_of))


def test_what_the_caller_calls_a_script_is_one():
    text = f"### 1\npwd\nexport {WRONG}=4\n"
    found = lint(read(text, "x.txt", "shell"), CheckContext())
    assert ("ENV020", "warn") in [(each.code, each.severity) for each in found]


def test_notes_of_what_is_spoken_of_end_with_0_and_say_why(tmp_path: Path):
    file = tmp_path / "x.yaml"
    file.write_text(PAIRS["an environment, and another mapping"][1][0])

    done = CliRunner().invoke(busbw, ["env", "lint", str(file)])

    assert done.exit_code == 0
    assert "nothing shows that this is in force" in done.stdout


def test_a_text_where_a_mapping_is_wanted_sets_nothing():
    text = "run:\n  env:\n    UCX_NET_DEVICES=mlx5_0:1\n"
    assert ("ENV118", "error") in severities(text, "x.yaml")
    assert "ENV118" not in dict(severities(text.replace("=", ": '").replace("0:1", "0:1'"), "x.yaml"))


def test_a_list_in_toml_holds_the_values_of_several_runs():
    reading = read('[extra_env_vars]\nNCCL_NVLS_ENABLE = ["0", "1"]\nNCCL_DEBUG = "INFO"\n', "x.toml")
    assert [(each.value, each.alternatives) for each in reading.assignments] == [(None, ("0", "1")), ("INFO", ())]


@pytest.mark.parametrize("file", ["Jenkinsfile-mpi", "sub/CMakeLists.txt"])
def test_files_of_build_systems_are_known_by_how_they_begin(file: str):
    with pytest.raises(InputError, match="by its name it is"):
        read("a\n", file)
