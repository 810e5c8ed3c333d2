"""Which release of what a recipe takes, and what is known of it."""

from collections.abc import Sequence

from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.facts.recipes import Image, RecipeFacts, Release, Wheel, recipe_versions
from busbw.model.recipe import Question
from busbw.recipes.asked import numbers

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
        return Image(name=name, source="nobody has looked into this image", checked="")
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
