"""Checking settings: of a file, of this host, of a run."""

from collections import Counter
from pathlib import Path

from msgspec import structs

from busbw.api.settings import surroundings_here, surroundings_of_run
from busbw.env.fixes import corrected, difference
from busbw.env.lint import lint, lint_layers
from busbw.env.reading import LARGEST_BYTES, from_environment, read, text_of
from busbw.env.rules.context import Context
from busbw.env.versions import beyond, newest, parse_version, spelled
from busbw.facts.platforms import find_platform
from busbw.machine.capture.sites import site_files
from busbw.model.assignment import Reading
from busbw.model.finding import Finding
from busbw.model.settings import Surroundings
from busbw.model.settings_check import SettingsCheck, SettingsFix, SettingsLine
from busbw.store.bounded import STANDARD_INPUT, read_bounded

# A line is shown in part, with the place of the finding in it.
_LONGEST_LINE = 2_000
_CONF = "nccl.conf"


def lint_file(
    file: str, *, language: str | None = None, platform: str | None = None, nccl: str | None = None
) -> SettingsCheck:
    """Return what is wrong with the settings in a file, or in standard input where it is named `-`.

    `language`: as `Reading.language`; None: what it looks like. Raises InputError for what cannot be read, and for a
    platform or version that there is not.
    """
    context = _context(platform, nccl)
    _text, reading = _read(file, language)
    return _checked((reading,), lint(reading, context), context)


def fixed_file(
    file: str, *, language: str | None = None, platform: str | None = None, nccl: str | None = None
) -> SettingsFix:
    """Return what to change in a file: certain corrections only.

    Raises InputError as `lint_file` does.
    """
    context = _context(platform, nccl)
    text, reading = _read(file, language)

    def check(tried: str) -> tuple[Finding, ...]:
        return lint(read(tried, reading.file, reading.language), context)

    version = context.nccl if context.nccl is not None else newest()
    after = corrected(text, reading, version, check)
    diff = difference(text, after, reading.file)
    findings = _by_line(check(text))
    return SettingsFix(
        file=file, diff=diff, findings=findings.total(), left=(findings & _by_line(check(after))).total()
    )


def _by_line(found: tuple[Finding, ...]) -> Counter[tuple[str, str]]:
    return Counter((each.code, (each.where or "").rpartition(":")[0]) for each in found)


def lint_here(*, platform: str | None = None, nccl: str | None = None) -> SettingsCheck:
    """Return what is wrong with the environment of this process and the settings files of this host."""
    return _surroundings(surroundings_here(), platform, nccl)


def lint_run(name: str, *, platform: str | None = None, nccl: str | None = None) -> SettingsCheck:
    """Return what is wrong with the settings that the ranks of a run had. Raises InputError where there is none."""
    return _surroundings(surroundings_of_run(name), platform, nccl)


def _surroundings(found: Surroundings, platform: str | None, nccl: str | None) -> SettingsCheck:
    context = _context(platform or found.platform, nccl or found.nccl, absent=found.absent)
    readings = [from_environment(found.environment)]
    readings += [read(file.text, file.path, _CONF) for file in found.files]
    checked = _checked(tuple(readings), lint_layers(tuple(readings), context), context)
    return structs.replace(checked, hints=(*checked.hints, *(f"not seen: {each}" for each in found.unseen)))


def _context(platform: str | None, nccl: str | None, *, absent: tuple[str, ...] | None = None) -> Context:
    return Context(
        platform=find_platform(platform, site_files()).platform if platform is not None else None,
        nccl=parse_version(nccl) if nccl is not None else None,
        absent=frozenset(absent) if absent is not None else None,
    )


def _read(file: str, language: str | None) -> tuple[str, Reading]:
    name = "stdin" if file == STANDARD_INPUT else file
    raw = read_bounded(Path(file), most_bytes=LARGEST_BYTES, kind="script")
    # Bytes that are no text are shown as such from here on.
    text = text_of(raw).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text, read(text, name, language)


def _checked(readings: tuple[Reading, ...], findings: tuple[Finding, ...], context: Context) -> SettingsCheck:
    counts = Counter(each.severity for each in findings)
    version = context.nccl if context.nccl is not None else newest()
    newer = beyond(version)
    settings = sum(reading.count for reading in readings)
    unheld = context.platform is None and settings > 0
    hint = "--platform ID also holds them against a machine: busbw platform list"
    return SettingsCheck(
        files=tuple(reading.file for reading in readings),
        languages=tuple(reading.language for reading in readings),
        platform=context.platform.id if context.platform is not None else None,
        nccl=spelled(version),
        nccl_asked=context.nccl is not None,
        settings=settings,
        findings=findings,
        errors=counts["error"],
        warnings=counts["warn"],
        notes=counts["note"],
        lines=_lines(readings, findings),
        hints=tuple(each for each in (newer, hint if unheld else None) if each is not None),
    )


def _lines(readings: tuple[Reading, ...], findings: tuple[Finding, ...]) -> tuple[SettingsLine, ...]:
    """Return the lines that findings are about, each once, in their order."""
    texts = {reading.file: reading.lines for reading in readings}
    places = dict.fromkeys(_place(each) for each in findings)
    return tuple(
        SettingsLine(file=file, number=number, text=texts[file][number - 1].rstrip("\r")[:_LONGEST_LINE])
        for file, number in places
        if 0 < number <= len(texts.get(file, ()))
    )


def _place(found: Finding) -> tuple[str, int]:
    file, line, _column = (found.where or ":0:0").rsplit(":", 2)
    return file, int(line)
