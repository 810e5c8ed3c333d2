"""Checking any file that reads as a topology file ends, says where, and claims nothing it cannot print."""

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.base.text import printable
from busbw.facts.platforms import find_platform
from busbw.topo.check import check, resemblance
from busbw.topo.file.reader import read_document
from busbw.topo.reference import reference_of_platform

from .machine_seeds import CHECKED_FILE as VALID

NDV4 = find_platform("azure-ndv4").platform
ATTRIBUTES = [match.span() for match in re.finditer(r' \w+="[^"]*"', VALID)][1:]
ELEMENTS = [match.span() for match in re.finditer(r"<pci [^>]*/>\n", VALID)]
NAMES = st.sampled_from(
    sorted({VALID[start:end].split("=", maxsplit=1)[0].strip() for start, end in ATTRIBUTES} | {"keep", "bw"})
)
_WORDS = """0 1 -1 0x030200 0x020700 0x060400 0000:01:00.0 0001:00:00.0 ffff:ff:01.0 16GT/s fffffff:ffff:ff 00ffffff fff
    0000ffff,ff000000 , 0x 99999999999999999999 x86_64 aarch64 AuthenticAMD GenuineIntel 143 nan 1e400 %s {0} {code}
    0001:01:00.0 0101:00:00.0 \x1b[2J"""
VALUES = st.sampled_from(_WORDS.split()) | st.text(
    st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\"<>&'"), max_size=12
)


@st.composite
def changed(draw: st.DrawFn) -> str:
    """Return the file with attributes that were replaced, renamed or removed, and elements that stand twice."""
    spans = sorted(draw(st.lists(st.sampled_from(ATTRIBUTES), max_size=8, unique=True)), reverse=True)
    text = VALID
    for start, end in spans:
        name = text[start:end].split("=", maxsplit=1)[0].strip()
        attribute = draw(st.sampled_from([name, name, draw(NAMES), ""]))
        text = text[:start] + (f' {attribute}="{draw(VALUES)}"' if attribute else "") + text[end:]
    if not spans and draw(st.booleans()):
        start, end = draw(st.sampled_from(ELEMENTS))
        text = text[:end] + text[start:end] * draw(st.integers(1, 40)) + text[end:]
    return text


@settings(max_examples=133, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(changed())
def test_any_topology_file_can_be_checked_against_itself_and_a_platform(text: str) -> None:
    try:
        document = read_document(text.encode("latin-1"), "topo.xml")
    except InputError:
        return
    like = resemblance(document, (NDV4,))
    for reference in (None, reference_of_platform(NDV4), like.reference if like else None):
        for finding in check(document, reference):
            place = finding.place
            assert place is not None
            assert (place.file, place.line >= 1, (place.column or 0) >= 1) == ("topo.xml", True, True)
            assert finding.confidence is not None
            assert finding.effect
            assert printable(finding.title)
