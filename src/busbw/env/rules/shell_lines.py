"""Lines that look as if they set something, and of which the shell makes something else."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from busbw.env.misspelled import letters_off
from busbw.env.rules.subject import SettingsSubject, known, report
from busbw.model.finding import FilePlace, Finding
from busbw.model.settings import SettingsReading

_SHELLS = {"shell", "slurm"}
_NAME = (
    r"(?P<name>(?:NCCL|RCCL|TORCH_NCCL|UCX|UCC|FI|OFI|OMPI_MCA|I_MPI|MPICH|SHARP|HCOLL|NVSHMEM|CUDA|GLOO|MV2|PSM[23])_"
    r"[A-Za-z0-9_]+)"
)
_BEGINS = r"(?:[^#'\"]*(?:;|&&))?\s*"
# Names of interfaces and NICs, which no variable has.
_DEVICES = r"(?:lo|(?:docker|eth|ib|hsn|bond|virbr)\d+|(?:ens|enp|eno)\d\w*|mlx[45]_\d+(?::\d)?)"
_VALUE = r"(?:\"[^\"]*\"|'[^']*'|[^\s&|;\"'])+"
_GONE = "it is gone when that ends"
_EXPORTED = "export {name}=..."


class _LineSlip(NamedTuple):
    """A form of line with why it sets nothing, what comes of it and what to write; filled from the pattern's groups."""

    pattern: re.Pattern[str]
    reason: str
    effect: str
    fix: str


_SLIPS = (
    _LineSlip(
        re.compile(rf"{_BEGINS}export\s+\$\{{?{_NAME}\}}?="),
        "the dollar sign stands for its value",
        "the shell ends the line with an error",
        _EXPORTED,
    ),
    _LineSlip(
        re.compile(rf"{_BEGINS}export\s+{_NAME}:(?!=)[^\s=]"),
        "a colon stands for the equals sign",
        "the shell ends the line with an error",
        _EXPORTED,
    ),
    _LineSlip(
        re.compile(rf"{_BEGINS}export{_NAME}=\S"),
        "a blank is missing behind `export`",
        "a variable of the whole word is set, which nothing reads",
        _EXPORTED,
    ),
    _LineSlip(
        re.compile(rf"{_BEGINS}(?P<word>unset|alias)\s+{_NAME}=\S"),
        "`{word}` sets no variable",
        "the shell ends the line with an error, or makes another name of a command",
        "{word} without a value, or export {name}=...",
    ),
    _LineSlip(
        re.compile(rf"{_BEGINS}export\s+(?P<name>(?:NCCL|UCX|RCCL|FI)-[A-Z0-9_-]+)=\S"),
        "a name has no hyphen",
        "the shell ends the line with an error",
        "export with underscores",
    ),
    _LineSlip(
        re.compile(rf"{_BEGINS}set\s+{_NAME}=\S"),
        "`set` changes the arguments of the script",
        "no program sees it",
        _EXPORTED,
    ),
    _LineSlip(
        re.compile(
            rf"{_BEGINS}export\s+{_NAME}=(?P<list>[^\s\"'#;$(]+)\s+(?P<next>(?:(?<=,\s)[\w^][\w.:-]*|{_DEVICES}))"
            r"(?=[\s,;]|$)(?![^#]*=)"
        ),
        "its list ends at the blank before {next}",
        "its value is {list}",
        "the list without blanks",
    ),
    _LineSlip(
        re.compile(
            rf"{_BEGINS}export\s+{_NAME}=(?P<list>\^?=?(?P<stem>[a-z]+)[_\d][\w:.]*);(?P<next>(?P=stem)[_\d][\w:.]*)"
        ),
        "its list ends at the semicolon before {next}",
        "its value is {list}, and the rest is run as a command",
        "commas between the entries",
    ),
    _LineSlip(
        re.compile(rf"\s*\(\s*export\s+{_NAME}={_VALUE}\s*;?\s*\)\s*(?:#.*)?$"),
        "the parentheses are a shell of their own",
        _GONE,
        "the line without parentheses",
    ),
    _LineSlip(
        re.compile(rf"\s*export\s+{_NAME}={_VALUE}\s+&\s*(?:#.*)?$"),
        "& starts a shell of its own",
        _GONE,
        "the line without &",
    ),
    _LineSlip(
        re.compile(rf"\s*export\s+{_NAME}={_VALUE}\s*\|(?!\|)"),
        "a pipe starts a shell of its own",
        _GONE,
        "the line without the pipe",
    ),
)
_LIKE_CSH = re.compile(r"#!.*csh\b")
_HERE = re.compile(r"(?<!<)<<(?P<dash>-?)\s*(?P<quote>[\"'\\]?)(?P<end>[A-Za-z_]\w*)")
_MOST_LINES = 20_000
# No person writes a longer line to set a variable.
_LONGEST = 2_000


def own_lines(lines: tuple[str, ...]) -> Iterator[int]:
    """Yield the numbers, from 0 on, of the lines that stand in no here-document."""
    end: str | None = None
    for number, line in enumerate(lines[:_MOST_LINES]):
        if end is not None:
            end = None if line.strip() == end else end
            continue
        yield number
        found = _HERE.search(line) if "<<" in line and not line.lstrip().startswith("#") else None
        end = found["end"] if found is not None else None


def not_set(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield lines of a script that are to set a variable of the interconnect and do not."""
    reading = subject.reading
    if reading.language not in _SHELLS or not reading.lines or _LIKE_CSH.match(reading.lines[0]):
        return
    text = "\n".join(reading.lines)
    for number in own_lines(reading.lines):
        line = reading.lines[number]
        if len(line) > _LONGEST:
            continue
        if "export" in line or "set " in line or "alias" in line:
            yield from _line(reading, number, line)
        if (found := _CHOICE_BEHIND.match(line)) is not None:
            yield from _choices(reading, number, found)
        if (found := _WORDS.match(line)) is not None:
            yield from _words(reading, number, found, text)


def _line(reading: SettingsReading, number: int, line: str) -> Iterator[Finding]:
    for slip in _SLIPS:
        found = slip.pattern.match(line)
        if found is not None:
            parts = {part: text or "" for part, text in found.groupdict().items()}
            yield report(
                "ENV128",
                at=FilePlace(file=reading.file, line=number + 1, column=found.start("name") + 1),
                evidence=line.strip()[:80],
                effect=slip.effect.format(**parts),
                fix=slip.fix.format(**parts),
                name=parts["name"],
                reason=slip.reason.format(**parts),
            )
            return


_CHOICE_BEHIND = re.compile(
    rf"\s*export\s+(?:\w+=\S*\s+)*{_NAME}=(?P<list>[^\s\"'$;|&]+)\s+(?P<next>[A-Z]\w*)\s*(?:#.*)?$"
)


def _choices(reading: SettingsReading, number: int, found: re.Match[str]) -> Iterator[Finding]:
    """Yield a word behind a setting that is one of the words which its variable takes: `NCCL_DEBUG_SUBSYS=INIT NET`."""
    variable = known(found["name"])
    if variable is not None and found["next"] in variable.choices:
        yield report(
            "ENV128",
            at=FilePlace(file=reading.file, line=number + 1, column=found.start("name") + 1),
            evidence=found.string.strip()[:80],
            effect=f"its value is {found['list']}",
            fix=f"{found['name']}={found['list']},{found['next']}",
            name=found["name"],
            reason=f"its list ends at the blank before {found['next']}",
        )


_WORDS = re.compile(
    rf"\s*(?:(?P<word>[A-Za-z]{{4,8}})\s+{_NAME}=(?:\"[^\"]*\"|'[^']*'|[^\s;|&\"']+)"
    r"|export\s+(?P<set>[A-Z]\w*)\s+(?P<value>[A-Za-z]\w*|\d+))\s*(?:#.*)?$"
)


def _words(reading: SettingsReading, number: int, found: re.Match[str], text: str) -> Iterator[Finding]:
    """Yield `exprot NAME=value`, and `export NAME value` where nothing sets what would be passed on."""
    word, name, value = found["word"], found["set"] or found["name"], found["value"]
    if word is not None:
        if word == "export" or letters_off(word.lower(), "export", 1) > 1 or f"{word}()" in text:
            return
        reason, effect = f"the shell knows no {word}", "the line ends with `command not found`"
    else:
        is_named = known(name) is not None and known(value) is None
        if not is_named or re.search(rf"\b(?:{name}|{value})=|\bread\b.*\b{value}\b|\b{value}\b.*;\s*do\b", text):
            return
        reason, effect = "no equals sign stands between name and value", "nothing is set"
    yield report(
        "ENV128",
        at=FilePlace(file=reading.file, line=number + 1, column=found.start("name" if word else "set") + 1),
        evidence=found.string.strip()[:80],
        effect=effect,
        fix=f"export {name}={value or '...'}",
        name=name,
        reason=reason,
    )


def open_documents(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield here-documents that nothing ends, where a line was to end them."""
    lines = subject.reading.lines
    if subject.reading.language not in _SHELLS or len(lines) > _MOST_LINES:
        return
    for number in own_lines(lines):
        found = _HERE.search(lines[number]) if not lines[number].lstrip().startswith("#") else None
        if found is None or any(_ends(line, found) for line in lines[number + 1 :]):
            continue
        near = next((at for at in range(number + 1, len(lines)) if _was_to_end(lines[at], found["end"])), None)
        if near is not None:
            yield report(
                "ENV002",
                at=FilePlace(file=subject.reading.file, line=near + 1, column=1),
                evidence=f"{lines[near].rstrip()[:60]!r}; it begins in line {number + 1}",
                effect="everything to the end of the script is part of it",
                fix=f"a line with {found['end']} alone, from its first column on; redirections stand behind <<",
                end=found["end"],
            )


def _ends(line: str, found: re.Match[str]) -> bool:
    return (line.lstrip("\t") if found["dash"] else line).rstrip("\r\n") == found["end"]


def _was_to_end(line: str, end: str) -> bool:
    """Whether a line is that word with blanks around it, or with a redirection or a sign behind it."""
    return re.fullmatch(rf"\s*{end}(?:\s*|\s+\d?[>|<&].*|[;)\"'`].*)", line) is not None
