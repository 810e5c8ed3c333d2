"""The verbs about the topology of one node: `topo show`, `make`, `check`, `diff`, `masks`."""

import sys
from pathlib import Path

import click

from busbw.api.topologies import check_topology, compared, made_file
from busbw.base.errors import ExitCode
from busbw.base.text import printable
from busbw.cli.checks import present
from busbw.cli.options import JSON
from busbw.machine.named import nccl_release, node_view
from busbw.model import codec
from busbw.model.topology import RankMasks

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
@click.option(
    "--nccl",
    metavar="VERSION",
    help="Paths, rates and plans as this version has them, 2.18 and later [default: 2.28.9].",
)
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Write the picture as SVG.")
@JSON
def show(source: str | None, *, here: bool, matrix: bool, nccl: str | None, svg: Path | None, as_json: bool) -> None:
    """Draw a node: sockets, switches, GPUs with their NICs, CPUs."""
    from busbw.topo.paths.matrix import path_matrix

    release, doubt = nccl_release(nccl)
    view = node_view(source, here=here, nccl=release)
    for note in (*((doubt,) if doubt is not None else ()), *view.notes):
        _say(f"note: {note}")
    if svg is not None:
        from busbw.show.page.pictures import topology_svg
        from busbw.store.files import write_whole

        write_whole(svg, topology_svg(view).encode())
        _say(f"wrote {svg}")
    if as_json:
        value = path_matrix(view.topology, release) if matrix else view
        sys.stdout.write(codec.encode_pretty(value).decode())
    elif matrix:
        from busbw.show.text.topology import matrix_text

        matrix_text(path_matrix(view.topology, release))
    elif svg is None:
        from busbw.show.text.topology import topology_text

        topology_text(view)
    sys.stdout.flush()


@topo.command()
@_SOURCE
@_HERE
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="FILE", help="The file [default: stdout].")
def make(source: str | None, *, here: bool, output: Path | None) -> None:
    """Write a topology file that NCCL's own reader accepts."""
    made = made_file(source, here=here)
    for note in made.notes:
        click.echo(f"note: {printable(note)}", err=True)
    if output is None:
        sys.stdout.write(made.text)
        sys.stdout.flush()
        return
    from busbw.store.files import write_whole

    write_whole(output, made.text.encode())
    click.echo(printable(f"wrote {output}; use it with NCCL_TOPO_FILE={output.absolute()}"), err=True)


@topo.command()
@click.argument("file", metavar="FILE")
@click.option("--platform", metavar="ID", help="Hold it against a platform.")
@click.option("--host", type=click.Path(path_type=Path), metavar="HOST.tar", help="Hold it against a captured host.")
@click.option("--here", is_flag=True, help="Hold it against this host.")
@JSON
def check(file: str, *, platform: str | None, host: Path | None, here: bool, as_json: bool) -> None:
    """Find what is wrong with an NCCL topology file.

    Exit code 0: nothing; 1: findings; 2: not a topology file.
    """
    present(check_topology(file, platform=platform, host=host, here=here), as_json=as_json)


@topo.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@JSON
def diff(first: str, second: str, *, as_json: bool) -> None:
    """Compare two topologies by meaning, not by text.

    Exit code 0: NCCL would see the same; 1: it would not.
    """
    comparison = compared(first, second)
    if as_json:
        sys.stdout.write(codec.encode_pretty(comparison).decode())
    else:
        from busbw.show.text.topology import difference_text

        for note in comparison.notes:
            click.echo(f"note: {printable(note)}", err=True)
        difference_text(comparison)
    sys.stdout.flush()
    if comparison.differences:
        sys.exit(ExitCode.FINDINGS)


@topo.command()
@_SOURCE
@_HERE
@click.option("--binding", metavar="HOW", help="Judge a binding: 'default', '--bind-to numa ...', a list of masks.")
@click.option("--ranks", type=int, metavar="N", help="Ranks of one node [default: its GPUs].")
@click.option("--ignore-affinity", is_flag=True, help="As if NCCL_IGNORE_CPU_AFFINITY=1 were set.")
@JSON
def masks(
    source: str | None, *, here: bool, binding: str | None, ranks: int | None, ignore_affinity: bool, as_json: bool
) -> None:
    """Give the CPUs of each local rank, as srun, mpirun and taskset want them."""
    from busbw.measure.plan.masks import rank_masks

    found = rank_masks(source, here=here, binding=binding, ranks=ranks, ignores_affinity=ignore_affinity)
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        from busbw.show.text.topology import masks_text

        masks_text(found)
    sys.exit(_exit_code(found))


def _say(line: str) -> None:
    click.echo(printable(line), err=True)


def _exit_code(masks: RankMasks) -> ExitCode:
    """Return 1 where a launcher would put a rank on the wrong NUMA node, 4 where nothing can be told, else 0."""
    if masks.binding is None:
        return ExitCode.OK if masks.forms else ExitCode.CANNOT_TELL
    fits = [rank.fit for reading in masks.readings for rank in reading.ranks]
    if "wrong" in fits:
        return ExitCode.FINDINGS
    return ExitCode.CANNOT_TELL if not fits or "unknown" in fits else ExitCode.OK
