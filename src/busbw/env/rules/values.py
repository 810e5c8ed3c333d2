"""Values: what their reader makes of them, where that is not what they seem to say."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from busbw.env.hca import INTERFACES
from busbw.env.misspelled import read_name
from busbw.env.rules.subject import (
    SettingsSubject,
    is_unexpanded,
    known,
    place_of,
    place_of_value,
    report,
    setting_text,
    shown,
)
from busbw.env.values import read_value
from busbw.env.versions import default_in, known_in, parse_version
from busbw.facts.envvars import misspellings
from busbw.facts.platforms import all_platforms
from busbw.model.envvar import EnvVar, Misspelling, ValueReading
from busbw.model.finding import FilePlace, Finding
from busbw.model.settings import Assignment, SettingsReading

_CODES = {
    "other value": "ENV030",
    "ignored": "ENV031",
    "clipped": "ENV032",
    "fails": "ENV033",
    "odd": "ENV034",
    "out of range": "ENV037",
    "not known": "ENV039",
}
# What rests on limits and defaults of NCCL, of which RCCL has its own: 128 channels, for one.
_OF_LIMITS = {"ENV032", "ENV035"}
# Words that RCCL alone knows, from its page on environment variables.
_WORDS_OF_RCCL = {"NCCL_DEBUG": {"ERROR", "NONE"}}
# Defaults that are no value somebody could write.
_NO_VALUE = {None, "", "auto", "unset", "none", "undef"}
_NCCL = "NCCL"
# Where no version is asked for, what holds since this one only is not certain.
_EARLIER = (2, 27)
_LISTS = ("NCCL_IB_HCA", *INTERFACES)


_QUOTATION = "quotation marks"
_TOLD_APART = re.compile(r"\$\{?\w+\}?[\"']?\s+(?:==?|!=|-eq|-ne)\s+[\"']?([\w.-]+)")

_ASSERTED = re.compile(r"^\s*(?:assert\b|self\.assert\w+\().*?\b([A-Z]+_[A-Z0-9_]+)\b")


def values(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield values that are not taken as they are written, and those that need not be."""
    reported: set[tuple[str, str]] = set()
    told_apart = {word for line in subject.reading.lines for word in _TOLD_APART.findall(line)}
    asserted = {name for line in subject.reading.lines for name in _ASSERTED.findall(line)}
    for each in subject.reading.assignments:
        variable = known(each.name)
        # A test makes values up to see what a program makes of them.
        if subject.reading.language == "python" and each.name in asserted:
            continue
        # Lists of devices have rules of their own.
        if variable is None or each.unsets or each.form == "shell" or each.name in _LISTS:
            continue
        texts = (each.value,) if each.value is not None else each.alternatives
        version = subject.version if variable.owner == _NCCL else None
        by_limits = not (subject.is_for_rccl and variable.owner == _NCCL)
        for text in texts:
            # A script that says the same a thousand times is told once.
            is_known = subject.is_for_rccl and text.upper() in _WORDS_OF_RCCL.get(each.name, ())
            is_known |= subject.is_for_msccl and each.name == "NCCL_ALGO" and _names_msccl(text)
            # One of several values of a loop that the script itself treats otherwise: `[ "$ALGO" = DEFAULT ]`.
            is_known = is_known or (
                text in told_apart and f"{each.name}={text}" not in subject.reading.lines[each.line - 1]
            )
            if not is_known and (each.name, text) not in reported:
                found = _value(each, variable, text, version, is_asked=subject.context.nccl is not None)
                yield from (one for one in found if by_limits or one.code not in _OF_LIMITS)
            if text:
                reported.add((each.name, text))


def _names_msccl(text: str) -> bool:
    """Whether a list of algorithms has the one that only the fork microsoft/msccl knows."""
    return "msccl" in text.lower().removeprefix("^").split(",")


def _value(
    each: Assignment, variable: EnvVar, text: str, version: tuple[int, ...] | None, *, is_asked: bool
) -> Iterator[Finding]:
    if not text:
        yield from _empty(each, variable, version)
        return
    if variable.kind == "path" and is_unexpanded(text):
        return
    value_read = read_value(variable, text, version)
    if value_read.kind is not None:
        depends = not is_asked and version is not None and read_value(variable, text, _EARLIER) != value_read
        is_certain = each.value is not None and not depends and value_read.kind != "not known"
        yield _finding(each, variable, text, value_read, is_certain=is_certain)
    elif variable.owner == _NCCL and version is not None and _is_default(variable, text, value_read, version):
        yield report(
            "ENV035",
            at=place_of(each),
            evidence=setting_text(each),
            fix="leave it out",
            source=variable.source,
            name=each.name,
            written=shown(text),
        )


def _finding(each: Assignment, variable: EnvVar, text: str, value_read: ValueReading, *, is_certain: bool) -> Finding:
    return report(
        _CODES[value_read.kind or "odd"],
        at=place_of_value(each),
        evidence=setting_text(each),
        confidence="certain" if is_certain else "likely",
        effect=value_read.problem,
        fix=_with(each.name, value_read),
        source=variable.source,
        name=each.name,
        value=value_read.value if value_read.value is not None else "something else",
        written=shown(text),
    )


def _with(name: str, value_read: ValueReading) -> str | None:
    """Return the setting as it was meant: between quotes, but where quotes are what is wrong with it."""
    if value_read.instead is None:
        return None
    mark = "" if value_read.kind == "other value" and _QUOTATION in (value_read.problem or "") else '"'
    return f"{name}={mark}{value_read.instead}{mark}"


def _empty(each: Assignment, variable: EnvVar, version: tuple[int, ...] | None) -> Iterator[Finding]:
    if variable.owner != _NCCL:
        return
    value_read = read_value(variable, "", version)
    if value_read.kind in ("fails", "other value"):
        yield _finding(each, variable, "", value_read, is_certain=each.value is not None)
        return
    # An empty name of a plug-in is none, which may be what is wanted.
    if not each.computed and value_read.value != "none":
        yield report(
            "ENV036",
            at=place_of(each),
            evidence=f"{each.name} is empty",
            fix=f"unset {each.name}, or a value",
            name=each.name,
        )


def _is_default(variable: EnvVar, text: str, value_read: ValueReading, version: tuple[int, ...]) -> bool:
    default = default_in(variable, version)
    if default in _NO_VALUE or default is None:
        return False
    return text == default or (value_read.value is not None and read_value(variable, default, version) == value_read)


# Written by the job: they need not be there.
_WRITTEN = ("DUMP", "DEBUG_FILE", "LOG", "OUTPUT")


def files(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield paths that this host does not have."""
    absent = subject.context.absent
    if absent is None:
        return
    for each in subject.reading.assignments:
        if each.value is not None and each.value in absent and not _is_written(each.name):
            yield report(
                "ENV130",
                at=place_of_value(each),
                evidence=setting_text(each),
                effect="NCCL goes on without it",
                fix="correct the path, or leave the setting out",
                name=each.name,
                path=each.value,
            )


def _is_written(name: str) -> bool:
    """Whether the job itself makes what a variable names."""
    variable = known(name)
    return variable is None or any(word in name for word in _WRITTEN)


# Folders and files that machines have by these names; a file system tells capitals from small letters.
_FOLDERS = (
    "/opt/microsoft", "/opt/hpcx", "/opt/amazon", "/opt/cray", "/opt/intel", "/opt/nvidia", "/opt/mellanox",
    "/opt/rocm", "/opt/oci-hpc", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/local", "/usr/local/cuda", "/usr/share",
    "/etc/nccl.conf", "/etc/slurm", "/dev/null", "/dev/infiniband", "/proc/self", "/sys/class/infiniband",
    "/sys/class/net", "/bin/bash", "/bin/sh", "/var/run", "/dev/shm",  # noqa: S108 - nothing is written there
)  # fmt: skip
# A maker's own with other capitals: Intel's FPGA runtime, as oneAPI's setvars.sh names it.
_OF_MAKERS = ("/opt/Intel/OpenCLFPGA", "/opt/Intel/OpenCL")
_PATH = re.compile(r"(?<![\w/.:$}\])*?~-])/[A-Za-z][\w.-]*/[\w.-]+(?:/[\w.-]+)*", re.ASCII)
_REMARK = re.compile(r"(?:^|\s)#.*")
_MOST_PATHS = 20


def spelled_paths(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield paths that are well-known ones but for capitals and small letters."""
    count = 0
    for number, line in enumerate(subject.reading.lines, start=1):
        for found in _PATH.finditer(_REMARK.sub("", line[:_LONGEST])):
            meant = _meant_path(found.group())
            if meant is None or count >= _MOST_PATHS:
                continue
            count += 1
            yield report(
                "ENV131",
                at=FilePlace(file=subject.reading.file, line=number, column=found.start() + 1),
                evidence=shown(found.group()),
                confidence="likely",
                effect="capitals and small letters are different: nothing is found by this name",
                fix=meant,
                path=found.group(),
                meant=meant,
            )


def _meant_path(path: str) -> str | None:
    """Return a path as it is published, or with the well-known folder it begins with; None where it is right or new."""
    published = _published_paths().get(path.lower())
    if published is not None:
        return published if published != path else None
    if path.startswith(_OF_MAKERS):
        return None
    for folder in sorted(_FOLDERS, key=len, reverse=True):
        start = path[: len(folder)]
        if start.lower() == folder and start != folder and path[len(folder) : len(folder) + 1] in {"", "/"}:
            return folder + path[len(folder) :]
    return None


@cache
def _published_paths() -> dict[str, str]:
    """Return the paths that platforms' settings have, by their small letters; those of two spellings are left out."""
    values = {each.value for platform in all_platforms() for each in platform.settings if each.value is not None}
    paths = sorted(value for value in values if value.startswith("/") and value.count("/") > 1)
    often = Counter(path.lower() for path in paths)
    return {path.lower(): path for path in paths if often[path.lower()] == 1}


# What files are called that describe a family of machines: `ndv5-topo.xml`, `ndv5/topo.xml`.
_FAMILY = re.compile(r"([a-z0-9_.]+)[-_/](?:topo|topology)[^/]*\.xml", re.IGNORECASE | re.ASCII)
_LONGEST = 1_000


def topology_files(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield topology files whose name is that of another platform's."""
    platform = subject.context.platform
    if platform is None:
        return
    for each in subject.reading.assignments:
        if each.name != "NCCL_TOPO_FILE" or each.value is None or each.computed:
            continue
        family = _family(each.value)
        owners = _owners().get(family or "", frozenset())
        if owners and platform.id not in owners:
            yield report(
                "ENV085",
                at=place_of_value(each),
                evidence=setting_text(each),
                effect="NCCL takes its word for where GPUs, NICs and CPUs are",
                confidence="likely",
                fix=f"the file of {platform.id}, or none: busbw topo check FILE --platform {platform.id}",
                file=shown(each.value),
                other=", ".join(sorted(owners)),
                platform=platform.id,
            )


def _family(path: str) -> str | None:
    found = _FAMILY.search(path[-_LONGEST:])
    return found[1].lower() if found is not None else None


@cache
def _owners() -> dict[str, frozenset[str]]:
    """Return the platforms that each family of files is published for."""
    owners: dict[str, set[str]] = {}
    for platform in all_platforms():
        for setting in platform.settings:
            family = _family(setting.value) if setting.name == "NCCL_TOPO_FILE" and setting.value else None
            if family is not None:
                owners.setdefault(family, set()).add(platform.id)
    return {family: frozenset(ids) for family, ids in owners.items()}


# A plug-in of NCCL that is named or on the way to libraries: it may read names of its own.
_PLUGIN = re.compile(
    r"NCCL_(?:NET|TUNER|PROFILER|GIN|RMA|ENV)_PLUGIN[\s=:\"']+(?!none)[A-Za-z/]|nccl[\w-]{0,20}plugin|libnccl-(?:net|tuner)|tcpxo?/",
    re.ASCII,
)
# A variable that is used, as $NAME or ${NAME...}.
_USE = re.compile(r"\$\{?(?:\{\s*env\.)?([A-Za-z_]\w*)", re.ASCII)
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
            at=place_of(each),
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
            at=place_of(each),
            evidence=setting_text(each),
            confidence="possible",
            fix="leave it out, or look it up with the plug-in or RCCL",
            name=each.name,
        )
    elif read.verdict in ("misspelt", "unknown"):
        yield report(
            "ENV021",
            at=place_of(each),
            evidence=setting_text(each),
            effect=read.note or "the default stays in force",
            fix="leave it out",
            confidence="likely",
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
        at=place_of(each),
        evidence=setting_text(each),
        effect=mistake.note,
        fix=f"{mistake.intended[0]}={each.written}" if mistake.intended and mistake.intended[0] != each.name else None,
        source=mistake.source,
        name=each.name,
        reader=f"{', '.join(mistake.intended)} is read by a {by}" if mistake.intended else f"at most a {by} reads it",
    )


# Modules that bring an NCCL, by what sites call them: `ml NCCL/2.4.6`, `module load nccl/2.18.3-CUDA-12.1`.
_MODULE = re.compile(
    r"\s*(?:module\s+(?:-\S+\s+)*(?:load|add|swap|switch)|ml)\s[^#;&|]*?\bnccl/v?(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?)\b",
    re.ASCII | re.IGNORECASE,
)
_LONGEST_LINE = 1_000


def _loaded(lines: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return the version of the NCCL whose module is loaded; None where none is, or several.

    It only says which older names may be read: a framework that brings its own NCCL does not ask the module.
    """
    found = {match[1] for line in lines if (match := _MODULE.match(line[:_LONGEST_LINE])) is not None}
    return parse_version(found.pop()) if len(found) == 1 else None


def _by_version(subject: SettingsSubject, each: Assignment, variable: EnvVar) -> Iterator[Finding]:
    # Versions of RCCL are not those of NCCL.
    if variable.owner != _NCCL or (subject.is_for_rccl and subject.context.nccl is None):
        return
    state = known_in(variable, subject.version)
    meant = variable.replaced_by or variable.same_as
    if state == "removed" and subject.context.nccl is None:
        loaded = _loaded(subject.reading.lines)
        state = state if loaded is None else known_in(variable, loaded)
        if state == "not yet":
            return
    if state == "removed":
        mistake = misspellings().get(each.name)
        meant = meant or (mistake.intended[0] if mistake is not None and mistake.intended else None)
        yield report(
            "ENV022",
            at=place_of(each),
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
            at=place_of(each),
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
            at=place_of(each),
            evidence=f"{setting_text(each)}; deprecated since {variable.deprecated}",
            fix=f"{variable.replaced_by}={each.written}",
            source=variable.source,
            name=each.name,
            instead=variable.replaced_by,
        )


_LIBRARY = re.compile(r"(?:.*/)?lib[\w.-]*")
_ENDING = re.compile(r".*(?:\.so(?:\.\d+)*|\.dylib|\.dll|\.a)")


def libraries(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield plug-ins of NCCL that are named as a library and do not end as one."""
    for each in subject.reading.assignments:
        value = each.value or ""
        is_plugin = each.name.startswith("NCCL_") and each.name.endswith("_PLUGIN")
        is_file = "." in value and _LIBRARY.fullmatch(value) is not None
        if is_plugin and not each.computed and is_file and not _ENDING.fullmatch(value):
            yield report(
                "ENV038",
                at=place_of_value(each),
                evidence=setting_text(each),
                effect="NCCL looks for that very file, and goes on without the plug-in",
                fix=f"{each.name}={value.rpartition('.')[0]}.so",
                name=each.name,
                written=shown(value),
            )


_FABRICS = "I_MPI_FABRICS"
# Intel's article on the library over libfabric says it of dapl, tmi and ofa. Of tcp the library says so itself at its
# start, as Ramble-Project/ramble, #322, shows. Checked 2026-11-24.
_REMOVED = {"ofa", "dapl", "tmi", "tcp"}
_SINCE = re.compile(r"(?:impi|intel-?mpi|mpi/intel|oneapi)[-_/ ]*(?:2019|202\d)", re.IGNORECASE)


def fabrics(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield fabrics that Intel MPI has had no more since 2019, in a text that names such a version."""
    for each in subject.reading.assignments:
        removed = _REMOVED.intersection((each.value or "").split(":")) if each.name == _FABRICS else set[str]()
        if removed and any(_SINCE.search(line) for line in subject.reading.lines):
            yield report(
                "ENV031",
                at=place_of_value(each),
                evidence=setting_text(each),
                effect=f"Intel MPI has no fabric {min(removed)} since 2019, and says so at its start",
                fix=f"{_FABRICS}=shm:ofi",
                source="Intel, Intel MPI Library 2019 over libfabric; Developer Reference, I_MPI_FABRICS",
                name=_FABRICS,
                written=shown(each.value or ""),
            )
