"""Readings in words, so that a test shows what is expected at a glance."""

from busbw.env.reading import read
from busbw.model.settings import Assignment, SettingsReading


def said(each: Assignment) -> str:
    """Say one assignment: its form, the launch that sees it, name and value."""
    if each.unsets:
        value = " unset"
    elif each.alternatives:
        value = "=" + "|".join(each.alternatives)
    else:
        value = " ?" if each.value is None else f"={each.value}"
    launch = "" if each.launch is None else f"@{each.launch}"
    target = "" if each.target is None else f" -> {each.target}"
    return f"{each.form}{launch} {each.name}{value}{target}"


def told(reading: SettingsReading) -> list[str]:
    return [said(each) for each in reading.assignments]


def of(text: str, language: str | None = "shell", file: str = "script") -> list[str]:
    """Return what a text sets, in words."""
    return told(read(text, file, language))


def slips_of(text: str, language: str | None = "shell") -> list[str]:
    """Return the slips in a text: kind, line and column, and the variable."""
    found = read(text, "script", language).slips
    return [f"{slip.kind} {slip.line}:{slip.column} {slip.name or slip.written}" for slip in found]


def launches_of(text: str, language: str | None = "shell") -> list[str]:
    """Return the launches of a text: kind, family, what they pass on by name and whether they pass on all."""
    found = read(text, "script", language).launches
    return [f"{each.kind} {each.family} [{','.join(each.forwards)}] {each.forwards_all}" for each in found]
