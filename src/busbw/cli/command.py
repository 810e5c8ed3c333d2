"""The `busbw` command and its verbs. Each verb imports what it needs when it runs, so that --help stays quick."""

from pathlib import Path

import click

from busbw import __version__

_RUN_HELP = """Measure collectives on this machine and judge the result.

COLLECTIVES are nccl-tests' names: all_reduce, all_gather, reduce_scatter, broadcast, reduce, alltoall, gather,
scatter, sendrecv; or latency, bandwidth, bibw, message_rate between pairs of ranks. Without any, the suite `six`.

The result goes to standard output, progress to standard error. Exit code 0: ok; 1: findings; 2: bad input; 3: the
run failed; 4: cannot tell.
"""


class _Size(click.ParamType[int]):
    name = "size"

    def convert(self, value: object, _param: click.Parameter | None, _ctx: click.Context | None) -> int:
        from busbw.units import parse_size

        return value if isinstance(value, int) else parse_size(str(value))


_SIZE = _Size()
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON: the content of run.json or plan.json.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="busbw")
def busbw() -> None:
    """Is the interconnect of this machine as fast as it should be, and what to change if it is not?"""


@busbw.command("run", help=_RUN_HELP)
@click.argument("collectives", nargs=-1)
@click.option("--suite", metavar="NAME", help="six: the six collectives of the pinning studies; p2p: point to point.")
@click.option("-n", "ranks", type=int, metavar="RANKS", help="Ranks to start [default: the cores, at most 8].")
@click.option("-b", "smallest", type=_SIZE, help="Smallest size [default: 8].")
@click.option(
    "-e", "largest", type=_SIZE, help="Largest size [default: 64M; 16M for several collectives, 2M with windows]."
)
@click.option(
    "-f",
    "factor",
    type=int,
    metavar="FACTOR",
    help="Sizes grow by this factor [default: 2; 8 for several collectives].",
)
@click.option("-i", "step", type=_SIZE, help="Sizes grow by this many bytes instead.")
@click.option("-d", "--dtype", default="float32", show_default=True, help="Data type.")
@click.option("--op", default="sum", show_default=True, help="Operation of reductions: sum, prod, min, max.")
@click.option("-r", "--root", type=int, default=0, show_default=True, help="Root of rooted collectives.")
@click.option(
    "--in-place",
    "placement",
    type=click.Choice(["out", "in", "both"]),
    default="out",
    show_default=True,
    help="Measure out of place, in place, or both.",
)
@click.option(
    "--mode",
    type=click.Choice(["isolated", "stream"]),
    default="isolated",
    show_default=True,
    help="isolated: each call alone after an aligned start; stream: back to back, as nccl-tests.",
)
@click.option("--time-limit", type=float, default=50.0, show_default=True, metavar="SECONDS", help="Of measuring.")
@click.option(
    "--stall-timeout",
    type=float,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="End the run when no rank makes progress for this long.",
)
@click.option("--min-samples", type=int, default=30, show_default=True, help="Samples of each size at least.")
@click.option("--mpirun", metavar="PROGRAM", help="The mpirun to use [default: the site's, else the wheel's].")
@click.option("--tag", help="A word to find this run by later.")
@click.option("-o", "directory", type=click.Path(path_type=Path), metavar="DIR", help="Folder for this run.")
@click.option("--resume", metavar="RUN", help="Measure what is missing in an earlier run.")
@click.option("--plan", "plan_only", is_flag=True, help="Print what would be done, and stop.")
@_JSON
def run(resume: str | None, directory: Path | None, plan_only: bool, as_json: bool, **asked: object) -> None:
    """Measure and judge."""
    from busbw.cli.run import run_request, run_resume

    if resume is not None:
        _check_alone()
        run_resume(resume, plan_only=plan_only, as_json=as_json)
    else:
        run_request(asked, directory, plan_only=plan_only, as_json=as_json)


def _check_alone() -> None:
    """Raise UsageError when --resume comes with anything that the run's own plan has decided already."""
    context = click.get_current_context()
    given = [
        parameter.opts[0] if isinstance(parameter, click.Option) else "COLLECTIVES"
        for parameter in context.command.params
        if (name := parameter.name or "") not in ("resume", "plan_only", "as_json")
        and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        and context.params.get(name) != ()
    ]
    if given:
        raise click.UsageError(f"--resume goes by the plan of that run; leave out {', '.join(given)}")


@busbw.command("show")
@click.argument("run_name", metavar="RUN", default="last")
@_JSON
def show(run_name: str, as_json: bool) -> None:
    """Print the result of a RUN: a path, the beginning of its name, or `last`."""
    from busbw.cli.results import show_run

    show_run(run_name, as_json=as_json)


@busbw.command("runs")
@_JSON
def runs(as_json: bool) -> None:
    """List the runs there are, newest last."""
    from busbw.cli.results import list_runs

    list_runs(as_json=as_json)


@busbw.command("load")
@click.argument("run_name", metavar="RUN")
@_JSON
def load(run_name: str, as_json: bool) -> None:
    """Rebuild the result of a RUN from its raw records, and print it."""
    from busbw.cli.results import load_run

    load_run(run_name, as_json=as_json)


@busbw.command("report")
@click.argument("run_name", metavar="RUN", default="last")
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="The HTML file to write.",
)
def report(run_name: str, output: Path) -> None:
    """Write one self-contained HTML file about a RUN."""
    from busbw.cli.results import write_report

    write_report(run_name, output)
