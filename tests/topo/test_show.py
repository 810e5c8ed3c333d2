"""`busbw topo show`: where a node comes from, what is shown of it, and what is said when there is none."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from busbw.base.errors import InputError
from busbw.machine.named import named_topology, node_view, topology
from busbw.topo.file.writer import file_text

from .nodes import two_sockets

VENDORS = Path(__file__).parents[2].parent / "shared" / "facts" / "topo"


def show(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("busbw"), "topo", "show", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        timeout=60,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "node.xml"
    path.write_text(file_text(two_sockets()))
    return path


def test_a_file_is_shown_as_a_picture(file: Path) -> None:
    done = show(file, cwd=file.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert "GPU7" in done.stdout
    assert "mlx5_7" in done.stdout


def test_json_is_the_view_and_with_matrix_the_matrix(file: Path) -> None:
    view = json.loads(show(file, "--json", cwd=file.parent).stdout)
    assert [gpu["path"] for gpu in view["gpus"]] == ["PIX"] * 8
    matrix = json.loads(show(file, "--json", "--matrix", cwd=file.parent).stdout)
    assert matrix["rows"][0]["cells"][:2] == ["X", "NV18"]


def test_a_drawing_is_written_whole_and_stdout_stays_empty(file: Path) -> None:
    done = show(file, "--svg", "node.svg", cwd=file.parent)
    assert (done.returncode, done.stdout) == (0, "")
    assert ET.parse(file.parent / "node.svg").getroot().tag.endswith("svg")
    assert done.stderr == "wrote node.svg\n"


def test_a_drawing_does_not_replace_a_directory(file: Path) -> None:
    (file.parent / "taken").mkdir()
    done = show(file, "--svg", "taken", cwd=file.parent)
    assert done.returncode == 2
    assert "is not a file" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_left_open_goes_to_stderr(file: Path) -> None:
    file.write_text(file_text(two_sockets(nvlinks=False)))
    done = show(file, cwd=file.parent)
    assert done.stderr.startswith("note: no NVLinks are listed")
    assert "note:" not in done.stdout


def test_a_platform_is_named_by_any_of_its_names():
    assert topology("azure-nd-h100-v5") == topology("AZURE-ND-H100-V5")
    assert len(topology("azure-nd-h100-v5").gpus) == 8


def test_a_file_goes_before_a_platform_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("azure-nd-h100-v5").write_text(file_text(two_sockets(gpus_each=1)))
    named = named_topology("azure-nd-h100-v5")
    assert len(named.topology.gpus) == 2
    assert named.notes == (
        "azure-nd-h100-v5 is a file here, and it is read; the platform azure-nd-h100-v5 has that name too",
    )


def test_of_several_hosts_the_first_is_taken_and_said(tmp_path: Path) -> None:
    path = tmp_path / "two.xml"
    one = file_text(two_sockets(gpus_each=1))
    hosts = [one.replace("<cpu ", f'<cpu host_hash="0x{number}" ') for number in (1, 2)]
    body = "".join(host.partition('">\n')[2].removesuffix("</system>\n") for host in hosts)
    path.write_text(f'<system version="1">\n{body}</system>\n')
    named = named_topology(str(path))
    assert named.topology.host_hash == "0x1"
    assert "holds 2 hosts" in named.notes[0]


@pytest.mark.parametrize(
    ("source", "here", "cause"),
    [
        (None, False, "no node is named"),
        ("x.xml", True, "both 'x.xml' and --here"),
        ("no/such.xml", False, "there is no file no/such.xml"),
        ("azure-nd-h100-v", False, "no file here, and "),
        ("", False, "no node is named"),
        ("a\0b", False, "no file here, and "),
    ],
)
def test_what_names_no_node_is_refused(source: str | None, here: bool, cause: str) -> None:
    with pytest.raises(InputError) as error:
        named_topology(source, here=here)
    assert error.value.cause.startswith(cause)
    assert error.value.hint


@pytest.mark.parametrize(
    "content",
    [b"", b"\x89PNG\r\n\x1a\n\0\0", b"<!DOCTYPE html><html></html>", b'{"a": 1}', b"\x1f\x8b\x08broken", b"<system"],
    ids=["empty", "a picture", "a page", "JSON", "a broken archive", "cut off"],
)
def test_a_file_that_is_no_node_gives_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "node").write_bytes(content)
    done = show("node", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) <= 4


def test_this_host_can_be_shown(tmp_path: Path) -> None:
    done = show("--here", cwd=tmp_path)
    assert done.returncode == 0
    assert "NUMA node" in done.stdout


def test_every_vendors_file_can_be_shown():
    if not VENDORS.is_dir():
        pytest.skip(f"no files of vendors at {VENDORS}")
    gpus = {path.stem: len(node_view(str(path)).gpus) for path in sorted(VENDORS.glob("*topo*.xml"))}
    assert gpus.pop("aws-g5.48xl-topo") == 0
    assert gpus.pop("azure-ncv4-topo") == 4
    assert set(gpus.values()) == {8}
