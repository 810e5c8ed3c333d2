"""Where settings stand: on this host, on a captured one, in a run, in an import; and what could not be seen."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.judge.factories import make_hello, make_plan
from tests.probe.hosts import snapshot_of
from tests.probe.machines import MACHINES

from busbw.api.importing import import_files
from busbw.api.surroundings import surroundings_here, surroundings_of_run, surroundings_of_snapshot
from busbw.base.errors import InputError
from busbw.env.layers import layers
from busbw.measure.plan.surroundings import surroundings_now, with_files
from busbw.model import codec
from busbw.model.host import CapturedFile, FoundLibrary, Snapshot
from busbw.model.plan import Plan
from busbw.model.record import GpuHello, Hello
from busbw.model.settings import JobEnvironment, SettingsFile
from busbw.store import directory as directories
from busbw.store.snapshots import write_snapshot

SAMPLES = Path(__file__).parents[1] / "formats" / "samples"
AZURE = MACHINES["azure-nd-h100-v5"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home folder of a user who has set nothing yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NCCL_CONF_FILE", raising=False)
    return tmp_path


def captured(path: str, text: str | None, reason: str | None = None) -> CapturedFile:
    return CapturedFile(path=path, text=text, reason=reason)


def test_a_job_here_finds_the_environment_and_the_file_of_its_home_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("DATABASE_PASSWORD", "planted")
    (home / ".nccl.conf").write_bytes(
        b"NCCL_ALGO = Ring \r\nexport NCCL_PROTO=Simple\n# planted\nMY_PASSWORD=planted\n"
    )
    found = surroundings_now()
    assert found.environment["NCCL_DEBUG"] == "INFO"
    (file,) = [each for each in found.files if each.layer == "conf"]
    # What NCCL takes for part of a name or value is still there to be seen.
    assert file.text.split("\n")[:2] == ["NCCL_ALGO = Ring \r", "export NCCL_PROTO=Simple"]
    assert "planted" not in str(found)


def test_the_file_that_the_environment_names_takes_the_place_of_the_one_at_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".nccl.conf").write_text("NCCL_ALGO=Ring\n")
    other = home / "other.conf"
    other.write_text("NCCL_ALGO=Tree\n")
    monkeypatch.setenv("NCCL_CONF_FILE", str(other))
    found = surroundings_now()
    assert [file.path for file in found.files if file.layer == "conf"] == [str(other)]
    assert layers(found).env()["NCCL_ALGO"] == "Tree"


def test_versions_that_know_no_such_variable_read_the_one_at_home() -> None:
    files = (captured("/home/u/.nccl.conf", "NCCL_ALGO=Ring"), captured("/o.conf", "NCCL_ALGO=Tree"))
    found = JobEnvironment(where="a host", environment={"NCCL_CONF_FILE": "/o.conf"})
    newer = with_files(msgspec.structs.replace(found, nccl="2.28.9"), files)
    older = with_files(msgspec.structs.replace(found, nccl="2.20.5"), files)
    assert ([file.path for file in newer.files], [file.path for file in older.files]) == (
        ["/o.conf"],
        ["/home/u/.nccl.conf"],
    )


def test_what_could_not_be_looked_at_is_said() -> None:
    found = JobEnvironment(where="a host", environment={"NCCL_CONF_FILE": "mine.conf"})
    told = with_files(found, (captured("/etc/nccl.conf", None, "permission denied"),))
    assert told.files == ()
    assert told.unseen == (
        'NCCL_CONF_FILE = "mine.conf": which file that is depends on the folder that a job starts in',
        "/etc/nccl.conf: permission denied",
    )


def test_two_home_folders_are_said() -> None:
    files = (captured("/home/u/.nccl.conf", "A=1"), captured("/nfs/u/.nccl.conf", "A=2"))
    told = with_files(JobEnvironment(where="a host", environment={}), files)
    assert "HOME and the list of accounts disagree" in told.unseen[0]


def test_this_host_is_looked_at_as_a_whole(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = home / "topo.xml"
    there.write_text("<system/>")
    monkeypatch.setenv("NCCL_TOPO_FILE", str(there))
    monkeypatch.setenv("NCCL_GRAPH_FILE", str(home / "no-graph.xml"))
    found = surroundings_here()
    assert found.where == "this host"
    assert found.absent is not None
    assert str(home / "no-graph.xml") in found.absent
    assert str(there) not in found.absent


def snapshot_file(folder: Path, **changes: object) -> Path:
    path = folder / "host.tar"
    write_snapshot(path, msgspec.structs.replace(snapshot_of(AZURE), **changes))
    return path


def test_a_captured_host_is_found_with_its_platform_and_the_file_that_is_missing(tmp_path: Path) -> None:
    library = FoundLibrary(name="libnccl", path="/usr/lib/libnccl.so.2", version="2.27.3", found_by="loader")
    found = surroundings_of_snapshot(snapshot_file(tmp_path, libraries=(library,)))
    assert (found.where, found.platform, found.nccl) == ("host.tar", AZURE.name, "2.27.3")
    assert found.environment == AZURE.environment
    (file,) = found.files
    assert (file.path, file.layer) == ("/etc/nccl.conf", "etc_conf")
    assert "NCCL_TOPO_FILE=/opt/microsoft/ndv5-topo.xml\n" in file.text
    assert found.absent == ("/opt/microsoft/ndv5-topo.xml",)


def test_a_snapshot_may_be_named_where_a_run_may(tmp_path: Path) -> None:
    path = snapshot_file(tmp_path)
    assert surroundings_of_run(str(path)) == surroundings_of_snapshot(path)


def test_a_captured_topology_file_is_there(tmp_path: Path) -> None:
    snapshot = snapshot_of(AZURE)
    files = (*snapshot.files, captured("/opt/microsoft/ndv5-topo.xml", "<system/>"))
    assert surroundings_of_snapshot(snapshot_file(tmp_path, files=files)).absent == ()


def test_withheld_values_are_said(tmp_path: Path) -> None:
    snapshot: Snapshot = snapshot_of(replace(AZURE, environment={"NCCL_NET": "<withheld>"}))
    path = tmp_path / "host.tar"
    write_snapshot(path, snapshot)
    assert any("NCCL_NET" in line and "withheld" in line for line in surroundings_of_snapshot(path).unseen)


def run_of(folder: Path, plan: Plan, *ranks: Hello) -> str:
    """Write a run that was cut off after its ranks had said who they are; return its name."""
    where = folder / "run1"
    directories.create(plan, where)
    for rank in ranks:
        record = where / "raw" / f"rank-{rank.rank:05d}.0.jsonl"
        record.write_bytes(codec.encode(rank) + b"\n")
    return str(where)


def hello(rank: int, environment: dict[str, str]) -> Hello:
    gpu = GpuHello(
        ordinal=rank,
        model="H100",
        bus_id="0000:00:00.0",
        free_bytes=1,
        nccl="2.28.9",
        nccl_path="/n",
        driver=13000,
        driver_path="/d",
        nvrtc_path=None,
        environment=tuple(environment.items()),
    )
    return make_hello(rank=rank, gpu=gpu)


def test_a_run_keeps_what_its_job_was_started_with(tmp_path: Path) -> None:
    start = JobEnvironment(
        where="this host",
        environment={"NCCL_ALGO": "Ring", "UCX_TLS": "tcp", "LD_LIBRARY_PATH": "/b"},
        files=(SettingsFile(path="/etc/nccl.conf", layer="etc_conf", text="NCCL_PROTO=LL"),),
    )
    plan = make_plan()
    job = msgspec.structs.replace(plan.job, env=(("NCCL_DEBUG", "WARN"),), prepend=(("LD_LIBRARY_PATH", "/a"),))
    name = run_of(tmp_path, msgspec.structs.replace(plan, surroundings=start, job=job))
    found = surroundings_of_run(name)
    assert found.where == "run r"
    assert found.environment == {
        "LD_LIBRARY_PATH": "/a:/b",
        "NCCL_ALGO": "Ring",
        "NCCL_DEBUG": "WARN",
        "UCX_TLS": "tcp",
    }
    assert found.files == start.files
    assert found.unseen == ()


def test_a_run_of_an_older_busbw_says_that_the_environment_was_not_stored(tmp_path: Path) -> None:
    found = surroundings_of_run(run_of(tmp_path, make_plan()))
    assert found.unseen == ("the environment of whoever started it was not stored",)


def test_what_a_rank_had_goes_before_what_it_was_started_with_and_ranks_that_differ_are_named(tmp_path: Path) -> None:
    start = JobEnvironment(where="this host", environment={"NCCL_ALGO": "Ring", "UCX_TLS": "tcp"})
    plan = msgspec.structs.replace(make_plan(), surroundings=start)
    ranks = (hello(0, {"NCCL_PROTO": "LL"}), hello(1, {"NCCL_PROTO": "Simple"}), hello(2, {"NCCL_PROTO": "LL"}))
    name = run_of(tmp_path, msgspec.structs.replace(plan, backend="native-nccl"), *ranks)
    found = surroundings_of_run(name)
    assert found.environment == {"NCCL_PROTO": "LL", "UCX_TLS": "tcp"}
    assert found.nccl == "2.28.9"
    assert found.unseen == ("NCCL_PROTO is another in rank 1: this is as the first rank has it",)


def test_an_import_tells_the_environment_that_its_tool_printed(tmp_path: Path) -> None:
    import_files([str(SAMPLES / "nccl-tests-json-1.json")], tmp_path / "import1", tmp_path)
    found = surroundings_of_run(str(tmp_path / "import1"))
    assert found.environment == {"NCCL_ALGO": "Ring", "OMPI_MCA_plm": "isolated"}
    assert found.unseen == ("settings files of its hosts, and 2 variables outside the allow-list",)


def test_an_import_without_an_environment_is_refused_with_what_would_have_one(tmp_path: Path) -> None:
    import_files([str(SAMPLES / "nccl-tests-2.17.9.log")], tmp_path / "import1", tmp_path)
    with pytest.raises(InputError, match="holds no environment") as refused:
        surroundings_of_run(str(tmp_path / "import1"))
    assert "-J FILE" in str(refused.value)


def test_a_plan_is_made_with_what_its_job_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    busbw = Path(sys.executable).with_name("busbw")
    argv = [busbw, "run", "all_reduce", "-n", "2", "-b", "8", "-e", "8", "--plan", "--json"]
    done = subprocess.run(argv, capture_output=True, timeout=60, cwd=tmp_path, check=True)
    plan = codec.decode(done.stdout, Plan, where="plan.json")
    assert plan.surroundings is not None
    assert plan.surroundings.environment["NCCL_ALGO"] == "Ring"


@pytest.mark.parametrize("name", ["", "no-such-run", "last"])
def test_a_run_that_is_none_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUSBW_RUNS", str(tmp_path))
    with pytest.raises(InputError):
        surroundings_of_run(name)
