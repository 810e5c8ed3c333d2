"""The settings that are not the same in all runs of a report."""

from collections.abc import Sequence
from dataclasses import dataclass

from busbw.show.page.subject import Subject

_MOST_NAMED = 4
_UNSET = "not set"


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingDifference:
    """One variable, and each of its values, quoted, with the runs that had it."""

    name: str
    values: tuple[tuple[str, str], ...]


def setting_differences(subjects: Sequence[Subject]) -> tuple[SettingDifference, ...]:
    """Return the variables whose value in force differs, by name; runs that stored no settings are left out."""
    known = [(each.label, each.settings.env()) for each in subjects if each.settings is not None]
    names = sorted({name for _, values in known for name in values})
    found: list[SettingDifference] = []
    for name in names:
        runs: dict[str, list[str]] = {}
        for label, values in known:
            runs.setdefault(f'"{values[name]}"' if name in values else _UNSET, []).append(label)
        if len(runs) > 1:
            found.append(
                SettingDifference(name=name, values=tuple((value, _named(labels)) for value, labels in runs.items()))
            )
    return tuple(found)


def _named(labels: Sequence[str]) -> str:
    more = len(labels) - _MOST_NAMED
    return ", ".join(labels[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
