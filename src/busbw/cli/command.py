"""The `busbw` command and its verbs. Each verb imports what it needs when it runs, so that --help stays quick."""

from pathlib import Path

import click

from busbw import __version__
from busbw.cli.bisect import bisect_command
from busbw.cli.compare import compare_command
from busbw.cli.doctor import doctor
from busbw.cli.env import env
from busbw.cli.judge import judge
from busbw.cli.launch import launch
from busbw.cli.machine import limit, platform, probe
from busbw.cli.options import batch_options, container_options, host_options
from busbw.cli.recipe import recipe
from busbw.cli.runs import runs, trend
from busbw.cli.scaling import scaling
from busbw.cli.sizes import SIZE
from busbw.cli.topo import topo

_RUN_HELP = """Measure collectives on this machine and judge the result.

COLLECTIVES are nccl-tests' names: all_reduce, all_gather, reduce_scatter, broadcast, reduce, alltoall, gather,
scatter, sendrecv, alltoall_2dh; over NCCL also alltoallv, hypercube; over MPI also latency, bandwidth, bibw,
message_rate between pairs of ranks. Without any, the suite `six`.

Options that nccl-tests has too have its letters: -b -e -f -i -n -w -c -o -d -r -g -G -R. With the backends for MPI -n
is the number of ranks, as mpirun has it, and -o the folder.

The result goes to standard output, progress to standard error. Exit code 0: ok; 1: findings; 2: bad input; 3: the
run failed; 4: cannot tell.
"""


_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON: the content of run.json or plan.json.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="busbw")
def busbw() -> None:
    """Is the interconnect of this machine as fast as it should be, and what to change if it is not?"""


@busbw.command("run", help=_RUN_HELP)
@click.argument("collectives", nargs=-1)
@click.option("--suite", metavar="NAME", help="six: the six collectives of the pinning studies; p2p: point to point.")
@click.option(
    "--backend",
    default="native-mpi",
    show_default=True,
    metavar="NAME",
    help="native-mpi, native-nccl (or mpi, nccl): our loops; nccl-tests, osu: your binaries.",
)
@click.option(
    "--ranks", "--np", "ranks", type=int, metavar="RANKS", help="Ranks [default: the cores, at most 8; all GPUs]."
)
@click.option("-n", "letter_n", type=int, metavar="N", help="NCCL: calls of one sample (--calls). MPI: --ranks.")
@click.option("--calls", type=int, metavar="N", help="Calls of one stream, graph or loaded sample [default: 20].")
@click.option("-w", "--warmup", type=int, metavar="N", help="Calls before the first sample [default: until stable].")
@click.option("-c", "--check", type=int, default=1, show_default=True, help="0: do not verify results.")
@click.option("-b", "smallest", type=SIZE, help="Smallest size [default: 8].")
@click.option(
    "-e",
    "largest",
    type=SIZE,
    help="Largest size [default: 64M; 16M for several collectives, 2M with windows; NCCL 1G].",
)
@click.option(
    "-f",
    "factor",
    type=int,
    metavar="FACTOR",
    help="Sizes grow by this factor [default: 2; 8 for several collectives].",
)
@click.option("-i", "step", type=SIZE, help="Sizes grow by this many bytes instead.")
@click.option("-d", "--dtype", default="float32", show_default=True, help="Data types, separated by commas, or all.")
@click.option("--op", help="Operations of reductions: sum, prod, min, max; NCCL: avg, mulsum; or all [default: sum].")
@click.option("-o", "letter_o", metavar="OP|DIR", help="NCCL: --op. MPI: --out.")
@click.option("-r", "--root", default="0", show_default=True, help="Root of rooted collectives, or all.")
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
    type=click.Choice(["isolated", "stream", "graph", "loaded"]),
    help="isolated: each call alone after an aligned start; stream: back to back, as nccl-tests; graph: captured and "
    "replayed; loaded: beside matrix products [default: isolated over MPI, stream over NCCL].",
)
@click.option("-G", "--graph", type=int, metavar="N", help="As nccl-tests: more than 0 is --mode graph.")
@click.option("-g", "--gpus", type=int, default=1, show_default=True, help="GPUs that each process drives.")
@click.option(
    "-R",
    "--register",
    type=click.Choice(["0", "1", "2"]),
    default="0",
    show_default=True,
    help="Buffers: 0 plain, 1 registered, 2 symmetric windows.",
)
@click.option(
    "--cache",
    type=click.Choice(["cold", "warm"]),
    default="cold",
    show_default=True,
    help="cold: calls move through more memory than the GPU's L2 cache holds.",
)
@click.option(
    "--memory",
    type=click.Choice(["nccl", "cuda"]),
    help="Buffers from ncclMemAlloc [default, since 2.19] or cuMemAlloc.",
)
@click.option("--config", multiple=True, metavar="NAME=VALUE", help="A field of ncclConfig_t, such as CTAPolicy=2.")
@click.option("--pairs", metavar="PAIRS", help="sendrecv between two ranks at a time: all, rail, cross, or 0-1,2-3.")
@click.option("--group", type=int, metavar="N", help="Ranks of one node, for alltoall_2dh and --pairs rail.")
@click.option(
    "--unaligned", is_flag=True, help="Parts of a size that is split are whole elements, not multiples of 16 bytes."
)
@click.option(
    "--matrix", type=click.Path(path_type=Path), metavar="FILE", help="alltoallv: bytes from each rank to each."
)
@click.option("--no-multicast", "multicast_off", is_flag=True, help="Keep NVLink multicast (NVLS) off, in every rank.")
@click.option("--load-side", type=int, default=2048, show_default=True, help="Matrices of --mode loaded: n x n.")
@click.option("--nccl", metavar="FILE", help="The libnccl.so.2 to measure [default: LD_LIBRARY_PATH, wheel, system].")
@click.option("--driver", metavar="FILE", help="The libcuda.so.1 to use.")
@click.option("--nvrtc", metavar="FILE", help="The libnvrtc.so to use; none: the host checks.")
@host_options
@container_options
@batch_options
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
@click.option(
    "--bin", "programs", metavar="PATH", help="nccl-tests, osu: a program, or a folder of them [default: PATH]."
)
@click.option(
    "--launches",
    type=int,
    metavar="N",
    help="Starts: of each program [nccl-tests, osu: 6; 1 if one has all samples], over NCCL for small sizes [1].",
)
@click.option("--gpu-buffers", is_flag=True, help="osu: buffers on GPUs.")
@click.option("--tag", help="A word to find this run by later.")
@click.option("--platform", metavar="ID", help="The platform it runs on [default: recognised, where it can be].")
@click.option("--out", "directory", type=click.Path(path_type=Path), metavar="DIR", help="Folder for this run.")
@click.option("--resume", metavar="RUN", help="Measure what is missing in an earlier run.")
@click.option("--plan", "plan_only", is_flag=True, help="Print what would be done, and stop.")
@_JSON
def run(resume: str | None, plan_only: bool, as_json: bool, **asked: object) -> None:
    """Measure and judge."""
    from busbw.cli.run import run_request, run_resume

    if resume is not None:
        _check_alone()
        run_resume(resume, plan_only=plan_only, as_json=as_json)
    else:
        run_request(asked, plan_only=plan_only, as_json=as_json)


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
    """Print the result of a RUN, an import or a comparison: a path, the beginning of its name, or `last`."""
    from busbw.cli.results import show_run

    show_run(run_name, as_json=as_json)


@busbw.command("load")
@click.argument("run_name", metavar="RUN")
@_JSON
def load(run_name: str, as_json: bool) -> None:
    """Rebuild the result of a RUN from its raw records, and print it."""
    from busbw.cli.results import load_run

    load_run(run_name, as_json=as_json)


_COMPARISON = click.option(
    "--comparison",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What `busbw compare --json` printed, or a name.",
)
_SCALING = click.option(
    "--scaling", type=click.Path(path_type=Path), metavar="FILE", help="What `busbw scaling --json` printed."
)


@busbw.command("report")
@click.argument("run_names", metavar="[RUN]...", nargs=-1)
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="The HTML file to write.",
)
@click.option("--machine", metavar="FILE|PLATFORM", help="The node to draw: a topology file, snapshot or platform.")
@_COMPARISON
@_SCALING
def report(
    run_names: tuple[str, ...], output: Path, machine: str | None, comparison: Path | None, scaling: Path | None
) -> None:
    """Write one self-contained HTML file about one RUN [default: last] or several.

    A RUN may be an import, a file of nccl-tests or another tool, or a comparison, too.
    """
    from busbw.cli.report import write_report

    write_report(run_names, output, machine=machine, compared=comparison, scaled=scaling)


@busbw.command("plot")
@click.argument("run_names", metavar="[RUN]...", nargs=-1)
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    default=Path("curves.svg"),
    show_default=True,
    metavar="FILE",
    help="The file to write: .svg, or .png.",
)
@click.option(
    "--figure",
    "figures",
    multiple=True,
    type=click.Choice(["time", "busbw", "spread"]),
    help="What to draw; may be given several times [default: time and busbw].",
)
@_COMPARISON
@_SCALING
@click.option("--dark", is_flag=True, help="Light lines on dark ground.")
def plot(
    run_names: tuple[str, ...],
    output: Path,
    figures: tuple[str, ...],
    comparison: Path | None,
    scaling: Path | None,
    dark: bool,
) -> None:
    """Draw the curves of one RUN [default: last] or of several, an import, a comparison, or scaling, as SVG or PNG."""
    from busbw.cli.plotting import plot_comparison, plot_results, plot_scaling

    if sum((bool(run_names or figures), comparison is not None, scaling is not None)) > 1:
        raise click.UsageError("one drawing is of runs, of a comparison or of scaling: name one of them")
    if comparison is not None:
        plot_comparison(comparison, output, dark=dark)
    elif scaling is not None:
        plot_scaling(scaling, output, dark=dark)
    else:
        plot_results(run_names, output, figures, dark=dark)


@busbw.command("export")
@click.argument("run_name", metavar="RUN", default="last")
@click.option(
    "--format",
    "form",
    type=click.Choice(["nccl-tests", "json", "csv", "parquet", "superbench", "prometheus", "junit", "markdown"]),
    required=True,
    help="What to write: see docs/export.md.",
)
@click.option(
    "-o", "output", type=click.Path(path_type=Path), metavar="FILE", help="The file to write [default: print it]."
)
def export(run_name: str, form: str, output: Path | None) -> None:
    """Write a RUN in a format that other tools read."""
    from busbw.cli.exporting import export_run

    export_run(run_name, form, output)


@busbw.command("import")
@click.argument("paths", metavar="FILE|DIR|-...", nargs=-1, required=True)
@click.option("-o", "directory", type=click.Path(path_type=Path), metavar="DIR", help="Folder for this import.")
@click.option("--tag", help="A word to find this import by later.")
@click.option("--no-copy", is_flag=True, help="Keep no copy of the files, not even with secrets withheld.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the content of import.json.")
def import_(paths: tuple[str, ...], directory: Path | None, tag: str | None, no_copy: bool, as_json: bool) -> None:
    """Read results of other tools: files, folders, or - for standard input.

    Known are nccl-tests, rccl-tests, OSU, IMB and others, as text or JSON, with a launcher's prefixes, between log
    lines, compressed or not. Exit code 0: read; 1: findings; 2: nothing in it could be read.
    """
    from busbw.cli.importing import import_results

    import_results(paths, directory, tag=tag, with_copies=not no_copy, as_json=as_json)


for verb in (
    runs,
    compare_command(run),
    bisect_command(run),
    trend,
    scaling,
    platform,
    probe,
    topo,
    limit,
    env,
    launch,
    recipe,
    doctor,
    judge,
):
    busbw.add_command(verb)
