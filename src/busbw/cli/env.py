"""The verbs about settings: `env explain`, `recommend`, `lint`, `export`."""

import sys
from pathlib import Path

import click

from busbw.base.errors import ExitCode, InputError
from busbw.base.text import printable
from busbw.cli.checks import present
from busbw.cli.options import COLLECTIVE, JSON, SIZE
from busbw.model import codec
from busbw.model.envvar import Explanation
from busbw.model.finding import Checked, SettingsFix
from busbw.model.recommendation import Recommendation
from busbw.model.settings import JobEnvironment

_NCCL = click.option("--nccl", metavar="VERSION", help="The version of NCCL [default: the newest known].")
_GOALS = "bandwidth, latency, nvlink-check, nic-check, sharp, training"


@click.group()
def env() -> None:
    """Settings: what each variable does, which to set here and why, and what is wrong with those there are."""


@env.command()
@click.argument("name", metavar="NAME")
@click.option("--run", "run_name", metavar="ID", help="Say what it was set to in a run, and by whom.")
@click.option("--here", is_flag=True, help="Say what it is set to here, and by whom.")
@_NCCL
@JSON
def explain(name: str, *, run_name: str | None, here: bool, nccl: str | None, as_json: bool) -> None:
    """Explain one variable; a name that nothing reads is told what was meant."""
    found = _explained(name, run_name=run_name, here=here, nccl=nccl)
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        from busbw.show.text.envvar import explanation_text

        explanation_text(found)
    sys.stdout.flush()
    sys.exit(_exit_code(found))


def _target(verb: click.decorators.FC) -> click.decorators.FC:
    """Add the options that say what settings are for."""
    for option in reversed(
        (
            click.option("--platform", metavar="ID", help="The platform [default: the one this host is]."),
            click.option("--nodes", type=int, default=2, show_default=True, metavar="N", help="Nodes of the job."),
            click.option("--collective", type=COLLECTIVE, metavar="NAME", help="The collective that matters most."),
            click.option("--size", "size_bytes", type=SIZE, metavar="SIZE", help="The size that matters most."),
            click.option("--goal", default="bandwidth", show_default=True, metavar="GOAL", help=_GOALS),
            click.option("--follow", metavar="SOURCE", help="Follow this source where sources disagree."),
            click.option(
                "--mpi",
                metavar="NAME",
                help="Settings for the messages of this MPI too: hpcx, open-mpi-4, open-mpi-5, mvapich2, "
                "mvapich2-gdr, mvapich, mvapich-plus, intel-mpi, mpich, cray-mpich [default: where there are no GPUs, "
                "the one that is usual there].",
            ),
            _NCCL,
        )
    ):
        verb = option(verb)
    return verb


@env.command()
@_target
@JSON
def recommend(
    *,
    platform: str | None,
    nodes: int,
    collective: str | None,
    size_bytes: int | None,
    goal: str,
    follow: str | None,
    mpi: str | None,
    nccl: str | None,
    as_json: bool,
) -> None:
    """Say what to set for a job on a platform, with reason, source, conditions and cost."""
    from busbw.api.recommendations import recommendation

    found = recommendation(
        platform,
        nodes=nodes,
        collective=collective,
        size_bytes=size_bytes,
        goal=goal,
        follow=follow,
        nccl=nccl,
        mpi=mpi,
    )
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        from busbw.show.text.recommendation import recommendation_text

        recommendation_text(found)
        sys.stdout.flush()
        if found.settings:
            print("ready to paste: busbw env export --format sh, with the same options", file=sys.stderr)
    if not found.recommends:
        sys.exit(ExitCode.CANNOT_TELL)


@env.command()
@click.argument("file", metavar="[FILE|-]", required=False)
@click.option("--here", is_flag=True, help="This environment and the nccl.conf files of this host.")
@click.option("--run", "run_name", metavar="ID", help="The environment of a run.")
@click.option("--platform", metavar="ID", help="The platform it is for.")
@click.option(
    "--as",
    "language",
    metavar="KIND",
    help="Read FILE as environment, nccl.conf, shell, slurm, dockerfile, apptainer, kubernetes, json, modulefile, "
    "systemd, python or markdown.",
)
@click.option("--fix", is_flag=True, help="Print what to change as a diff.")
@_NCCL
@JSON
def lint(
    file: str | None,
    *,
    here: bool,
    run_name: str | None,
    platform: str | None,
    language: str | None,
    fix: bool,
    nccl: str | None,
    as_json: bool,
) -> None:
    """Find what is wrong with the settings of a script, a file or an environment; nothing of it is executed.

    Exit code 0: nothing, or notes; 1: findings; 2: cannot be read; 4: settings stand in it, and none was read.
    """
    _check_choice(file, here=here, run_name=run_name, language=language, fix=fix)
    if fix and file is not None:
        _print_fix(file, language=language, platform=platform, nccl=nccl, as_json=as_json)
        return
    checked = _checked(file, run_name=run_name, platform=platform, language=language, nccl=nccl)
    present(checked, as_json=as_json)


@env.command()
@click.option(
    "--format",
    "form",
    required=True,
    metavar="FORMAT",
    help="sh, nccl.conf, modulefile-lua, modulefile-tcl, slurm, mpirun, mpiexec, docker, apptainer, k8s.",
)
@_target
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="FILE", help="The file [default: stdout].")
def export(
    *,
    form: str,
    platform: str | None,
    nodes: int,
    collective: str | None,
    size_bytes: int | None,
    goal: str,
    follow: str | None,
    mpi: str | None,
    nccl: str | None,
    output: Path | None,
) -> None:
    """Write the recommended settings in a form that something reads, with the reasons as comments."""
    from busbw.api.recommendations import recommendation
    from busbw.env.export import check_form

    check_form(form)
    found = recommendation(
        platform,
        nodes=nodes,
        collective=collective,
        size_bytes=size_bytes,
        goal=goal,
        follow=follow,
        nccl=nccl,
        mpi=mpi,
    )
    _write_settings(found, form, output)


def _explained(name: str, *, run_name: str | None, here: bool, nccl: str | None) -> Explanation:
    from busbw.api.settings import explained

    if here and run_name is not None:
        raise InputError("--here and --run name two places", hint="ask for one after the other")
    return explained(name, nccl=nccl, surroundings=_surroundings(run_name) if here or run_name is not None else None)


def _exit_code(explanation: Explanation) -> ExitCode:
    if explanation.variable is None:
        return ExitCode.CANNOT_TELL if explanation.read.verdict == "open" else ExitCode.FINDINGS
    return ExitCode.OK if explanation.standing in (None, "yes") else ExitCode.FINDINGS


def _check_choice(file: str | None, *, here: bool, run_name: str | None, language: str | None, fix: bool) -> None:
    given = [name for name, is_given in (("FILE", file), ("--here", here), ("--run", run_name)) if is_given]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} are given", hint="lint one of them")
    if not given:
        raise InputError("nothing to lint is given", hint="busbw env lint job.sh, or --here, or --run last")
    if file is None and (fix or language is not None):
        raise InputError(f"{'--fix' if fix else '--as'} is for a file", hint="busbw env lint FILE --fix")


def _checked(
    file: str | None,
    *,
    run_name: str | None,
    platform: str | None,
    language: str | None,
    nccl: str | None,
) -> Checked:
    from busbw.api.settings import lint_environment, lint_file

    if file is not None:
        return lint_file(file, language=language, platform=platform, nccl=nccl)
    return lint_environment(_surroundings(run_name), platform=platform, nccl=nccl)


def _surroundings(run_name: str | None) -> JobEnvironment:
    """Return the environment and settings files of a run, or of this host. Most commands need neither."""
    from busbw.api.surroundings import surroundings_here, surroundings_of_run

    return surroundings_of_run(run_name) if run_name is not None else surroundings_here()


def _print_fix(file: str, *, language: str | None, platform: str | None, nccl: str | None, as_json: bool) -> None:
    """Print a diff that `patch` takes; nothing is written."""
    from busbw.api.settings import fixed_file

    fixed = fixed_file(file, language=language, platform=platform, nccl=nccl)
    if as_json:
        sys.stdout.write(codec.encode_pretty(fixed).decode())
    else:
        # A diff that goes into a file or `patch` is kept to the byte.
        sys.stdout.write(printable(fixed.diff) if sys.stdout.isatty() else fixed.diff)
        sys.stdout.flush()
        print(f"hint: {_remains(fixed)}", file=sys.stderr)
    sys.exit(ExitCode.FINDINGS if fixed.diff else ExitCode.OK)


def _remains(fixed: SettingsFix) -> str:
    if not fixed.diff:
        return "nothing that can be corrected with certainty"
    hidden = "; a line has secrets, which are masked: patch does not take it" if "***" in fixed.diff else ""
    return f"{fixed.findings - fixed.left} of {fixed.findings} findings are gone with this; nothing was written{hidden}"


def _write_settings(found: Recommendation, form: str, output: Path | None) -> None:
    """Write recommended settings into `output`, or to standard output; notes go to standard error.

    Exits with 4, and writes nothing, where there is nothing to recommend.
    """
    if not found.settings:
        for reason in (f"nothing is recommended for {found.platform}: nothing is written", *found.cannot_tell):
            click.echo(f"note: {printable(reason)}", err=True)
        sys.exit(ExitCode.OK if found.recommends else ExitCode.CANNOT_TELL)
    from busbw.env.export import export as export_settings

    written = export_settings(form, found)
    for note in (*written.notes, *(f"cannot tell: {each}" for each in found.cannot_tell)):
        click.echo(f"note: {printable(note)}", err=True)
    if output is None:
        sys.stdout.write(written.text)
        sys.stdout.flush()
        return
    from busbw.store.files import write_whole

    write_whole(output.absolute(), written.text.encode())
    click.echo(printable(f"wrote {output}"), err=True)
