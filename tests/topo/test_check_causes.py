"""One slip, one finding: what is told as one cause, which parts are another machine's, and what is no file at all."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.api.topologies import check_topology, made_file
from busbw.cli.command import busbw
from busbw.facts.platforms import find_platform
from busbw.model.finding import Checked
from busbw.topo.buses import moved
from busbw.topo.file.writer import file_text
from busbw.topo.origins.from_platform import topology_of_platform

MACHINES = ("azure-nd-h100-v5", "azure-ndv4", "aws-p4d", "oci-bm-gpu-h100-8", "oci-bm-gpu4-8")


def right(name: str) -> str:
    return file_text(topology_of_platform(find_platform(name).platform))


def checked(tmp_path: Path, text: str, **against: str) -> Checked:
    path = tmp_path / "topo.xml"
    path.write_text(text)
    return check_topology(str(path), **against)


def grave(found: Checked) -> list[str]:
    return [each.code for each in found.findings if each.severity != "note"]


def off(text: str, *, gpus: bool = True, nics: bool = False, most: int = 99) -> str:
    """Return the file with the first of its GPUs, or NICs, or both, one bus further."""
    lines, count = [], 0
    for line in text.split("\n"):
        match = re.search(r'busid="([^"]+)"', line)
        if match and count < most and ((gpus and 'class="0x03' in line) or (nics and 'class="0x02' in line)):
            lines.append(line.replace(match[1], moved(match[1], 1)))
            count += 1
        else:
            lines.append(line)
    return "\n".join(lines)


PORTABLE = made_file("azure-nd-h100-v5").text


def with_gpus(text: str, change: dict[int, dict[str, int]] | None = None, sm: int = 90) -> str:
    """Return a file of 8 GPUs with what NCCL writes of each; `change` says what is otherwise of which."""
    lines, count = [], 0
    for line in text.split("\n"):
        if 'class="0x0302' in line and line.endswith("/>"):
            values = {"dev": count, "sm": sm, "rank": count, **(change or {}).get(count, {})}
            inner = "".join(f' {name}="{value}"' for name, value in values.items())
            lines.append(f"{line[:-2]}><gpu{inner}/></pci>")
            count += 1
        else:
            lines.append(line)
    assert count == 8
    return "\n".join(lines)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(
    "which", [{}, {"nics": True}, {"gpus": False, "nics": True}, {"most": 1}, {"most": 4}], ids=str
)
def test_addresses_one_bus_off_are_one_error_without_a_platform_named(tmp_path, name, which):
    found = checked(tmp_path, off(right(name), **which))
    assert grave(found) == ["TOP062"]
    assert found.held_against.name == name or name in found.held_against.also
    error = next(each for each in found.findings if each.code == "TOP062")
    assert "1 subtracted" in error.evidence
    assert re.match(r'busid="[0-9a-f:.]+"', error.fix)


@pytest.mark.parametrize("name", MACHINES)
def test_a_right_file_has_nothing(tmp_path, name):
    assert grave(checked(tmp_path, right(name))) == []


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("every", [False, True])
def test_a_numaid_of_minus_one_is_one_error_with_the_right_number(tmp_path, name, every):
    found = checked(tmp_path, re.sub(r'numaid="\d+"', 'numaid="-1"', right(name), count=0 if every else 1))
    assert grave(found) == ["TOP052"]
    assert 'numaid="' in next(each.fix for each in found.findings if each.code == "TOP052")


def test_a_number_given_twice_is_the_missing_one(tmp_path):
    found = checked(tmp_path, right("azure-nd-h100-v5").replace('numaid="1"', 'numaid="0"'))
    assert grave(found) == ["TOP052"]
    assert found.findings[0].fix == 'numaid="1"'


def test_all_devices_on_one_node_are_one_error(tmp_path):
    found = checked(tmp_path, re.sub(r"</cpu>\s*<cpu [^>]*>", "", right("azure-nd-h100-v5")))
    assert grave(found) == ["TOP053"]


def test_one_slip_does_not_hide_another(tmp_path):
    text = re.sub(r'numaid="0"', 'numaid="-1"', off(right("azure-nd-h100-v5"), most=1))
    masks = text.replace("ffffffff,ffff0000,00000000", "00000000,0000ffff,ffffffff")
    assert sorted(grave(checked(tmp_path, masks))) == ["TOP044", "TOP052", "TOP062"]


@pytest.mark.parametrize("name", MACHINES)
def test_another_makers_processor_is_found_and_does_not_lead_to_another_platform(tmp_path, name):
    text = right(name)
    other = "AuthenticAMD" if "GenuineIntel" in text else "GenuineIntel"
    found = checked(tmp_path, re.sub(r'vendor="(GenuineIntel|AuthenticAMD)"', f'vendor="{other}"', text))
    assert found.held_against.name == name or name in found.held_against.also
    assert grave(found) == ["TOP037"]
    fix = next(each.fix for each in found.findings if each.code == "TOP037")
    assert f'vendor="{find_platform(name).platform.cpu.vendor}"' in fix


def test_another_model_is_a_warning_where_nccl_counts_otherwise_and_else_a_note(tmp_path):
    intel = checked(tmp_path, re.sub(r'modelid="\d+"', 'modelid="207"', right("azure-nd-h100-v5")))
    assert grave(intel) == ["TOP037"]
    assert "40 GB/s between NUMA nodes instead of 22" in intel.findings[0].effect
    amd = checked(tmp_path, re.sub(r'modelid="\d+"', 'modelid="1"', right("oci-bm-gpu4-8")))
    assert [each.code for each in amd.findings if each.code in ("TOP037", "TOP055")] == ["TOP055"]


def test_the_family_as_older_nccl_writes_it_is_no_other_processor(tmp_path):
    found = checked(tmp_path, re.sub(r'familyid="23"', 'familyid="143"', right("oci-bm-gpu4-8")))
    assert not {"TOP037", "TOP055"} & {each.code for each in found.findings}


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ({}, []),
        ({number: {"sm": 80} for number in range(8)}, ["TOP038"]),
        ({3: {"sm": 80}}, ["TOP038"]),
        ({3: {"dev": 0}}, ["TOP039"]),
        ({3: {"rank": 0}}, ["TOP039"]),
        ({number: {"rank": -1} for number in range(8)}, []),
    ],
    ids=str,
)
def test_what_gpus_say_of_themselves(tmp_path, change, codes):
    text = with_gpus(PORTABLE, change)
    assert grave(checked(tmp_path, text)) == codes
    assert grave(checked(tmp_path, text, platform="azure-nd-h100-v5")) == codes


def test_links_are_counted_by_what_a_gpu_is_and_not_by_a_wrong_sm(tmp_path):
    linked = with_gpus(PORTABLE, {3: {"sm": 70}}).replace(
        'sm="70" rank="3"/>', 'sm="70" rank="3"><nvlink target="ffffffff:ff:ff.0" count="18" tclass="0x068000"/></gpu>'
    )
    assert "nvlink" in linked
    assert "TOP093" not in grave(checked(tmp_path, linked))
    assert "TOP093" in grave(checked(tmp_path, linked.replace('count="18"', 'count="19"')))


def test_a_machine_of_two_kinds_of_gpus_is_believed(tmp_path):
    # Four of each: neither kind stands out, and no platform has these addresses.
    change = {number: {"sm": 80} for number in range(0, 8, 2)}
    text = with_gpus(PORTABLE, change).replace('busid="00', 'busid="a0').replace('busid="01', 'busid="b1')
    assert "TOP038" not in grave(checked(tmp_path, text))


def test_ranks_that_share_a_gpu_share_its_number(tmp_path):
    text = with_gpus(PORTABLE)
    shared = text.replace(
        '<gpu dev="0" sm="90" rank="0"/>', '<gpu dev="0" sm="90" rank="0"/><gpu dev="0" sm="90" rank="8"/>'
    )
    assert shared != text
    assert grave(checked(tmp_path, shared)) == []


def with_domains(kind: str, steps: int) -> str:
    """Return the file of an ND H100 with the domains of its GPUs, or its NICs, so many further on."""
    text = right("azure-nd-h100-v5")
    pattern = re.compile(rf'busid="(0[01][0-9a-f]{{2}}):00:00\.0" class="0x{kind}')
    return pattern.sub(lambda found: f'busid="{int(found[1], 16) + steps:04x}:00:00.0" class="0x{kind}', text)


@pytest.mark.parametrize(("kind", "steps"), [("0302", -1), ("0302", 1), ("0207", -1), ("0207", 1)])
def test_domains_that_are_one_off_are_one_finding(tmp_path, kind: str, steps: int):
    found = checked(tmp_path, with_domains(kind, steps)).findings
    (only,) = [each for each in found if each.severity != "note"]

    assert (only.code, only.title) == ("TOP062", "addresses are 1 domain off")
    assert "8 addresses are azure-nd-h100-v5's with 1 " in only.evidence


def test_one_wrong_domain_is_not_taken_for_all_of_them(tmp_path):
    text = with_domains("0302", 0)
    wrong = text.replace('busid="0001:00:00.0"', 'busid="000d:00:00.0"')

    assert grave(checked(tmp_path, text)) == []
    assert "1 domain off" not in {each.title for each in checked(tmp_path, wrong).findings}
    assert wrong != text


def half_of_p5() -> str:
    platform = find_platform("aws-p5").platform
    addresses = [(place.bus_id, "0x030200") for place in platform.gpus]
    addresses += [(place.bus_id, "0x020000") for place in platform.nics]
    lines = [
        f'<pci busid="{bus_id if place % 2 else bus_id.replace(":00.0", ":1f.0")}" class="{kind}" '
        'link_speed="32.0 GT/s PCIe" link_width="16"/>'
        for place, (bus_id, kind) in enumerate(addresses)
    ]
    return "\n".join(['<system version="1">', '<cpu numaid="0" arch="x86_64">', *lines, "</cpu>", "</system>", ""])


def test_half_of_a_platforms_addresses_are_told_with_the_command_to_hold_it_against(tmp_path):
    found = checked(tmp_path, half_of_p5())
    (note,) = [each for each in found.findings if each.code == "TOP054"]
    assert note.title == "20 of 40 addresses are those of aws-p5"
    assert note.fix.endswith("--platform aws-p5")
    assert "TOP054" not in [each.code for each in checked(tmp_path, half_of_p5(), platform="aws-p5").findings]


def of_azure(vendor: str, model: str) -> str:
    """Return the NICs of Azure's ND machines, at addresses that several platforms have, and GPUs of none."""
    nics = [f"01{number:02x}:00:00.0" for number in range(1, 9)]
    lines = [
        f'<pci busid="{bus_id}" class="0x{kind}" link_speed="32.0 GT/s PCIe" link_width="16"/>'
        for bus_id, kind in [
            *((bus_id, "020700") for bus_id in nics),
            *((f"7{bus_id[1:]}", "030200") for bus_id in nics),
        ]
    ]
    cpu = f'<cpu numaid="0" arch="x86_64" vendor="{vendor}" {model}>'
    return "\n".join(['<system version="1">', cpu, *lines, "</cpu>", "</system>", ""])


@pytest.mark.parametrize(
    ("vendor", "model", "name"),
    [
        ("GenuineIntel", 'familyid="6" modelid="143"', "azure-nd-h100-v5"),
        ("AuthenticAMD", 'familyid="23" modelid="49"', "azure-ndv4"),
    ],
)
def test_of_platforms_with_as_many_addresses_that_with_the_files_processor_is_named(tmp_path, vendor, model, name):
    (note,) = [each for each in checked(tmp_path, of_azure(vendor, model)).findings if each.code == "TOP054"]

    assert note.title == f"8 of 16 addresses are those of {name}"
    assert note.evidence.endswith("have them too")


def test_addresses_that_no_platform_has_are_not_told(tmp_path):
    text = re.sub(r'busid="0000', 'busid="7a5b', half_of_p5())
    assert "TOP054" not in [each.code for each in checked(tmp_path, text).findings]


@pytest.mark.parametrize(
    ("old", "new", "right_name"), [("cpu", "CPU", "cpu"), ("pci", "Pci", "pci"), ("pci", "PCI", "pci")]
)
def test_an_element_in_capitals_is_an_error(tmp_path, old, new, right_name):
    text = right("azure-ndv4").replace(f"<{old}", f"<{new}").replace(f"</{old}", f"</{new}")
    found = checked(tmp_path, text)
    assert [(each.code, each.title) for each in found.findings if each.severity == "error"] == [
        ("TOP015", f"<{new}> is not <{right_name}>")
    ]


@pytest.mark.parametrize(
    "inside",
    [
        "",
        '<cpu numaid="0" affinity="ff" arch="arm64"/>',
        '<cpu numaid="0" arch="arm64"><pci busid="ffff:ff:01.0" class="0x060400" link_speed="" link_width="16"/></cpu>',
    ],
)
def test_a_file_without_devices_is_an_error(tmp_path, inside):
    assert "TOP016" in grave(checked(tmp_path, f'<system version="1">\n{inside}\n</system>\n'))


def test_a_file_of_nics_alone_is_fine(tmp_path):
    text = '<cpu numaid="0" arch="arm64"><pci busid="0001:01:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" '
    text += 'link_width="16"/></cpu>'
    assert "TOP016" not in grave(checked(tmp_path, f'<system version="1">\n{text}\n</system>\n'))


@pytest.mark.parametrize(
    ("old", "new", "code", "fix"),
    [
        ('affinity="00000000,0000ffff,ffffffff"', 'affinity="0-47"', "TOP040", 'affinity="00000000,0000ffff,ffffffff"'),
        ('affinity="00000000,0000ffff,ffffffff"', 'affinity=""', "TOP043", 'affinity="00000000,0000ffff,ffffffff"'),
        ("00000000,0000ffff,ffffffff", "ffffffff,ffff0000,00000000", "TOP044", "00000000,0000ffff,ffffffff"),
        ("00000000,0000ffff,ffffffff", "0000000f,0000ffff,ffffffff", "TOP042", "00000000,0000ffff,ffffffff"),
        ("ffffffff,ffff0000,00000000", "f,ffffffff,ffff0000,00000000", "TOP045", "ffffffff,ffff0000,00000000"),
        ('busid="0101:00:00.0"', 'busid="0001:00:00.0"', "TOP063", None),
    ],
)
def test_each_error_of_a_known_platform_has_the_right_text(tmp_path, old, new, code, fix):
    text = right("azure-nd-h100-v5")
    assert old in text
    found = checked(tmp_path, text.replace(old, new, 1), platform="azure-nd-h100-v5").findings
    if fix is not None:
        assert fix in (next(each.fix for each in found if each.code == code) or "")
    assert all(each.fix for each in found if each.severity == "error" and each.code != "TOP031")


def test_a_file_made_from_one_with_findings_says_so(tmp_path):
    path = tmp_path / "wrong.xml"
    path.write_text(re.sub(r'numaid="0"', 'numaid="-1"', right("azure-ndv4"), count=1))
    (note,) = made_file(str(path)).notes
    assert "has 1 error (TOP052), and the new file keeps what it says of the machine" in note
    assert "busbw topo make azure-ndv4 -o topo.xml" in note
    done = CliRunner().invoke(busbw, ["topo", "make", "-"], input=path.read_text())
    assert done.exit_code == 0
    assert "standard input has 1 error" in done.output


def test_a_file_made_from_a_right_one_says_nothing(tmp_path):
    path = tmp_path / "right.xml"
    path.write_text(right("azure-ndv4"))
    assert made_file(str(path)).notes == ()
