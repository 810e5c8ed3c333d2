"""Whether versions, machine and recipe fit together, by what is published: what does not is refused, or said."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from busbw.base.errors import InputError
from busbw.facts.recipes import Image, Misfit, RecipeFacts, Release, recipe_versions
from busbw.model.recipe import Machine, Question, RecipeNote
from busbw.recipes.asked import numbers
from busbw.recipes.versions import cuda_major, is_newer


def check_machine(facts: RecipeFacts, machine: Machine) -> None:
    """Raise InputError for a recipe that is not for this machine."""
    if facts.kind == "nccl" and machine.gpus > 0 and machine.sm is None:
        raise InputError(f"{machine.id} has no GPUs of NVIDIA, and NCCL is for these", where=facts.name)
    if facts.kind == "nccl" and machine.gpus == 0 and machine.fabric is not None:
        raise InputError(f"{machine.id} has no GPUs", where=facts.name, hint="busbw recipe show osu-modules")
    if facts.fabrics and machine.fabric is not None and machine.fabric not in facts.fabrics:
        raise InputError(
            f"{facts.name} is for {' and '.join(facts.fabrics)}, and {machine.id} has {machine.fabric}",
            where="--platform",
            hint="busbw recipe list --platform " + machine.id,
        )
    if facts.platforms and not _matches(machine.id, facts.platforms):
        raise InputError(f"{facts.name} is for {', '.join(facts.platforms)}", where="--platform")


def notes(
    facts: RecipeFacts,
    question: Question,
    machine: Machine | None,
    *,
    nccl: str | None,
    image: Image | None,
    release: Release | None,
) -> Iterator[RecipeNote]:
    """Yield what should be known before. Raises InputError for what is known not to fit."""
    for misfit in recipe_versions().misfit:
        if _applies(misfit, facts, question, machine, nccl=nccl):
            if misfit.severity == "error":
                raise InputError(f"{misfit.text} ({misfit.source})", where=facts.name, hint=misfit.instead)
            yield RecipeNote(severity="warning", text=misfit.text, source=misfit.source)
    if facts.nccl_from is not None and nccl is not None and is_newer(nccl):
        until = max(each.checked for each in recipe_versions().wheel)
        yield RecipeNote(
            severity="note", text=f"NCCL {nccl} is newer than all that was published by {until}: it may not exist"
        )
    if facts.nccl_from == "package":
        for package in recipe_versions().package:
            if package.nccl == nccl:
                text = f"NVIDIA has published packages of NCCL {nccl} for CUDA {', '.join(package.cuda)}"
                yield RecipeNote(severity="note", text=text, source=package.source)
    yield from _contents(image, release, nccl)
    yield from (RecipeNote(severity="note", text=text) for text in facts.notes)
    yield from _tried(facts, machine)


def _contents(image: Image | None, release: Release | None, nccl: str | None) -> Iterator[RecipeNote]:
    if image is not None:
        held = _list(("NCCL", image.nccl), ("CUDA", image.cuda), ("aws-ofi-nccl", image.plugin), ("HPC-X", image.hpcx))
        text = f"{image.name}: {held or 'which NCCL and plug-in it has is not known here; the check prints them'}"
        yield RecipeNote(severity="note", text=text, source=image.source)
    if release is not None and release.of == "efa":
        held = _list(("libfabric", release.libfabric), ("aws-ofi-nccl", release.plugin))
        text = f"EFA software {release.version}: {held or 'which plug-in it brings is not known here'}"
        yield RecipeNote(severity="note", text=text, source=release.source)
        yield from _tested(release, nccl)


def _tested(release: Release, nccl: str | None) -> Iterator[RecipeNote]:
    """Yield what the plug-in of a release was tested with, and whether the NCCL that was chosen is newer."""
    plugin = next((each for each in recipe_versions().plugin if each.version == release.plugin), None)
    if plugin is None:
        yield RecipeNote(severity="note", text="with which NCCL this plug-in was tested is not known here")
        return
    tested = f"aws-ofi-nccl {plugin.version} was tested with NCCL {', '.join(plugin.nccl)}"
    if nccl is not None and numbers(nccl) > max(map(numbers, plugin.nccl)):
        yield RecipeNote(severity="warning", text=f"{tested}, and {nccl} is newer", source=plugin.source)
    else:
        since = f", and works with {plugin.nccl_since} and later" if plugin.nccl_since is not None else ""
        yield RecipeNote(severity="note", text=tested + since, source=plugin.source)


def _tried(facts: RecipeFacts, machine: Machine | None) -> Iterator[RecipeNote]:
    """Yield what somebody has run on this platform, for the recipes about NCCL."""
    if facts.kind == "nccl" and machine is not None:
        for each in recipe_versions().tried:
            if _matches(machine.id, each.platforms):
                stack = _list(
                    ("NCCL", each.nccl),
                    ("CUDA", each.cuda),
                    ("aws-ofi-nccl", each.plugin),
                    ("libfabric", each.libfabric),
                    ("in", each.image),
                )
                yield RecipeNote(
                    severity="note",
                    text=f"published for this platform: {stack}: {each.result or 'without a result'}",
                    source=each.source,
                )


def _applies(
    misfit: Misfit, facts: RecipeFacts, question: Question, machine: Machine | None, *, nccl: str | None
) -> bool:
    sm = question.cuda_arch or (machine.sm if machine is not None else None)
    cuda = cuda_major(question) if facts.nccl_from is not None or question.cuda is not None else None
    return all(
        (
            facts.kind == "nccl",
            not misfit.recipes or facts.name in misfit.recipes,
            not misfit.platforms or (machine is not None and _matches(machine.id, misfit.platforms)),
            not misfit.fabrics or (machine is not None and machine.fabric in misfit.fabrics),
            misfit.nccl_from is None or (nccl is not None and numbers(nccl) >= numbers(misfit.nccl_from)),
            misfit.nccl_until is None or (nccl is not None and numbers(nccl) < numbers(misfit.nccl_until)),
            misfit.cuda_from is None or (cuda is not None and cuda >= misfit.cuda_from),
            misfit.sm_from is None or (sm is not None and sm >= misfit.sm_from),
            misfit.sm_to is None or (sm is not None and sm <= misfit.sm_to),
        )
    )


def _list(*pairs: tuple[str, str | None]) -> str:
    return ", ".join(f"{name} {value}" for name, value in pairs if value is not None)


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
