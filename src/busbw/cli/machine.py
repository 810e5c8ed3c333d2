"""The verbs about machines: `platform`, `probe`, `limit`."""

from pathlib import Path

import click

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def platform() -> None:
    """What is published about kinds of machines, and which kind this one is."""


@platform.command("list")
@_JSON
def list_(*, as_json: bool) -> None:
    """List every known platform."""
    from busbw.cli.platforms import list_platforms

    list_platforms(as_json=as_json)


@platform.command()
@click.argument("name", metavar="ID")
@click.option("--origins", is_flag=True, help="Say which file and which source each value comes from.")
@_JSON
def show(name: str, *, origins: bool, as_json: bool) -> None:
    """Show what is known of a platform; ID may be any of its names."""
    from busbw.cli.platforms import show_platform

    show_platform(name, origins=origins, as_json=as_json)


@platform.command()
@click.argument("host", metavar="[HOST.tar]", required=False, type=click.Path(path_type=Path))
@click.option("--explain", is_flag=True, help="Say what each step of the ladder saw, and why near misses are none.")
@click.option("--no-metadata", is_flag=True, help="Do not ask the cloud's metadata service.")
@_JSON
def detect(host: Path | None, *, explain: bool, no_metadata: bool, as_json: bool) -> None:
    """Say which platform this host, or a captured one, is.

    Exit code 0: known; 4: cannot tell.
    """
    from busbw.cli.detecting import detect_platform

    detect_platform(host, explain=explain, ask_metadata=not no_metadata, as_json=as_json)


@click.command()
@click.argument("host", metavar="[HOST.tar]", required=False, type=click.Path(path_type=Path))
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="HOST.tar", help="Write a snapshot.")
@click.option("--anonymous", is_flag=True, help="Replace names, serial numbers and addresses.")
@_JSON
def probe(host: Path | None, output: Path | None, *, anonymous: bool, as_json: bool) -> None:
    """Capture what is needed to understand this host, as root or not; print what it says.

    With HOST.tar print what that captured host says.
    """
    from busbw.cli.probing import probe_host

    probe_host(host, output, anonymous=anonymous, as_json=as_json)


@click.command()
@click.option("--platform", "name", metavar="ID", help="A platform, by id or any of its names.")
@click.option("--host", type=click.Path(path_type=Path), metavar="HOST.tar", help="A captured host instead.")
@click.option("--nodes", type=int, default=1, show_default=True, metavar="N", help="Nodes.")
@click.option("--gpus", type=int, metavar="N", help="GPUs of each node [default: all].")
@click.option("--collective", metavar="NAME", help="all_reduce, all_gather, ... [default: those with a bound].")
@click.option("--algorithm", metavar="NAME", help="ring, tree, nvls, nvlstree, collnet [default: all that apply].")
@_JSON
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
    from busbw.cli.limiting import show_limit

    show_limit(name, host, nodes=nodes, gpus=gpus, collective=collective, algorithm=algorithm, as_json=as_json)
