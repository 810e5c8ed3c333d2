"""What the verbs of `busbw recipe` print and write."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from busbw.api.recipes import question, recipe, recipe_list, versions, write_recipe
from busbw.model import codec
from busbw.show.plain import printable


def list_recipes(platform: str | None, *, as_json: bool) -> None:
    """Print one line a recipe, or all of them as JSON."""
    known = recipe_list(platform)
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(known), indent=1).decode() + "\n")
        return
    from busbw.show.text.recommendation import recipes_text

    recipes_text(known)
    print("busbw recipe show NAME tells more of one, busbw recipe write NAME writes its files", file=sys.stderr)


def show_recipe(name: str, platform: str | None, asked: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a recipe, or all of it with its files as JSON."""
    made = recipe(name, question(**asked), platform)
    if as_json:
        sys.stdout.write(codec.encode_pretty(made).decode())
        return
    from busbw.show.text.recommendation import recipe_text

    recipe_text(made)


def show_versions(*, as_json: bool) -> None:
    """Print what is known of versions, or all of it as JSON."""
    if as_json:
        sys.stdout.write(codec.encode_pretty(versions()).decode())
        return
    from busbw.show.text.recommendation import versions_text

    versions_text(versions())


def write_files(name: str, platform: str | None, asked: Mapping[str, Any], output: Path | None) -> None:
    """Write a recipe's files into `output`, else into a folder with its name; what to know goes to standard error."""
    made = recipe(name, question(**asked), platform)
    directory = output if output is not None else Path(made.name)
    write_recipe(made, directory)
    for note in made.notes:
        if note.severity == "warning":
            click.echo(f"warning: {printable(note.text)}", err=True)
    click.echo(printable(f"wrote {directory}: {', '.join(file.name for file in made.files)}"), err=True)
    click.echo(printable(f"next, in {directory}: {'; '.join(made.steps)}"), err=True)
