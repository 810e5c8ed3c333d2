"""What NCCL's reader stops at, drops or ignores: the remarks of busbw's own reader as findings."""

import difflib
from collections.abc import Iterator

from busbw.facts.findings import finding
from busbw.model.finding import Finding
from busbw.topo.file.document import Remark
from busbw.topo.file.elements import ATTRIBUTES, CHILDREN
from busbw.topo.rules.subject import Subject, is_rccls

_SPACES = {"tab-in-tag", "tab-in-name", "tab-between-elements", "newline-in-tag"}
_GROUPS = {
    "TOP002": _SPACES,
    "TOP003": {"prolog", "doctype", "instruction", "cdata", "byte-order-mark"},
    "TOP004": {"root-name", "second-root", "version-missing", "version-wrong"},
    "TOP005": {"name-too-long", "value-too-long", "too-many-elements", "too-many-children"},
    "TOP006": {"too-many-attributes"},
    "TOP007": {"unknown-element"},
    "TOP008": {"misplaced-element"},
    "TOP009": {"unknown-attribute"},
    "TOP010": {"duplicate-attribute"},
}
# What RCCL, which reads the same files, knows beyond NCCL.
_RCCL = {"xgmi", "gcn", "arch"}
_EFFECTS = {"fails": "TOP001", "fails-older": "TOP012", "literal": "TOP011", "ignores": "TOP013"}
_WORDS = {
    "prolog": "an XML declaration",
    "doctype": "a document type",
    "instruction": "a processing instruction",
    "cdata": "a CDATA section",
    "byte-order-mark": "a byte order mark",
    "mismatched-tag": "a tag that does not match",
    "stray-closing-tag": "a closing tag that closes nothing",
    "no-space": "no space between two attributes",
    "newline-in-tag": "a line break",
    "entity": "an entity",
    "value-missing": "an attribute without a value",
    "stray-in-tag": "a stray character in a tag",
}
_REMEDIES = {
    "newline-in-tag": "write each tag on one line",
    "prolog": "delete it; the file begins with <system",
    "doctype": "delete it; the file begins with <system",
    "byte-order-mark": "save the file as UTF-8 without a byte order mark",
    "entity": "write the character itself",
}
_MOST_SHOWN = 40
_LEAST_LIKENESS = 0.8


def syntax(subject: Subject) -> Iterator[Finding]:
    """Yield a finding for every remark of the reader."""
    # RCCL's files have a version of their own.
    has_rccls_version = subject.document.root.value("version") == "2" and any(map(is_rccls, subject.devices))
    for remark in subject.document.remarks:
        if has_rccls_version and remark.kind == "version-wrong":
            yield _other_library(subject, remark)
            continue
        evidence, _, effect = remark.text.partition("; ")
        more = f" ({remark.count} times in this file)" if remark.count > 1 else ""
        yield finding(
            _code(remark),
            evidence=evidence + more,
            fix=_remedy(remark),
            where=f"{subject.document.where}:{remark.line}:{remark.column}",
            confidence="certain",
            effect=effect or _effect(remark),
            what=_WORDS.get(remark.kind, remark.kind.replace("-", " ")),
            name=remark.subject[:_MOST_SHOWN],
        )


def _other_library(subject: Subject, remark: Remark) -> Finding:
    return finding(
        "TOP014",
        evidence="RCCL reads the file, and NCCL refuses it",
        where=f"{subject.document.where}:{remark.line}:{remark.column}",
        confidence="certain",
        effect='NCCL wants version="1"',
        name='version="2"',
    )


def _code(remark: Remark) -> str:
    """Return the rule for a kind of remark, else the one for what NCCL makes of it."""
    if remark.effect == "fails-older":
        return _EFFECTS[remark.effect]
    if remark.effect == "ignores" and remark.subject in _RCCL:
        return "TOP014"
    return next((code for code, kinds in _GROUPS.items() if remark.kind in kinds), _EFFECTS[remark.effect])


def _effect(remark: Remark) -> str:
    return {
        "fails": "NCCL fails",
        "fails-older": "older NCCL fails",
        "literal": "NCCL takes it as it stands",
        "ignores": "NCCL ignores it",
    }[remark.effect]


def _remedy(remark: Remark) -> str | None:
    if remark.kind in _REMEDIES:
        return _REMEDIES[remark.kind]
    if remark.kind in _SPACES:
        return "sed -i 's/\\t/ /g' FILE"
    homes = [f"<{element}>" for element, names in ATTRIBUTES.items() if remark.subject in names]
    if remark.kind == "unknown-attribute" and homes:
        return f"NCCL reads it of {', '.join(homes)}"
    known = {
        "unknown-element": list(CHILDREN),
        "unknown-attribute": sorted({name for names in ATTRIBUTES.values() for name in names}),
    }.get(remark.kind, [])
    near = difflib.get_close_matches(remark.subject.lower(), known, n=1, cutoff=_LEAST_LIKENESS)
    return f"maybe: {near[0]}" if near else None
