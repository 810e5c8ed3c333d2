"""How a text is written: what reads well to a person and otherwise to a machine."""

import re
from collections import Counter
from collections.abc import Iterator

from busbw.env.rules.plain import UNKNOWN
from busbw.env.rules.subject import Subject, report, shown, where
from busbw.model.assignment import Reading, Slip
from busbw.model.finding import Finding

_CODES = {
    "space_after_equals": "ENV003",
    "space_before_equals": "ENV004",
    "lost_line_end": "ENV005",
    "typographic": "ENV006",
    "carriage_return": "ENV007",
    "comma_in_list": "ENV008",
    "option_equals": "ENV009",
    "not_a_string": "ENV010",
    "not_shown": "ENV011",
}


_OF_A_JOB = re.compile(
    r"(?:NCCL|UCX|FI|OFI|OMPI_MCA|SHARP|CUDA|HCOLL)_|\b(?:export|setenv|mpirun|mpiexec|srun|torchrun)\b|^\s*[\u2013\u2014]"
)
# `--sku=?*)` in a case, and the beginning of an array.
_LABEL = re.compile(r"\s*--?[^\s()]+\)", re.ASCII)
_LIST = re.compile(r"=\([^)]*$", re.ASCII)
_MOST_LINES = 200
# Slips of a whole text: of a paste, of an editor.
_OF_SHELLS = {"space_after_equals", "space_before_equals"}
_ONCE = {"lost_line_end", "typographic", "carriage_return"}


def slips(subject: Subject) -> Iterator[Finding]:
    """Yield what is written so that it means something else, and the parts that could not be read."""
    for part in subject.reading.unread:
        yield report("ENV001", at=where(part), evidence="nothing in it is checked", reason=part.reason)
    # One slip that goes through a whole text is told once.
    meant = [each for each in subject.reading.slips if _matters(each, subject.reading)]
    often = Counter(each.kind for each in meant)
    told: set[str] = set()
    for each in meant:
        if each.kind not in _ONCE or each.kind not in told:
            yield _finding(each, max(each.count, often[each.kind] if each.kind in _ONCE else 1))
            told.add(each.kind)


def _matters(each: Slip, reading: Reading) -> bool:
    """Whether a slip is about settings and how ranks are started, and not about the rest of a script."""
    line = reading.lines[each.line - 1] if 0 < each.line <= len(reading.lines) else ""
    if each.kind in _OF_SHELLS:
        return _OF_A_JOB.search(each.name or "") is not None
    if each.kind == "typographic":
        return not line.lstrip().startswith("#") and _OF_A_JOB.search(line) is not None
    if each.kind == "lost_line_end" and not each.written.startswith("\\"):
        return _LABEL.match(line) is None and not _in_list(reading.lines, each.line)
    return True


def _in_list(lines: tuple[str, ...], number: int) -> bool:
    """Whether a line stands within the parentheses of an array."""
    for line in reversed(lines[max(0, number - _MOST_LINES) : number - 1]):
        if line.lstrip().startswith(")"):
            return False
        if _LIST.search(line) is not None:
            return True
    return False


def _finding(each: Slip, count: int) -> Finding:
    name = (each.name or "it").partition("=")[0]
    times = f"; {count} times in this text" if count > 1 else ""
    return report(
        _CODES[each.kind],
        at=where(each),
        evidence=f"{shown(each.written.replace(UNKNOWN, '...'))}{times}",
        effect=_effect(each, name),
        fix=_fix(each, name),
        name=name,
        written=shown(each.written.replace(UNKNOWN, "...")),
        what="a backslash is not the last character of its line",
    )


def _effect(each: Slip, name: str) -> str | None:
    effects = {
        "space_after_equals": f"{name} is empty, and what stands behind the space is taken for something else",
        "space_before_equals": f"{name} is run as a command",
        "lost_line_end": "the command ends here, and the lines below are commands of their own",
        "typographic": "it is part of the text around it",
        "comma_in_list": f"{name} ends at its first comma",
        "option_equals": "the option takes what follows for its value",
    }
    return effects.get(each.kind)


def _fix(each: Slip, name: str) -> str | None:
    fixes = {
        "lost_line_end": "let the backslash be the last character of its line",
        "typographic": "straight quotes, plain dashes, ordinary spaces",
        "carriage_return": "dos2unix, or: sed -i 's/\\r$//'",
        "comma_in_list": f"export {name} before the command and pass on ALL",
        "not_a_string": "put the value between quotes",
        "not_shown": f"ENV {name}=... in a Dockerfile, %environment in a definition",
    }
    if each.kind in ("space_after_equals", "space_before_equals"):
        is_known = each.meant is not None and UNKNOWN not in each.meant
        return f"{name}={each.meant}" if is_known else "no blank around the equals sign"
    if each.kind == "option_equals" and each.meant is not None:
        return f"two words: {name.removeprefix('OMPI_MCA_')} {each.meant.partition('=')[2] or each.meant}"
    return fixes.get(each.kind)
