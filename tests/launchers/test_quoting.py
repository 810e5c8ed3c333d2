"""Hostile names, values, words and paths: they are read back as they were given, or refused."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.base.hostlist import check_host_name
from busbw.measure.launchers import mpirun, sbatch, srun
from busbw.measure.launchers.command_line import command_line
from busbw.model.launch import Batch, Start
from busbw.model.plan import Job

from .starts import MPIS, SLURM, here, make_placement, make_start

EVIL = st.sampled_from(list("abA0 _-=,;:.'\"\\$`!#%&|<>(){}[]*?~^@\n\r\t\x01é→"))
# What Linux can hold: anything but NUL.
VALUES = st.text(EVIL, max_size=12) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6
)
NAMES = st.from_regex(r"\A[A-Z_][A-Z0-9_]{0,8}\Z").map(lambda name: f"Z{name}")
ENVIRONMENTS = st.dictionaries(NAMES | st.just("OMPI_MCA_x") | st.just("PRTE_MCA_y"), VALUES, max_size=4)
WORDS = st.lists(VALUES, max_size=4)
DIRECTORIES = st.text(EVIL, min_size=1, max_size=8).map(lambda text: f"/runs/{text.replace('/', '')}")

# A program that says what it was started with.
SHOW = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"
# Options of mpirun that are followed by two words, one, or none.
TWO = {"--mca": "OMPI_MCA_", "--prtemca": "PRTE_MCA_", "--pmixmca": "PMIX_MCA_"}
ONE = {
    *("-n", "--hostfile", "--map-by", "--bind-to", "--wdir", "-x"),
    *("-f", "-machinefile", "-wdir", "-bind-to"),
}


def started(make: "type[Job] | object", start: Start) -> Job | None:
    """Return the job of a start; None where it is refused in at most four lines."""
    try:
        return make(start)  # type: ignore[operator]
    except InputError as error:
        assert 1 <= len(error.cause) < 400  # noqa: PT017 - the job may be there instead
        return None


def read_mpirun(job: Job) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the environment that the options of mpirun give, and the command, by a strict reading."""
    env: dict[str, str] = dict(job.env)
    at = 1
    while at < len(job.argv) and job.argv[at].startswith("-"):
        word = job.argv[at]
        if word in TWO:
            env[f"{TWO[word]}{job.argv[at + 1]}"] = job.argv[at + 2]
            at += 3
        elif word == "-genv":
            at += 3
        elif word in ONE:
            if word == "-x" and "=" in job.argv[at + 1]:
                name, _equals, value = job.argv[at + 1].partition("=")
                env[name] = value
            at += 2
        else:
            assert word == "-disable-auto-cleanup", word
            at += 1
    return env, job.argv[at:]


@pytest.mark.parametrize("name", MPIS)
@given(env=ENVIRONMENTS, words=WORDS, directory=DIRECTORIES)
def test_mpirun_is_given_what_was_asked(name: str, env: dict[str, str], words: list[str], directory: str):
    argv = ("/bin/p", *words)
    job = started(mpirun.job, make_start(argv, tuple(env.items()), directory=directory, mpi=MPIS[name]))
    if job is None:
        return
    got, command = read_mpirun(job)

    assert {each: got[each] for each in env} == env
    assert command[-len(argv) :] == argv
    assert set(command[: -len(argv)]) <= {"env"}


@given(env=ENVIRONMENTS, words=WORDS, directory=DIRECTORIES)
def test_srun_is_given_what_was_asked(env: dict[str, str], words: list[str], directory: str):
    argv = ("/bin/p", *words)
    job = started(srun.job, make_start(argv, tuple(env.items()), directory=directory, slurm=SLURM))
    if job is None:
        return

    assert {each: dict(job.env)[each] for each in env} == env
    assert job.argv[-len(argv) :] == argv
    assert f"--chdir={directory}" in job.argv
    assert all(word.startswith("--") for word in job.argv[1 : -len(argv)])


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(ENVIRONMENTS, WORDS, DIRECTORIES, st.booleans(), st.sampled_from(sorted(MPIS)))
def test_a_shell_reads_a_shown_command_as_the_job_is(
    env: dict[str, str], words: list[str], directory: str, several: bool, name: str
):
    placement = make_placement() if several else here()
    start = make_start(("/bin/p", *words), tuple(env.items()), directory=directory, mpi=MPIS[name], placement=placement)
    job = started(mpirun.job, start)
    if job is None:
        return
    # A program in the place of mpirun prints the words that bash makes of it, and the environment.
    script = command_line(job).replace(job.argv[0], f"{shlex.quote(sys.executable)} -IS -c {shlex.quote(SHOW)}", 1)
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False, env={"LC_ALL": "C.UTF-8"})

    assert done.returncode == 0, done.stderr
    got_words, got = json.loads(done.stdout)
    assert got_words == list(job.argv[1:])
    given_env = {name: value for name, value in job.env if name not in dict(job.prepend)}
    assert {each: got[each] for each in given_env} == given_env


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(env=ENVIRONMENTS, words=WORDS)
def test_a_batch_script_starts_what_was_asked(
    tmp_path_factory: pytest.TempPathFactory, env: dict[str, str], words: list[str]
):
    folder = tmp_path_factory.mktemp("batch")
    argv = (sys.executable, "-IS", "-c", SHOW, *words)
    start = make_start(argv, tuple(env.items()), directory=str(folder), batch=Batch(name="x", nodes=1), unset=("GONE",))
    job = started(sbatch.job, start)
    assert job is not None
    script = folder / job.files[0].path
    script.write_text(job.files[0].text, encoding="utf-8", errors="surrogateescape")

    done = subprocess.run(
        ["bash", str(script)], capture_output=True, check=False, env={"LC_ALL": "C.UTF-8", "GONE": "1"}
    )

    assert done.returncode == 0, done.stderr
    got_words, got = json.loads(done.stdout)
    assert got_words == words
    assert {each: got[each] for each in env} == env
    assert "GONE" not in got


@given(st.text(EVIL, max_size=10) | st.text(max_size=5))
def test_a_name_of_a_host_is_one_or_is_refused(name: str):
    try:
        check_host_name(name)
    except InputError:
        return
    assert all(label and "-" not in (label[0], label[-1]) for label in name.split("."))
    assert name.isascii()
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


@given(st.text(EVIL, min_size=1, max_size=10), st.sampled_from(["name", "partition", "account", "array", "options"]))
def test_a_directive_is_one_word_of_one_line_or_is_refused(text: str, field: str):
    values = {"name": "x", "nodes": 1} | {field: (text,) if field == "options" else text}
    job = started(sbatch.job, make_start(batch=Batch(**values)))
    if job is None:
        return
    lines = [line for line in job.files[0].text.splitlines() if line.startswith("#SBATCH ")]

    assert any(line.partition("=")[2] == text or line == f"#SBATCH {text}" for line in lines)
    assert all(len(line.split()) == 2 and not set(line[1:]) & set("\"'\\#") for line in lines)


def test_surrogates_stand_for_bytes_that_are_no_text(tmp_path: Path):
    value = os.fsdecode(b"\xff\xfe")
    job = mpirun.job(make_start(env=(("A", value),), directory=str(tmp_path)))

    assert f"A={value}" in job.argv


@pytest.mark.parametrize("make", [mpirun.job, srun.job, sbatch.job], ids=["mpirun", "srun", "sbatch"])
@pytest.mark.parametrize("surrogate", [0xD800, 0xDBFF, 0xDC7F, 0xDFFF])
def test_text_that_no_bytes_stand_for_is_refused(make: Callable[[Start], Job], surrogate: int) -> None:
    start = make_start(env=(("A", f"a{chr(surrogate)}"),), slurm=SLURM, batch=Batch(name="x", nodes=1))

    with pytest.raises(InputError, match="no bytes stand for this text") as refused:
        make(start)

    assert refused.value.where == "A"
