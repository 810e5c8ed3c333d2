"""Which release of what a recipe takes, and what is known of it."""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.facts.recipes import (
    FromSource,
    Image,
    Misfit,
    RecipeFacts,
    Release,
    Wheel,
    from_source,
    recipe_versions,
)
from busbw.model.recommendation import Machine, Question, RecipeNote

_NUMBER = r"(?:0|[1-9]\d{0,4})"
_NCCL = re.compile(rf"v?(?P<release>{_NUMBER}\.{_NUMBER}\.{_NUMBER})(?:-1)?", re.ASCII)
_CUDA = re.compile(r"[1-9]\d?(?:\.\d{1,2})?", re.ASCII)
_RELEASE = re.compile(rf"{_NUMBER}(?:\.{_NUMBER}){{1,2}}(?:-{_NUMBER})?", re.ASCII)
_MODULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/@-]{0,127}", re.ASCII)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}", re.ASCII)
_ARCH = re.compile(r"(?:sm_|compute_)?(?P<major>[1-9]\d?)\.?(?P<minor>\d)a?", re.ASCII)


def question(
    *,
    nccl: str | None = None,
    cuda: str | None = None,
    cuda_arch: str | None = None,
    modules: tuple[str, ...] = (),
    image: str | None = None,
    release: str | None = None,
) -> Question:
    """Return what is asked, in one spelling. Raises InputError for what is none of what it should be."""
    return Question(
        nccl=_checked(_NCCL, nccl, "--nccl", "release of NCCL", "--nccl 2.28.9")["release"]
        if nccl is not None
        else None,
        cuda=_checked(_CUDA, cuda, "--cuda", "version of CUDA", "--cuda 12 or --cuda 12.9")[0]
        if cuda is not None
        else None,
        cuda_arch=_arch(cuda_arch) if cuda_arch is not None else None,
        modules=tuple(_checked(_MODULE, each, "--module", "name of a module", "--module NAME")[0] for each in modules),
        image=_checked(_IMAGE, image, "--image", "name of an image", "--image nvcr.io/nvidia/pytorch:26.01-py3")[0]
        if image is not None
        else None,
        release=_checked(_RELEASE, release, "--release", "release", "--release 7.5.2")[0]
        if release is not None
        else None,
    )


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version that was checked, or is a fact, for comparing."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _arch(text: str) -> int:
    match = _checked(_ARCH, text, "--cuda-arch", "architecture of a GPU", "--cuda-arch 90")
    return int(match["major"]) * 10 + int(match["minor"])


def _checked(pattern: re.Pattern[str], text: str, where: str, what: str, hint: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise InputError(f"{text[:80]!r} is no {what}", where=where, hint=hint)
    return match


# A driver runs programs of its own CUDA and of every older one, so the older wheel runs on more machines.
_USUAL_CUDA = 12


def cuda_major(question: Question) -> int:
    """Return the major version of CUDA that is asked for, or what runs on most machines."""
    return numbers(question.cuda)[0] if question.cuda is not None else _USUAL_CUDA


def wheel(question: Question) -> Wheel:
    """Return the wheel for the CUDA that is asked for. Raises InputError where NVIDIA publishes none."""
    for each in recipe_versions().wheel:
        if each.cuda == cuda_major(question):
            return each
    known = ", ".join(str(each.cuda) for each in recipe_versions().wheel)
    raise InputError(f"no wheel of NCCL for CUDA {cuda_major(question)} is known", where="--cuda", hint=f"CUDA {known}")


def tested_with(brought: Release | None) -> tuple[str, ...]:
    """Return the releases of NCCL that the plug-in which comes with a release was tested with; empty: not known."""
    of = brought.plugin if brought is not None else None
    return next((each.nccl for each in recipe_versions().plugin if each.version == of), ())


def nccl(facts: RecipeFacts, question: Question, held: Image | None, brought: Release | None) -> str | None:
    """Return the release of NCCL that a recipe installs or expects; None: whichever there is.

    Without a word it is the newest that the plug-in was tested with, where one comes along, else the newest of all.

    Raises InputError for a release that NVIDIA has not published as a wheel for this CUDA; one that is newer than the
    list is taken, because it may be there by now. Which packages there are the package manager is asked.
    """
    if facts.nccl_from is None:
        return question.nccl or (held.nccl if held is not None else None)
    if facts.nccl_from == "package":
        return question.nccl or recipe_versions().wheel[0].versions[-1]
    taken = wheel(question)
    if question.nccl is None:
        return next((each for each in reversed(tested_with(brought)) if each in taken.versions), taken.versions[-1])
    if question.nccl in taken.versions or is_newer(question.nccl):
        return question.nccl
    raise InputError(
        f"there is no {taken.name} {question.nccl}{maybe(question.nccl, taken.versions)}",
        where="--nccl",
        hint=f"published until {taken.checked}: {', '.join(taken.versions)}",
    )


def is_newer(release_of_nccl: str) -> bool:
    """Whether a release of NCCL is newer than all that were published when the lists were read."""
    return all(numbers(release_of_nccl) > numbers(each.versions[-1]) for each in recipe_versions().wheel)


def release(facts: RecipeFacts, question: Question) -> Release | None:
    """Return the release of what a recipe installs beside NCCL; None where it has none.

    Without a word it is the newest whose plug-in is known to fit some NCCL, else the newest.

    Raises InputError for a release of which nothing is known, and where there is nothing to choose.
    """
    if facts.releases is None:
        if question.release is not None:
            raise InputError(f"{facts.name} installs nothing that has releases of its own", where="--release")
        return None
    known = [each for each in recipe_versions().release if each.of == facts.releases]
    if question.release is None:
        return next((each for each in known if tested_with(each)), known[0])
    for each in known:
        if each.version == question.release:
            return each
    raise InputError(
        f"nothing is known of the release {question.release}",
        where="--release",
        hint=f"known: {', '.join(each.version for each in known)}",
    )


def image(facts: RecipeFacts, question: Question) -> Image | None:
    """Return the image that a recipe is laid over, with what is known of it; None where it needs none.

    Raises InputError where one is named that is not needed, or that holds another NCCL than the one asked for.
    """
    if facts.image is None:
        if question.image is not None:
            raise InputError(f"{facts.name} needs no image", where="--image")
        return None
    name = question.image or facts.image
    found = next((each for each in recipe_versions().image if each.name == name), None)
    if found is None:
        return Image(name=name, source="this image has not been examined", checked="")
    if None not in (question.nccl, found.nccl) and question.nccl != found.nccl:
        raise InputError(
            f"{name} has NCCL {found.nccl}, not {question.nccl}",
            where="--nccl",
            hint=_with_nccl(question.nccl, recipe_versions().image),
        )
    return found


def _with_nccl(nccl: str | None, images: Sequence[Image]) -> str:
    having = [each.name for each in images if each.nccl == nccl]
    return f"it is in {', '.join(having)}" if having else "leave --nccl out: the image brings its own"


def refuse_without_nvidia(machine: Machine, where: str) -> None:
    """Raise InputError for a machine that is known to have no GPUs of NVIDIA."""
    if machine.has_amd_gpus:
        raise InputError(f"{machine.id} has no GPUs of NVIDIA, and NCCL is for these", where=where)
    if machine.gpus == 0 and machine.fabric is not None:
        raise InputError(f"{machine.id} has no GPUs", where=where, hint="busbw recipe show osu-modules")


def check_machine(facts: RecipeFacts, machine: Machine) -> None:
    """Raise InputError for a recipe that is not for this machine."""
    if facts.kind == "nccl":
        refuse_without_nvidia(machine, facts.name)
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
    cuda = cuda_major(question) if facts.nccl_from is not None or question.cuda is not None else None
    return all(
        (
            facts.kind == "nccl",
            not misfit.recipes or facts.name in misfit.recipes,
            is_misfit(misfit, machine, nccl=nccl, cuda=cuda, sm=question.cuda_arch),
        )
    )


def is_misfit(
    misfit: Misfit, machine: Machine | None, *, nccl: str | None, cuda: int | None, sm: int | None = None
) -> bool:
    """Whether what is known not to fit is what there is. `sm`: another GPU than the machine's."""
    of_gpu = sm or (machine.sm if machine is not None else None)
    return all(
        (
            not misfit.platforms or (machine is not None and _matches(machine.id, misfit.platforms)),
            not misfit.fabrics or (machine is not None and machine.fabric in misfit.fabrics),
            misfit.nccl_from is None or (nccl is not None and numbers(nccl) >= numbers(misfit.nccl_from)),
            misfit.nccl_until is None or (nccl is not None and numbers(nccl) < numbers(misfit.nccl_until)),
            misfit.cuda_from is None or (cuda is not None and cuda >= misfit.cuda_from),
            misfit.sm_from is None or (of_gpu is not None and of_gpu >= misfit.sm_from),
            misfit.sm_to is None or (of_gpu is not None and of_gpu <= misfit.sm_to),
        )
    )


def _list(*pairs: tuple[str, str | None]) -> str:
    return ", ".join(f"{name} {value}" for name, value in pairs if value is not None)


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


_PLUGIN = "aws-ofi-nccl"
_OVER_LIBFABRIC = frozenset({_PLUGIN, "libfabric", "hwloc"})


def from_source_for(machine: Machine | None) -> FromSource:
    """Return what must hold for a stack that is built from source; machine None: on any platform.

    Raises InputError for a machine that is known to have no GPUs of NVIDIA.
    """
    known = from_source()
    if machine is None:
        return known
    refuse_without_nvidia(machine, "--platform")
    fabric = tuple(each for each in known.fabric if machine.fabric in each.kinds)
    # Where nothing goes over libfabric, nothing of that way has to be built.
    needs_it = machine.fabric is None or any(each.plugin == _PLUGIN for each in fabric)
    left_out = frozenset[str]() if needs_it else _OVER_LIBFABRIC
    return replace(
        known,
        platform=machine.id,
        sm=machine.sm,
        fabric_kind=machine.fabric,
        fabric=fabric,
        newest=tuple(each for each in known.newest if each.name not in left_out),
        interface=tuple(each for each in known.interface if each.of not in left_out),
        option=tuple(each for each in known.option if each.project not in left_out),
        set=tuple(each for each in known.set if _matches(machine.id, each.platforms)),
        toolchain=tuple(each for each in known.toolchain if _matches(machine.id, each.platforms)),
        pitfall=tuple(each for each in known.pitfall if not each.fabrics or machine.fabric in each.fabrics),
        instructions=tuple(
            each
            for each in known.instructions
            if each.project not in left_out and (not each.platforms or _matches(machine.id, each.platforms))
        ),
    )
