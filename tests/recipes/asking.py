"""Every recipe on every platform it is for, with what else may be asked."""

from functools import cache

from busbw import recipes
from busbw.api.recipes import machine, question
from busbw.base.errors import InputError
from busbw.facts.recipes import recipe_facts
from busbw.machine.named import platforms
from busbw.model.recommendation import Machine, Recipe

NAMES = tuple(each.name for each in recipe_facts())
PLATFORMS = tuple(each.platform.id for each in platforms())
# Named where a recipe needs a module and none is published.
MODULES = ("site/stack",)

machine_of = cache(machine)


def made(name: str, platform: str | Machine | None, **asked: object) -> Recipe:
    """Return a recipe, with a module where it needs one that nobody has published."""
    of = machine_of(platform) if isinstance(platform, str) else platform
    try:
        return recipes.make(name, question(**asked), of)  # type: ignore[arg-type]
    except InputError as error:
        if "no module is known" not in error.cause:
            raise
        return recipes.make(name, question(**{**asked, "modules": MODULES}), of)  # type: ignore[arg-type]


@cache
def everywhere() -> tuple[Recipe, ...]:
    """Return every recipe without a platform, and on each that it is for."""
    found = [made(name, None) for name in NAMES]
    for platform in PLATFORMS:
        found += [made(facts.name, platform) for facts in recipes.fitting_machine(machine_of(platform))]
    return tuple(found)
