"""The verb `bisect`: its options, and those of `busbw run` for what is measured."""

from typing import Any

import click

from busbw.cli.compare import measuring_options

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
    click.Option(["--good"], metavar="WORDS|@FILE", help="The settings at the one end, such as default."),
    click.Option(["--bad"], metavar="WORDS|@FILE", help="The settings at the other end."),
    click.Option(["--in-order"], multiple=True, metavar="WORDS", help="A setting between two ends, the oldest first."),
    click.Option(["--blocks"], type=int, metavar="N", help="Launches of each side [default: 30]."),
    click.Option(["--budget"], type=float, metavar="SECONDS", help="Of each comparison [default: 900]."),
    click.Option(["--seed"], type=int, metavar="N", help="What the order of launches is drawn with [default: drawn]."),
    click.Option(["--plan", "plan_only"], is_flag=True, help="Print the differences, and stop."),
    click.Option(["--json", "as_json"], is_flag=True, help="Print JSON: the content of result.json."),
)


def bisect_command(run: click.Command) -> click.Command:
    """Return the command; `run` is `busbw run`, whose options it takes as they are."""

    def bisect(**given: Any) -> None:  # noqa: ANN401 - as click gives them
        from busbw.cli.bisecting import bisect_verb

        bisect_verb(run, given)

    return click.Command("bisect", callback=bisect, params=[*_OWN, *measuring_options(run)], help=_HELP)
