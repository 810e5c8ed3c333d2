"""The verb `bisect`: which of several differences between two settings makes the difference."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from busbw.api.bisections import Search
from busbw.api.bisections import bisect as bisect_settings
from busbw.api.history import read_bisection
from busbw.api.interleave import DEFAULT_BLOCKS, DEFAULT_BUDGET_S, AskedSide, ComparisonTerms
from busbw.base.errors import ExitCode, InputError
from busbw.base.text import printable
from busbw.cli.options import GroupedCommand, GroupedOption
from busbw.cli.progress import comparison_progress
from busbw.cli.request import AskedSetting, directory_of, given_for_launches, launch_options, setting_of
from busbw.model import codec
from busbw.model.comparison import Bisection
from busbw.model.request import options
from busbw.show.text.comparison import bisection_text
from busbw.store import directory as directories

_HELP = """Find which of several differences makes something faster or slower.

--good and --bad take settings as `busbw compare --set` does: NAME=VALUE, -u NAME, options of `busbw run`; @FILE reads
them from a file, one or more a line. What they differ in is searched by halves: first the two ends are compared, then
parts of the difference at the point where it is surest. Where no single difference does it, those that do it together
are named.

--in-order, given three times or more, takes whole settings, the oldest first, such as versions of a library, and finds
between which two of them the change came: --in-order '--nccl 2.26/libnccl.so.2' --in-order '--nccl 2.27/libnccl.so.2'
--in-order '--nccl 2.28/libnccl.so.2'.

Exit code 0: found; 2: bad input; 3: a launch failed; 4: cannot tell, or nothing to find.
"""
_OWN = (
    click.Argument(["names"], nargs=-1, metavar="[COLLECTIVES]..."),
    GroupedOption(
        ["--good"], group="what", metavar="WORDS|@FILE", help="The settings at the one end, such as default."
    ),
    GroupedOption(["--bad"], group="what", metavar="WORDS|@FILE", help="The settings at the other end."),
    GroupedOption(
        ["--in-order"],
        group="what",
        multiple=True,
        metavar="WORDS",
        help="A setting between two ends, the oldest first.",
    ),
    GroupedOption(["--blocks"], type=int, metavar="N", help="Launches of each side [default: 30]."),
    GroupedOption(["--budget"], type=float, metavar="SECONDS", help="Of each comparison [default: 900]."),
    GroupedOption(["--seed"], type=int, metavar="N", help="What the order of launches is drawn with [default: drawn]."),
    GroupedOption(["--plan", "plan_only"], is_flag=True, help="Print the differences, and stop."),
    GroupedOption(["--json", "as_json"], is_flag=True, help="Print JSON: the content of result.json."),
)
_LEAST_IN_ORDER = 3


def _bisect(**given: Any) -> NoReturn:  # noqa: ANN401 - as click gives them
    """Search what made the difference; print what was found, and exit with its code."""
    common = given_for_launches(given)
    search = _search(common, given)
    if given["plan_only"]:
        for item in search.items:
            print(printable(item))
        sys.exit(ExitCode.OK)
    terms = ComparisonTerms(
        blocks=given["blocks"] if given["blocks"] is not None else DEFAULT_BLOCKS,
        budget_s=given["budget"] if given["budget"] is not None else DEFAULT_BUDGET_S,
        seed=given["seed"],
    )
    directory = directory_of(common)
    _ended(bisect_settings(search, terms, directory, directories.root(), comparison_progress), as_json=given["as_json"])


def show_bisection(where: Path, *, as_json: bool) -> NoReturn:
    """Print what a stored bisection found, or how far it came, and exit with its code."""
    _ended(read_bisection(where), as_json=as_json)


def _ended(found: Bisection, *, as_json: bool) -> NoReturn:
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        bisection_text(found)
    sys.stdout.flush()
    sys.exit(ExitCode.OK if found.outcome == "found" else ExitCode.CANNOT_TELL)


def _search(common: Mapping[str, Any], given: Mapping[str, Any]) -> Search:
    in_order: tuple[str, ...] = given["in_order"]
    if in_order and (given["good"] is not None or given["bad"] is not None):
        raise InputError("--in-order names both ends itself", hint="leave --good and --bad out")
    if in_order:
        return _in_order(common, in_order)
    if given["good"] is None or given["bad"] is None:
        raise InputError(
            "there are no two ends to search between",
            hint="busbw bisect --good default --bad 'NCCL_PROTO=LL NCCL_ALGO=Tree'",
        )
    good = setting_of(given["good"], f"--good {given['good']!r}")
    bad = setting_of(given["bad"], f"--bad {given['bad']!r}")
    differences = _differences(good, bad)
    if len(differences) < 2:
        raise InputError(
            f"{good.name} and {bad.name} differ in {len(differences) or 'nothing'}: there is nothing to search",
            hint="busbw compare --set ... --set ... tells whether they differ",
        )

    def side(items: frozenset[int]) -> AskedSide:
        chosen = [differences[item] for item in items]
        if not chosen:
            name = good.name
        else:
            name = (
                bad.name if len(chosen) == len(differences) else "good, with " + ", ".join(one.short for one in chosen)
            )
        return _mixed(name, good, bad, chosen).asked(common)

    return Search(
        good=good.name, bad=bad.name, items=tuple(one.words for one in differences), in_order=False, side=side
    )


def _in_order(common: Mapping[str, Any], texts: tuple[str, ...]) -> Search:
    if len(texts) < _LEAST_IN_ORDER:
        raise InputError(
            f"{len(texts)} settings have nothing between them", hint="busbw compare --set ... --set ... compares two"
        )
    settings = [setting_of(text, f"--in-order {text!r}") for text in texts]
    names = tuple(setting.name for setting in settings)
    if len(set(names)) < len(names):
        raise InputError("a setting is given twice", where="--in-order")

    def side(items: frozenset[int]) -> AskedSide:
        return settings[max(items, default=0)].asked(common)

    return Search(good=names[0], bad=names[-1], items=names, in_order=True, side=side)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Difference:
    """One variable or option that the two ends do not have alike."""

    name: str
    is_option: bool
    short: str
    words: str


def _differences(good: AskedSetting, bad: AskedSetting) -> list[_Difference]:
    """Return what two settings differ in, variables first, in the order they were given."""
    found = []
    for name in dict.fromkeys((*bad.environment, *bad.unset, *good.environment, *good.unset)):
        before, after = _variable(good, name), _variable(bad, name)
        if before != after:
            found.append(
                _Difference(name=name, is_option=False, short=name, words=f"{name} ({before} before, {after} after)")
            )
    for name in dict.fromkeys((*bad.options, *good.options)):
        old, new = good.options.get(name), bad.options.get(name)
        if old != new:
            option = options()[name].name if name in options() else f"-{name[-1]}"
            words = f"{option} ({_value(old)} before, {_value(new)} after)"
            found.append(_Difference(name=name, is_option=True, short=option, words=words))
    return found


def _variable(setting: AskedSetting, name: str) -> str:
    if name in setting.environment:
        return f'"{setting.environment[name]}"'
    return "left out" if name in setting.unset else "as it is here"


def _value(value: object) -> str:
    return "as it is by default" if value is None else str(value)


def _mixed(name: str, good: AskedSetting, bad: AskedSetting, chosen: list[_Difference]) -> AskedSetting:
    """Return the good setting with the chosen differences as the bad one has them."""
    variables = {one.name for one in chosen if not one.is_option}
    options = {one.name for one in chosen if one.is_option}
    environment = {key: value for key, value in good.environment.items() if key not in variables}
    environment |= {key: value for key, value in bad.environment.items() if key in variables}
    unset = [key for key in good.unset if key not in variables] + [key for key in bad.unset if key in variables]
    own = {key: value for key, value in good.options.items() if key not in options}
    own |= {key: value for key, value in bad.options.items() if key in options}
    return AskedSetting(
        name=name,
        environment=environment,
        unset=tuple(unset),
        options=own,
        words=tuple(f"{key}={value}" for key, value in own.items()),
    )


bisect = GroupedCommand("bisect", callback=_bisect, params=[*_OWN, *launch_options()], help=_HELP)
