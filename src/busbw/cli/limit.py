"""The verb `limit`: what a platform, or captured hosts, can reach at best."""

import sys
from pathlib import Path

import click

from busbw.api.machine import limit_of_host, limit_of_platform
from busbw.base.errors import ExitCode, InputError
from busbw.cli.options import JSON
from busbw.model import codec
from busbw.show.text.host import limit_text


@click.command()
@click.option("--platform", "name", metavar="ID", help="A platform, by id or any of its names.")
@click.option("--host", type=click.Path(path_type=Path), metavar="HOST.tar", help="A captured host instead.")
@click.option("--nodes", type=int, default=1, show_default=True, metavar="N", help="Nodes.")
@click.option("--gpus", type=int, metavar="N", help="GPUs of each node [default: all].")
@click.option("--collective", metavar="NAME", help="all_reduce, all_gather, ... [default: those with a bound].")
@click.option("--algorithm", metavar="NAME", help="ring, tree, nvls, nvlstree, collnet [default: all that apply].")
@JSON
def limit(
    name: str | None,
    host: Path | None,
    *,
    nodes: int,
    gpus: int | None,
    collective: str | None,
    algorithm: str | None,
    as_json: bool,
) -> None:
    """Say what bus bandwidth a platform, or such hosts, can reach at best, and which part limits it."""
    if (name is None) is (host is None):
        given = "nothing is named" if name is None else f"both {name!r} and {str(host)!r} are given"
        raise InputError(given, hint="a platform: --platform azure-ndv4; or a captured host: --host HOST.tar")
    if host is not None:
        found = limit_of_host(host, nodes=nodes, gpus=gpus, collective=collective, algorithm=algorithm)
    else:
        found = limit_of_platform(name or "", nodes=nodes, gpus=gpus, collective=collective, algorithm=algorithm)
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        limit_text(found, detailed=collective is not None)
        if collective is None:
            print("add --collective all_reduce to see the formulas", file=sys.stderr)
    if all(bound.busbw_Bps is None for bound in found.bounds):
        sys.exit(ExitCode.CANNOT_TELL)
