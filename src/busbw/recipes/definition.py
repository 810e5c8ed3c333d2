"""Definitions of containers for Apptainer and Singularity: an image, and a text that is the same for everybody."""

from busbw import __version__
from busbw.facts.recipes import Image, RecipeFacts, recipe_text
from busbw.model.recipe import Machine, RecipeFile

_USE = "the definition of the image"


def definition(facts: RecipeFacts, image: Image, machine: Machine | None) -> RecipeFile:
    """Return the definition that a recipe's build script reads; the name of the image was checked."""
    fabric = machine.fabric if machine is not None else None
    text = facts.definition_of_fabric.get(fabric or "", facts.definition or "")
    of = f" for {machine.id}" if machine is not None else ""
    head = (
        "Bootstrap: docker",
        f"From: {image.name}",
        "",
        f"# {facts.name}{of}: {_USE}. Written by busbw {__version__}.",
    )
    return RecipeFile(name="image.def", use=_USE, text="\n".join(head) + "\n" + recipe_text(text))
