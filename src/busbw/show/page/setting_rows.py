"""Settings as rows of a table: what is in force, who set it, and what that replaced."""

from dataclasses import dataclass

from busbw.model.settings import Setting, Settings

LAYER_WORDS = {
    "default": "the library's default",
    "platform": "the platform",
    "topology": "the topology",
    "site": "the site",
    "etc_conf": "/etc/nccl.conf",
    "conf": "the user's NCCL settings file",
    "tuned": "a tuned set",
    "shell": "the environment of whoever started it",
    "command_line": "busbw run",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingRow:
    """One variable: its value in force, quoted, who set it, and every choice that lost."""

    name: str
    value: str
    who: str
    source: str
    replaced: str


def setting_rows(settings: Settings | None) -> tuple[SettingRow, ...]:
    """Return a row for each variable that is set or kept unset, by name."""
    if settings is None:
        return ()
    names = sorted(choice.name for choice in settings.in_force())
    return tuple(_row(settings.explain(name)) for name in names)


def _row(choices: tuple[Setting, ...]) -> SettingRow:
    first, *lost = choices
    return SettingRow(
        name=first.name,
        value=_quoted(first.value),
        who=LAYER_WORDS[first.layer],
        source=first.source,
        replaced="; ".join(f"{_quoted(each.value)} of {LAYER_WORDS[each.layer]} ({each.source})" for each in lost),
    )


def _quoted(value: str | None) -> str:
    return "unset" if value is None else f'"{value}"'
