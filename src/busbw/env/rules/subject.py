"""What the rules look at: a reading, what it is checked against, and how to say where something stands."""

import re
from dataclasses import dataclass

from msgspec import structs

from busbw.env.rules.situations import Situation, batch_system, job_options, nodes_of, situations
from busbw.env.versions import newest, spelled
from busbw.facts.envvars import variables
from busbw.facts.rules import finding
from busbw.model.envvar import EnvVar
from busbw.model.finding import Confidence, FilePlace, Finding
from busbw.model.platform import Platform
from busbw.model.settings import Assignment, LaunchCommand, SettingsReading, Slip, UnreadPart


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckContext:
    """What is known beside the text itself."""

    platform: Platform | None = None
    # The version of NCCL that was asked about, as `env.versions` reads it; None: the newest known is meant.
    nccl: tuple[int, ...] | None = None
    # Nodes of the job; None: not said.
    nodes: int | None = None
    # Of this host: files that settings name and that it does not have. None: it was not looked at.
    absent: frozenset[str] | None = None


# Stands in a slip for what only running it would tell.
UNKNOWN = "\ufffe"
_QUOTES = ('"', "'")
_BEFORE_NAMES = ("export ", "set ", "setenv ")


def as_meant(reading: SettingsReading) -> SettingsReading:
    """Return a reading without what is told by itself: blanks, quotes, remarks of an nccl.conf, blanks behind `=`."""
    meant = {(slip.line, slip.name): slip.meant for slip in reading.slips if _is_told(slip)}
    if not meant and not any(each.form == "nccl_conf" for each in reading.assignments):
        return reading
    return structs.replace(reading, assignments=tuple(_meant(each, meant) for each in reading.assignments))


def _is_told(slip: Slip) -> bool:
    is_known = slip.meant is not None and not any(sign in slip.meant for sign in (UNKNOWN, "$", "`"))
    return slip.kind == "space_after_equals" and is_known


def _meant(each: Assignment, meant: dict[tuple[int, str | None], str | None]) -> Assignment:
    if each.form == "nccl_conf" and each.value is not None:
        return structs.replace(each, name=plain_name(each.name), value=plain_value(each.value))
    if not each.value and not each.alternatives and (value := meant.get((each.line, each.name))) is not None:
        return structs.replace(each, value=value, written=value)
    return each


def plain_name(name: str) -> str:
    """Return the name that was probably meant, without blanks and `export`."""
    stripped = name.strip()
    for word in _BEFORE_NAMES:
        stripped = stripped.removeprefix(word).strip()
    return stripped


def plain_value(value: str) -> str:
    """Return the value that was probably meant, without blanks, quotes and remarks."""
    stripped = value.strip()
    if len(stripped) > 1 and stripped[0] in _QUOTES and stripped.find(stripped[0], 1) > 0:
        return stripped[1 : stripped.find(stripped[0], 1)]
    return stripped.split(" #", 1)[0].split("\t#", 1)[0].strip()


def is_unexpanded(path: str) -> bool:
    """Whether a path begins with a tilde that a shell would have replaced."""
    return path == "~" or path.startswith("~/")


Written = Assignment | LaunchCommand | Slip | UnreadPart
_LONGEST_SHOWN = 60
_OF_AMD = ("RCCL_", "HSA_", "HIP_", "ROCR_", "ROCM_", "PYTORCH_ROCM_")
_ROCM = re.compile(r"(?<![A-Za-z])(?:rocm|rccl)(?![a-z])", re.IGNORECASE | re.ASCII)
# Owners of variables that are for building programs and starting them, and not for ranks.
OF_BUILDING = {"build scripts", "loader", "shell"}


# What the fork microsoft/msccl alone reads, and the first series of NCCL after the one that it is made from (2.12.12).
OF_MSCCL = ("MSCCL_XML_FILES", "MSCCL_CONFIG")
AFTER_MSCCL = (2, 13)


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingsSubject:
    """A reading, ready to be checked."""

    # As it is meant, and as it is written: they differ in lines of an nccl.conf.
    reading: SettingsReading
    written: SettingsReading
    context: CheckContext
    # The version of NCCL that is meant.
    version: tuple[int, ...]
    situations: tuple[Situation, ...]
    # Whether it is for the fork microsoft/msccl, which takes words that NCCL does not.
    is_for_msccl: bool
    # Whether it is for AMD's GPUs, where RCCL reads the variables of NCCL, with limits and versions of its own.
    is_for_rccl: bool
    # Of the job; None: not said.
    nodes: int | None
    # What its directives ask Slurm for, by option.
    job_options: dict[str, str]
    # The word its directives begin with; None: it has none.
    batch_system: str | None

    @property
    def version_text(self) -> str:
        """The version as it is written."""
        return spelled(self.version)


def subject_of(reading: SettingsReading, context: CheckContext) -> SettingsSubject:
    """Return a reading ready to be checked."""
    version = context.nccl if context.nccl is not None else newest()
    meant = as_meant(reading)
    return SettingsSubject(
        reading=meant,
        written=reading,
        context=context,
        version=version,
        situations=tuple(situations(meant)),
        is_for_msccl=_is_for_msccl(meant, context),
        is_for_rccl=_is_for_rccl(reading),
        nodes=context.nodes if context.nodes is not None else nodes_of(reading),
        job_options=job_options(reading),
        batch_system=batch_system(reading),
    )


def _is_for_msccl(reading: SettingsReading, context: CheckContext) -> bool:
    """Whether a text sets what only the fork reads, and does not say that it is for a later NCCL."""
    is_later = context.nccl is not None and context.nccl >= AFTER_MSCCL
    return not is_later and any(each.name in OF_MSCCL and not each.unsets for each in reading.assignments)


def _is_for_rccl(reading: SettingsReading) -> bool:
    """Whether a text names what only AMD's GPUs have."""
    return any(each.name.startswith(_OF_AMD) for each in reading.assignments) or any(
        _ROCM.search(line) is not None for line in reading.lines
    )


def known(name: str) -> EnvVar | None:
    """Return the variable of this name, None where nothing is known to read it."""
    return variables().get(name)


def place_of(each: Written) -> FilePlace:
    """Return where a name, a command or a slip begins."""
    return FilePlace(file=each.file, line=each.line, column=each.column)


def place_of_value(each: Assignment, offset: int = 0) -> FilePlace:
    """Return where the value of an assignment begins, or the part of it `offset` characters on.

    A quote before the value is counted in. A value that is written otherwise than it reads is pointed at as a whole,
    and one of a manifest, which stands in another line than its name, by its name.
    """
    if each.form == "manifest" or each.value_line is not None:
        return place_of(each)
    column = each.value_column if each.value_column is not None else each.column
    if offset and each.value is not None:
        if each.written[:1] in ("'", '"') and each.written[1:-1] == each.value:
            offset += 1
        elif each.written != each.value:
            offset = 0
    return FilePlace(file=each.file, line=each.line, column=column + offset)


def shown(text: str) -> str:
    """Return a value as it is quoted in a finding, cut where it is very long."""
    return f'"{text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."}"'


def setting_text(each: Assignment) -> str:
    """Return an assignment as evidence, with a quoted value: it may begin with an equals sign."""
    value = each.value
    if value is None and each.alternatives:
        return f"{each.name} = {' or '.join(map(shown, each.alternatives))}"
    if value is None:
        quoted = each.written[:1] in ("'", '"') and each.written[:1] == each.written[-1:]
        value = each.written[1:-1] if quoted else each.written
    return f"{each.name} = {shown(value)}"


def report(
    code: str,
    *,
    at: FilePlace,
    evidence: str,
    confidence: Confidence = "certain",
    effect: str | None = None,
    fix: str | None = None,
    source: str | None = None,
    **names: str,
) -> Finding:
    """Return a finding of the rule `code`; `source` is given where it is known more exactly than by the rule."""
    found = finding(
        code,
        evidence=evidence,
        fix=fix,
        point=None,
        place=at,
        look=None,
        confidence=confidence,
        effect=effect,
        causes=(),
        **names,
    )
    return found if source is None else structs.replace(found, source=source)
