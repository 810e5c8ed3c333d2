"""`busbw topo check`: what is printed, where it goes, the exit code, and what a file is held against."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.probe.hosts import snapshot_of
from tests.probe.machines import MACHINES

from busbw.api.topologies import check_topology
from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.facts.platforms import find_platform
from busbw.machine.read.hardware import hardware_of
from busbw.model import codec
from busbw.model.finding import Checked, FindingCounts
from busbw.store.snapshots import write_snapshot
from busbw.topo.check import check
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text
from busbw.topo.origins.from_platform import topology_of_platform
from busbw.topo.reference import reference_of_host

from .corruptions import cpus_of, pci_of, read, written

RIGHT = file_text(topology_of_platform(find_platform("azure-nd-h100-v5").platform))
_FIRST, _SECOND = "00000000,0000ffff,ffffffff", "ffffffff,ffff0000,00000000"
EXCHANGED = RIGHT.replace(_FIRST, "FIRST").replace(_SECOND, _FIRST).replace("FIRST", _SECOND)


def run(*arguments: str, given: str | None = None) -> Result:
    environment = {"COLUMNS": "80", "NO_COLOR": "1", "HOME": "/nonexistent", "BUSBW_DATA": ""}
    return CliRunner(env=environment).invoke(busbw, ["topo", "check", *arguments], input=given)


@pytest.fixture
def right(tmp_path: Path) -> Path:
    path = tmp_path / "right.xml"
    path.write_text(RIGHT)
    return path


@pytest.fixture
def exchanged(tmp_path: Path) -> Path:
    path = tmp_path / "topo.xml"
    path.write_text(EXCHANGED)
    return path


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hosts") / "host.tar"
    write_snapshot(path, snapshot_of(MACHINES["azure-nd-h100-v5"]))
    return path


def test_the_masks_of_the_example_are_those_of_the_platform():
    assert _FIRST in RIGHT
    assert EXCHANGED != RIGHT


def test_a_right_file_gives_0_and_one_line(right):
    done = run(str(right), "--platform", "azure-nd-h100-v5")

    assert done.exit_code == 0
    assert done.stdout.replace("\n", " ").strip() == f"{right}: nothing found; held against azure-nd-h100-v5"
    assert done.stderr == ""


def test_exchanged_masks_give_1_the_line_with_a_caret_and_the_way_to_a_right_file(exchanged):
    done = run(str(exchanged), "--platform", "Standard_ND96isr_H100_v5")

    lines = done.stdout.splitlines()
    assert done.exit_code == 1
    assert "error TOP048: masks of NUMA nodes 0, 1 exchanged" in " ".join(lines[:3])
    shown = next(place for place, line in enumerate(lines) if " | " in line)
    assert lines[shown][lines[shown + 1].index("^") :].startswith('affinity="ffffffff,ffff0000,00000000"')
    assert "node 0 has CPUs 48-95; azure-nd-h100-v5 has 0-47" in done.stdout
    assert "hint: for a right file: busbw topo make azure-nd-h100-v5 -o topo.xml" in done.stderr


def test_a_file_that_nobody_names_a_machine_for_is_held_against_the_one_it_is_like(exchanged):
    checked = check_topology(str(exchanged))

    assert checked.held_against is not None
    assert (checked.held_against.name, checked.held_against.kind) == ("azure-nd-h100-v5", "resembles")
    assert {(each.code, each.confidence) for each in checked.findings} == {("TOP048", "likely")}


def test_a_captured_host_says_the_same_with_certainty(exchanged, right, host):
    wrong, good = check_topology(str(exchanged), host=host), check_topology(str(right), host=host)

    assert [(each.code, each.confidence) for each in wrong.findings] == [("TOP048", "certain")]
    assert wrong.hints == (f"for a right file: busbw topo make {host} -o topo.xml",)
    assert [each.code for each in good.findings if each.severity != "note"] == []


def test_json_holds_everything_and_reads_back(exchanged):
    done = run(str(exchanged), "--json")

    checked = codec.decode(done.stdout.encode(), Checked, where="stdout")
    assert done.exit_code == 1
    assert checked.counts == FindingCounts(errors=1, warnings=0, notes=0)
    assert json.loads(done.stdout)["held_against"]["reason"] == "8 of 8 GPUs and 8 of 8 NICs have its addresses"
    assert checked.lines[0].text.lstrip().startswith('<cpu numaid="0"')


def test_standard_input_is_checked_too():
    done = run("-", "--platform", "azure-nd-h100-v5", given=EXCHANGED)

    assert done.exit_code == 1
    assert done.stdout.startswith("standard input:")


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (("--platform", "azure-ndv4", "--here"), "--platform and --here are given"),
        (("--platform", "azure-nd-h100"), "azure-nd-h100-v5"),
        (("--host", "no.tar"), "no.tar"),
    ],
)
def test_a_machine_that_cannot_be_is_said_exactly(right, options, cause):
    done = run(str(right), *options)

    assert isinstance(done.exception, InputError)
    assert cause in str(done.exception)


def test_a_platform_that_is_known_in_part_says_which_part(right):
    for name, part in (("nvidia-dgx-h100", "GPUs"), ("coreweave-h100", "GPUs and NICs")):
        done = run(str(right), "--platform", name)

        said = " ".join(done.output.split())
        assert f"held against {name}; the PCI addresses of its {part} are not published" in said


@pytest.mark.parametrize("content", [b"", b"\x7fELF\0", b"<html></html>", b"{}", b"<graphs version='1'></graphs>"])
def test_what_is_no_topology_file_is_refused(tmp_path, content):
    path = tmp_path / "topo.xml"
    path.write_bytes(content)

    with pytest.raises(InputError):
        check_topology(str(path))


def test_many_findings_of_a_kind_are_folded_and_fit_80_columns(right, tmp_path):
    path = tmp_path / "slow.xml"
    path.write_text(RIGHT.replace('link_speed="32.0 GT/s PCIe"', 'link_speed="32.0 GT/s"'))

    done = run(str(path), "--platform", "azure-nd-h100-v5")

    assert done.stdout.count("warn TOP080") == 1
    assert "also line " in done.stdout
    assert "more; --json has all" in done.stdout


def test_control_characters_of_a_file_reach_no_terminal(tmp_path):
    path = tmp_path / "topo.xml"
    path.write_bytes(RIGHT.encode().replace(b'numaid="0"', b'numaid="\x1b[2J\x9b0"', 1))

    done = run(str(path), "--platform", "azure-nd-h100-v5")

    assert done.exit_code == 1
    assert not {"\x1b", "\x9b"} & set(done.stdout)


def test_a_host_without_a_gpu_of_the_file_says_so():
    machine = MACHINES["azure-nd-h100-v5"]
    lost = machine.gpus[3]
    damaged = replace(machine, functions=tuple(each for each in machine.functions if each is not lost))
    reference = reference_of_host(hardware_of(snapshot_of(damaged)))

    found = check(read_document(RIGHT.encode(), "topo.xml"), reference)

    assert [each.title for each in found if each.severity != "note"] == [f"GPU {lost.bus_id} is not there"]


def test_a_host_without_the_files_devices_is_another_machine():
    reference = reference_of_host(hardware_of(snapshot_of(MACHINES["gh200-slingshot"])))

    found = check(read_document(RIGHT.encode(), "topo.xml"), reference)

    assert [each.code for each in found] == ["TOP076"]


@pytest.mark.parametrize(
    "name", [name for name, machine in MACHINES.items() if len({gpu.numa for gpu in machine.gpus}) > 1]
)
def test_a_gpu_on_another_numa_node_than_the_hosts_is_found(name):
    reference = reference_of_host(hardware_of(snapshot_of(MACHINES[name])))
    nodes = sorted({node for node in reference.gpus.values() if node is not None})
    cpus = {
        node: "".join(
            f'<pci busid="{bus_id}" class="0x030200"/>' for bus_id, numa in reference.gpus.items() if numa == node
        )
        for node in nodes
    }
    text = '<system version="1">'
    text += "".join(f'<cpu numaid="{node}" arch="x86_64">{inside}</cpu>' for node, inside in cpus.items()) + "</system>"
    root = read(text)
    moved = pci_of(root)[0]
    cpus_of(root)[0].remove(moved)
    cpus_of(root)[1].append(moved)

    right = {each.code for each in check(read_document(text.encode(), "topo.xml"), reference)}
    wrong = {each.code for each in check(read_document(written(root).encode(), "topo.xml"), reference)}

    assert not right & {"TOP060", "TOP061", "TOP064", "TOP065"}
    assert wrong & {"TOP052", "TOP060", "TOP061", "TOP067"}


def test_a_file_that_cannot_be_made_is_not_offered(tmp_path):
    path = tmp_path / "topo.xml"
    path.write_text(
        '<system version="1"><cpu numaid="1" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1">'
        '<pci busid="0000:53:00.0" class="0x030200"/><pci busid="0000:64:00.0" class="0x030200"/></cpu></system>'
    )
    done = run(str(path), "--platform", "aws-p5")

    assert "TOP052" in done.output
    assert "for a right file" not in done.output + done.stderr
