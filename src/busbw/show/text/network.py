"""What the network can do for a job, as text for a terminal."""

import textwrap
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from busbw.base.text import printable
from busbw.model.finding import NetworkFeature, Told
from busbw.show.text.terminal import console

_WIDTH = 79
_WORDS = {"yes": "yes", "no": "no", "cannot_tell": "cannot tell"}
_LABELS = ("can", "on", "used")


def network_table(features: tuple[NetworkFeature, ...]) -> None:
    """Print the three answers about each feature, one line each."""
    if not features:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for column in ("network", *_LABELS):
        table.add_column(column, overflow="fold")
    for feature in features:
        table.add_row(
            *(Text(printable(word)) for word in (feature.name, *(_WORDS[each.answer] for each in _told(feature))))
        )
    out = console()
    out.print()
    out.print(table)


def network_text(features: tuple[NetworkFeature, ...]) -> None:
    """Print the answers about each feature with what they rest on, what measures its worth, and whom to ask."""
    if not features:
        return
    out = console()
    out.print()
    out.print(Text("network: what it can do, what is switched on, what a job from here would use", style="bold"))
    absent = [feature for feature in features if _is_absent(feature)]
    for feature in features:
        if feature in absent:
            continue
        _wrapped(out, f"{feature.name}: {feature.means}", indent=2)
        for label, told in _answers(feature):
            _wrapped(out, f"{label}: {_WORDS[told.answer]}: {told.because}")
        for command in feature.compare:
            # Not wrapped: it is to be copied.
            out.print(Text(printable(f"    worth: {command}")), soft_wrap=True)
        if feature.ask is not None:
            _wrapped(out, f"ask the fabric's administrator: {feature.ask}")
    for because, group in groupby(sorted(absent, key=_reason), key=_reason):
        _wrapped(out, f"no {', '.join(feature.name for feature in group)}: {because}")


def _reason(feature: NetworkFeature) -> str:
    return feature.available.because


def _is_absent(feature: NetworkFeature) -> bool:
    """Whether there is nothing to say but that the fabric does not have it."""
    return feature.available.answer == "no" and len(_answers(feature)) == 1


def _told(feature: NetworkFeature) -> tuple[Told, Told, Told]:
    return feature.available, feature.switched_on, feature.used


def _answers(feature: NetworkFeature) -> list[tuple[str, Told]]:
    """Return the answers with their labels; those that say the same as the one before are told with it."""
    found: list[tuple[str, Told]] = []
    for label, told in zip(_LABELS, _told(feature), strict=True):
        if found and found[-1][1] == told:
            found[-1] = (f"{found[-1][0]}, {label}", told)
        else:
            found.append((label, told))
    return found


def _wrapped(out: Console, text: str, *, indent: int = 4) -> None:
    for line in textwrap.wrap(
        printable(text),
        _WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False,
        break_long_words=False,
    ):
        out.print(Text(line), soft_wrap=True)
