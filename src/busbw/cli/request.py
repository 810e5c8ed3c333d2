"""From the options of a command to a request, and settings of a comparison as options have them."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from busbw.base.collectives import OPERATIONS, collective_named
from busbw.base.errors import InputError
from busbw.cli.options import GroupedOption, run_options
from busbw.measure.backends import registry
from busbw.model.request import Goal, Request, defaults, options

if TYPE_CHECKING:
    from busbw.api.interleave import AskedSide


def letters() -> list[click.Parameter]:
    """Return the options whose value says what they mean, and the folder of a run."""
    return [
        GroupedOption(
            ["-n", "letter_n"],
            type=int,
            metavar="N",
            group="how",
            help="Over MPI --ranks, as mpirun has it; over NCCL --calls, as nccl-tests has it.",
        ),
        GroupedOption(
            ["-o", "letter_o"],
            metavar="OP|DIR",
            help="An operation, as nccl-tests has it (--op), or a folder (--out); ./max is a folder.",
        ),
        GroupedOption(["--recommended"], is_flag=True, group="how", help="As --goal bandwidth."),
        GroupedOption(
            ["--out", "directory"], type=click.Path(path_type=Path), metavar="DIR", help="Folder for this run."
        ),
    ]


def request_of(given: Mapping[str, Any]) -> Request:
    """Return what the options of a command ask for. `given`: their values by name. Raises InputError."""
    fields = {field: given[field] for field in options()}
    of_nccl, number = registry.over(given["backend"]) == "nccl", given["letter_n"]
    name, letter = ("calls", "-n") if of_nccl else ("ranks", "-n")
    fields[name] = _one(given[name], number, f"--{name}", letter)
    if _is_operation(given["letter_o"]):
        usual = defaults()["op"]
        fields["op"] = _one(given["op"] if given["op"] != usual else None, given["letter_o"], "--op", "-o")
    if given["recommended"]:
        fields["goal"] = _one(fields["goal"], _USUAL_GOAL, "--goal", "--recommended")
    for option, value in (("--calls", fields["calls"]), ("--warmup", fields["warmup_calls"])):
        if value is not None and value < 1:
            raise InputError(f"{option} must be at least 1", where=f"{option} {value}")
    if fields["matrix_file"] is not None:
        # What is started from here may start in another folder.
        fields["matrix_file"] = str(Path(fields["matrix_file"]).absolute())
    fields["graphs"] = max(fields["graphs"], 0)
    if fields["graphs"] > 0 and fields["mode"] not in (None, "graph"):
        raise InputError(f"-G asks for graphs, and --mode for {fields['mode']}", hint="leave one out")
    names = tuple(collective_named(name) or name for name in given["collectives"])
    request = Request(collectives=names, **fields)
    request.container  # noqa: B018 - what is wrong with it is said before anything is looked for
    return request


# What `recommended` is short for, as an option and as the name of a setting.
_USUAL_GOAL: Goal = "bandwidth"
_RECOMMENDED = "recommended"


def directory_of(given: Mapping[str, Any]) -> Path | None:
    """Return the folder that the options name for a run; None for one of its own. Raises InputError."""
    letter = given["letter_o"]
    folder = None if letter is None or _is_operation(letter) else Path(letter)
    directory: Path | None = _one(given["directory"], folder, "--out", "-o")
    return directory


def _is_operation(text: str | None) -> bool:
    return text is not None and all(word in (*OPERATIONS, "all") for word in text.split(","))


def _one(named: Any, lettered: Any, name: str, letter: str) -> Any:  # noqa: ANN401 - as click gives them
    if named is not None and lettered is not None:
        raise InputError(f"{name} and {letter} say the same thing here", hint="leave one out")
    return named if named is not None else lettered


# What a job of a batch system decides itself, or was decided when it was written.
NOT_OF_JOBS = frozenset({"hosts", "nodes", "launcher"})
_NOT_OF_LAUNCHES = frozenset({"tag"})
# What all sides of a comparison have alike.
_NOT_OF_A_SIDE = frozenset({"tag", "time_limit_s", "platform"})
_MOST_BYTES = 2**20


def launch_options() -> list[click.Parameter]:
    """Return the options that say what one launch of a comparison is."""
    return [*run_options(_NOT_OF_LAUNCHES), *letters()]


def given_for_launches(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a launch of a comparison by name; the arguments of the command are its collectives."""
    return {**defaults(), **given, "collectives": given["names"]}


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedSetting:
    """One setting: variables, variables that are left out, and options of `busbw run` by name."""

    name: str
    environment: dict[str, str]
    unset: tuple[str, ...]
    options: dict[str, Any]
    words: tuple[str, ...]

    def asked(self, common: Mapping[str, Any]) -> "AskedSide":
        """Return the side that has this setting; `common`: the options of all sides by name. Raises InputError."""
        from busbw.api.interleave import AskedSide
        from busbw.measure.plan.request import with_matrix

        # Of --goal and --recommended a side's own one counts.
        goal = {"goal": None, "recommended": False} if {"goal", "recommended"} & set(self.options) else {}
        request = with_matrix(request_of({**common, "letter_o": None, **goal, **self.options}))
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


def setting_of(text: str, where: str) -> AskedSetting:
    """Return the setting that a text spells, or the file it names after `@`. Raises InputError."""
    from busbw.api.interleave import parse_words

    name = " ".join(text.split()) or "default"
    try:
        words = shlex.split(_content(text[1:]) if text.startswith("@") else text, comments=text.startswith("@"))
    except ValueError as error:
        raise InputError(f"this setting cannot be read: {error}", where=where) from error
    words = [word for word in words if word != "export"]
    if words[:1] == [_RECOMMENDED]:
        words = [*words[1:], f"--{_RECOMMENDED}"]
    parsed = parse_words(words, where)
    return AskedSetting(
        name=name,
        environment=dict(parsed.environment),
        unset=parsed.unset,
        options=_options(parsed.options, where),
        words=parsed.options,
    )


def _content(path: str) -> str:
    from busbw.store.files import read_whole

    content = read_whole(Path(path), _MOST_BYTES)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError("this is not text", where=path) from error


def _options(words: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return the options that a setting alone has, by name. Raises InputError for those that `busbw run` has not."""
    command = click.Command("run", params=[*run_options(), *letters()], add_help_option=False)
    try:
        context = command.make_context("run", list(words))
    except click.ClickException as error:
        raise InputError(error.format_message(), where=where) from error
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE and value != ()
    }
    shared = {name for name in given if name in _NOT_OF_A_SIDE or name == "directory"}
    if "letter_o" in given and not _is_operation(given["letter_o"]):
        shared.add("letter_o")
    if shared:
        names = {"directory": "--out", "letter_o": "-o", **{field: one.name for field, one in options().items()}}
        raise InputError(f"not for one side alone: {', '.join(sorted(names[name] for name in shared))}", where=where)
    return given
