"""The verbs about settings: `env explain`, `recommend`, `lint`, `export`."""

from pathlib import Path

import click

from busbw.cli.sizes import SIZE

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
@_JSON
def explain(name: str, *, run_name: str | None, here: bool, nccl: str | None, as_json: bool) -> None:
    """Explain one variable; a name that nothing reads is told what was meant."""
    from busbw.cli.env_explain import explain_variable

    explain_variable(name, run_name=run_name, here=here, nccl=nccl, as_json=as_json)


def _target(verb: click.decorators.FC) -> click.decorators.FC:
    """Add the options that say what settings are for."""
    for option in reversed(
        (
            click.option("--platform", metavar="ID", help="The platform [default: the one this host is]."),
            click.option("--nodes", type=int, default=2, show_default=True, metavar="N", help="Nodes of the job."),
            click.option("--collective", metavar="NAME", help="The collective that matters most."),
            click.option("--size", "size_bytes", type=SIZE, metavar="SIZE", help="The size that matters most."),
            click.option("--goal", default="bandwidth", show_default=True, metavar="GOAL", help=_GOALS),
            click.option("--follow", metavar="SOURCE", help="Follow this source where sources disagree."),
            _NCCL,
        )
    ):
        verb = option(verb)
    return verb


@env.command()
@_target
@_JSON
def recommend(
    *,
    platform: str | None,
    nodes: int,
    collective: str | None,
    size_bytes: int | None,
    goal: str,
    follow: str | None,
    nccl: str | None,
    as_json: bool,
) -> None:
    """Say what to set for a job on a platform, with reason, source, conditions and cost."""
    from busbw.api.recommend import recommendation
    from busbw.cli.env_recommend import print_recommendation

    found = recommendation(
        platform, nodes=nodes, collective=collective, size_bytes=size_bytes, goal=goal, follow=follow, nccl=nccl
    )
    print_recommendation(found, as_json=as_json)


@env.command()
@click.argument("file", metavar="[FILE|-]", required=False)
@click.option("--here", is_flag=True, help="This environment and the nccl.conf files of this host.")
@click.option("--run", "run_name", metavar="ID", help="The environment of a run.")
@click.option("--platform", metavar="ID", help="The platform it is for.")
@click.option(
    "--as",
    "language",
    metavar="KIND",
    help="Read FILE as environment, nccl.conf, shell, slurm, dockerfile, apptainer, kubernetes, modulefile, systemd, "
    "python or markdown.",
)
@click.option("--fix", is_flag=True, help="Print what to change as a diff.")
@_NCCL
@_JSON
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

    Exit code 0: nothing; 1: findings; 2: cannot be read.
    """
    from busbw.cli.env_lint import lint_settings

    lint_settings(
        file,
        here=here,
        run_name=run_name,
        platform=platform,
        language=language,
        fix=fix,
        nccl=nccl,
        as_json=as_json,
    )


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
    nccl: str | None,
    output: Path | None,
) -> None:
    """Write the recommended settings in a form that something reads, with the reasons as comments."""
    from busbw.api.recommend import recommendation
    from busbw.cli.env_export import write_settings
    from busbw.env.export import check_form

    check_form(form)
    found = recommendation(
        platform, nodes=nodes, collective=collective, size_bytes=size_bytes, goal=goal, follow=follow, nccl=nccl
    )
    write_settings(found, form, output)
