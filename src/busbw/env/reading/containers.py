"""What the command line of a container runtime sets, and what of the environment comes in."""

import csv

from msgspec.structs import replace

from busbw.env.reading.arguments import Arguments, Grammar, Option
from busbw.env.reading.context import Context
from busbw.env.reading.expansion import Field
from busbw.env.reading.options import APPTAINER, CHARLIECLOUD, DOCKER, ENROOT
from busbw.env.reading.slips import is_cut_off, note_space_after
from busbw.env.reading.spelled import Spelled

_ENGINES = {"run", "exec", "create"}
_ACTIONS = {"exec", "run", "shell", "start", "test"}
_WITHOUT_VERB = {"ch-run", "shifter"}
# Options of Apptainer that keep the host's environment out.
_CLEAN = {"-e", "--cleanenv", "-C", "--containall"}


def starts(fields: list[Field]) -> bool:
    """Whether a command of a runtime starts something: `docker build` and `apptainer pull` do not."""
    name = fields[0].text.rpartition("/")[2]
    return name in _WITHOUT_VERB or any(field.text in _ENGINES | _ACTIONS for field in fields[1:])


def read_docker(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `docker run` and the like, which pass on what they are told; return what runs in the container."""
    verb = next((at for at, field in enumerate(fields) if at and field.text in _ENGINES), None)
    if verb is None:
        return []
    arguments = Arguments(fields, verb + 1, DOCKER)
    forwards: list[str] = []
    passes_all = False
    for option in arguments.options():
        if option.name in {"-e", "--env"} and option.values:
            forwards.append(option.values[0].text.partition("=")[0])
            context.assign(option.values[0], "container", number)
            _check_space(option, arguments, context)
        elif option.name == "--env-file" and option.values:
            context.ledger.unread(option.at, f"the file behind --env-file is not read: {_shown(option.values[0])}")
        passes_all = passes_all or option.name == "--env-host"
    # Then comes the image, and behind it the command.
    return _finish(arguments, context, number, fields[0], forwards, forwards_all=passes_all)


def read_apptainer(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `apptainer exec` and the like, which pass on the environment unless told not to."""
    verb = next((at for at, field in enumerate(fields) if at and field.text in _ACTIONS), None)
    if verb is None:
        return []
    arguments = Arguments(fields, verb + 1, APPTAINER)
    forwards: list[str] = []
    passes_all = True
    for option in arguments.options():
        passes_all = passes_all and option.name not in _CLEAN
        if option.name == "--env" and option.values:
            forwards += _apptainer_env(option.values[0], context, number)
            _check_space(option, arguments, context)
        elif option.name == "--env-file" and option.values:
            context.ledger.unread(option.at, f"the file behind --env-file is not read: {_shown(option.values[0])}")
    return _finish(arguments, context, number, fields[0], forwards, forwards_all=passes_all)


def _apptainer_env(field: Field, context: Context, number: int) -> list[str]:
    """Take down `NAME=VALUE,NAME=VALUE`. With one `=` in all of it, the commas belong to the value."""
    if field.text.count("=") <= 1:
        context.assign(field, "container", number)
        return [field.text.partition("=")[0]]
    forwards: list[str] = []
    for part in _of_csv(field.spelled):
        name, equals, _ = part.text.partition("=")
        if equals:
            forwards.append(name)
            context.assign(Field(part, part.origin(0), part.end()), "container", number)
        elif part.text:
            context.ledger.slip("comma_in_list", part.origin(0), part.text, name=forwards[-1] if forwards else None)
    return forwards


def _of_csv(value: Spelled) -> list[Spelled]:
    """Return the fields of one line of CSV, which is how the list is read."""
    if '"' not in value.text:
        parts: list[Spelled] = []
        at = 0
        for text in value.text.split(","):
            parts.append(value.part(at, at + len(text)))
            at += len(text) + 1
        return parts
    try:
        rows = list(csv.reader([value.text.replace("\n", " ")]))
    except csv.Error:
        return [value]
    return [Spelled(text, ((0, value.origin(0)),)) for text in (rows[0] if rows else [])]


def read_enroot(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `enroot start`."""
    return _simple(fields, context, number, ENROOT, ("-e", "--env"), forwards_all=None)


def read_charliecloud(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read Charliecloud's `ch-run`, which passes on the environment."""
    return _simple([fields[0], *fields], context, number, CHARLIECLOUD, ("--set-env",), forwards_all=True)


def read_shifter(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `shifter`, which passes on the environment."""
    grammar = Grammar(valued=frozenset({"-i", "--image", "-e", "--env", "--env-file", "-V", "--volume", "-w", "-m"}))
    # With --image there is no other argument before the command.
    names = ("-e", "--env")
    return _simple([fields[0], *fields], context, number, grammar, names, forwards_all=True, images=0)


def _simple(
    fields: list[Field],
    context: Context,
    number: int,
    grammar: Grammar,
    names: tuple[str, ...],
    *,
    forwards_all: bool | None,
    images: int = 1,
) -> list[Field]:
    arguments = Arguments(fields, 2, grammar)
    forwards: list[str] = []
    for option in arguments.options():
        if option.name in names and option.values:
            forwards.append(option.values[0].text.partition("=")[0])
            context.assign(option.values[0], "container", number)
    return _finish(arguments, context, number, fields[0], forwards, forwards_all=forwards_all, images=images)


def _check_space(option: Option, arguments: Arguments, context: Context) -> None:
    following = arguments.rest[0] if arguments.rest else None
    if following is not None and is_cut_off(option.values[0], following):
        note_space_after(context, option.values[0], following)
        arguments.at += 1


def _finish(
    arguments: Arguments,
    context: Context,
    number: int,
    name: Field,
    forwards: list[str],
    *,
    forwards_all: bool | None,
    images: int = 1,
) -> list[Field]:
    program = arguments.rest[images:]
    launch = context.ledger.launched(number)
    found = replace(
        launch,
        family=name.text.rpartition("/")[2],
        forwards=tuple(dict.fromkeys((*launch.forwards, *forwards))),
        forwards_all=forwards_all,
        program=arguments.at + images if program else None,
        computed=launch.computed or arguments.is_open,
    )
    context.ledger.correct(number, found)
    return program


def _shown(field: Field) -> str:
    return field.text[:80] if field.spelled.is_known else "its name is not known"
