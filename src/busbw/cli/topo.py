"""The verbs about the topology of one node: `topo show`, `make`, `check`, `diff`, `masks`."""

from pathlib import Path

import click

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_HERE = click.option("--here", is_flag=True, help="This host.")
_SOURCE = click.argument("source", metavar="[FILE|ID|HOST.tar]", required=False)


@click.group()
def topo() -> None:
    """The topology of one node: GPUs, NICs, NUMA nodes, and NCCL's topology files.

    Where one is asked for, give an NCCL topology file, a platform, a snapshot of `busbw probe`, or --here.
    """


@topo.command()
@_SOURCE
@_HERE
@click.option("--matrix", is_flag=True, help="The path between every pair, as nvidia-smi topo -m has it.")
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Write the picture as SVG.")
@_JSON
def show(source: str | None, *, here: bool, matrix: bool, svg: Path | None, as_json: bool) -> None:
    """Draw a node: sockets, switches, GPUs with their NICs, CPUs."""
    from busbw.cli.topo_show import show_topology

    show_topology(source, here=here, matrix=matrix, svg=svg, as_json=as_json)


@topo.command()
@_SOURCE
@_HERE
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="FILE", help="The file [default: stdout].")
def make(source: str | None, *, here: bool, output: Path | None) -> None:
    """Write a topology file that NCCL's own reader accepts."""
    from busbw.cli.topo_make import make_file

    make_file(source, here=here, output=output)


@topo.command()
@click.argument("file", metavar="FILE")
@click.option("--platform", metavar="ID", help="Hold it against a platform.")
@click.option("--host", type=click.Path(path_type=Path), metavar="HOST.tar", help="Hold it against a captured host.")
@click.option("--here", is_flag=True, help="Hold it against this host.")
@_JSON
def check(file: str, *, platform: str | None, host: Path | None, here: bool, as_json: bool) -> None:
    """Find what is wrong with an NCCL topology file.

    Exit code 0: nothing; 1: findings; 2: not a topology file.
    """
    from busbw.cli.topo_check import check_file

    check_file(file, platform=platform, host=host, here=here, as_json=as_json)


@topo.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@_JSON
def diff(first: str, second: str, *, as_json: bool) -> None:
    """Compare two topologies by meaning, not by text.

    Exit code 0: NCCL would see the same; 1: it would not.
    """
    from busbw.cli.topo_diff import diff_topologies

    diff_topologies(first, second, as_json=as_json)


@topo.command()
@_SOURCE
@_HERE
@click.option("--binding", metavar="HOW", help="Judge a binding: 'default', '--bind-to numa ...', a list of masks.")
@click.option("--ranks", type=int, metavar="N", help="Ranks of one node [default: its GPUs].")
@click.option("--ignore-affinity", is_flag=True, help="As if NCCL_IGNORE_CPU_AFFINITY=1 were set.")
@_JSON
def masks(
    source: str | None, *, here: bool, binding: str | None, ranks: int | None, ignore_affinity: bool, as_json: bool
) -> None:
    """Give the CPUs of each local rank, as srun, mpirun and taskset want them."""
    from busbw.cli.topo_masks import show_masks

    show_masks(source, here=here, binding=binding, ranks=ranks, ignore_affinity=ignore_affinity, as_json=as_json)
