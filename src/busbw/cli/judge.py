"""The verb `judge`."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from busbw.cli.options import SIZE

_HELP = """Explain and judge measured sizes: what they reach, what applies to them, and where the rest went.

RESULTS is one run or import (a path, the beginning of a name, or `last`), or files of nccl-tests and other tools,
which are read and not kept. Without any, the figures that are published for --platform are held against what its
parts can carry.

Exit code 0: ok; 1: slow, wrong, or findings; 2: bad input; 3: what is judged had failed; 4: cannot tell. With gates
the exit code is theirs: 0: all pass; 1: one fails; 4: none fails, and one cannot be told.
"""


@click.command("judge", help=_HELP)
@click.argument("names", metavar="RESULTS", nargs=-1)
@click.option("--platform", "platform_name", metavar="ID", help="The platform it ran on: see busbw platform list.")
@click.option(
    "--host",
    type=click.Path(path_type=Path),
    metavar="SNAPSHOT",
    help="The host it ran on, as busbw probe -o captured it: its links and ports give the rates.",
)
@click.option("--here", is_flag=True, help="This host gives the rates.")
@click.option("--nodes", type=int, metavar="N", help="Nodes it ran on, where a log does not tell.")
@click.option("--gpus-per-node", type=int, metavar="N", help="GPUs of each that took part, where a log does not tell.")
@click.option("--nvls", type=click.Choice(["on", "off"]), help="Whether NCCL could use NVLink SHARP.")
@click.option("--sharp", type=click.Choice(["on", "off"]), help="Whether the network's switches added.")
@click.option("--algorithm", metavar="NAME", help="The algorithm it used: ring, tree, nvls, nvlstree, collnet, pat.")
@click.option(
    "--network",
    type=click.Choice(["fabric", "fallback", "loopback"]),
    help="fallback: TCP on purpose; loopback: one node that sends to itself through its NICs.",
)
@click.option(
    "--size", "sizes_bytes", type=SIZE, multiple=True, metavar="SIZE", help="Explain this size [default: largest]."
)
@click.option(
    "--at-least",
    multiple=True,
    metavar="GATE",
    help="A bandwidth that must be reached: 'all_reduce@1G=380GB/s'; sizes also 1G..8G, 1G.. (and larger).",
)
@click.option("--at-most", multiple=True, metavar="GATE", help="A time that must be kept: 'latency@8=2us'.")
@click.option("--gates", type=click.Path(path_type=Path), metavar="FILE", help="Gates from a TOML file.")
@click.option("--baseline", metavar="RUN", help="A run, an import or a log to be no worse than; with --within.")
@click.option("--within", multiple=True, metavar="PERCENT", help="How much worse: 5%, or 'all_reduce@1M..=5%'.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write what the gates came to for CI.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: everything, of every size.")
def judge(
    names: tuple[str, ...],
    platform_name: str | None,
    host: Path | None,
    here: bool,
    nodes: int | None,
    gpus_per_node: int | None,
    nvls: str | None,
    sharp: str | None,
    algorithm: str | None,
    network: str | None,
    sizes_bytes: tuple[int, ...],
    at_least: tuple[str, ...],
    at_most: tuple[str, ...],
    gates: Path | None,
    baseline: str | None,
    within: tuple[str, ...],
    junit: Path | None,
    as_json: bool,
) -> NoReturn:
    """Explain and judge measured sizes, and exit with the code of the verdict."""
    from busbw.api.verdicts import asked_gates, judge_results, stated_facts, write_junit
    from busbw.cli.results import exit_code_of
    from busbw.model import codec
    from busbw.show.text.verdict import gates_line, gates_text, verdict_text

    asked = asked_gates(at_least=at_least, at_most=at_most, within=within, baseline=baseline, file=gates)
    stated = stated_facts(
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        nvls=nvls,
        sharp=sharp,
        algorithm=algorithm,
        network=network,
    )
    explained = judge_results(names, platform_name=platform_name, host=host, here=here, stated=stated, gates=asked)
    if junit is not None:
        write_junit(explained, junit)
    if as_json:
        sys.stdout.write(codec.encode_pretty(explained).decode())
    else:
        if explained.gates is not None:
            gates_text(explained.gates)
            print()
        verdict_text(explained, sizes_bytes)
        if explained.gates is not None:
            gates_line(explained.gates)
    sys.stdout.flush()
    sys.exit(exit_code_of(explained))
