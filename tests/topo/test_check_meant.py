"""Slips of spelling and counting: one finding with what is meant, and nothing of what follows from it."""

import re

import pytest

from busbw.api.topologies import made_file

from .test_check_causes import MACHINES, PORTABLE, checked, grave, right

NAME = "azure-nd-h100-v5"


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("first", [1, 2])
def test_nodes_that_are_counted_from_another_number_are_one_error(tmp_path, name, first):
    text = re.sub(r'numaid="(\d)"', lambda match: f'numaid="{int(match[1]) + first}"', right(name))
    found = checked(tmp_path, text)
    assert grave(found) == ["TOP052"]
    assert found.findings[0].fix.count(" in line ") == right(name).count("<cpu")


def test_two_nodes_with_each_others_numbers_are_told_as_that(tmp_path):
    text = re.sub(r'numaid="(\d)"', lambda match: f'numaid="{1 - int(match[1])}"', right(NAME))
    assert grave(checked(tmp_path, text)) == ["TOP069"]


@pytest.mark.parametrize("written", ["NumaId", "numa_id", "numaId"])
def test_a_required_attribute_in_another_spelling_is_one_error(tmp_path, written):
    (error,) = checked(tmp_path, right(NAME).replace("numaid=", f"{written}=")).findings
    assert (error.code, error.severity, error.fix) == ("TOP020", "error", f"write numaid for {written}")


def test_any_other_attribute_in_another_spelling_is_one_warning(tmp_path):
    (warning,) = checked(tmp_path, right(NAME).replace("affinity=", "Affinity=")).findings
    assert (warning.code, warning.fix) == ("TOP009", "maybe: affinity")


def test_an_unknown_attribute_beside_the_right_one_is_not_taken_for_it(tmp_path):
    found = checked(tmp_path, right(NAME).replace('numaid="1"', 'numaid="1" NumaId="0"'))
    assert [each.code for each in found.findings] == ["TOP009"]


def test_a_number_that_is_missing_is_given(tmp_path):
    (error,) = checked(tmp_path, right(NAME).replace(' numaid="1"', "")).findings
    assert (error.code, error.fix) == ("TOP020", 'add numaid="1"')


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        (r"\s*</pci>", "", "close it first: </pci>"),
        (r'busid="([^"]+)"', "busid=\u201c\\1\u201d", "put the value in straight double quotes"),
        (r'version="1"', 'version="2"', 'write <system version="1">'),
        (r' version="1"', "", 'write <system version="1">'),
    ],
)
def test_what_nccl_cannot_read_is_one_error_with_the_right_text(tmp_path, old, new, fix):
    (error,) = checked(tmp_path, re.sub(old, new, right(NAME), count=1)).findings
    assert (error.severity, error.fix) == ("error", fix)


def test_a_wrong_mask_is_found_in_a_file_with_an_open_tag(tmp_path):
    text = re.sub(r"\s*</pci>", "", right(NAME), count=1).replace("ffffffff,ffff0000,00000000", "zz")
    assert grave(checked(tmp_path, text)) == ["TOP001", "TOP040"]


@pytest.mark.parametrize(
    ("old", "new", "code", "fix"),
    [
        ("0102:00:00.0", "0101:00:00.0", "TOP031", 'busid="0102:00:00.0"'),
        ("0101:00:00.0", "0102:00:00.0", "TOP031", 'busid="0101:00:00.0"'),
        ("000a:00:00.0", "0009:00:00.0", "TOP031", 'busid="000a:00:00.0"'),
        ("0101:00:00.0", "01O1:00:00.0", "TOP023", 'busid="0101:00:00.0"'),
        ("0001:00:00.0", "0001:00,00.0", "TOP023", 'busid="0001:00:00.0"'),
    ],
)
def test_an_address_that_is_none_or_stands_twice_is_one_error_with_the_missing_one(tmp_path, old, new, code, fix):
    text = right(NAME)
    found = checked(tmp_path, text.replace(old, new))
    assert [(each.code, each.fix) for each in found.findings if each.severity != "note"] == [(code, fix)]
    line = next(number for number, each in enumerate(text.split("\n"), 1) if old in each)
    assert next(each for each in found.findings if each.code == code).place.line == line


def test_one_gpu_at_a_strange_address_is_one_finding_with_the_missing_one(tmp_path):
    text = PORTABLE.replace('busid="0009:00:00.0"', 'busid="00f9:00:00.0"')
    found = checked(tmp_path, text)
    assert grave(found) == ["TOP064"]
    assert next(each for each in found.findings if each.code == "TOP064").fix == 'busid="0009:00:00.0"'


def test_a_gpu_that_is_called_a_nic_is_one_error(tmp_path):
    text = made_file("aws-p4d").text
    assert grave(checked(tmp_path, text.replace('class="0x030200"', 'class="0x020700"', 1))) == ["TOP063"]


def test_a_device_that_is_only_missing_is_said_to_be_missing(tmp_path):
    text = re.sub(r'\s*<pci busid="0102:00:00.0"[^>]*/>', "", PORTABLE)
    assert grave(checked(tmp_path, text)) == ["TOP066"]


def test_another_architecture_is_told_with_the_right_processor(tmp_path):
    text = re.sub(r'arch="x86_64" vendor="\w+" familyid="\d+" modelid="\d+"', 'arch="arm64"', right(NAME))
    (warning,) = checked(tmp_path, text).findings
    assert (warning.code, warning.fix) == (
        "TOP037",
        'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"',
    )


def test_a_file_for_arm_processors_is_believed(tmp_path):
    assert grave(checked(tmp_path, right("alps-gh200"), platform="alps-gh200")) == []


@pytest.mark.parametrize("ids", [("0x10de", "0x20b2"), ("0x1002", "0x74a1")])
def test_ids_of_other_gpus_are_one_note_and_nothing_follows_from_them(tmp_path, ids):
    vendor, device = ids
    text = right(NAME).replace('vendor="0x10de" device="0x2330"', f'vendor="{vendor}" device="{device}"')
    assert [each.code for each in checked(tmp_path, text).findings] == ["TOP056"]


@pytest.mark.parametrize("device", ["0x2330", "0x2335", "0xffff"])
def test_ids_of_such_gpus_and_ids_that_nobody_knows_are_not_told(tmp_path, device):
    assert checked(tmp_path, right(NAME).replace("0x2330", device)).findings == ()


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ('link_width="16"', 'link_width="x16"', 'link_width="16"'),
        ("32.0 GT/s PCIe", "PCIe Gen5", 'link_speed="32.0 GT/s PCIe"'),
        ("</cpu>", "</cpu>\n```", "delete it: nothing stands between elements, before <system> or after its end"),
    ],
)
def test_what_is_plainly_meant_is_in_the_fix(tmp_path, old, new, fix):
    assert fix in {each.fix for each in checked(tmp_path, right(NAME).replace(old, new)).findings}


@pytest.mark.parametrize("element", ["gpu", "net"])
def test_gdr_of_zero_in_a_platforms_file_is_one_warning(tmp_path, element):
    text = right(NAME).replace(f"<{element} ", f'<{element} gdr="0" ')
    found = checked(tmp_path, text)
    assert grave(found) == ["TOP103"]
    assert "8 of 8" in next(each for each in found.findings if each.code == "TOP103").title


def test_gdr_of_one_and_of_nics_that_no_platform_has_is_not_told(tmp_path):
    assert grave(checked(tmp_path, right(NAME).replace("<net ", '<net gdr="1" '))) == []
    other = right(NAME).replace(NAME, "other").replace("<net ", '<net gdr="0" ')
    assert "TOP103" not in grave(checked(tmp_path, re.sub(r'busid="0(\d{3}):', r'busid="7\1:', other)))
