"""The text format of Prometheus: gauges, as node_exporter reads them from a file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from busbw.show.exports.plain import shown

Labels = tuple[tuple[str, str], ...]
Sample = tuple[Labels, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """One quantity: its name, what it is, and its samples."""

    name: str
    help: str
    samples: tuple[Sample, ...]


def families_text(families: Iterable[Family]) -> str:
    """Return the families that have samples; label values are escaped."""
    return "".join(_text(family) for family in families if family.samples)


def _text(family: Family) -> str:
    lines = [f"# HELP {family.name} {_help(family.help)}", f"# TYPE {family.name} gauge"]
    lines += [f"{family.name}{_labels(labels)} {value!r}" for labels, value in family.samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Sequence[tuple[str, str]]) -> str:
    """Return labels in braces; an empty one is left out: to Prometheus it is the same as none."""
    shown_labels = ",".join(f'{name}="{_value(value)}"' for name, value in labels if value)
    return f"{{{shown_labels}}}" if shown_labels else ""


def _value(text: str) -> str:
    """Return a label's value: backslash, quote and line end escaped, other control characters shown."""
    lines = (shown(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n"))
    return "\\n".join(lines)


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
