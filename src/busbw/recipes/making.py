"""A recipe for a question: versions settled, what does not fit refused, every file written out."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from msgspec.structs import replace

from busbw import __version__
from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.facts.containers import container_facts
from busbw.facts.recipes import (
    Image,
    RecipeFacts,
    Release,
    ScriptFacts,
    adopting_facts,
    recipe_facts,
    recipe_text,
    recipe_versions,
)
from busbw.model.host import Adoption
from busbw.model.recommendation import Machine, Question, Recipe, RecipeFile, RecipeNote
from busbw.recipes import versions
from busbw.recipes.stack_rules import fabric_stack
from busbw.recipes.versions import check_machine, notes

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


_COLUMNS = 100


def readme(recipe: Recipe) -> RecipeFile:
    """Return the page as Markdown: what it is, the commands in order, what to know, files, sources."""
    return RecipeFile(name="README.md", use="this recipe in words", text="\n".join(_lines(recipe)) + "\n")


def _lines(recipe: Recipe) -> Iterator[str]:
    yield f"# {recipe.title}"
    yield ""
    of = f" for {recipe.platform}" if recipe.platform is not None else ""
    yield from _wrapped(f"Recipe {recipe.name}{of}, written by busbw {__version__}. {recipe.about}")
    yield from _list("Needs", recipe.needs)
    yield from ("", "## Steps", "", "```sh", *recipe.steps, "```", "")
    elsewhere = " Without Slurm: `HOSTS=FILE bash check.sh`, with a host file." if "Slurm" not in recipe.needs else ""
    yield from _wrapped(
        f"check.sh ends with exit code 0 where everything is proven, else with 1 and a list of what is not.{elsewhere}"
    )
    yield from _list("To know", (_note(note.text, note.source, note.severity) for note in recipe.notes))
    yield from _list("Files", (f"{file.name}: {file.use}" for file in recipe.files))
    yield from ("", "## Versions without a package", "", *_wrapped(recipe.from_source))
    yield from _list("Sources", recipe.sources)


def _note(text: str, source: str | None, severity: str) -> str:
    return f"{'warning: ' if severity == 'warning' else ''}{text}{f' ({source})' if source else ''}"


def _list(heading: str, items: Iterable[str]) -> Iterator[str]:
    rows = list(items)
    if rows:
        yield from ("", f"## {heading}", "")
        for row in rows:
            yield from _wrapped(row, "- ", "  ")


def _wrapped(text: str, first: str = "", others: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        _COLUMNS,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


Values = Mapping[str, str | tuple[str, ...]]

# An image takes longer to build than two nodes to be measured.
_BUILD_TIME, _MEASURE_TIME = "00:30:00", "00:10:00"


def script(facts: RecipeFacts, part: ScriptFacts, values: Values, machine: Machine | None) -> RecipeFile:
    """Return one script of a recipe, with the values that its text names."""
    body = "".join(map(recipe_text, part.bodies))
    first = "# shellcheck shell=bash" if part.sourced else "#!/bin/bash"
    lines = [first, *(_directives(facts, part.nodes, machine) if part.nodes is not None else ())]
    of = f" for {machine.id}" if machine is not None else ""
    lines.append(f"# {facts.name}{of}: {part.use}.")
    lines.append(f"# Written by busbw {__version__}.")
    if not part.sourced:
        lines.append("set -euo pipefail")
    given = [assignment(name, value) for name, value in values.items() if _names(body, name)]
    lines += ["", *given] if given else []
    text = "\n".join(lines) + "\n" + ("" if body.startswith("\n") else "\n") + body
    return RecipeFile(name=part.name, use=part.use, text=text, executable=not part.sourced)


def assignment(name: str, value: str | tuple[str, ...]) -> str:
    """Return what sets a variable of bash to a text, or to an array of texts."""
    if isinstance(value, str):
        return f"{name}={_quoted(value)}"
    return f"{name}=({' '.join(map(_quoted, value))})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _names(body: str, name: str) -> bool:
    return re.search(rf"\$\{{?#?{name}\b|\b{name}\+=", body) is not None


def _directives(facts: RecipeFacts, nodes: int, machine: Machine | None) -> Iterable[str]:
    yield f"#SBATCH --job-name={facts.name}"
    yield f"#SBATCH --nodes={nodes}"
    # Other jobs on a node would share its NICs.
    if nodes > 1:
        yield "#SBATCH --exclusive"
    if machine is not None and machine.gpus > 0:
        yield f"#SBATCH --gpus-per-node={machine.gpus if nodes > 1 else 1}"
    yield f"#SBATCH --time={_MEASURE_TIME if nodes > 1 else _BUILD_TIME}"
    yield "#SBATCH --output=%x-%j.out"


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
_BUILT = (
    "What was adopted was built by somebody, and busbw builds nothing. What must hold before another build: "
    "busbw recipe show from-source."
)
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

    Raises InputError for an unknown recipe, and for releases that do not exist.
    """
    facts = find(name)
    return versions.nccl(facts, question, versions.image(facts, question), versions.release(facts, question))


def make(name: str, question: Question, machine: Machine | None) -> Recipe:
    """Return a recipe with its files; machine None: for any that it fits.

    Raises InputError for an unknown recipe, that is not for this machine, and for versions that do not fit.
    """
    facts = find(name)
    if machine is not None:
        check_machine(facts, machine)
    image, release = versions.image(facts, question), versions.release(facts, question)
    nccl = release_of_nccl(name, question)
    remarks = tuple(notes(facts, question, machine, nccl=nccl, image=image, release=release))
    values = _values(facts, question, machine, nccl=nccl, release=release)
    return _recipe(facts, machine, remarks, tuple(_files(facts, values, machine, image)))


def adopt(found: Adoption, machine: Machine, *, modules: tuple[str, ...], mounts: tuple[str, ...]) -> Recipe:
    """Return the recipe of a stack that was examined: what loads it and what proves it. `mounts`: of an image."""
    stack = found.stack
    facts = next(each for each in adopting_facts() if each.name == ("adopted-image" if stack.image else "adopted"))
    values = _adopted_values(found, machine, modules=modules, mounts=mounts)
    remarks = tuple(
        RecipeNote(
            severity="note" if each.severity == "note" else "warning",
            text=f"{each.code}: {each.title}{f'; fix: {each.fix}' if each.fix else ''}",
        )
        for each in found.findings
    )
    remarks += tuple(RecipeNote(severity="note", text=f"cannot tell {each}") for each in found.cannot_tell)
    return _recipe(facts, machine, remarks, tuple(_files(facts, values, machine, None)), from_source=_BUILT)


def _adopted_values(found: Adoption, machine: Machine, *, modules: tuple[str, ...], mounts: tuple[str, ...]) -> Values:
    stack = found.stack
    nccl, plugin, need = stack.loaded("nccl"), stack.network_plugin(), fabric_stack(machine)
    ours = plugin if plugin is not None and plugin.version is not None else None
    tests = [each for each in stack.files if each.role == "nccl-tests" and any("mpi" in it.name for it in each.needs)]
    by_name = sorted(tests, key=lambda each: ("all_reduce" not in each.path, each.path))
    has_own_name = plugin is not None and not plugin.is_usual_plugin
    return {
        **_common_values(machine),
        "nccl_version": (nccl.version or "") if nccl is not None else "",
        "modules": modules,
        "library_path": stack.library_path,
        "net_plugin": plugin.path if plugin is not None and has_own_name else "",
        "plugin_version": (ours.version or "") if ours is not None else "",
        "provider": (need.provider or "") if need is not None and ours is not None else "",
        "examined": tuple(f"{each.size_bytes} {each.path}" for each in stack.files),
        "inside_files": tuple(each.path for each in stack.files),
        "nccl_tests": by_name[0].path if by_name else "",
        "ranks_per_node": str(machine.gpus or 1),
        "container_image": stack.image or "",
        "mounts": mounts,
    }


def _recipe(
    facts: RecipeFacts,
    machine: Machine | None,
    remarks: tuple[RecipeNote, ...],
    files: tuple[RecipeFile, ...],
    *,
    from_source: str | None = None,
) -> Recipe:
    made = Recipe(
        name=facts.name,
        title=facts.title,
        about=facts.about,
        platform=machine.id if machine is not None else None,
        needs=facts.needs,
        steps=facts.steps,
        notes=remarks,
        files=files,
        from_source=from_source or _FROM_SOURCE[facts.kind],
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
    return {
        **_common_values(machine),
        "nccl_version": nccl or "",
        "wheel": versions.wheel(question).name if facts.nccl_from == "wheel" else "",
        "cuda": question.cuda or str(versions.cuda_major(question)),
        "cuda_arch": str(_arch(question, machine) or ""),
        "modules": _modules(facts, question, machine),
        "container_image": ("busbw.sif" if facts.kind == "nccl" else "osu.sif") if facts.image is not None else "",
        "binds": _binds(machine),
        "release": release.version if release is not None else "",
        "sha256": (release.sha256 or "") if release is not None else "",
        "cc": facts.compilers[0],
        "cxx": facts.compilers[1],
    }


def _common_values(machine: Machine | None) -> dict[str, str | tuple[str, ...]]:
    """Return what every recipe says of a machine."""
    launch = machine.launch_options if machine is not None else ()
    return {
        "platform": machine.id if machine is not None else "",
        "network": _NETWORK.get(machine.fabric or "", "") if machine is not None else "",
        "run_options": tuple(f"--launcher-option={option}" for option in launch),
        "srun_options": launch,
    }


def fabric_binds(machine: Machine | None) -> tuple[tuple[str, str], ...]:
    """Return the folders with the libraries of a host's fabric, each with where a container is to see it."""
    return tuple(
        (library.source_path, library.target_path)
        for need in container_facts().fabric
        if machine is not None and machine.fabric in need.kinds
        for library in need.libraries
    )


def _binds(machine: Machine | None) -> tuple[str, ...]:
    """Return the words that show a container the libraries of the host's fabric."""
    return tuple(word for here, inside in fabric_binds(machine) for word in ("--bind", f"{here}:{inside}:ro"))


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
