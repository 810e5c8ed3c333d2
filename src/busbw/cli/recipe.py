"""The verbs `recipe list`, `show`, `versions` and `write`."""

from pathlib import Path

import click

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_PLATFORM = click.option("--platform", metavar="ID", help="The platform it is for, by id or any of its names.")


@click.group()
def recipe() -> None:
    """How to get NCCL, its plug-in and a benchmark onto a machine from published packages, and how to prove it."""


def _question(verb: click.decorators.FC) -> click.decorators.FC:
    """Add the options that say what of a recipe is wanted."""
    for option in reversed(
        (
            _PLATFORM,
            click.option("--nccl", metavar="VERSION", help="Release of NCCL [default: the newest, or what there is]."),
            click.option("--cuda", metavar="VERSION", help="CUDA, as 12 or 12.9 [default: 12]."),
            click.option("--cuda-arch", metavar="ARCH", help="GPU, as 90 or sm_90 [default: the platform's]."),
            click.option("--module", "modules", multiple=True, metavar="NAME", help="Module to load; may be repeated."),
            click.option("--image", metavar="IMAGE", help="Container image to start from."),
            click.option("--release", metavar="VERSION", help="Release of the EFA software or the OSU benchmarks."),
        )
    ):
        verb = option(verb)
    return verb


@recipe.command("list")
@_PLATFORM
@_JSON
def list_(*, platform: str | None, as_json: bool) -> None:
    """List the recipes, or those for a platform."""
    from busbw.cli.recipe_verbs import list_recipes

    list_recipes(platform, as_json=as_json)


@recipe.command()
@click.argument("name", metavar="NAME")
@_question
@_JSON
def show(name: str, *, platform: str | None, as_json: bool, **asked: object) -> None:
    """Say what a recipe does, what to know of its versions, and which files it has."""
    from busbw.cli.recipe_verbs import show_recipe

    show_recipe(name, platform, asked, as_json=as_json)


@recipe.command()
@_JSON
def versions(*, as_json: bool) -> None:
    """Say which versions there are as packages, what comes with what, and what is known to fit and not to fit."""
    from busbw.cli.recipe_verbs import show_versions

    show_versions(as_json=as_json)


@recipe.command()
@click.argument("name", metavar="NAME")
@_question
@click.option(
    "-o", "output", type=click.Path(path_type=Path), metavar="DIR", help="The folder, a new one [default: NAME]."
)
def write(name: str, *, platform: str | None, output: Path | None, **asked: object) -> None:
    """Write the files of a recipe into a new folder.

    Exit code 0: written; 2: the versions do not fit, or the folder is there already.
    """
    from busbw.cli.recipe_verbs import write_files

    write_files(name, platform, asked, output)
