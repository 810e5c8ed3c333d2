"""Options of the command line: those of `busbw run`, made from the table of `Request`, and those that verbs share."""

import shlex
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import click

from busbw.base.collectives import collective_named
from busbw.base.errors import InputError
from busbw.base.units import parse_size
from busbw.model.request import RunOption, defaults, options

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
    _Choice = click.Choice[str]
else:
    # No type parameters before click 8.2 and 8.4.
    _ParamType = click.ParamType
    _Choice = click.Choice


class _Converted(_ParamType):
    """A word of the command line as the value it stands for."""

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> Any:  # noqa: ANN401 - as click gives them
        return self.read(value) if isinstance(value, str) else value

    def read(self, text: str) -> Any:  # noqa: ANN401 - each type's own
        """Return what a word stands for. Raises InputError."""
        raise NotImplementedError


class _Size(_Converted):
    name = "size"

    def read(self, text: str) -> int:
        return parse_size(text)


class _RankNumber(_Converted):
    name = "rank"

    def read(self, text: str) -> int | None:
        if text == "all":
            return None
        if not text.isdecimal() or len(text) > 9:
            raise InputError(f"{text!r} is not a rank", where="-r", hint="-r 0, or -r all")
        return int(text)


class _Yes(_Converted):
    name = "integer"

    def read(self, text: str) -> bool:
        if not text.removeprefix("-").isdecimal():
            self.fail(f"{text!r} is not a valid integer.")
        return int(text[:20]) != 0


class _Command(_Converted):
    name = "command"

    def __init__(self, where: str) -> None:
        self._where = where

    def read(self, text: str) -> tuple[str, ...]:
        try:
            return tuple(shlex.split(text))
        except ValueError as error:
            raise InputError(f"this command cannot be read: {error}", where=self._where) from error


class _Alias(_Converted):
    name = "text"

    def __init__(self, aliases: Mapping[str, object]) -> None:
        self._aliases = aliases

    def read(self, text: str) -> object:
        return self._aliases.get(text, text)


class _OneOf(_Choice):
    """One of some words, as the value it stands for."""

    def __init__(self, choices: Mapping[str, object]) -> None:
        super().__init__(tuple(choices))
        self._values = choices

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - as click gives them
        return (
            self._values[super().convert(value, param, ctx)]
            if value in self._values
            else self._known(value, param, ctx)
        )

    def _known(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - as click gives them
        return value if value in self._values.values() else super().convert(value, param, ctx)


class _CollectiveName(_Converted):
    """A collective however it is written; any other word as it stands, which may be a test's own name."""

    name = "text"

    def read(self, text: str) -> str:
        return collective_named(text) or text


SIZE = _Size()
COLLECTIVE = _CollectiveName()


def _type(option: RunOption) -> "click.ParamType[Any]":
    if option.choices:
        return _OneOf(dict(option.choices))
    if option.aliases and option.form != "rank":
        return _Alias(dict(option.aliases))
    kinds: Mapping[str, click.ParamType[Any]] = {
        "number": click.INT,
        "seconds": click.FLOAT,
        "size": SIZE,
        "rank": _RankNumber(),
        "yes": _Yes(),
        "command": _Command(option.name),
    }
    return kinds.get(option.form, click.STRING)


class GroupedOption(click.Option):
    """An option that knows its heading in the help of `busbw run`, and whether --help leaves it out."""

    def __init__(self, *args: Any, group: str = "output", rare: bool = False, **kwargs: Any) -> None:  # noqa: ANN401 - as click has them
        super().__init__(*args, **kwargs)
        self.group = group
        self.rare = rare


def _made(field: str, option: RunOption, usual: object) -> GroupedOption:
    return GroupedOption(
        [*option.names, field],
        type=None if option.form == "flag" else _type(option),
        is_flag=option.form == "flag",
        multiple=option.form == "many",
        default=usual,
        metavar=option.metavar,
        help=_help(option, usual),
        group=option.group,
        rare=option.rare,
    )


def _help(option: RunOption, usual: object) -> str:
    """Return the help of an option with its default, unless there is none or the help says more of it."""
    is_told = "[default" in option.help
    if is_told or usual is None or usual == () or option.form == "flag" or (option.form == "number" and usual == 0):
        return option.help
    return f"{option.help.removesuffix('.')} [default: {option.words(usual)[-1]}]."


def run_options(left_out: Collection[str] = ()) -> list[click.Parameter]:
    """Return the options of `busbw run` that a request keeps, but for the fields that are left out."""
    usual = defaults()
    return [_made(field, option, usual[field]) for field, option in options().items() if field not in left_out]


HEADINGS = {
    "what": "What is measured",
    "sizes": "Sizes",
    "how": "How it is measured",
    "where": "Where, and by whom ranks are started",
    "container": "In a container",
    "batch": "As a job of a batch system",
    "simulation": "Simulation",
    "output": "Result",
}


class GroupedCommand(click.Command):
    """A command whose help has headings; options that few need are shown by --help-all only."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as click has them
        super().__init__(*args, **kwargs)
        self.params.append(
            GroupedOption(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_all,
                help="Show this message with the options that few need, and exit.",
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        everything = bool(ctx.meta.get(_EVERYTHING))
        for group, heading in HEADINGS.items():
            rows = [
                row
                for parameter in self.get_params(ctx)
                if isinstance(parameter, click.Option)
                if _group_of(parameter) == group and (everything or not getattr(parameter, "rare", False))
                if (row := parameter.get_help_record(ctx)) is not None
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


_EVERYTHING = "busbw.help_all"


def _group_of(parameter: click.Parameter) -> str:
    return parameter.group if isinstance(parameter, GroupedOption) else "output"


def _print_all(ctx: click.Context, _parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked and not ctx.resilient_parsing:
        ctx.meta[_EVERYTHING] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
