"""The verb `check`: whether nodes are fit for jobs, which are not, and what to do with those."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from busbw.base.errors import ExitCode, InputError
from busbw.base.text import printable
from busbw.cli.options import JSON

if TYPE_CHECKING:
    from busbw.model.check.report import CheckReport

_DRAIN_FORMS = ("all", "hosts", "list", "scontrol", "kubectl")
# What goes with --resume: the rest is in the folder.
_OF_RESUME = frozenset({"resume", "hosts", "nodes", "as_json", "junit", "html", "drain_list", "drain_form"})


@click.command("check")
@click.option(
    "--profile",
    default="quick",
    show_default=True,
    metavar="NAME|FILE.toml",
    help="What is checked and against which limits: quick, daily, acceptance, or a file of your site.",
)
@click.option("--hosts", metavar="FILE|LIST", help="Check these hosts: a host file, or a list such as n[0-3].")
@click.option("--nodes", type=int, metavar="N", help="Check so many hosts of the allocation busbw is in.")
@click.option("--platform", metavar="ID", help="What the nodes should be.")
@click.option(
    "--partner", "partners", multiple=True, metavar="HOST", help="A host to send to and take from, or a list."
)
@click.option("--spares", default="", metavar="LIST", help="Hosts that may take the place of bad ones.")
@click.option("--launcher", metavar="NAME", help="What starts programs on the hosts [default: as busbw run].")
@click.option("--interface", metavar="NAME", help="The network interface that hosts meet over, such as eth0.")
@click.option("--remote-shell", metavar="COMMAND", help="What reaches other hosts [default: ssh].")
@click.option("--resume", metavar="DIR", help="Go on with a check that was cut off: its folder, its name, or last.")
@click.option("--out", "directory", type=click.Path(path_type=Path), metavar="DIR", help="The folder for the check.")
@click.option("--history", "is_history", is_flag=True, help="Show nodes by failures and the time between them.")
@click.option("--print-profile", is_flag=True, help="Print the profile, to copy and change it, and stop.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML, a case a node.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write one HTML page.")
@click.option(
    "--drain-list", metavar="FILE|-", help="Write the nodes that should take no jobs; - prints them and nothing else."
)
@click.option(
    "--drain-form",
    type=click.Choice(_DRAIN_FORMS),
    default="all",
    show_default=True,
    help="hosts: one a line; list: Slurm's; scontrol, kubectl: commands; all: a host file with the rest in comments.",
)
@click.option("--screen-here", hidden=True, metavar="JSON")
@JSON
def check(*, screen_here: str | None, is_history: bool, print_profile: bool, **given: Any) -> NoReturn:  # noqa: ANN401 - as click gives them
    """Check nodes before jobs do: this host, hosts that are named, or those of an allocation.

    Each node is screened (its health, memory, noise, transfers, copies over PCIe, pairs of GPUs, NICs), then pairs of
    nodes, then collectives, as far as the profile asks for it, and held against the profile's limits, against nodes of
    the same kind and against its own past. Nothing is drained: --drain-list writes the commands for it.

    Exit code 0: fit; 1: not fit; 2: bad input; 3: a stage failed; 4: cannot tell, unless the profile lets that pass.
    """
    if screen_here is not None:
        _screen(screen_here)
    if is_history:
        _history(given["hosts"], as_json=given["as_json"])
    if print_profile:
        from busbw.api.nodes.checks import profile_named

        sys.stdout.write(profile_named(given["profile"])[1])
        sys.stdout.flush()
        sys.exit(ExitCode.OK)
    _check(given)


def _screen(text: str) -> NoReturn:
    """Print what this host finds of itself, for the host that asked."""
    from busbw.api.nodes.screenings import screen_here
    from busbw.model import codec
    from busbw.model.check.screening import SCREENED_PREFIX, Screening

    found = screen_here(codec.decode(text.encode("utf-8", "replace"), Screening, where="--screen-here"))
    sys.stdout.write(f"\n{SCREENED_PREFIX}{codec.encode(found).decode()}\n")
    sys.stdout.flush()
    sys.exit(ExitCode.OK)


def _history(hosts: str | None, *, as_json: bool) -> NoReturn:
    from busbw.api.nodes.checks import history
    from busbw.model import codec
    from busbw.show.text.check import check_history_text

    found = history(hosts)
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        check_history_text(found)
    sys.stdout.flush()
    sys.exit(ExitCode.OK if found.nodes else ExitCode.CANNOT_TELL)


def _check(given: dict[str, Any]) -> NoReturn:
    from busbw.api.nodes.checks import CheckRequest, resume
    from busbw.api.nodes.checks import check as check_nodes
    from busbw.store.files import check_replaceable

    drain_list = given["drain_list"]
    if drain_list == "-" and given["as_json"]:
        raise InputError("both --json and --drain-list - print to standard output", hint="--drain-list FILE")
    for path in (given["junit"], given["html"], Path(drain_list) if drain_list not in (None, "-") else None):
        if path is not None:
            check_replaceable(path)
    if given["resume"] is not None:
        _check_alone()
        report, stored = resume(given["resume"], given["hosts"], given["nodes"], _say)
        where: Path | None = stored
    else:
        fields = ("profile", "hosts", "nodes", "platform", "partners", "spares", "launcher", "interface", "directory")
        asked = {name: given[name] for name in fields}
        shell = _words(given["remote_shell"]) if given["remote_shell"] is not None else ()
        report, where = check_nodes(CheckRequest(remote_shell=shell, **asked), _say)
    _write(report, given)
    if drain_list == "-":
        print(end="")
    elif given["as_json"]:
        from busbw.model import codec

        sys.stdout.write(codec.encode_pretty(report).decode())
    else:
        from busbw.show.text.check import check_text

        check_text(report, str(where) if where is not None else None)
    sys.stdout.flush()
    sys.exit(report.exit_code)


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise InputError(f"this command cannot be read: {error}", where="--remote-shell") from error


def _check_alone() -> None:
    """Raise UsageError where --resume comes with what the check's own folder has decided already."""
    context = click.get_current_context()
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if (name := parameter.name or "") not in _OF_RESUME
        and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"--resume goes by what that check was asked for; leave out {', '.join(given)}")


def _write(report: "CheckReport", given: dict[str, Any]) -> None:
    """Write the files that were asked for; of a list on standard output print it."""
    from busbw.api.nodes.checks import drain_list
    from busbw.store.files import write_whole

    if given["junit"] is not None:
        from busbw.show.exports.junit import check_junit_xml

        write_whole(given["junit"].absolute(), check_junit_xml(report))
    if given["html"] is not None:
        from busbw.show.page.check import check_html

        write_whole(given["html"].absolute(), check_html(report).encode())
    if given["drain_list"] is not None:
        text = drain_list(report, given["drain_form"])
        if given["drain_list"] == "-":
            sys.stdout.write(text)
        else:
            write_whole(Path(given["drain_list"]).absolute(), text.encode())


def _say(words: str) -> None:
    print(printable(words), file=sys.stderr)
