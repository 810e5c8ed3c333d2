"""The words of a command as it was given, without some of its options: what a job of a batch system runs."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import click


def words_again(context: click.Context, left_out: Collection[str]) -> tuple[str, ...]:
    """Return the options and arguments that were given on the command line, but for the parameters named."""
    words: list[str] = []
    arguments: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in left_out or context.get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        if isinstance(parameter, click.Option):
            words.extend(_option(parameter, value))
        else:
            arguments.extend(map(_word, value if isinstance(value, tuple) else (value,)))
    # Behind `--` nothing is taken for an option.
    return (*words, *(("--", *arguments) if arguments else ()))


def _option(option: click.Option, value: Any) -> Iterator[str]:  # noqa: ANN401 - as click gives them
    name = max(option.opts, key=len)
    if option.is_flag:
        yield name
        return
    for each in value if option.multiple else (value,):
        # Joined, so that a value may begin with a dash.
        yield from (f"{name}={_word(each)}",) if name.startswith("--") else (name, _word(each))


def _word(value: Any) -> str:  # noqa: ANN401 - as click gives them
    if isinstance(value, Path):
        # The job may start in another folder.
        return str(value.absolute())
    return str(value)
