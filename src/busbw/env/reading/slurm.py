"""What srun, sbatch, salloc and the directives of a batch script set and pass on."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from busbw.env.reading.arguments import Arguments
from busbw.env.reading.context import Context
from busbw.env.reading.expansion import Field
from busbw.env.reading.options import SRUN
from busbw.env.reading.spelled import FILLED, HOLE, Spelled, joined

_WORDS = {"ALL", "NONE", "NIL"}
# Names that stand in an export list by themselves; others there are more often the rest of a value with commas.
_USUAL = frozenset(
    {
        "PATH",
        "LD_LIBRARY_PATH",
        "HOME",
        "USER",
        "SHELL",
        "LANG",
        "TERM",
        "PYTHONPATH",
        "PWD",
        "LOGNAME",
        "TMPDIR",
        "DISPLAY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "MODULEPATH",
        "MANPATH",
    }
)
_NAME_OF_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]")


def read_srun(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `srun`; return the command that the ranks run."""
    arguments = Arguments(fields, 1, SRUN)
    forwards: list[str] = []
    passes_all = context.slurm_forwards_all
    for option in arguments.options():
        if option.name == "--export" and option.values:
            names, passes_all = export_list(option.values[0].spelled, context, number)
            forwards += names
        elif option.name == "--container-env" and option.values:
            forwards += [name for name in option.values[0].text.split(",") if name]
    launch = context.ledger.launched(number)
    found = replace(
        launch,
        family="Slurm",
        forwards=tuple(dict.fromkeys((*launch.forwards, *forwards))),
        forwards_all=passes_all,
        program=arguments.at if arguments.rest else None,
        computed=launch.computed or arguments.is_open,
    )
    context.ledger.correct(number, found)
    return arguments.rest


def read_sbatch(fields: list[Field], context: Context, number: int) -> list[Field]:
    """Read `sbatch`, whose job sees what it exports; return nothing, for the job is a script of its own."""
    arguments = Arguments(fields, 1, SRUN)
    forwards: list[str] = []
    passes_all = True
    for option in arguments.options():
        if option.name == "--export" and option.values:
            forwards, passes_all = export_list(option.values[0].spelled, context, number)
        elif option.name == "--wrap" and option.values:
            context.read("shell", option.values[0].spelled, context.inner(launch=number))
    launch = context.ledger.launched(number)
    context.ledger.correct(
        number,
        replace(
            launch,
            family="Slurm sbatch",
            forwards=tuple(forwards),
            forwards_all=passes_all,
            program=arguments.at if arguments.rest else None,
            computed=launch.computed or arguments.is_open,
        ),
    )
    return []


def read_directive(options: list[Field], context: Context) -> None:
    """Read one line of #SBATCH options: what it exports is seen by everything after it."""
    arguments = Arguments(options, 0, SRUN)
    for option in arguments.options():
        if option.name == "--export" and option.values:
            _, context.slurm_forwards_all = export_list(option.values[0].spelled, context, None)


def read_pbs_directive(options: list[Field], context: Context) -> None:
    """Read one line of #PBS options: `-v NAME=VALUE,NAME`."""
    at = next((number for number, field in enumerate(options) if field.text == "-v"), None)
    if at is not None and at + 1 < len(options):
        export_list(options[at + 1].spelled, context, None)


def export_list(value: Spelled, context: Context, number: int | None) -> tuple[list[str], bool]:
    """Take down the variables of an export list; return the names and words in it, and whether it passes on all.

    Commas divide them, but between quotes that reach Slurm itself.
    """
    found: list[str] = []
    setting: str | None = None
    for part in _parts(value):
        if "=" in part.text:
            setting = part.text.partition("=")[0]
            found.append(setting)
            bare = _without_quotes(part)
            context.assign(Field(bare, bare.origin(0), bare.end()), "srun", number)
        elif part.text:
            found.append(part.text)
            if setting is not None and not _may_be_name(part.text):
                context.ledger.slip("comma_in_list", part.origin(0), part.text, name=setting)
    is_all = any(word in {"ALL", "all"} for word in found) or HOLE in value.text
    return found, is_all or (not found and context.slurm_forwards_all)


def _may_be_name(text: str) -> bool:
    is_unknown = text[0] in {HOLE, FILLED}
    return is_unknown or text.upper() in _WORDS or text in _USUAL or _NAME_OF_VARIABLE.fullmatch(text) is not None


def _parts(value: Spelled) -> Iterator[Spelled]:
    start = 0
    quote = ""
    for at, character in enumerate(value.text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == ",":
            yield value.part(start, at)
            start = at + 1
    yield value.part(start)


def _without_quotes(part: Spelled) -> Spelled:
    """Return NAME=VALUE without the quotes around the value that Slurm takes off."""
    equals = part.text.find("=")
    quote = part.text[equals + 1 : equals + 2]
    if quote not in {"'", '"'} or len(part.text) < equals + 3 or not part.text.endswith(quote):
        return part
    return joined((part.part(0, equals + 1), part.part(equals + 2, len(part.text) - 1)))
