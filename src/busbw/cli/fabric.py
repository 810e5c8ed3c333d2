"""The verb `fabric`."""

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from busbw.cli.options import JSON, SIZE

_TOPOLOGIES = ("fat-tree-2", "fat-tree-3", "rail", "dragonfly")
_FAULTS = (
    "none", "node", "nic-send", "nic-receive", "nic", "rail", "leaf-uplink", "cable-static", "cable-destination",
    "cable-adaptive",
    "spine-link", "flapping", "slow", "congestion", "two",
)  # fmt: skip


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
@click.option("--simulate", "topology", type=click.Choice(_TOPOLOGIES), help="Try the procedure on a simulated fabric.")
@click.option("--nodes", type=int, default=64, show_default=True, metavar="N", help="Nodes of the simulation.")
@click.option("--fault", type=click.Choice(_FAULTS), default="none", show_default=True, help="What is bad in it.")
@click.option("--effect", "effect_percent", type=float, metavar="PERCENT", help="How much slower [default: by fault].")
@click.option("--seed", type=int, default=1, show_default=True, help="Of its random numbers.")
@click.option("--full", is_flag=True, help="Simulate every pair once instead of five random rounds.")
@click.option("--blind", is_flag=True, help="Simulate without telling the procedure the leaves.")
@JSON
def fabric(*, as_json: bool, write_topology: Path | None, effect_percent: float | None, **asked: Any) -> NoReturn:  # noqa: ANN401 - as click gives them
    """Say which node, NIC, rail, link or switch of a fabric is bad, from tests of its pairs.

    RESULTS is a stored run with --pairs, or a table `sender,receiver,value[,unit][,round]` of another tool. With
    --simulate nothing is measured: the procedure runs on a fabric with a known fault.

    Exit code 0: ok; 1: something is bad; 2: bad input; 4: cannot tell.
    """
    from busbw.api.fabrics import FabricRequest, judge_fabric
    from busbw.base.errors import ExitCode, InputError
    from busbw.base.text import printable
    from busbw.fabric.drawing import report_lines
    from busbw.model import codec
    from busbw.store.files import check_replaceable, write_whole

    if write_topology is not None:
        check_replaceable(write_topology)
    judged = judge_fabric(FabricRequest(effect=None if effect_percent is None else effect_percent / 100, **asked))
    if write_topology is not None:
        if judged.tree is None:
            raise InputError(
                "the leaves are not known, so there is no topology to write",
                hint="they follow from latencies of all pairs: --metric latency",
            )
        write_whole(write_topology.absolute(), judged.tree.encode())
        click.echo(printable(f"wrote {write_topology}"), err=True)
    if as_json:
        sys.stdout.write(codec.encode_pretty(judged.report).decode())
    else:
        print("\n".join(printable(line) for line in report_lines(judged.report)))
    print(end="", flush=True)
    if any(each.is_serious for each in judged.report.findings):
        sys.exit(ExitCode.FINDINGS)
    sys.exit(ExitCode.CANNOT_TELL if judged.report.verdict.outcome == "cannot_tell" else ExitCode.OK)
