"""The verbs `recipe list`, `show`, `versions` and `write`."""

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from busbw.api.recipes import question, recipe_list, write_recipe
from busbw.api.recipes import recipe as made_recipe
from busbw.api.recipes import versions as known_versions
from busbw.base.text import printable
from busbw.cli.options import JSON
from busbw.model import codec
from busbw.show.text.recommendation import recipe_text, recipes_text, versions_text

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
@JSON
def list_(*, platform: str | None, as_json: bool) -> None:
    """List the recipes, or those for a platform."""
    known = recipe_list(platform)
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(known), indent=1).decode() + "\n")
        return
    recipes_text(known)
    print("busbw recipe show NAME tells more of one, busbw recipe write NAME writes its files", file=sys.stderr)


@recipe.command()
@click.argument("name", metavar="NAME")
@_question
@JSON
def show(name: str, *, platform: str | None, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 - as click gives them
    """Say what a recipe does, what to know of its versions, and which files it has."""
    made = made_recipe(name, question(**asked), platform)
    if as_json:
        sys.stdout.write(codec.encode_pretty(made).decode())
        return
    recipe_text(made)


@recipe.command()
@JSON
def versions(*, as_json: bool) -> None:
    """Say which versions there are as packages, what comes with what, and what is known to fit and not to fit."""
    if as_json:
        sys.stdout.write(codec.encode_pretty(known_versions()).decode())
        return
    versions_text(known_versions())


@recipe.command()
@click.argument("name", metavar="NAME")
@_question
@click.option(
    "-o", "output", type=click.Path(path_type=Path), metavar="DIR", help="The folder, a new one [default: NAME]."
)
def write(name: str, *, platform: str | None, output: Path | None, **asked: Any) -> None:  # noqa: ANN401 - as click gives them
    """Write the files of a recipe into a new folder.

    Exit code 0: written; 2: the versions do not fit, or the folder is there already.
    """
    made = made_recipe(name, question(**asked), platform)
    directory = output if output is not None else Path(made.name)
    write_recipe(made, directory)
    for note in made.notes:
        if note.severity == "warning":
            click.echo(f"warning: {printable(note.text)}", err=True)
    click.echo(printable(f"wrote {directory}: {', '.join(file.name for file in made.files)}"), err=True)
    click.echo(printable(f"next, in {directory}: {'; '.join(made.steps)}"), err=True)
