"""Settings as the command line has them: words of env(1) and options of `busbw run`."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from busbw.api.interleave import AskedSide, parse_words
from busbw.base.errors import InputError
from busbw.cli.asked import request_of
from busbw.store.files import read_whole

_NOT_OF_A_SIDE = frozenset(
    {"collectives", "directory", "resume", "plan_only", "as_json", "tag", "time_limit", "platform"}
)
_MOST_BYTES = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedSetting:
    """One setting: variables, variables that are left out, and options of `busbw run` by name."""

    name: str
    environment: dict[str, str]
    unset: tuple[str, ...]
    options: dict[str, Any]
    words: tuple[str, ...]

    def asked(self, common: dict[str, Any]) -> AskedSide:
        """Return the side that has this setting; `common`: the options of all sides by name. Raises InputError."""
        own = {**common, **self.options, "directory": None, "letter_o": self.options.get("letter_o")}
        request, _directory = request_of(own)
        if request.launcher == "sbatch":
            raise InputError(
                "a comparison starts its launches itself", where="--launcher sbatch", hint="run it inside a job"
            )
        return AskedSide(
            name=self.name,
            environment=tuple(self.environment.items()),
            unset=self.unset,
            options=self.words,
            request=request,
        )


def setting_of(text: str, run: click.Command, where: str) -> AskedSetting:
    """Return the setting that a text spells, or the file it names after `@`. Raises InputError."""
    name = " ".join(text.split()) or "default"
    try:
        words = shlex.split(_content(text[1:]) if text.startswith("@") else text, comments=text.startswith("@"))
    except ValueError as error:
        raise InputError(f"this setting cannot be read: {error}", where=where) from error
    parsed = parse_words([word for word in words if word != "export"], where)
    return AskedSetting(
        name=name,
        environment=dict(parsed.environment),
        unset=parsed.unset,
        options=_options(run, parsed.options, where),
        words=parsed.options,
    )


def _content(path: str) -> str:
    content = read_whole(Path(path), _MOST_BYTES)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError("this is no text", where=path) from error


def _options(run: click.Command, words: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return the options that a setting alone has, by name. Raises InputError for those that `busbw run` has not."""
    try:
        context = run.make_context("run", list(words))
    except click.ClickException as error:
        raise InputError(error.format_message(), where=where) from error
    except click.exceptions.Exit as error:
        raise InputError("--help is no setting", where=where) from error
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE and value != ()
    }
    shared = sorted(given.keys() & _NOT_OF_A_SIDE)
    if shared:
        raise InputError(f"not for one side alone: {', '.join(shared)}", where=where)
    return given
