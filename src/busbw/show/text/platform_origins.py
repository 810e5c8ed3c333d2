"""Each value of a platform with the file and the sources it comes from."""

import msgspec
from rich.text import Text

from busbw.facts.platform_facts import KNOWN_BY
from busbw.model.platform import Platform, ResolvedPlatform, Section
from busbw.show.plain import printable
from busbw.show.text.terminal import console

_LONGEST = 60
_SHIPPED = "busbw/data/platforms/"
# Text that says what an entry of a list is about; where it is not among these, the first text does.
_TELLING = ("topic", "method", "image", "check", "test")


def origins_text(resolved: ResolvedPlatform) -> None:
    """Print one line a value: what it is, its file, its sources, and when they were looked at."""
    values, out = _values(resolved.platform), console()
    for origin in resolved.origins:
        cited = f" [{', '.join(origin.source)}]" if origin.source else ""
        checked = f" {origin.checked}" if origin.checked is not None else ""
        line = Text(_on_one_line(f"{origin.path} = {values.get(origin.path, '')}"))
        line.append(_on_one_line(f"  <- {origin.file.removeprefix(_SHIPPED)}{cited}{checked}"), style="dim")
        # Whole lines, so that they can be searched.
        out.print(line, soft_wrap=True)


def _on_one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n")


def _values(platform: Platform) -> dict[str, str]:
    """Return every value by its path, as Origin has it."""
    values: dict[str, str] = {}
    for name in Platform.__struct_fields__:
        held = getattr(platform, name)
        if isinstance(held, Section):
            values |= _of_section(name, held)
        elif isinstance(held, tuple):
            for place, entry in enumerate(held):
                if isinstance(entry, Section) and name in KNOWN_BY:
                    values |= _of_section(f"{name}[{_label(name, entry)}]", entry)
                else:
                    values[f"{name}[{place}]"] = _short(_about(entry) if isinstance(entry, Section) else entry)
        else:
            values[name] = _short(held)
    return values


def _of_section(path: str, section: Section) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value in msgspec.structs.asdict(section).items():
        if isinstance(value, dict):
            values |= {f"{path}.{name}.{key}": _short(inner) for key, inner in value.items()}
        else:
            values[f"{path}.{name}"] = _short(value)
    return values


def _label(array: str, entry: Section) -> str:
    for fields in KNOWN_BY[array]:
        values = [getattr(entry, field) for field in fields]
        if values[0] is not None:
            return ", ".join(str(value) for value in values if value is not None)
    return "?"


def _about(entry: Section) -> str:
    return next((str(getattr(entry, name)) for name in _TELLING if hasattr(entry, name)), "")


def _short(value: object) -> str:
    if isinstance(value, tuple):
        value = ", ".join(str(each) for each in value)
    text = "unset" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
