"""The hosts of a job, from a real environment, real files and programs on PATH."""

import os
from pathlib import Path

import pytest

from busbw.base.errors import InputError
from busbw.machine.capture import allocation


@pytest.fixture(autouse=True)
def _outside_of_any_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("SLURM_", "PBS_", "LSB_", "FLUX_", "PE_", "OMPI_", "PMI_")):
            monkeypatch.delenv(name)


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    (folder / name).chmod(0o755)


def test_a_node_file_is_read_from_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nodes").write_text("n0\nn0\nn1\n", encoding="ascii")
    monkeypatch.setenv("PBS_NODEFILE", str(tmp_path / "nodes"))
    made = allocation.allocation()
    assert made is not None
    assert [(host.name, host.slots) for host in made.hosts] == [("n0", 2), ("n1", 1)]


def test_outside_of_a_job_there_are_no_hosts() -> None:
    assert allocation.allocation() is None


@pytest.mark.parametrize("kind", ["missing", "folder", "device"])
def test_a_node_file_that_cannot_be_read_is_an_error_that_says_why(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = {"missing": str(tmp_path / "none"), "folder": str(tmp_path), "device": "/dev/zero"}[kind]
    monkeypatch.setenv("PBS_NODEFILE", path)
    with pytest.raises(InputError, match="cannot be read") as refused:
        allocation.allocation()
    assert refused.value.hint is not None
    assert "unset PBS_NODEFILE" in refused.value.hint


def test_hosts_are_named_by_a_file_or_by_a_list(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("n0 slots=2\nn1 slots=2\n", encoding="ascii")
    from_file = allocation.hosts(str(tmp_path / "hosts"))
    from_list = allocation.hosts("n[0-1]:2")
    assert from_file.hosts == from_list.hosts
    assert (from_file.kind, from_list.kind) == ("host file", "host list")


def test_a_file_of_hosts_that_is_not_there_is_not_taken_for_a_host() -> None:
    for text in ("./hosts", "hosts.txt"):
        with pytest.raises(InputError, match="no such file of hosts"):
            allocation.hosts(text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_comments_may_be_in_any_language_and_encoding(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_bytes("# Rechner für Maß\r\nn0 slots=2\r\nn1 slots=2 # größer\r\n".encode(encoding))
    made = allocation.hosts(str(tmp_path / "hosts"))
    assert [(host.name, host.slots) for host in made.hosts] == [("n0", 2), ("n1", 2)]


def test_a_name_outside_ascii_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_bytes(b"n0\nn\xc3\xb11\n")
    with pytest.raises(InputError, match="cannot be the name of a host") as refused:
        allocation.hosts(str(tmp_path / "hosts"))
    assert refused.value.where == f"{tmp_path}/hosts:2"


def test_hosts_come_through_a_pipe_of_the_shell() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"n4\nn5\n")
    os.close(writing)
    try:
        assert [host.name for host in allocation.hosts(f"/dev/fd/{reading}").hosts] == ["n4", "n5"]
    finally:
        os.close(reading)


def test_a_folder_is_no_file_of_hosts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a file nor a pipe"):
        allocation.hosts(str(tmp_path))


def test_a_broken_allocation_does_not_keep_a_user_from_naming_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[0-")
    assert [host.name for host in allocation.hosts("n7").hosts] == ["n7"]
    with pytest.raises(InputError, match="not closed"):
        allocation.allocation()


def test_flux_is_asked_by_its_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "flux", 'case "$*" in "hostlist local") echo "n[0-1]";; *) exit 1;; esac')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FLUX_URI", "local:///run/flux/local")
    made = allocation.allocation()
    assert made is not None
    assert (made.kind, [host.name for host in made.hosts], made.job_id) == ("flux", ["n0", "n1"], None)


def test_launchers_are_those_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "flux", "exit 0")
    program(tmp_path / "bin", "aprun", "exit 0")
    (tmp_path / "bin" / "aprun").chmod(0o644)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert allocation.launchers(("flux", "aprun", "jsrun")) == {"flux": f"{tmp_path}/bin/flux"}


def test_slurm_is_described_by_its_own_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = 'printf "MPI plugin types are...\\n\\tpmi2\\n\\tnone\\n"'
    program(
        tmp_path / "bin",
        "srun",
        f'case "$1" in --version) echo "slurm 23.11.4";; --mpi=list) {listing};; *) echo "Usage: srun";; esac',
    )
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    found = allocation.slurm()
    assert found is not None
    assert (found.srun, found.version, found.mpi_types) == (f"{tmp_path}/bin/srun", "23.11.4", ("pmi2", "none"))
    assert not found.has_pyxis
