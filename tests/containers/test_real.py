"""Ranks in real containers: what arrives inside is, byte by byte, what was asked."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import busbw
from busbw.base.errors import InputError
from busbw.measure.containers import inside
from busbw.measure.containers.inside import settled, wanted
from busbw.measure.containers.place import ContainerPlace
from busbw.measure.launchers import mpirun
from busbw.measure.plan.containing import wrap
from busbw.model.launch import Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Placement, Program
from busbw.model.request import Bind

from .images import MAKERS, TELL, Image, seen, told
from .makers import HASTY

pytestmark = pytest.mark.root

# What a login could leave behind and a container must not see.
DISTURBING = {"PYTHONPATH": "/nonsense", "PYTHONHOME": "", "OPAL_PREFIX": "/nonsense"}
SURROUNDINGS = {**os.environ, "USER": "root"}
# MPI's own ways within a host: small messages, and ones so large that it would rather read the other's memory.
MPI_PROGRAM = (
    """
from mpi4py import MPI
world = MPI.COMM_WORLD
data = bytearray([world.rank + 1]) * (4 << 20)
total = bytearray(len(data))
world.Allreduce([data, MPI.UNSIGNED_CHAR], [total, MPI.UNSIGNED_CHAR])
print(f"\\nSUM {world.rank} {world.size} {set(total)}", flush=True)
"""
    + TELL
)


@pytest.fixture(scope="module", params=list(MAKERS))
def image(request: pytest.FixtureRequest) -> Iterator[Image]:
    # Podman takes no folder of more than 50 characters for what runs.
    with (
        tempfile.TemporaryDirectory(prefix="busbw-", ignore_cleanup_errors=True) as folder,
        MAKERS[request.param](Path(folder)) as made,
    ):
        yield made


def started(image: Image, program: Program, place: ContainerPlace, *binds: Bind) -> list[dict[str, object]]:
    container = msgspec.structs.replace(image.container, binds=(*image.container.binds, *binds))
    wrapped = wrap(container, program, place)
    done = subprocess.run(
        wrapped.program.argv,
        env={**SURROUNDINGS, **DISTURBING, **dict(wrapped.program.env)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return seen(done.stdout)


def telling(*words: str, **env: str) -> Program:
    return Program(argv=(sys.executable, "-c", TELL, *words), env=tuple(env.items()))


def test_hostile_values_and_words_arrive_byte_by_byte(image: Image) -> None:
    values = {
        "HASTY": HASTY,
        "LINES": "a\nb\n\nNCCL_DEBUG=INFO\n",
        "QUOTED": "'it''s'",
        "EMPTY": "",
        "COLONS": "$HOME:$PATH:",
        "LONG": "x" * 100_000,
        "TMPDIR": "/tmp/elsewhere",
    }
    words = ("", " ", "-n", "--", "a\nb", "$(id)", "'", '"', "*", "é")
    (found,) = started(image, telling(*words, **values), ContainerPlace())
    env = found["env"]
    assert isinstance(env, dict)
    assert {name: env.get(name) for name in values} == told(values)
    assert found["argv"] == list(words)
    # Charliecloud cannot keep PYTHONHOME from being empty on the host, and nobody must hand it on.
    assert not DISTURBING.keys() & env.keys()


def test_bytes_that_are_no_text_arrive_or_are_refused(image: Image) -> None:
    values = {"BYTES": os.fsdecode(b"\xff\xfe caf\xe9")}
    if image.container.runtime != "charliecloud":
        # Seen with Podman 4.3: it hands every such byte on as U+FFFD.
        with pytest.raises(InputError, match="replaces bytes that are no UTF-8"):
            wrap(image.container, telling(**values), ContainerPlace())
        return
    (found,) = started(image, telling(**values), ContainerPlace())
    env = found["env"]
    assert isinstance(env, dict)
    assert env["BYTES"] == told(values)["BYTES"]


def test_values_made_up_arrive_too(image: Image) -> None:
    # Podman and Docker take half a second for each, Charliecloud ten milliseconds.
    most = 40 if image.container.runtime == "charliecloud" else 3

    @settings(max_examples=most, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(value=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30))
    @example(value="'")
    @example(value="''")
    @example(value="'$A:$B'\n'")
    def arrives(value: str) -> None:
        # Of the image, not Python: a few milliseconds instead of fifty.
        program = Program(argv=("/usr/bin/env", "-0"), env=(("VALUE", value),))
        argv = wrap(image.container, program, ContainerPlace()).program.argv
        entries = subprocess.run(argv, env=SURROUNDINGS, capture_output=True, timeout=30, check=True).stdout.split(
            b"\0"
        )
        assert f"VALUE={value}".encode() in entries

    arrives()


def test_folders_are_bound_where_they_shall_be(image: Image, tmp_path: Path) -> None:
    (tmp_path / "with space").mkdir()
    (tmp_path / "with space" / "file").write_text("here")
    bind = Bind(source=str(tmp_path / "with space"), target="/mnt")
    text = "import pathlib; print('SEEN', '\"' + pathlib.Path('/mnt/file').read_text() + '\"')"
    assert started(image, Program(argv=(sys.executable, "-c", text), env=()), ContainerPlace(), bind) == ["here"]


def test_the_check_of_the_image_finds_this_busbw_and_its_mpi(image: Image) -> None:
    wrapped = wrap(image.container, inside.check(sys.executable), ContainerPlace())
    done = subprocess.run(
        wrapped.program.argv, env=SURROUNDINGS, capture_output=True, text=True, timeout=60, check=False
    )
    said = done.stdout + done.stderr
    inside.compare(said, done.returncode, version=busbw.__version__, family="Open MPI", image=image.container.image)


def test_ranks_of_one_mpi_job_meet_in_their_containers(image: Image, tmp_path: Path) -> None:
    values = {"HASTY": HASTY, "NCCL_DEBUG": "INFO", "EMPTY": ""}
    mpi = MpiLibrary(
        family="Open MPI", version="5", mpirun=f"{sys.prefix}/bin/mpirun", library="unused", origin="chosen"
    )
    place = ContainerPlace(starter="mpirun", pmi="pmix", ranks_per_host=2, forward=("FROM_THE_SHELL",))
    program = Program(argv=(sys.executable, "-c", MPI_PROGRAM), env=tuple(values.items()))
    asked = wanted(image.container, program, place)
    binds = settled(asked, frozenset(each.source for each in asked if Path(each.source).exists()))
    wrapped = wrap(msgspec.structs.replace(image.container, binds=binds), program, place)
    job = mpirun.job(
        Start(
            program=wrapped.program,
            placement=Placement(ranks=2, hosts=("here",), binding="none", oversubscribed=True),
            directory=str(tmp_path),
            mpi=mpi,
            forward=wrapped.forward,
            unset=wrapped.unset,
            as_root=True,
            measuring_s=10,
            stall_s=10,
        )
    )
    done = subprocess.run(
        job.argv,
        env={**SURROUNDINGS, "FROM_THE_SHELL": "as it is", **dict(job.env)},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # MPI reaches the memory of the other rank, or would say here that it cannot.
    assert "denied" not in done.stderr
    # One job of two ranks, not two jobs of one.
    assert {line for line in done.stdout.splitlines() if line.startswith("SUM ")} == {"SUM 0 2 {3}", "SUM 1 2 {3}"}
    for found in seen(done.stdout):
        env = found["env"]
        assert isinstance(env, dict)
        assert {name: env.get(name) for name in values} == told(values)
        assert env["FROM_THE_SHELL"] == "as it is"
        # mpirun of a wheel gives its ranks these folders of the host.
        assert not {"OPAL_PREFIX", "PMIX_PREFIX"} & env.keys()
        # Inside: the root of the image, not of the host.
        root = found["root"]
        assert isinstance(root, list)
        assert set(root) - {".dockerenv"} <= {each.name for each in (image.folder / "root").iterdir()}
