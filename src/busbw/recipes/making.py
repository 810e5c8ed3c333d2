"""A recipe for a question: versions settled, what does not fit refused, every file written out."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from msgspec.structs import replace

from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.facts.containers import container_facts
from busbw.facts.recipes import Image, RecipeFacts, Release, recipe_facts, recipe_versions
from busbw.model.recipe import Machine, Question, Recipe, RecipeFile
from busbw.recipes import versions
from busbw.recipes.definition import definition
from busbw.recipes.fitting import check_machine, notes
from busbw.recipes.readme import readme
from busbw.recipes.script import Values, script

SETTINGS = "env_vars.sh"
# What NCCL says it uses, as a regular expression for grep -E.
_NETWORK = {
    "InfiniBand": "g?IB",
    "RoCE": "g?IB",
    "EFA": "(AWS )?Libfabric",
    "Slingshot": "(AWS )?Libfabric",
    "TCPXO": "FasTrak",
}
_FROM_SOURCE = {
    "nccl": "A release of NCCL or of its plug-in that no package, module or image has would have to be compiled from "
    "source. This recipe does not do that; how it is done their makers say: github.com/NVIDIA/nccl, "
    "github.com/aws/aws-ofi-nccl.",
    "osu": "Releases of the benchmarks that are not known here: mvapich.cse.ohio-state.edu/benchmarks.",
}
_NO_SETTINGS = "# No platform was named, so nothing is set: busbw env export --format sh --platform ID\n"


def find(name: str) -> RecipeFacts:
    """Return the recipe with this name. Raises InputError where there is none."""
    names = [each.name for each in recipe_facts()]
    for each in recipe_facts():
        if each.name == name:
            return each
    raise InputError(f"there is no recipe {name[:80]!r}{maybe(name[:80], names)}", hint=f"recipes: {', '.join(names)}")


def fitting_machine(machine: Machine) -> tuple[RecipeFacts, ...]:
    """Return the recipes that are for a machine."""
    return tuple(each for each in recipe_facts() if _is_for(each, machine))


def release_of_nccl(name: str, question: Question) -> str | None:
    """Return the release of NCCL that a recipe installs or expects; None: whichever there is.

    Raises InputError for a recipe that there is not, and for releases that do not exist.
    """
    facts = find(name)
    return versions.nccl(facts, question, versions.image(facts, question), versions.release(facts, question))


def make(name: str, question: Question, machine: Machine | None) -> Recipe:
    """Return a recipe with its files; machine None: for any that it fits.

    Raises InputError for a recipe that there is not, that is not for this machine, and for versions that do not fit.
    """
    facts = find(name)
    if machine is not None:
        check_machine(facts, machine)
    image, release = versions.image(facts, question), versions.release(facts, question)
    nccl = release_of_nccl(name, question)
    told = tuple(notes(facts, question, machine, nccl=nccl, image=image, release=release))
    values = _values(facts, question, machine, nccl=nccl, release=release)
    made = Recipe(
        name=facts.name,
        title=facts.title,
        about=facts.about,
        platform=machine.id if machine is not None else None,
        needs=facts.needs,
        steps=facts.steps,
        notes=told,
        files=tuple(_files(facts, values, machine, image)),
        from_source=_FROM_SOURCE[facts.kind],
        sources=facts.source,
    )
    return replace(made, files=(readme(made), *made.files))


def _files(facts: RecipeFacts, values: Values, machine: Machine | None, image: Image | None) -> Iterator[RecipeFile]:
    yield from (script(facts, part, values, machine) for part in facts.scripts)
    if image is not None:
        yield definition(facts, image, machine)
    settings = dict(machine.settings) if machine is not None and facts.kind == "nccl" else {}
    if image is not None and facts.kind == "nccl":
        settings = {SETTINGS: _NO_SETTINGS, **settings}
    for name, text in settings.items():
        yield RecipeFile(name=name, use=f"settings, as `busbw env export` writes them into {name}", text=text)


def _values(
    facts: RecipeFacts, question: Question, machine: Machine | None, *, nccl: str | None, release: Release | None
) -> Values:
    """Return every value that a script may name."""
    launch = machine.launch_options if machine is not None else ()
    return {
        "platform": machine.id if machine is not None else "",
        "nccl_version": nccl or "",
        "network": _NETWORK.get(machine.fabric or "", "") if machine is not None else "",
        "wheel": versions.wheel(question).name if facts.nccl_from == "wheel" else "",
        "cuda": question.cuda or str(versions.cuda_major(question)),
        "cuda_arch": str(_arch(question, machine) or ""),
        "modules": _modules(facts, question, machine),
        "container_image": ("busbw.sif" if facts.kind == "nccl" else "osu.sif") if facts.image is not None else "",
        "run_options": tuple(f"--launcher-option={option}" for option in launch),
        "srun_options": launch,
        "binds": _binds(machine),
        "release": release.version if release is not None else "",
        "sha256": (release.sha256 or "") if release is not None else "",
        "cc": facts.compilers[0],
        "cxx": facts.compilers[1],
    }


def _binds(machine: Machine | None) -> tuple[str, ...]:
    """Return the words that show a container the libraries of the host's fabric."""
    libraries = [
        library
        for need in container_facts().fabric
        if machine is not None and machine.fabric in need.kinds
        for library in need.libraries
    ]
    return tuple(word for each in libraries for word in ("--bind", f"{each.source_path}:{each.target_path}:ro"))


def _arch(question: Question, machine: Machine | None) -> int | None:
    return question.cuda_arch or (machine.sm if machine is not None else None)


def _modules(facts: RecipeFacts, question: Question, machine: Machine | None) -> tuple[str, ...]:
    """Return the modules to load: those that are named, else those published for the machine."""
    takes = any("load_modules.sh" in part.bodies for part in facts.scripts)
    if question.modules:
        if not takes:
            raise InputError(f"{facts.name} loads no modules", where="--module")
        return question.modules
    published = [
        each.modules
        for each in recipe_versions().modules
        if each.recipe == facts.name
        and machine is not None
        and any(fnmatchcase(machine.id, glob) for glob in each.platforms)
    ]
    if not published and facts.needs_modules:
        of = f" for {machine.id}" if machine is not None else ""
        raise InputError(f"no module is known{of}", where=facts.name, hint="name it: --module NAME (see: module avail)")
    return published[0] if published else ()


def _is_for(facts: RecipeFacts, machine: Machine) -> bool:
    try:
        check_machine(facts, machine)
    except InputError:
        return False
    return True
