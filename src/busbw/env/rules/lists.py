"""Lists of other readers than NCCL: what stands between their entries, and words a slip away from those they know."""

import re
from collections.abc import Iterator

from busbw.env.hca import INTERFACES
from busbw.env.misspelled import letters_off
from busbw.env.rules.subject import OF_BUILDING, SettingsSubject, known, place_of_value, report, setting_text
from busbw.facts.envvars import words_of_list
from busbw.facts.launchers import launcher_options
from busbw.model.envvar import EnvVar
from busbw.model.finding import Finding
from busbw.model.settings import Assignment

_NCCL = "NCCL"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_COMMA = ","
# What people write for the comma, between two entries.
_BETWEEN = re.compile(r"(?<=[\w\])])(?P<sign>[;|+]| +)(?=[\w/])", re.ASCII)
_COMMAS = re.compile(r"(?<=\w)(?P<sign>,)(?=\w)", re.ASCII)
_NAMES = {_COMMA: "commas", ":": "colons"}
_WORD = re.compile(r"[A-Za-z][\w-]*", re.ASCII)
_MCA = "OMPI_MCA_"
_LONG_WORD = 6
_LONGEST = 1_000


def lists(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield lists whose entries the wrong sign divides, and words in them that are near one that there is."""
    for each in subject.reading.assignments:
        variable = known(each.name)
        is_read = variable is not None and variable.owner != _NCCL and each.name not in INTERFACES
        if variable is None or not is_read or not each.value or each.form == "shell" or len(each.value) > _LONGEST:
            continue
        if variable.name == _VISIBLE:
            # CUDA's reader is known: what it makes of such a list is told as a value.
            continue
        words, what, shortest = _words(each.name)
        if variable.kind != "list" and not words:
            continue
        divided = _divided(each, variable, each.value)
        if divided is not None:
            yield divided
        elif words:
            yield from _unknown(each, variable, each.value, (words, what, shortest))


def _words(name: str) -> tuple[tuple[str, ...], str, int]:
    """Return the words that a list takes, what one is called, and the letters of the shortest that is looked at."""
    found = words_of_list(name)
    if found is not None:
        return tuple(found.words.split()), found.what, found.shortest
    option = (
        launcher_options()["mpirun"].values.get(f"mca {name.removeprefix(_MCA)}") if name.startswith(_MCA) else None
    )
    return (option.words, "component", 3) if option is not None else ((), "", 0)


def _divided(each: Assignment, variable: EnvVar, value: str) -> Finding | None:
    """Return that something else than the comma stands between entries; None where nothing does, or it may."""
    signs = variable.divider or _COMMA
    divider = _COMMA if _COMMA in signs else signs
    found = (_BETWEEN if divider == _COMMA else _COMMAS).search(value)
    if found is None or divider not in _NAMES or divider in value:
        return None
    if found["sign"] in signs or (each.computed and found["sign"].isspace()):
        return None
    if divider != _COMMA and variable.owner in OF_BUILDING:
        # A comma may be part of a path.
        return None
    return report(
        "ENV047",
        at=place_of_value(each),
        evidence=setting_text(each),
        effect=f"{variable.owner} takes the whole for one name, and has none that is called so",
        fix=f'{each.name}="{(_BETWEEN if divider == _COMMA else _COMMAS).sub(divider, value)}"',
        source=variable.source,
        name=each.name,
        problem=f"entries are separated by {_NAMES[divider]} alone: {value[:60]!r} is one name",
    )


def _unknown(
    each: Assignment, variable: EnvVar, value: str, of_list: tuple[tuple[str, ...], str, int]
) -> Iterator[Finding]:
    words, what, shortest = of_list
    # `--mca NAME VALUE` is held against the same words with the other options of its line.
    if each.form == "mca":
        return
    there_are = {word.lower().replace("-", "_") for word in words}
    for part in re.split("[,;]", value.lstrip("^")):
        written = re.split("[:=(]", part.strip().lstrip("\\"))[0]
        word = written.lower().replace("-", "_")
        if not _WORD.fullmatch(written) or len(word) < shortest or word in there_are:
            continue
        limit = 2 if len(word) >= _LONG_WORD else 1
        near = sorted((letters_off(word, one, limit), one) for one in there_are if len(one) >= shortest)
        if near and near[0][0] <= limit and not _differs_in_digits(word, near[0][1]):
            yield report(
                "ENV047",
                at=place_of_value(each, value.find(part)),
                evidence=setting_text(each),
                confidence="likely",
                effect=f"{variable.owner} ends with an error, or goes on with the other entries, if there are any",
                fix=near[0][1],
                source=variable.source,
                name=each.name,
                problem=f"{variable.owner} has no {what} {written}; maybe: {near[0][1]}",
            )


def _differs_in_digits(one: str, other: str) -> bool:
    """Whether two words are the same but for numbers in them: `psm2` and a `psm4` to come."""
    return re.sub(r"\d+", "", one) == re.sub(r"\d+", "", other)
