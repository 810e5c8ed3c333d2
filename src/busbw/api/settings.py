"""Settings of a script, a file or an environment: what is wrong with them, what to change, and what a variable does."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from busbw.env.layers import explain
from busbw.env.lint import corrected, difference, lint, lint_layers
from busbw.env.reading import LARGEST_BYTES, from_environment, text_of
from busbw.env.reading import read as read_settings
from busbw.env.rules.subject import CheckContext
from busbw.env.versions import beyond, newest, parse_version, spelled
from busbw.facts.platforms import all_platforms, find_platform
from busbw.machine.capture.sites import site_files
from busbw.model.envvar import Explanation
from busbw.model.finding import Checked, CheckedSettings, Finding, HeldAgainst, SettingsFix, counts_of, quoted_lines
from busbw.model.platform import Platform
from busbw.model.settings import JobEnvironment, SettingsReading, masked
from busbw.store.files import STANDARD_INPUT, read_bounded

_CONF = "nccl.conf"


def lint_file(
    file: str, *, language: str | None = None, platform: str | None = None, nccl: str | None = None
) -> Checked:
    """Return what is wrong with the settings in a file, or in standard input where it is named `-`.

    `language`: as `Reading.language`; None: what it looks like. Raises InputError for what cannot be read, and for an
    unknown platform or version.
    """
    context = _context(platform, nccl)
    _text, reading = _read(file, language)
    return _checked((reading,), lint(reading, context), context)


def fixed_file(
    file: str, *, language: str | None = None, platform: str | None = None, nccl: str | None = None
) -> SettingsFix:
    """Return what to change in a file: certain corrections only. Secrets on the lines around them are masked.

    Raises InputError as `lint_file` does.
    """
    context = _context(platform, nccl)
    text, reading = _read(file, language)

    def check(tried: str) -> tuple[Finding, ...]:
        return lint(read_settings(tried, reading.file, reading.language), context)

    version = context.nccl if context.nccl is not None else newest()
    after = corrected(text, reading, version, check)
    diff = "".join(map(masked, difference(text, after, reading.file).splitlines(keepends=True)))
    findings = _by_line(check(text))
    return SettingsFix(
        file=file, diff=diff, findings=findings.total(), left=(findings & _by_line(check(after))).total()
    )


def _by_line(found: tuple[Finding, ...]) -> Counter[tuple[str, str, int]]:
    return Counter((each.code, each.place.file, each.place.line) for each in found if each.place is not None)


def lint_environment(found: JobEnvironment, *, platform: str | None = None, nccl: str | None = None) -> Checked:
    """Return what is wrong with an environment and its settings files, those of this host or of a run.

    Raises InputError for an unknown platform or version.
    """
    context = _context(platform or found.platform, nccl or found.nccl, absent=found.absent)
    readings = [from_environment(found.environment)]
    readings += [read_settings(file.text, file.path, _CONF) for file in found.files]
    checked = _checked(tuple(readings), lint_layers(tuple(readings), context), context)
    return structs.replace(checked, hints=(*checked.hints, *(f"not seen: {each}" for each in found.unseen)))


def _context(platform: str | None, nccl: str | None, *, absent: tuple[str, ...] | None = None) -> CheckContext:
    return CheckContext(
        platform=find_platform(platform, site_files()).platform if platform is not None else None,
        nccl=parse_version(nccl) if nccl is not None else None,
        absent=frozenset(absent) if absent is not None else None,
    )


def _read(file: str, language: str | None) -> tuple[str, SettingsReading]:
    name = "stdin" if file == STANDARD_INPUT else file
    raw = read_bounded(Path(file), most_bytes=LARGEST_BYTES, kind="script")
    # Bytes that are not text are shown as such from here on.
    text = text_of(raw).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text, read_settings(text, name, language)


def _checked(readings: tuple[SettingsReading, ...], findings: tuple[Finding, ...], context: CheckContext) -> Checked:
    version = context.nccl if context.nccl is not None else newest()
    newer = beyond(version)
    findings = tuple(map(_without_secrets, findings))
    count = sum(reading.count for reading in readings)
    unheld = context.platform is None and count > 0
    hint = "--platform ID also holds them against a machine: busbw platform list"
    texts = {reading.file: reading.lines for reading in readings}
    return Checked(
        files=tuple(reading.file for reading in readings),
        held_against=HeldAgainst(name=context.platform.id, kind="platform") if context.platform is not None else None,
        settings=CheckedSettings(
            count=count,
            languages=tuple(reading.language for reading in readings),
            nccl=spelled(version),
            nccl_asked=context.nccl is not None,
        ),
        findings=findings,
        counts=counts_of(findings),
        lines=quoted_lines(findings, texts),
        hints=tuple(each for each in (newer, hint if unheld else None) if each is not None),
    )


def _without_secrets(found: Finding) -> Finding:
    texts = {name: getattr(found, name) for name in ("title", "evidence", "effect", "fix")}
    return structs.replace(found, **{name: masked(text) for name, text in texts.items() if text is not None})


def explained(name: str, *, nccl: str | None = None, surroundings: JobEnvironment | None = None) -> Explanation:
    """Return what is known of a variable, and its value in force in the surroundings that are given.

    Raises InputError for a version that is none.
    """
    version = parse_version(nccl) if nccl is not None else None
    return explain(name, nccl=version, platforms=_platforms(), surroundings=surroundings)


def _platforms() -> Iterator[Platform]:
    return iter(all_platforms(site_files()))
