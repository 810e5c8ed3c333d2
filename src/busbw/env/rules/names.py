"""Names: what reads them, in this version, and what was meant where nothing does."""

import re
from collections.abc import Iterator

from busbw.env.near import read_name
from busbw.env.rules.subject import SettingsSubject, known, report, setting_text, where
from busbw.env.versions import known_in
from busbw.facts.envvars import misspellings
from busbw.model.envvar import EnvVar, Misspelling
from busbw.model.finding import Finding
from busbw.model.settings import Assignment, SettingsReading

_NCCL = "NCCL"
# A plug-in of NCCL that is named or on the way to libraries: it may read names of its own.
_PLUGIN = re.compile(
    r"NCCL_(?:NET|TUNER|PROFILER|GIN|RMA|ENV)_PLUGIN[\s=:\"']+(?!none)[A-Za-z/]|nccl[\w-]{0,20}plugin|libnccl-(?:net|tuner)|tcpxo?/",
    re.ASCII,
)
# A variable that is used, as $NAME or ${NAME...}.
_USE = re.compile(r"\$\{?([A-Za-z_]\w*)", re.ASCII)
# Kinds of misspelling that something reads, and not NCCL.
_ELSEWHERE = {"framework", "vendor"}


def names(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield names that nothing reads, not in this version, or not NCCL."""
    # RCCL has names of its own too that begin as NCCL's do.
    with_others = subject.is_for_rccl or any(_PLUGIN.search(line) for line in subject.reading.lines)
    used = frozenset(_USE.findall("\n".join(subject.reading.lines)))
    for each in subject.reading.assignments:
        # What stays in the shell is a helper of the script, and may be called anything.
        if each.unsets or each.form == "shell":
            continue
        variable = known(each.name)
        if variable is None:
            if not _is_own(subject.reading, each, used):
                yield from _unread(each, with_others=with_others)
        else:
            yield from _by_version(subject, each, variable)


def _is_own(reading: SettingsReading, each: Assignment, used: frozenset[str]) -> bool:
    """Whether a name is a variable of the scripts themselves: it is used here, or handed to a batch script."""
    launch = reading.launches[each.launch] if each.launch is not None and each.launch < len(reading.launches) else None
    if launch is not None and launch.argv and launch.argv[0].rpartition("/")[2] == "sbatch":
        return True
    return each.name in used and each.name not in misspellings()


def _unread(each: Assignment, *, with_others: bool) -> Iterator[Finding]:
    known_mistake = misspellings().get(each.name)
    if known_mistake is not None and known_mistake.kind in _ELSEWHERE:
        yield _elsewhere(each, known_mistake)
        return
    read = read_name(each.name)
    if read.verdict == "misspelt" and read.meant:
        yield report(
            "ENV020",
            at=where(each),
            evidence=setting_text(each),
            effect=read.note or "the default stays in force",
            fix=_renamed(each, read.meant, known_mistake),
            confidence="certain" if known_mistake is not None else "likely",
            source=read.source,
            name=each.name,
            meant=" or ".join(read.meant[:3]),
        )
    elif read.verdict == "unknown" and known_mistake is None and with_others:
        yield report(
            "ENV026",
            at=where(each),
            evidence=setting_text(each),
            confidence="possible",
            fix="leave it out, or look it up with the plug-in or RCCL",
            name=each.name,
        )
    elif read.verdict in ("misspelt", "unknown"):
        yield report(
            "ENV021",
            at=where(each),
            evidence=setting_text(each),
            effect=read.note or "the default stays in force",
            fix="leave it out",
            confidence="certain" if known_mistake is not None else "likely",
            source=read.source,
            name=each.name,
        )


def _renamed(each: Assignment, names_meant: tuple[str, ...], mistake: Misspelling | None) -> str:
    if mistake is not None and mistake.instead is not None:
        return mistake.instead
    if len(names_meant) > 1:
        return f"{' or '.join(names_meant[:3])}, whichever is meant, with a value for it"
    meant = names_meant[0]
    if mistake is not None and mistake.inverted:
        turned = {"0": "1", "1": "0"}.get(each.value or "")
        return f"{meant}={turned}" if turned is not None else f"{meant} with the opposite value"
    return f"{meant}={each.written}"


def _elsewhere(each: Assignment, mistake: Misspelling) -> Finding:
    by = "framework" if mistake.kind == "framework" else "plug-in"
    return report(
        "ENV025",
        at=where(each),
        evidence=setting_text(each),
        effect=mistake.note,
        fix=f"{mistake.intended[0]}={each.written}" if mistake.intended and mistake.intended[0] != each.name else None,
        source=mistake.source,
        name=each.name,
        reader=f"{', '.join(mistake.intended)} is read by a {by}" if mistake.intended else f"a {by} reads it",
    )


def _by_version(subject: SettingsSubject, each: Assignment, variable: EnvVar) -> Iterator[Finding]:
    # Versions of RCCL are not those of NCCL.
    if variable.owner != _NCCL or (subject.is_for_rccl and subject.context.nccl is None):
        return
    state = known_in(variable, subject.version)
    meant = variable.replaced_by or variable.same_as
    if state == "removed":
        mistake = misspellings().get(each.name)
        meant = meant or (mistake.intended[0] if mistake is not None and mistake.intended else None)
        yield report(
            "ENV022",
            at=where(each),
            evidence=f"{setting_text(each)}; removed in {variable.until}",
            effect="it has no effect",
            confidence="certain" if subject.context.nccl is not None else "likely",
            fix=f"{meant} does that now" if meant is not None else "leave it out",
            source=variable.source,
            name=each.name,
            version=subject.version_text,
        )
    elif state == "not yet":
        yield report(
            "ENV023",
            at=where(each),
            evidence=f"{setting_text(each)}; read from {variable.since} on",
            effect="it has no effect",
            fix="leave it out, or take a newer NCCL",
            source=variable.source,
            name=each.name,
            version=subject.version_text,
        )
    elif variable.deprecated is not None and variable.replaced_by is not None:
        yield report(
            "ENV024",
            at=where(each),
            evidence=f"{setting_text(each)}; deprecated since {variable.deprecated}",
            fix=f"{variable.replaced_by}={each.written}",
            source=variable.source,
            name=each.name,
            instead=variable.replaced_by,
        )
