"""The verbs `recipe list`, `show`, `versions`, `write` and `adopt`."""

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from busbw.api.recipes import adopted, adopted_recipe, facts_of_builds, question, recipe_list, write_recipe
from busbw.api.recipes import recipe as made_recipe
from busbw.api.recipes import versions as known_versions
from busbw.base.errors import ExitCode, InputError
from busbw.base.text import printable
from busbw.cli.checks import code_of
from busbw.cli.options import JSON
from busbw.model import codec
from busbw.model.recommendation import Recipe
from busbw.show.text.recommendation import recipe_text, recipes_text, versions_text
from busbw.store.files import check_new_folder

_FROM_SOURCE = "from-source"
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
    if any(each.kind == "nccl" for each in known):
        words = "built from source: busbw recipe show from-source before, busbw recipe adopt PREFIX after"
        print(words, file=sys.stderr)


@recipe.command()
@click.argument("name", metavar="NAME")
@_question
@JSON
def show(name: str, *, platform: str | None, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 - as click gives them
    """Say what a recipe does, what to know of its versions, and which files it has.

    NAME `from-source`: what must hold for a stack that is built from its makers' sources.
    """
    if name == _FROM_SOURCE:
        known = facts_of_builds(platform)
        if as_json:
            sys.stdout.write(codec.encode_pretty(known).decode())
            return
        from busbw.show.text.stack import from_source_text

        from_source_text(known)
        return
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
    if name == _FROM_SOURCE:
        raise InputError(
            "from-source has no files: no recipe builds other projects",
            where="NAME",
            hint="busbw recipe show from-source; then busbw recipe adopt PREFIX... --platform ID",
        )
    made = made_recipe(name, question(**asked), platform)
    directory = output if output is not None else Path(made.name)
    write_recipe(made, directory)
    for note in made.notes:
        if note.severity == "warning":
            click.echo(f"warning: {printable(note.text)}", err=True)
    _say_written(made, directory)


def _say_written(made: Recipe, directory: Path) -> None:
    click.echo(printable(f"wrote {directory}: {', '.join(file.name for file in made.files)}"), err=True)
    click.echo(printable(f"next, in {directory}: {'; '.join(made.steps)}"), err=True)


@recipe.command()
@click.argument("places", metavar="[PREFIX]...", nargs=-1)
@click.option("--platform", metavar="ID", required=True, help="The platform it is for, by id or any of its names.")
@click.option(
    "--image", type=click.Path(path_type=Path), metavar="IMAGE", help="Look into an image: .sif, .sqsh or a folder."
)
@click.option("--bind", "binds", multiple=True, metavar="HERE:INSIDE", help="A folder the image is given; repeatable.")
@click.option("--module", "modules", multiple=True, metavar="NAME", help="Module that load.sh loads; may be repeated.")
@click.option(
    "-o", "output", type=click.Path(path_type=Path), metavar="DIR", help="The folder, a new one [default: adopted]."
)
@click.option("--no-files", is_flag=True, help="Examine only, and write nothing.")
@JSON
def adopt(
    places: tuple[str, ...],
    *,
    platform: str,
    image: Path | None,
    binds: tuple[str, ...],
    modules: tuple[str, ...],
    output: Path | None,
    no_files: bool,
    as_json: bool,
) -> None:
    """Examine a stack that somebody built, without running it, and write what loads and proves it.

    PREFIX: folders or files with NCCL, its plug-in, libfabric, MPI, hwloc, nccl-tests; with --image, paths inside.

    Exit code 0: nothing but notes; 1: findings; 2: nothing of a stack is there, or no image; 4: it cannot be read.
    """
    if not places and image is None:
        raise InputError("no folder is named", where="PREFIX", hint="busbw recipe adopt PREFIX... --platform ID")
    if binds and image is None:
        raise InputError("folders are bound into an image, and none is named", where="--bind", hint="--image IMAGE")
    asked = question(modules=modules)
    pairs = tuple(map(_bind, binds))
    directory = output if output is not None else Path("adopted")
    if not no_files:
        check_new_folder(directory)
    found = adopted(places, platform, image=image, binds=pairs)
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        from busbw.show.text.stack import adoption_text

        adoption_text(found)
    sys.stdout.flush()
    if not no_files:
        made = adopted_recipe(found, modules=asked.modules, binds=pairs)
        write_recipe(made, directory)
        _say_written(made, directory)
    sys.exit(code_of(found.findings) if found.stack.files else ExitCode.CANNOT_TELL)


def _bind(text: str) -> tuple[str, str]:
    """Return the two sides of a bind; options behind a second colon are left out."""
    here, _, inside = text.partition(":")
    inside = inside.partition(":")[0] or here
    if not here.startswith("/") or not inside.startswith("/") or "\n" in text:
        raise InputError(f"{text[:80]!r} binds nothing", where="--bind", hint="--bind /here:/inside")
    return here, inside
