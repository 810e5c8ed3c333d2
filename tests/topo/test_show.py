"""`busbw topo show`: where a node comes from, what is shown of it, and what is said when there is none."""

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.warm import warm_busbw

from busbw.api.machine import limit_of_host, limit_of_platform
from busbw.api.topologies import made_file
from busbw.base.errors import InputError
from busbw.machine.named import named_topology, node_view, platforms, topology
from busbw.model.platform import ResolvedPlatform
from busbw.show.text.platform import map_known
from busbw.topo.file.writer import file_text
from busbw.topo.origins.from_platform import map_gap

from .nodes import two_sockets

DOCS = Path(__file__).parents[2] / "docs"
VENDORS = Path(__file__).parents[2].parent / "shared" / "facts" / "topo"


def show(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return warm_busbw("topo", "show", *arguments, cwd=cwd)


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


def test_the_drawing_of_the_documentation_is_what_its_command_writes(tmp_path: Path) -> None:
    done = show("azure-nd-h100-v5", "--svg", "node.svg", cwd=tmp_path)

    assert done.returncode == 0
    assert (tmp_path / "node.svg").read_text() == (DOCS / "images" / "node.svg").read_text()


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


@pytest.mark.parametrize("name", [each.platform.id for each in platforms() if map_gap(each.platform) is None])
def test_a_platform_has_the_bounds_that_limit_gives(name: str) -> None:
    view = node_view(name)
    limit = limit_of_platform(name, collective="all_reduce")
    found = {bound.algorithm: bound.busbw_Bps for bound in limit.bounds if bound.algorithm in ("ring", "tree")}
    assert {bound.algorithm: bound.busbw_Bps for bound in view.bounds} == found
    for ceiling in view.ceilings:
        assert ceiling.busbw_Bps <= (found[ceiling.algorithm] or 0) * 1.0001
    counts = {ceiling.algorithm: ceiling.busbw_Bps for ceiling in view.ceilings}
    for plan in limit.plans:
        if plan.algorithm != "nvls":
            assert 0 < (plan.busbw_Bps or 0) <= counts[plan.algorithm] * 1.0001


def test_the_platforms_of_the_ticket_say_one_number() -> None:
    assert [round(bound.busbw_Bps / 1e9, 1) for bound in node_view("azure-nc-a100-v4").bounds] == [94.5, 63.0]
    assert [ceiling.busbw_Bps / 1e9 for ceiling in node_view("azure-nc-a100-v4").ceilings] == [48, 72]
    ndv2 = node_view("azure-ndv2")
    assert [round(bound.busbw_Bps / 1e9, 1) for bound in ndv2.bounds] == [150, 150]
    # Its NVLinks are known and not where they lead: what NCCL counts without them is no bound.
    assert ndv2.ceilings == ()
    assert any("which GPUs the NVLinks join is not known" in note for note in ndv2.notes)


def test_a_captured_host_has_the_bounds_that_limit_gives() -> None:
    host = Path(__file__).parents[1] / "hosts" / "vm-h100-x4" / "host.tar.gz"
    limit = limit_of_host(host, collective="all_reduce", algorithm="ring")
    assert {bound.busbw_Bps for bound in node_view(str(host)).bounds if bound.algorithm == "ring"} == {
        limit.bounds[0].busbw_Bps
    }


def test_a_file_has_no_line_rates(file: Path) -> None:
    view = node_view(str(file))
    assert view.bounds == ()
    assert (
        "ring: NCCL plans 12 channels x 30 GB/s, 360.0 GB/s of bus bandwidth, over paths up to NVL\n"
        "      its links carry 370.8 GB/s at most: NVLinks of one GPU" in show(file, cwd=file.parent).stdout
    )


@pytest.mark.parametrize("resolved", platforms(), ids=lambda each: each.platform.id)
def test_list_and_make_agree_on_the_map(resolved: ResolvedPlatform) -> None:
    name = resolved.platform.id
    if map_known(resolved.platform) == "yes":
        assert 'class="0x030200"' in made_file(name).text
        return
    with pytest.raises(InputError):
        made_file(name)


def test_json_has_every_pair_with_its_bandwidth_and_a_schema(file: Path) -> None:
    view = json.loads(show(file, "--json", cwd=file.parent).stdout)
    assert (view["schema"], view["release"]) == (2, "2.28.9")
    pairs = {(pair["source"], pair["target"]): (pair["type"], pair["bandwidth_Bps"]) for pair in view["pairs"]}
    # 8 GPUs to 7 others, and to 8 ports and back.
    assert len(pairs) == 8 * 7 + 2 * 8 * 8
    assert pairs["GPU/0001:00:00.0", "GPU/0002:00:00.0"] == ("NVL", 370.8e9)
    assert pairs["GPU/0001:00:00.0", "NET/mlx5_7"] == ("PXN", 48e9)
    assert pairs["NET/mlx5_7", "GPU/0001:00:00.0"] == ("SYS", 22e9)


def test_another_release_has_its_own_paths_and_rates(file: Path) -> None:
    old = json.loads(show(file, "--json", "--matrix", "--nccl", "2.19.3", cwd=file.parent).stdout)
    assert old["release"] == "2.19.3"
    # NVLink of Hopper counted 20 GB/s, and everything from Skylake on 10 between sockets.
    assert old["rows"][0]["bandwidth_Bps"][1] == 360e9
    series = show(file, "--nccl", "2.19", cwd=file.parent)
    assert "as NCCL 2.19 counts them" in series.stdout
    assert "between NUMA nodes: 10" in series.stdout


def test_a_plan_is_of_the_release_that_is_asked_for_and_absent_where_its_search_is_not_known(file: Path) -> None:
    new = json.loads(show(file, "--json", "--nccl", "2.30.7", cwd=file.parent).stdout)
    plans = {plan["algorithm"]: (plan["channels"], plan["channel_Bps"], plan["type"]) for plan in new["plans"]}
    assert plans == {"ring": (12, 30e9, "NVL"), "tree": (12, 30e9, "NVL"), "nvls": (8, 40e9, "NVL")}
    old = show(file, "--nccl", "2.19.3", cwd=file.parent)
    assert "what NCCL plans is not known: the search of releases before 2.25.1 is not known" in old.stderr
    assert "NCCL plans" not in old.stdout
    assert "ring: NCCL counts 360.0 GB/s of bus bandwidth at most" in old.stdout


@pytest.mark.parametrize(
    ("version", "code", "words"),
    [("abc", 2, "is not a version"), ("2.10.3", 0, "how NCCL 2.10.3 counts is not known"), ("9.9", 0, "newer than")],
)
def test_a_version_that_is_none_or_not_known_is_told(file: Path, version: str, code: int, words: str) -> None:
    done = show(file, "--nccl", version, cwd=file.parent)
    assert done.returncode == code
    assert words in done.stderr
