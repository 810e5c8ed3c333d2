"""The verbs about kinds of machines: `platform list`, `show` and `detect`; `limit`, what one can reach at best."""

import shlex
import sys
from pathlib import Path

import click
import msgspec

from busbw.base.errors import ExitCode, InputError
from busbw.cli.options import COLLECTIVE, JSON
from busbw.machine import named
from busbw.model import codec
from busbw.model.host import Detection


@click.group()
def platform() -> None:
    """What is published about kinds of machines, and which kind this one is."""


@platform.command("list")
@JSON
def list_(*, as_json: bool) -> None:
    """List every known platform."""
    from busbw.show.text.platform import platforms_text

    known = tuple(each.platform for each in named.platforms())
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(known), indent=1).decode() + "\n")
        return
    platforms_text(known)
    print("busbw platform show ID tells what is known of one", file=sys.stderr)


@platform.command()
@click.argument("name", metavar="ID")
@click.option("--origins", is_flag=True, help="Say which file and which source each value comes from.")
@JSON
def show(name: str, *, origins: bool, as_json: bool) -> None:
    """Show what is known of a platform; ID may be any of its names."""
    resolved = named.platform(name)
    if as_json:
        sys.stdout.write(codec.encode_pretty(resolved).decode())
    elif origins:
        from busbw.show.text.platform import origins_text

        origins_text(resolved)
    else:
        from busbw.show.text.platform import platform_text

        platform_text(resolved)


@platform.command()
@click.argument("host", metavar="[HOST.tar]", required=False, type=click.Path(path_type=Path))
@click.option("--explain", is_flag=True, help="Say what each step of the ladder saw, and why near misses do not match.")
@click.option("--no-metadata", is_flag=True, help="Do not ask the cloud's metadata service.")
@JSON
def detect(host: Path | None, *, explain: bool, no_metadata: bool, as_json: bool) -> None:
    """Say which platform this host, or a captured one, is.

    Exit code 0: known; 4: cannot tell.
    """
    found = _detect(host, ask_metadata=not no_metadata)
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    elif explain:
        from busbw.show.text.host import detection_text

        detection_text(found)
    else:
        from busbw.show.text.host import detection_line, warnings

        print(detection_line(found))
        for warning in warnings(found):
            print(warning, file=sys.stderr)
        if found.platform is None:
            again = shlex.join(["busbw", "platform", "detect", *([str(host)] if host is not None else []), "--explain"])
            print(f"hint: {again}", file=sys.stderr)
    sys.stdout.flush()
    sys.exit(ExitCode.OK if found.platform is not None else ExitCode.CANNOT_TELL)


def _detect(host: Path | None, *, ask_metadata: bool) -> Detection:
    from busbw.api import machine

    if host is not None:
        return machine.detect_captured(host) if ask_metadata else machine.detect_captured_without_answers(host)
    return machine.detect_here() if ask_metadata else machine.detect_here_without_asking()


@click.command()
@click.option("--platform", "name", metavar="ID", help="A platform, by id or any of its names.")
@click.option("--host", type=click.Path(path_type=Path), metavar="HOST.tar", help="A captured host instead.")
@click.option("--nodes", type=int, default=1, show_default=True, metavar="N", help="Nodes.")
@click.option("--gpus", type=int, metavar="N", help="GPUs of each node [default: all].")
@click.option(
    "--collective", type=COLLECTIVE, metavar="NAME", help="all_reduce, all_gather, ... [default: those with a bound]."
)
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
    from busbw.api.machine import limit_of_host, limit_of_platform
    from busbw.show.text.host import limit_text

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
