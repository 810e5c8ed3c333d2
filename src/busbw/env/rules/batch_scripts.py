"""What Slurm makes of a batch script: directives that it does not read, variables that it does not set, bindings."""

import re
from collections.abc import Iterator
from functools import cache

from busbw.env.misspelled import letters_off
from busbw.env.rules.launch_lines import with_values
from busbw.env.rules.shell_lines import own_lines
from busbw.env.rules.subject import SettingsSubject, place_of, report, shown
from busbw.facts.envvars import readers, variables
from busbw.model.finding import FilePlace, Finding

_SHELLS = {"shell", "slurm", "csh"}
_DIRECTIVE = re.compile(r"#SBATCH\s+-")
# What is put together with other files before it is submitted.
_PART = re.compile(r"(?i)templ|tmpl|head|prefix|snippet|common|include|part|jinja|\.(?:j2|in|inc|mako|m4)\b")
_SCRIPT_NAME = re.compile(r"\.(?:sh|bash|sbatch|slurm|slrm|sl|job|batch|sub|cmd|run)$", re.IGNORECASE)
_STANDARD_INPUT = "-"
# What is filled in before the script is one.
_TEMPLATE = re.compile(r"\s*(?:[{<@%]|\$\{?\w+\}?\s*$|\$\()")
_TOP = 20


def first_line(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield a batch script whose first line names no interpreter."""
    lines = subject.reading.lines
    name = subject.reading.file.rpartition("/")[2]
    is_named = _SCRIPT_NAME.search(name) is not None and _PART.search(name) is None
    if not _is_script(subject) or lines[0].startswith("#!") or not is_named:
        return
    written = [line for line in lines if line.strip()]
    # A part that begins with anything but remarks and directives may be a template, or what another file takes in.
    is_batch = bool(written) and _DIRECTIVE.match(written[0]) is not None
    if is_batch and any(not line.lstrip().startswith("#") for line in written):
        yield report(
            "ENV127",
            at=FilePlace(file=subject.reading.file, line=1, column=1),
            evidence=shown(lines[0]),
            confidence="likely",
            effect='sbatch ends with "This does not look like a batch script"',
            fix="#!/bin/bash as the first line",
        )


def late_directives(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield directives behind the first command, where sbatch has stopped to look for them."""
    lines = subject.reading.lines
    if not _is_script(subject) or not lines[0].startswith("#!"):
        return
    command: int | None = None
    late: list[int] = []
    is_batch = False
    for number in own_lines(lines):
        line = lines[number]
        if line.startswith("#!") and number:
            # Scripts one after the other in one file.
            return
        if command is None and line.strip() and not line.lstrip().startswith("#"):
            command = number
        if _DIRECTIVE.match(line):
            late += [] if command is None else [number]
            is_batch = is_batch or command is None
    # Without one at the top it may be a script that writes another.
    is_batch = is_batch or (bool(late) and late[0] < _TOP and not any("<<" in line for line in lines))
    if late and command is not None and is_batch and _TEMPLATE.match(lines[command]) is None:
        more = f"; {len(late)} such lines" if len(late) > 1 else ""
        yield report(
            "ENV126",
            at=FilePlace(file=subject.reading.file, line=late[0] + 1, column=1),
            evidence=f"the first command is in line {command + 1}: {lines[command].strip()[:60]}{more}",
            effect="the job runs without what it asks for",
            fix="move it up to the other directives",
            written=shown(lines[late[0]].strip()),
        )


def _is_script(subject: SettingsSubject) -> bool:
    reading = subject.reading
    return reading.language in _SHELLS and bool(reading.lines) and reading.file != _STANDARD_INPUT


_READ = re.compile(r"\$(?:\{(SLURM_[A-Z0-9_]+)\}|(SLURM_[A-Z0-9_]+))", re.ASCII)
_REMARK = re.compile(r"\s#[^\"']*$")
_MOST_LINES = 4_000


def job_variables(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield variables of Slurm that a script reads, and that are a letter off from one that Slurm sets."""
    reading = subject.reading
    if reading.language not in _SHELLS or len(reading.lines) > _MOST_LINES:
        return
    reported: set[str] = set()
    text = "\n".join(reading.lines)
    for number, line in enumerate(reading.lines, start=1):
        if "SLURM_" not in line or line.lstrip().startswith("#"):
            continue
        for found in _READ.finditer(_REMARK.sub("", line)):
            name = found[1] or found[2]
            meant = () if name in reported else _meant(name)
            reported.add(name)
            if meant and re.search(rf"(?<![$\w{{]){name}(?:=|\s+in\b|:)|\b(?:read|setenv)\b.*\b{name}\b", text) is None:
                yield report(
                    "ENV029",
                    at=FilePlace(file=reading.file, line=number, column=found.start() + 1),
                    evidence=line.strip()[:80],
                    confidence="likely",
                    effect="nothing stands in its place",
                    fix=f"${meant[0]}",
                    name=name,
                    meant=" or ".join(meant),
                )


@cache
def _of_slurm() -> frozenset[str]:
    return frozenset(each for each in (*readers(), *variables()) if each.startswith("SLURM"))


def _meant(name: str) -> tuple[str, ...]:
    """Return the variables of Slurm that a name which it has not is a letter off from."""
    known = _of_slurm()
    if name in known:
        return ()
    return tuple(sorted(each for each in known if letters_off(name, each, 1) <= 1))[:2]


# Slurm: slurm_verify_cpu_bind in src/common/slurm_resource_info.c, which looks at no capitals; `boards` until 23.02.
_BINDINGS = frozenset((
    "help", "q", "quiet", "v", "verbose", "one_thread", "no", "none", "rank", "rank_ldom", "socket", "sockets", "core",
    "cores", "thread", "threads", "ldom", "ldoms", "board", "boards", "autobind=yes", "autobind=no",
))  # fmt: skip
_WITH_LIST = re.compile(r"(?:map|mask)_?(?:cpu|ldom)[:=].*", re.IGNORECASE | re.DOTALL)
_BEFORE_WORDS = re.compile(r",(?!\s*(?:0x)?[\da-fA-F]+(?:[,*]|$))")


# Slurm: src/common/tres_bind.c; and distributions of tasks by srun(1).
_OF_GPUS = frozenset(("v", "verbose", "q", "quiet", "closest", "none"))
_GPUS_WITH_LIST = re.compile(r"(?:map|mask|map_gpu|mask_gpu|per_task|single):.*", re.IGNORECASE | re.DOTALL)
# slurm_verify_mem_bind in src/common/slurm_resource_info.c.
_OF_MEMORY = frozenset((
    "help", "q", "quiet", "v", "verbose", "no", "none", "rank", "local", "sort", "nosort", "p", "prefer",
))  # fmt: skip
_MEMORY_WITH_LIST = re.compile(r"(?:map|mask)_?mem[:=].*", re.IGNORECASE | re.DOTALL)
_DISTRIBUTIONS = frozenset(("*", "block", "cyclic", "fcyclic", "arbitrary", "plane", "pack", "nopack"))
_NO_LIST = re.compile(r"plane=.*", re.IGNORECASE)
# Option, its words, what else it takes, and what divides several.
_BOUND = {
    **dict.fromkeys(("--cpu-bind", "--cpu_bind"), (_BINDINGS, _WITH_LIST, _BEFORE_WORDS)),
    **dict.fromkeys(("--mem-bind", "--mem_bind"), (_OF_MEMORY, _MEMORY_WITH_LIST, _BEFORE_WORDS)),
    "--gpu-bind": (_OF_GPUS, _GPUS_WITH_LIST, _BEFORE_WORDS),
    **dict.fromkeys(("--distribution", "-m"), (_DISTRIBUTIONS, _NO_LIST, re.compile("[:,]"))),
}


def bindings(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield bindings of CPUs, GPUs and memory, and distributions, of srun with a word that it does not know."""
    for launch in subject.reading.launches:
        for word in with_values(launch) if launch.kind == "srun" else ():
            option, equals, value = word.partition("=")
            if option not in _BOUND or not equals or "$" in value or not value.isascii():
                continue
            words, with_list, divider = _BOUND[option]
            for each in divider.split(value):
                if each.lower() in words or with_list.fullmatch(each) or not each.isidentifier():
                    continue
                near = sorted(known for known in words if letters_off(each.lower(), known, 2) <= 2)
                yield report(
                    "ENV129",
                    at=place_of(launch),
                    evidence=word,
                    effect="srun ends with an error",
                    fix=f"{option}={near[0]}" if near else None,
                    option=option,
                    written=shown(each),
                )


_IMAGE = re.compile(r"(?:#SBATCH\s+|\b(?:srun|sbatch|salloc)\s(?:[^|;&#]*\s)?)(?P<option>--image)[= ]\S")
_DIRECT = re.compile(r"(?:.*/)?python[\d.]*|\./[\w-]+|.*\.(?:x|exe|out)")


def unused_images(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield an image of Shifter in a script that starts nothing in it: srun only makes it ready."""
    reading = subject.reading
    started = [each for each in reading.launches if each.kind == "srun" and each.argv[each.program :]]
    if reading.language not in _SHELLS or not started or any("shifter" in line for line in reading.lines):
        return
    if not all(each.program and _DIRECT.fullmatch(each.argv[each.program]) for each in started):
        # A script of its own may call shifter.
        return
    for number in own_lines(reading.lines):
        found = _IMAGE.search(reading.lines[number])
        if found is not None and not reading.lines[number].lstrip().startswith(("##", "# ")):
            yield report(
                "ENV132",
                at=FilePlace(file=reading.file, line=number + 1, column=found.start("option") + 1),
                evidence=reading.lines[number].strip()[:80],
                confidence="likely",
                effect="the program runs on the host; without the plug-in of Shifter srun has no such option",
                fix="srun ... shifter PROGRAM; with pyxis it is --container-image",
            )
            return
