"""The verb `isolate`: which node makes groups of nodes slow or fail."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from busbw.base.errors import ExitCode, InputError
from busbw.base.text import printable
from busbw.cli.options import GroupedCommand, GroupedOption
from busbw.cli.request import directory_of, given_for_launches, launch_options, request_of
from busbw.model.request import options

if TYPE_CHECKING:
    from busbw.fabric.groups.isolation import Isolation, IsolationPlan

_HELP = """Find the node that makes groups of nodes slow, or fail.

Groups of one size run side by side, each with its own figure. The nodes of a group that is slow or fails are spread
over groups that are sound, until one node alone is left; three more runs with other partners confirm or clear it.

\b
  busbw isolate all_reduce -b 64M --hosts n[0-7]
  busbw isolate --hosts n[0-7] --read 'time: ([0-9.]+)' --lower-is-better \\
      -- mpirun --host {hosts} PROGRAM

A COMMAND of yours stands behind --. Its words may have {hosts} (n0,n1), {hostfile} (a file, one host a line), {nodes},
{group} (a name) and {folder} (for its files). It is started once for each group, on this host, without a shell.

Exit code 0: no node differs; 1: something was found; 2: bad input; 3: not started, or stopped; 4: cannot tell.
"""
_COMMAND = "busbw.command"
# What goes with --resume: the rest is in the plan.
_OF_RESUME = ("resume", "plan_only", "as_json", "drain_list", "drain_form", "spares")


@dataclass(frozen=True, kw_only=True)
class _Drain:
    """Where the list of nodes to drain goes, in which form, and what may take their place."""

    to: str | None
    form: Any
    spares: str

    def check(self, *, as_json: bool) -> None:
        """Raise InputError for what could not be written when the search has ended."""
        from busbw.base.hostlist import expand
        from busbw.store.files import check_replaceable

        if self.to == "-" and as_json:
            raise InputError("both --json and --drain-list - print to standard output", hint="--drain-list FILE")
        if self.to not in (None, "-"):
            check_replaceable(Path(str(self.to)))
        expand(self.spares, where="--spares")

    def write(self, found: "Isolation") -> bool:
        """Write the list; whether it went to standard output."""
        from busbw.base.hostlist import expand
        from busbw.check.draining import drain_text, isolated_nodes
        from busbw.store.files import write_whole

        if self.to is None:
            return False
        text = drain_text(isolated_nodes(found, expand(self.spares, where="--spares")), self.form)
        if self.to != "-":
            write_whole(Path(self.to).absolute(), text.encode())
            return False
        sys.stdout.write(text)
        return True


class _CommandBehind(GroupedCommand):
    """A command whose words behind `--` are another program's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


_OWN = (
    click.Argument(["names"], nargs=-1, metavar="[COLLECTIVE]"),
    GroupedOption(
        ["--read"],
        group="what",
        metavar="WHAT",
        help="What of a COMMAND counts: exit-code, last-number, or a regular expression with one group, of the last "
        "match in its standard output [default: exit-code].",
    ),
    GroupedOption(
        ["--higher-is-better/--lower-is-better", "higher_is_better"],
        group="what",
        default=None,
        help="Of the number that is read.",
    ),
    GroupedOption(["--expect"], group="what", metavar="VALUE", help="What a sound group reaches: 380, 40GB/s."),
    GroupedOption(
        ["--group", "group_nodes"], group="how", type=int, metavar="N", help="Nodes of a group [default: root]."
    ),
    GroupedOption(
        ["--repeats"], group="how", type=int, metavar="N", help="Runs of a group for a judgement [default: 3]."
    ),
    GroupedOption(["--rounds", "most_rounds"], group="how", type=int, metavar="N", help="At most [default: 60]."),
    GroupedOption(
        ["--timeout", "timeout_s"], group="how", type=float, metavar="SECONDS", help="Of a group's run [default: 600]."
    ),
    GroupedOption(
        ["--topology", "tree"],
        group="how",
        metavar="FILE",
        help="Slurm's topology.conf, or the output of ibnetdiscover: groups within a leaf first, then across.",
    ),
    GroupedOption(["--no-whole"], group="how", is_flag=True, help="Do not run all nodes together first."),
    GroupedOption(["--seed"], group="how", type=int, metavar="N", help="What groups are drawn with [default: drawn]."),
    GroupedOption(["--resume"], metavar="SEARCH", help="Go on with an earlier search, by its own plan."),
    GroupedOption(["--spares"], metavar="LIST", default="", help="Hosts that may take the place of bad ones."),
    GroupedOption(
        ["--drain-list"],
        metavar="FILE|-",
        help="Write the nodes that should take no jobs; - prints them and nothing else.",
    ),
    GroupedOption(
        ["--drain-form"],
        type=click.Choice(("all", "hosts", "list", "scontrol", "kubectl")),
        default="all",
        help="As of busbw check: hosts, list, scontrol, kubectl, or all in one file [default: all].",
    ),
    GroupedOption(["--plan", "plan_only"], is_flag=True, help="Print the first round, and stop."),
    GroupedOption(
        ["--json", "as_json"], is_flag=True, help="Print JSON: the content of result.json or isolation.json."
    ),
)


def _isolate(**given: Any) -> NoReturn:  # noqa: ANN401 - as click gives them
    """Search, print what was found, and exit with its code."""
    from busbw.api.isolations import go_on, isolate_nodes, plan_isolation
    from busbw.store import directory as directories
    from busbw.store import isolations

    as_json = given["as_json"]
    drain = _Drain(to=given["drain_list"], form=given["drain_form"], spares=given["spares"])
    drain.check(as_json=as_json)
    if given["resume"] is not None:
        _check_alone()
        where = isolations.find(given["resume"], directories.root()).absolute()
        if given["plan_only"]:
            _print_plan(isolations.read_plan(where), as_json=as_json)
        _ended(go_on(where, _say), drain, as_json=as_json)
    common = given_for_launches(given)
    plan, where = plan_isolation(_asked(common, given), directory_of(common), directories.root())
    if given["plan_only"]:
        _print_plan(plan, as_json=as_json)
    _say(f"{len(plan.hosts)} hosts in groups of {plan.group_nodes}, stored in {where}")
    _ended(isolate_nodes(plan, where, _say), drain, as_json=as_json)


def _say(words: str) -> None:
    click.echo(printable(words), err=True)


def _asked(common: dict[str, Any], given: dict[str, Any]) -> Any:  # noqa: ANN401 - its module is imported late
    from busbw.api.isolations import IsolationRequest
    from busbw.fabric.groups.reading import read_rule

    command: tuple[str, ...] | None = click.get_current_context().meta.get(_COMMAND)
    names = ("group_nodes", "repeats", "most_rounds", "timeout_s", "seed", "expect", "hosts", "nodes", "tree")
    fields = {name: given[name] for name in names if given[name] is not None}
    fields["whole"] = not given["no_whole"]
    if command is None:
        if not given["names"]:
            raise InputError(
                "neither a collective nor a command is named",
                hint="busbw isolate all_reduce -b 64M --hosts F, or busbw isolate --hosts F -- COMMAND {hosts}",
            )
        only = [name for name, value in (("--read", given["read"]), ("--higher-is-better", given["higher_is_better"]))
                if value is not None]  # fmt: skip
        if only:
            raise InputError(f"{only[0]} is for a command of yours", hint="leave it out, or name the command behind --")
        return IsolationRequest(request=request_of(common), **fields)
    if given["names"]:
        raise InputError(
            f"{given['names'][0][:60]!r} and a command are both named",
            hint="options stand before --, the command behind",
        )
    _check_none_of_runs()
    rule = read_rule(given["read"] or "exit-code", higher_is_better=given["higher_is_better"])
    return IsolationRequest(command=command, read=rule, **fields)


def _given_options() -> list[tuple[str, str]]:
    """Return name and spelling of each parameter that the command line has."""
    context = click.get_current_context()
    return [
        (name, parameter.opts[0] if isinstance(parameter, click.Option) else "COLLECTIVE")
        for parameter in context.command.params
        if (name := parameter.name or "")
        and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        and context.params.get(name) != ()
    ]


def _check_none_of_runs() -> None:
    """Raise InputError for options of `busbw run`, which a command of the user's would not get."""
    of_runs = (set(options()) - {"hosts", "nodes"}) | {"letter_n", "recommended"}
    found = [spelled for name, spelled in _given_options() if name in of_runs]
    if found:
        raise InputError(
            f"{found[0]} is an option of busbw's own runs, and your command would not get it",
            hint="write what it should do into the command",
        )


def _check_alone() -> None:
    """Raise InputError when --resume comes with what the plan of that search has decided already."""
    found = [spelled for name, spelled in _given_options() if name not in _OF_RESUME]
    if _COMMAND in click.get_current_context().meta:
        found.append("--")
    if found:
        raise InputError(
            f"--resume goes by the plan of that search, its hosts too; leave out {', '.join(found)}",
            hint="on other hosts, or with another command, it is another search: leave --resume out",
        )


def _print_plan(plan: "IsolationPlan", *, as_json: bool) -> NoReturn:
    import shlex

    from busbw.api.isolations import planned_groups
    from busbw.base.hostlist import compressed
    from busbw.model import codec

    if as_json:
        sys.stdout.write(codec.encode_pretty(plan).decode())
        sys.exit(ExitCode.OK)
    groups = planned_groups(plan)
    print(printable(f"{len(plan.hosts)} hosts ({plan.how}), {len(groups)} groups of {plan.group_nodes} side by side"))
    print(f"each {plan.repeats} times, for at most {plan.timeout_s:g} s; at most {plan.most_rounds} rounds")
    if plan.whole:
        print("before them all hosts together, once")
    for hosts, argv in groups:
        print(printable(f"{compressed(hosts)}: {shlex.join(argv)}"))
    sys.exit(ExitCode.OK)


def _ended(found: "Isolation", drain: _Drain, *, as_json: bool) -> NoReturn:
    from busbw.fabric.groups.report import isolation_lines
    from busbw.model import codec

    if drain.write(found):
        pass
    elif as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        print("\n".join(printable(line) for line in isolation_lines(found)))
    print(end="", flush=True)
    if any(each.is_serious for each in found.findings):
        sys.exit(ExitCode.FINDINGS)
    sys.exit(ExitCode.CANNOT_TELL if found.verdict.outcome == "cannot_tell" else ExitCode.OK)


def show_isolation(where: Path, *, as_json: bool) -> NoReturn:
    """Print what a stored search found, and exit as it did; one that has not ended cannot tell."""
    from busbw.api.history import isolation_row
    from busbw.store import isolations

    found = isolations.read(where)
    if found is not None:
        _ended(found, _Drain(to=None, form="all", spares=""), as_json=as_json)
    print(printable(isolation_row(where).sentence))
    print(end="", flush=True)
    sys.exit(ExitCode.CANNOT_TELL)


# `--group` is another thing here; the others ask for more than one collective between all ranks.
_NOT_HERE = frozenset({"group", "suite", "pairs", "matrix_file"})
_OF_RUNS = [each for each in launch_options() if each.name not in _NOT_HERE]
isolate = _CommandBehind("isolate", callback=_isolate, params=[*_OWN, *_OF_RUNS], help=_HELP)
