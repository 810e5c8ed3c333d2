"""The reader takes what NCCL's takes, and says where NCCL's would fail, drop or ignore."""

from pathlib import Path

import pytest
from tests.cost import check_cost

from busbw.base.errors import InputError
from busbw.topo.file.document import TopologyDocument
from busbw.topo.file.reader import read_document

VENDOR_FILES = Path(__file__).parents[2] / ".." / "shared" / "facts" / "topo"
PCI = '<pci busid="0000:0f:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>'


def system(inside: str, attributes: str = 'version="1"') -> str:
    return f"<system {attributes}>\n{inside}\n</system>\n"


def cpu(inside: str) -> str:
    return system(f'<cpu numaid="0">\n{inside}\n</cpu>')


def read(text: str) -> TopologyDocument:
    return read_document(text.encode(), "topo.xml")


def kinds(text: str) -> list[tuple[str, str]]:
    return [(remark.kind, remark.effect) for remark in read(text).remarks]


def test_a_plain_file_has_places_and_no_remarks() -> None:
    document = read(cpu(f"    {PCI}"))
    numa = document.root.children[0]
    device = numa.children[0]
    assert document.remarks == ()
    assert (device.line, device.column, device.value("busid")) == (3, 5, "0000:0f:00.0")
    busid = device.attribute("busid")
    assert busid is not None
    assert (busid.line, busid.column) == (3, 10)


@pytest.mark.parametrize(
    ("text", "kind", "effect"),
    [
        ("\ufeff" + cpu(PCI), "byte-order-mark", "fails"),
        ('<?xml version="1.0" encoding="UTF-8"?>\n' + cpu(PCI), "prolog", "fails"),
        ('<!DOCTYPE system SYSTEM "topo.dtd">\n' + cpu(PCI), "doctype", "fails"),
        ("<!DOCTYPE system [<!ELEMENT cpu (pci)>]>\n" + cpu(PCI), "doctype", "fails"),
        (cpu("<?php echo ?>" + PCI), "instruction", "fails"),
        (cpu("<![CDATA[<pci>]]>" + PCI), "cdata", "fails"),
        (cpu("\t" + PCI), "tab-between-elements", "fails"),
        (cpu("GPU 0 " + PCI), "stray-text", "fails"),
        (cpu(PCI) + "\f", "tab-between-elements", "fails"),
        ("<!--==== GPUs ====-->\n" + cpu(PCI), "comment-equals", "fails"),
        ("<!--" + "-" * 300 + "-->\n" + cpu(PCI), "comment-long-word", "fails"),
        (cpu(PCI.replace(" class", "\nclass")), "newline-in-tag", "fails"),
        (cpu(PCI.replace(" class", " \r\n class")), "newline-in-tag", "fails"),
        (cpu(PCI.replace(" class", "\tclass")), "tab-in-tag", "fails"),
        (cpu(PCI.replace(" class", " \tclass")), "tab-in-name", "ignores"),
        (cpu(PCI.replace(" class", "class")), "no-space", "fails"),
        (cpu(PCI.replace(" class=", " class =")), "space-at-equals", "fails"),
        (cpu(PCI.replace(" class=", " class= ")), "space-at-equals", "fails"),
        (cpu(PCI.replace('"0x030200"', "0x030200")), "quote-missing", "fails"),
        (cpu(PCI.replace('="0x030200"', "")), "value-missing", "literal"),
        (cpu(PCI.replace('"0x030200"', '"0x030200""')), "stray-in-tag", "fails"),
        (cpu(PCI.replace("/>", "/ >")), "stray-in-tag", "fails"),
        (cpu(PCI.replace(" class", " <!-- c --> class")), "comment-in-tag", "fails"),
        (cpu(PCI.replace("/>", "\n") + PCI + "</pci>"), "tag-not-closed", "fails"),
        (cpu(PCI).replace("</cpu>", "</cpu >"), "space-in-closing-tag", "fails"),
        (cpu(PCI.replace("16 GT/s", "16&#32;GT/s")), "entity", "literal"),
        (cpu(PCI.replace("16 GT/s", "1" * 254)), "value-too-long", "fails"),
        (cpu(PCI.replace("class", "c" * 255)), "name-too-long", "fails"),
        (cpu(PCI + f"<{'p' * 254}/>"), "name-too-long", "fails"),
        (cpu(PCI.replace("class", "class='0x02' class")), "duplicate-attribute", "ignores"),
        (cpu(PCI.replace("link_width", "link_witdh")), "unknown-attribute", "ignores"),
        (cpu(PCI.replace("pci", "pcie")), "unknown-element", "ignores"),
        (cpu("<gpu dev='0'/>" + PCI), "misplaced-element", "ignores"),
        (cpu(PCI.replace("/>", ">")), "mismatched-tag", "fails"),
        (cpu(PCI.replace("/>", "></pcl>")), "mismatched-tag", "fails"),
        (cpu(PCI + "</pci>"), "stray-closing-tag", "fails"),
        (cpu(PCI) + "</system>", "stray-closing-tag", "fails"),
        (cpu(PCI) + cpu(PCI), "second-root", "ignores"),
        (system(PCI, ""), "version-missing", "fails"),
        (system(PCI, 'version="2"'), "version-wrong", "fails"),
        (cpu(PCI).replace("system", "System"), "root-name", "ignores"),
    ],
)
def test_what_nccl_stumbles_on_is_remarked(text: str, kind: str, effect: str) -> None:
    assert (kind, effect) in kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "<!-- a = b -->\n" + cpu(PCI),
        "<!---->" + cpu(PCI),
        cpu(PCI).replace("\n", "\r\n"),
        cpu(PCI.replace('"', "'")),
        cpu(PCI.replace(" ", "  ")),
        cpu(PCI.replace("/>", " />")),
        cpu(PCI.replace("/>", "></pci>")),
        cpu(PCI.replace("16 GT/s", "1" * 253)),
        system("", "version='0x1'"),
        cpu(PCI).rstrip(),
    ],
)
def test_what_nccl_takes_is_not_remarked(text: str) -> None:
    assert kinds(text) == []


def test_spaces_take_places_of_attributes() -> None:
    # 12 spaces too many leave 4 of 16 places: busid, class, link_speed, and not link_width.
    document = read(cpu(PCI.replace("<pci busid", "<pci" + " " * 14 + "busid")))
    device = document.root.children[0].children[0]
    assert [attribute.name for attribute in device.attributes] == ["busid", "class", "link_speed"]
    assert [(remark.kind, remark.subject) for remark in document.remarks] == [("too-many-attributes", "link_width")]


def test_what_an_ignored_element_holds_is_ignored_with_it() -> None:
    document = read(cpu("<switch><pci busid='0000:01:00.0'></switch></pci>" + PCI))
    assert [element.value("busid") for element in document.root.children[0].children] == ["0000:0f:00.0"]


def test_the_elements_are_counted_as_nccl_counts_them() -> None:
    most = "".join(PCI for _ in range(253))
    assert ("too-many-elements", "fails") not in kinds(cpu(most))
    assert ("too-many-elements", "fails") in kinds(cpu(most + PCI))


def test_children_are_counted_as_each_version_counts_them() -> None:
    effects = {count: kinds(cpu(PCI * count)) for count in (32, 33, 129, 641)}
    older = ("too-many-children", "fails-older")
    assert effects[32] == []
    assert effects[33] == [older]
    assert effects[129] == [older, older]
    assert ("too-many-children", "fails") in effects[641]


def test_every_fault_of_a_file_is_seen_at_once() -> None:
    text = '<?xml version="1.0"?>\n' + cpu("\t" + PCI.replace(" class", "\n class") + "\n\t<gpu/>")
    assert [kind for kind, _ in kinds(text)] == [
        "prolog", "tab-between-elements", "newline-in-tag", "misplaced-element",
    ]  # fmt: skip


def test_the_same_fault_is_counted_and_not_repeated() -> None:
    remarks = read(cpu("\n".join(f"\t{PCI}" for _ in range(5)))).remarks
    assert [(remark.kind, remark.count) for remark in remarks if remark.kind.startswith("tab")] == [
        ("tab-between-elements", 5)
    ]


def test_a_closing_tag_left_out_closes_what_it_should() -> None:
    text = system('<cpu numaid="0"><pci busid="0000:01:00.0"></cpu><cpu numaid="1"></cpu>')
    document = read(text)
    assert [element.value("numaid") for element in document.root.children] == ["0", "1"]


@pytest.mark.parametrize(
    ("raw", "cause"),
    [
        (b"", "is empty"),
        (b" \n\t\r\n", "is empty"),
        (b"\x1f\x8b\x08\x00rest", "gzip"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "binary"),
        (bytes(range(256)), "binary"),
        ("<system version='1'/>".encode("utf-16"), "UTF-16"),
        ("<system version='1'/>".encode("utf-16-le"), "UTF-16"),
        (b'{"system": 1}', "JSON"),
        (b"<!DOCTYPE html>\n<html><body>404</body></html>", "HTML"),
        (b"<html><body>404</body></html>", "HTML"),
        (b"<graphs version='1'></graphs>", "graph file"),
        (b"<topology version='2.0'></topology>", "lstopo"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1", "no element"),
        (b"NCCL INFO something", "no element"),
        (b"<!-- only a comment -->", "no element"),
        (b'<!DOCTYPE b [<!ENTITY a "aa">]><system version="1"/>', "entities"),
        (b"<system version='1'><cpu>" + b"<pci>" * 100_000, "deep"),
        (b"<system version='1'>" + b"<cpu/>" * 100_000, "elements"),
        (b"<system>" + b"".join(b"<x%d/>" % number for number in range(1000)), "kinds of faults"),
        (b"<" * 9_000_000, "8 MiB"),
    ],
)
def test_what_is_no_topology_file_gives_one_clear_error(raw: bytes, cause: str) -> None:
    def refusal() -> InputError:
        with pytest.raises(InputError, match=cause) as caught:
            read_document(raw, "topo.xml")
        return caught.value

    error = check_cost(refusal, most_s=2)
    assert error.where is not None
    assert len(str(error).splitlines()) <= 4


def test_a_file_cut_off_anywhere_is_refused_with_the_place() -> None:
    text = cpu(PCI).rstrip()
    for length in range(8, len(text)):
        with pytest.raises(InputError, match=r"ends inside|holds") as caught:
            read(text[:length])
        assert caught.value.where is not None


def test_a_vendors_file_has_nothing_to_remark() -> None:
    if not VENDOR_FILES.is_dir():
        pytest.skip(f"the vendors' files are not there: {VENDOR_FILES}")
    paths = sorted(VENDOR_FILES.glob("*topo*.xml"))
    assert len(paths) >= 9
    for path in paths:
        assert read_document(path.read_bytes(), path.name).remarks == (), path.name
