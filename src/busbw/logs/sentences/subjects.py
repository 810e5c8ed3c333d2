"""What a sentence of a program is about (a library, file, device, option, address), told by the form of its name."""

import re
from typing import NamedTuple

from busbw.facts.failure_words import Predicate, SubjectKind


def _form(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.ASCII)


# A group `s` is the subject, where the form holds more than that.
_FORMS: dict[SubjectKind, re.Pattern[str]] = {
    "library": _form(r"(?<![\w.-])[\w+-]{1,60}\.so(?:\.\d{1,4}){0,4}\b"),
    "symbol": _form(
        r"(?<=symbol)[:,]? [`'\"]?(?P<s>[A-Za-z_]\w{1,199})",
        r"(?P<s1>\b[A-Z][A-Z0-9]{1,11}_\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)\b",
    ),
    "version": _form(r"(?<![\w.])v?\d{1,4}\.\d{1,4}(?:\.\d{1,6})?(?:[a-z]\w{0,8})?(?![\w.]*\d)"),
    "option": _form(r"(?<![\w/.-])--?[A-Za-z][\w-]{0,60}(?:=[^\s,;'\"]{1,80})?"),
    "variable": _form(r"\b[A-Z][A-Z0-9]{1,30}_[A-Z0-9_]{1,60}\b(?: ?= ?[^\s,;]{1,80})?"),
    "device": _form(
        r"/dev/[\w/-]{1,60}",
        r"\b(?:mlx[45]_\w{1,12}|hfi1_\d{1,2}|cxi\d{1,2}|bnxt_re\d{1,2}|rdmap\w{1,12}|qib\d|irdma\d{1,2})\b(?::\d)?",
        r"\bnvidia\d{1,2}\b|\bGPU[ -]?(?:#|index )?\d{1,3}\b",
        r"\b(?:[0-9a-f]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d\b",
    ),
    "interface": _form(r"\b(?:eth|ib|ens|eno|enp|bond|hsn|em|wlan|docker|virbr)\d\w{0,12}\b"),
    "file": _form(
        r"(?<![\w.])~?/(?:[\w.+@%,=~-]{1,80}/){0,12}[\w+@%=~-](?:[\w.+@%=~-]{0,118}[\w+@%=~-])?",
        r"(?<![\w/.-])[\w.-]{1,60}\.(?:conf|ya?ml|json|toml|xml|txt|sif|sqsh|cfg|ini|sh|lua|ko)\b",
    ),
    "address": _form(
        r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b", r"\b[A-Za-z][\w.-]{1,100}:\d{2,5}\b", r"\bport:? \d{2,5}\b"
    ),
    "host": _form(
        r"(?i:\b(?:host|node|hostname|server|nodename)s?:? [\"'`]?)(?P<s>[A-Za-z][\w.-]{0,99}\d[\w.-]{0,40})"
    ),
    "user": _form(r"(?i:\b(?:user|account|group|uid)s?:? [\"'`]?)(?P<s>[A-Za-z0-9][\w.-]{0,60})"),
    "package": _form(r"(?i:module named) ['\"]?(?P<s>[\w.]{1,80})", r"(?i:package) ['\"]?(?P<s1>[\w.-]{1,80})"),
    "command": _form(
        r"(?P<s>[\w./+-]{1,100}): (?:command )?not found",
        r"exec: \"(?P<s1>[^\"]{1,100})\"",
        r"(?P<s2>[\w./+-]{1,100}): (?=No such file|cannot execute|Exec format|Permission)",
    ),
    "part": _form(
        r"(?:\b(?=[\w.+-]{0,30}[A-Z\d])[\w.+-]{2,30} )?(?<![/.])\b"
        r"(?:[Dd]river|[Ff]irmware|[Kk]ernel|[Rr]untime|[Ll]ibrary|[Mm]odule|[Pp]lug-?in|[Tt]oolkit|[Dd]aemon|[Ss]ervice|"
        r"[Pp]rovider|[Pp]artition|[Ll]icen[sc]e|CUDA|ROCm|MPI|PMIx|UCX|OFED|libfabric|[Ss]lurm|NCCL)\b"
    ),
    "quoted": _form(
        r"[\"'`\u2018\u201c](?P<s>(?=[^\"']{0,119}[A-Za-z])[^\"'`\u2018\u2019\u201c\u201d]{1,120})[\"'`\u2019\u201d]"
    ),
    "amount": _form(
        r"\b\d[\d.,]{0,15} ?(?:[KMGT]i?B|bytes|kB|slots?|cores?|[cC][pP][uU]s?|[gG][pP][uU]s?|nodes?|ranks?)\b"
    ),
    "name": _form(r"(?<![\w/@=-])[A-Za-z0-9][\w./@+-]{1,80}(?!=)"),
}
# A name stands so close to what is said of it; of words like others these look like one.
_NAME_WITHIN = 60
_NAME_LIKE = re.compile(r"^(?=.*[A-Za-z])(?:.*[\d_/@+.-]|.+[A-Z]|[A-Z]{2})", re.ASCII)
_SOURCE = re.compile(r"\.(?:c|cc|cpp|cu|h|hpp|py|go|rs|f90)$")


class Subject(NamedTuple):
    """What words are about. `start`, `end`: where it stands in the sentence."""

    kind: SubjectKind
    name: str
    start: int
    end: int


def subject_of(text: str, said: re.Match[str], predicate: Predicate) -> Subject | None:
    """Return what the words of a predicate are about; None: nothing that is known by its form.

    A setting with its value comes first, then the likeliest kind that stands in the text; of one kind the nearest.
    """
    if "variable" in predicate.subjects:
        given = [match for match in _FORMS["variable"].finditer(text) if "=" in match[0]]
        if given:
            return _nearest("variable", given, said)
    for kind in predicate.subjects:
        found = list(_FORMS[kind].finditer(text))
        if kind == "name":
            found = [match for match in found if _is_name(text, match, said)]
        if found:
            return _nearest(kind, found, said)
    return None


def _nearest(kind: SubjectKind, found: list[re.Match[str]], said: re.Match[str]) -> Subject:
    nearest = min(found, key=lambda match: _distance(match, said))
    name = next((part for part in nearest.groups() if part), nearest[0]).strip().rstrip(".:")
    return Subject(kind, name, nearest.start(), nearest.end())


def _distance(subject: re.Match[str], said: re.Match[str]) -> int:
    return max(said.start() - subject.end(), subject.start() - said.end(), 0)


def _is_name(text: str, match: re.Match[str], said: re.Match[str]) -> bool:
    is_apart = match.end() <= said.start() or match.start() >= said.end()
    # Who speaks is no name of what it speaks of.
    is_speaker = match.start() == 0 or text[match.end() :][:2] == ": "
    return (
        is_apart
        and not is_speaker
        and _distance(match, said) <= _NAME_WITHIN
        and _NAME_LIKE.search(match[0].rstrip(".:")) is not None
        and _SOURCE.search(match[0]) is None
    )
