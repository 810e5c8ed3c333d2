"""The verb `fabric`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from busbw.cli.options import JSON, SIZE

if TYPE_CHECKING:
    from busbw.api.fabrics import JudgedFabric

_TOPOLOGIES = ("fat-tree-2", "fat-tree-3", "rail", "dragonfly")
_FAULTS = (
    "none", "node", "nic-send", "nic-receive", "nic", "rail", "leaf-uplink", "cable-static", "cable-adaptive",
    "spine-link", "flapping", "slow", "congestion", "two",
)  # fmt: skip
_VIEWS = ("all", "histogram", "bars", "fabric", "matrix", "none")


@click.command("fabric")
@click.argument("source", metavar="[RESULTS]", required=False)
@click.option("--metric", type=click.Choice(["latency", "bandwidth", "bibandwidth"]), help="What the values are.")
@click.option("--size", "size_bytes", type=SIZE, help="This size of a run [default: largest; of latencies smallest].")
@click.option("--topology", "tree", metavar="FILE", help="Slurm's topology.conf: which host is below which switch.")
@click.option("--platform", metavar="ID", help="The platform: what is published of its pairs is expected.")
@click.option("--expect", metavar="VALUE", help="What a sound pair reaches: 380Gb/s, 47GB/s, 1.7us.")
@click.option(
    "--write-topology", type=click.Path(path_type=Path), metavar="FILE", help="Write the leaves as topology.conf."
)
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write one self-contained page as well.")
@click.option(
    "--write-table", type=click.Path(path_type=Path), metavar="FILE", help="Write the tests as a table, to judge again."
)
@click.option(
    "--view",
    "wanted",
    type=click.Choice(_VIEWS),
    multiple=True,
    help="What is drawn [default: all].",
)
@click.option("--simulate", "topology", type=click.Choice(_TOPOLOGIES), help="Try the procedure on a simulated fabric.")
@click.option("--nodes", type=int, default=64, show_default=True, metavar="N", help="Nodes of the simulation.")
@click.option("--fault", type=click.Choice(_FAULTS), default="none", show_default=True, help="What is bad in it.")
@click.option("--effect", "effect_percent", type=float, metavar="PERCENT", help="How much slower [default: by fault].")
@click.option("--seed", type=int, default=1, show_default=True, help="Of its random numbers.")
@click.option("--full", is_flag=True, help="Simulate every pair once instead of five random rounds.")
@click.option("--blind", is_flag=True, help="Simulate without telling the procedure the leaves.")
@JSON
def fabric(
    *,
    as_json: bool,
    write_topology: Path | None,
    write_table: Path | None,
    html: Path | None,
    wanted: tuple[str, ...],
    effect_percent: float | None,
    **asked: Any,  # noqa: ANN401 - as click gives them
) -> NoReturn:
    """Say which node, NIC, rail, link or switch of a fabric is bad, from tests of its pairs.

    RESULTS is a stored run with --pairs, or a table `sender,receiver,value[,unit][,round]` of another tool. With
    --simulate nothing is measured: the procedure runs on a fabric with a known fault.

    Exit code 0: ok; 1: something is bad; 2: bad input; 4: cannot tell.
    """
    from busbw.api.fabrics import FabricRequest, judge_fabric
    from busbw.base.errors import ExitCode
    from busbw.model import codec
    from busbw.show.text.fabric import fabric_text
    from busbw.store.files import check_replaceable

    if "none" in wanted and len(wanted) > 1:
        raise click.UsageError("--view none stands alone")
    for path in (write_topology, write_table, html):
        if path is not None:
            check_replaceable(path)
    judged = judge_fabric(FabricRequest(effect=None if effect_percent is None else effect_percent / 100, **asked))
    _write_files(judged, write_topology, write_table, html)
    if as_json:
        sys.stdout.write(codec.encode_pretty(judged.report).decode())
    else:
        fabric_text(judged.report, _VIEWS[1:-1] if "all" in (wanted or ("all",)) else wanted)
    print(end="", flush=True)
    if any(each.is_serious for each in judged.report.findings):
        sys.exit(ExitCode.FINDINGS)
    sys.exit(ExitCode.CANNOT_TELL if judged.report.verdict.outcome == "cannot_tell" else ExitCode.OK)


def _write_files(judged: "JudgedFabric", topology: Path | None, table: Path | None, html: Path | None) -> None:
    """Write what is asked for beside what is printed, and say so."""
    from busbw.api.fabrics import tests_table
    from busbw.base.errors import InputError
    from busbw.base.text import printable
    from busbw.show.page.html import report_html
    from busbw.store.files import write_whole

    if topology is not None and judged.tree is None:
        raise InputError(
            "the leaves are not known, so there is no topology to write",
            hint="they follow from latencies of all pairs: --metric latency",
        )
    for path, content in (
        (topology, lambda: judged.tree or ""),
        (table, lambda: tests_table(judged)),
        (html, lambda: report_html((), fabric=judged.report)),
    ):
        if path is not None:
            write_whole(path.absolute(), content().encode())
            click.echo(printable(f"wrote {path}"), err=True)
