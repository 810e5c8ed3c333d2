"""Whatever is asked arrives as asked, or is refused: hostile values, paths and words through every runtime."""

import subprocess
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.measure.containers.place import ContainerPlace
from busbw.measure.plan.containing import wrap
from busbw.model.plan import Program
from busbw.model.request import Bind, RuntimeName

from .makers import HASTY, container

RUNTIMES: tuple[RuntimeName, ...] = get_args(RuntimeName)
PLACE = {"pyxis": ContainerPlace(starter="srun", pmi="pmix"), "apptainer": ContainerPlace(starter="mpirun")}
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
HOSTILE = st.one_of(TEXT, st.text("ab ,:;=\"'\\$`(){}[]!#%*?~^&|<>\n\t/.-", max_size=12))
# What at least one runtime takes apart, and what no line can hold.
REFUSED = {*',:"\\^$`', *map(chr, range(0x20))}
NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,11}", fullmatch=True) | st.sampled_from(["PATH", "HOME", "UID", "TMPDIR"])


def arrives(runtime: RuntimeName, program: Program) -> dict[str, str]:
    """Return what the program finds set inside, by the rules of the runtime."""
    wrapped = wrap(container(runtime), program, PLACE.get(runtime, ContainerPlace()))
    argv = wrapped.program.argv
    if runtime in ("apptainer", "singularity"):
        prefix = f"{runtime.upper()}ENV_"
        # The runtime writes these lines and has a shell read them.
        lines = (
            'export {}="{}"'.format(name.removeprefix(prefix), value.replace('"', '\\"'))
            for name, value in wrapped.program.env
        )
        script = "\n".join((*lines, 'exec "$@"'))
        return ran(("bash", "-c", script, "bash", *argv[argv.index("image.sif") + 1 :]))
    if runtime in ("podman", "docker"):
        words = [argv[at + 1] for at, word in enumerate(argv[: argv.index("--entrypoint")]) if word == "--env"]
        return dict(word.split("=", 1) for word in words)
    if runtime == "charliecloud":
        words = [word.removeprefix("--set-env=") for word in argv if word.startswith("--set-env=")]
        pairs = dict(word.split("=", 1) for word in words)
        assert all(value[0] == value[-1] == "'" for value in pairs.values())
        return {name: value[1:-1] for name, value in pairs.items()}
    listed = next((word for word in wrapped.options if word.startswith("--container-env=")), "=").split("=", 1)[1]
    return {name: dict(wrapped.program.env)[name] for name in listed.split(",") if name}


def ran(argv: tuple[str, ...]) -> dict[str, str]:
    """Return the environment that a command prints, with NUL between entries."""
    output = subprocess.run(argv, env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=True).stdout
    return dict(entry.decode().split("=", 1) for entry in output.split(b"\0") if entry)


@pytest.mark.parametrize("runtime", RUNTIMES)
@settings(max_examples=60)
@given(env=st.dictionaries(NAMES, HOSTILE, max_size=4))
@example(env={"A": HASTY, "EMPTY": "", "QUOTED": "'x'", "COLONS": "$A:$B"})
@example(env={"PATH": "/usr/bin:/bin", "HOME": "/h", "UID": "7", "PS1": "$"})
def test_every_value_arrives_as_asked_or_is_refused(runtime: RuntimeName, env: dict[str, str]) -> None:
    # Without a folder of programs on it no PATH finds the program that prints the environment.
    program = Program(argv=("/usr/bin/env", "-0"), env=tuple(env.items()))
    if runtime in ("apptainer", "singularity") and "PATH" in env:
        env = env | {"PATH": "/usr/bin:/bin"}
        program = Program(argv=program.argv, env=tuple(env.items()))
    try:
        found = arrives(runtime, program)
    except InputError:
        assert runtime == "pyxis"
        assert any("\n" in value for value in env.values())
        return
    # A shell counts its own.
    shells_own = {"_", "SHLVL", "PWD", "OLDPWD"}
    assert {name: found.get(name) for name in env if name not in shells_own} == {
        name: value for name, value in env.items() if name not in shells_own
    }


@pytest.mark.parametrize("runtime", ["apptainer", "singularity"])
def test_a_list_of_libraries_that_a_shell_would_change_is_refused(runtime: RuntimeName) -> None:
    good = wrap(container(runtime), Program(argv=("p",), env=(("LD_LIBRARY_PATH", "/a b:/c"),)), ContainerPlace())
    assert good.program.env == ((f"{runtime.upper()}ENV_LD_LIBRARY_PATH", "/a b:/c"),)
    with pytest.raises(InputError, match="as a shell does"):
        wrap(container(runtime), Program(argv=("p",), env=(("LD_LIBRARY_PATH", "$HOME/lib"),)), ContainerPlace())


def bound(runtime: RuntimeName, bind: Bind) -> tuple[str, str, bool]:
    """Return source, target and whether it is read-only, as the runtime's own grammar takes the words apart."""
    place = PLACE.get(runtime, ContainerPlace())
    wrapped = wrap(container(runtime, binds=(bind,)), Program(argv=("p",), env=()), place)
    words = (*wrapped.program.argv, *wrapped.options)
    if runtime in ("podman", "docker"):
        fields = words[words.index("--mount") + 1].split(",")
        named = dict(field.split("=", 1) for field in fields if "=" in field)
        return named["source"], named["target"], fields[-1] == "readonly"
    if runtime in ("apptainer", "singularity"):
        text = words[words.index("--bind") + 1]
    else:
        mark = "--bind=" if runtime == "charliecloud" else "--container-mounts="
        text = next(word.removeprefix(mark) for word in words if word.startswith(mark))
        assert runtime == "charliecloud" or "," not in text
    source, *more = text.split(":")
    assert len(more) <= 2
    return source, (more or [source])[0], more[1:] == ["ro"]


@pytest.mark.parametrize("runtime", RUNTIMES)
@settings(max_examples=150)
@given(source=HOSTILE, target=st.none() | HOSTILE, read_only=st.booleans())
def test_every_path_is_bound_as_asked_or_is_refused(
    runtime: RuntimeName, source: str, target: str | None, read_only: bool
) -> None:
    bind = Bind(source=f"/{source}", target=None if target is None else f"/{target}", read_only=read_only)
    if bind.source.startswith("/dev/") or (bind.target or "").startswith(("/dev/", "/tmp/")):
        return
    try:
        found = bound(runtime, bind)
    except InputError:
        found = None
    paths = (bind.source, bind.target or bind.source)
    if found is None:
        assert any(path != path.rstrip() or set(path) & REFUSED for path in paths)
        return
    # Charliecloud binds writable only; its images are read-only.
    assert found == (bind.source, bind.target or bind.source, read_only and runtime != "charliecloud")


@pytest.mark.parametrize("runtime", RUNTIMES)
@settings(max_examples=60)
@given(words=st.lists(HOSTILE, max_size=5))
def test_the_words_of_the_program_are_the_last_and_unchanged(runtime: RuntimeName, words: list[str]) -> None:
    argv = wrap(
        container(runtime), Program(argv=("prog", *words), env=()), PLACE.get(runtime, ContainerPlace())
    ).program.argv
    assert argv[len(argv) - len(words) :] == tuple(words)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("argv", "env", "fields"),
    [
        ((), (), {}),
        (("",), (), {}),
        (("a=b",), (), {}),
        (("p", "a\0b"), (), {}),
        (("p",), (("A B", "x"),), {}),
        (("p",), (("", "x"),), {}),
        (("p",), (("A", "x\0y"),), {}),
        (("p",), (("A", "x" * 140_000),), {}),
        (("p",), (("A", "\ud800"),), {}),
        (("p",), (), {"image": ""}),
        (("p",), (), {"image": "--privileged"}),
        (("p",), (), {"binds": (Bind(source="relative"),)}),
        (("p",), (), {"binds": (Bind(source="/a\nb"),)}),
    ],
)
def test_what_no_process_could_have_is_refused(
    runtime: RuntimeName,
    argv: tuple[str, ...],
    env: tuple[tuple[str, str], ...],
    fields: dict[str, object],
) -> None:
    with pytest.raises(InputError):
        wrap(container(runtime, **fields), Program(argv=argv, env=env), PLACE.get(runtime, ContainerPlace()))


def test_a_runtime_that_cannot_start_a_rank_says_why() -> None:
    program = Program(argv=("p",), env=())
    with pytest.raises(InputError, match="pyxis is part of srun"):
        wrap(container("pyxis"), program, ContainerPlace(starter="mpirun"))
    for runtime in ("podman", "docker"):
        with pytest.raises(InputError, match="does not inherit the file descriptor"):
            wrap(container(runtime), program, ContainerPlace(starter="mpirun", pmi="descriptor"))
    with pytest.raises(InputError, match="nothing else below it"):
        wrap(container("charliecloud", binds=(Bind(source="/a", target="/tmp/a"),)), program, ContainerPlace())
