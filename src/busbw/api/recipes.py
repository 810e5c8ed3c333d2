"""Recipes for a platform: which there are, what one says, and its files in a folder."""

from pathlib import Path

from busbw import recipes
from busbw.api.recommendations import recommendation
from busbw.env.export import export_text
from busbw.facts.recipes import FromSource, RecipeFacts, Versions, recipe_facts, recipe_versions
from busbw.machine.capture.built import examine_host, examine_image
from busbw.machine.named import platform
from busbw.model.host import Adoption
from busbw.model.recommendation import Machine, Question, Recipe
from busbw.recipes.making import SETTINGS, adopt, fabric_binds
from busbw.recipes.stack_rules import adoption
from busbw.recipes.versions import from_source_for, question
from busbw.store.files import write_folder

__all__ = [
    "adopted",
    "adopted_recipe",
    "facts_of_builds",
    "machine",
    "question",
    "recipe",
    "recipe_list",
    "versions",
    "write_recipe",
]

_FORMS = {SETTINGS: "sh", "nccl.conf": "nccl.conf"}
_OF_SRUN = "srun --"


def recipe_list(platform_name: str | None = None) -> tuple[RecipeFacts, ...]:
    """Return every recipe, or those that are for a platform. Raises InputError for an unknown platform."""
    if platform_name is None:
        return recipe_facts()
    return recipes.fitting_machine(machine(platform_name))


def versions() -> Versions:
    """Return which releases there are, what comes with what, and what is known to fit and not to fit."""
    return recipe_versions()


def recipe(name: str, asked: Question, platform_name: str | None = None) -> Recipe:
    """Return a recipe with all its files.

    Raises InputError for an unknown recipe or platform, and for what is known not to fit.
    """
    nccl = recipes.release_of_nccl(name, asked)
    of = machine(platform_name, nccl=nccl) if platform_name is not None else None
    return recipes.make(name, asked, of)


def facts_of_builds(platform_name: str | None = None) -> FromSource:
    """Return what must hold for a stack that is built from source. Raises InputError for an unknown platform."""
    return from_source_for(machine(platform_name) if platform_name is not None else None)


def adopted(
    places: tuple[str, ...],
    platform_name: str,
    *,
    image: Path | None = None,
    binds: tuple[tuple[str, str], ...] = (),
) -> Adoption:
    """Return what somebody built, examined as files, and what is wrong with it on a platform.

    `image`: where the places lie, an unpacked folder or a file of Apptainer or enroot; `binds`: folders of this host
    and where they are seen in it; without any, those that its fabric needs. Raises InputError where nothing of a stack
    is found, and for an unknown platform.
    """
    of = machine(platform_name)
    if image is None:
        return adoption(examine_host(tuple(map(Path, places))), of)
    usual = () if binds else fabric_binds(of)
    return adoption(examine_image(image, places, binds, usual), of)


def adopted_recipe(
    found: Adoption, *, modules: tuple[str, ...] = (), binds: tuple[tuple[str, str], ...] = ()
) -> Recipe:
    """Return what loads and proves a stack that was examined; `modules`: beside those whose files were given."""
    given_modules = (each.name for each in found.stack.sources if each.kind == "module")
    modules = tuple(dict.fromkeys((*modules, *given_modules)))
    nccl = found.stack.loaded("nccl")
    of = machine(found.platform, nccl=nccl.version if nccl is not None else None)
    given = binds or (fabric_binds(of) if found.stack.image is not None else ())
    return adopt(found, of, modules=modules, mounts=tuple(f"{here}:{inside}" for here, inside in given))


def write_recipe(made: Recipe, directory: Path) -> None:
    """Write a recipe's files into a new folder, all of them or none. Raises InputError where something is there."""
    write_folder(directory, tuple((file.name, file.text, file.executable) for file in made.files))


def machine(platform_name: str, *, nccl: str | None = None) -> Machine:
    """Return what a recipe needs to know of a platform, with the settings that are recommended there for an NCCL.

    Raises InputError for an unknown platform.
    """
    known = platform(platform_name).platform
    settings: tuple[tuple[str, str], ...] = ()
    launch: tuple[str, ...] = ()
    if known.kind == "gpu" and known.gpu.sm is not None:
        found = recommendation(known.id, nccl=nccl)
        launch = tuple(each.option.removeprefix("srun ") for each in found.launch if each.option.startswith(_OF_SRUN))
        if found.settings:
            settings = tuple((name, export_text(form, found)) for name, form in _FORMS.items())
    return Machine(
        id=known.id,
        fabric=known.fabric.kind,
        gpus=known.gpu.count,
        sm=known.gpu.sm,
        has_amd_gpus=known.gpu.model is not None and "Instinct" in known.gpu.model,
        processor=known.match.architecture,
        settings=settings,
        launch_options=launch,
    )
