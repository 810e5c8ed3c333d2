"""What somebody asks of a recipe, checked word for word: it goes into scripts, directives and definitions."""

import re

from busbw.base.errors import InputError
from busbw.model.recommendation import Question

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
