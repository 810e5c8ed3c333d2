"""Recipes and the versions that fit together, from data/recipes."""

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from busbw.base.value import Integer, Value

_FOLDER = "recipes"
Kind = Literal["nccl", "osu"]


class ScriptFacts(Value, kw_only=True, frozen=True):
    """One file of a recipe and the texts in data/recipes/scripts that it is put together from."""

    name: str
    use: str
    bodies: tuple[str, ...]
    # A batch script over so many nodes: what Slurm is told stands at its head. None: none.
    nodes: Integer | None = None
    # Read by a shell that runs already, and not started.
    sourced: bool = False


class RecipeFacts(Value, kw_only=True, frozen=True):
    """One recipe as data; which of its values a script gets is decided by what the script names."""

    name: str
    # What its check proves.
    kind: Kind
    title: str
    about: str
    needs: tuple[str, ...]
    steps: tuple[str, ...]
    scripts: tuple[ScriptFacts, ...]
    # The definition of a container among its files, by the name of its text; by fabric where that differs.
    definition: str | None = None
    definition_of_fabric: dict[str, str] = msgspec.field(default_factory=dict)
    # Ids of platforms, as globs, and kinds of fabric that it is for; empty: any.
    platforms: tuple[str, ...] = ()
    fabrics: tuple[str, ...] = ()
    # What NCCL is installed from, in a release that can be chosen; None: it is there, or in an image.
    nccl_from: Literal["wheel", "package"] | None = None
    # Whether modules have to be named where none is published.
    needs_modules: bool = False
    compilers: tuple[str, str] = ("mpicc", "mpicxx")
    # What the recipe installs in releases of its own.
    releases: Literal["efa", "osu"] | None = None
    image: str | None = None
    notes: tuple[str, ...] = ()
    source: tuple[str, ...]
    checked: str


class Wheel(Value, kw_only=True, frozen=True):
    """The releases of NCCL that NVIDIA publishes as a Python wheel for one CUDA."""

    name: str
    cuda: Integer
    versions: tuple[str, ...]
    source: str
    checked: str


class Package(Value, kw_only=True, frozen=True):
    """A release of NCCL in NVIDIA's repository of packages, and the versions of CUDA that it was published for."""

    nccl: str
    cuda: tuple[str, ...]
    source: str
    checked: str


class Release(Value, kw_only=True, frozen=True):
    """One release of a package that is downloaded. None: not published, or not seen."""

    of: Literal["efa", "osu"]
    version: str
    sha256: str | None = None
    # What comes with it.
    libfabric: str | None = None
    plugin: str | None = None
    source: str
    checked: str


class Image(Value, kw_only=True, frozen=True):
    """What a container image holds. None: its makers do not say, or nobody has looked."""

    name: str
    nccl: str | None = None
    cuda: str | None = None
    plugin: str | None = None
    hpcx: str | None = None
    source: str
    checked: str


class Plugin(Value, kw_only=True, frozen=True):
    """A release of aws-ofi-nccl, by its release notes."""

    version: str
    # Releases of NCCL that it was tested with, and the oldest that it works with.
    nccl: tuple[str, ...] = ()
    nccl_since: str | None = None
    libfabric_since: str | None = None
    # The newest interface of NCCL's networks that it speaks.
    net_api: Integer | None = None
    source: str
    checked: str


class Misfit(Value, kw_only=True, frozen=True):
    """Versions that are known not to fit. A bound that is None does not matter."""

    # NCCL from `nccl_from` on and before `nccl_until`.
    nccl_from: str | None = None
    nccl_until: str | None = None
    # CUDA from this major version on.
    cuda_from: Integer | None = None
    # Compute capability times ten, from and to, both counting.
    sm_from: Integer | None = None
    sm_to: Integer | None = None
    fabrics: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    # The recipes that it matters for; empty: all.
    recipes: tuple[str, ...] = ()
    severity: Literal["error", "warning"]
    text: str
    instead: str | None = None
    source: str
    checked: str


class ModuleNames(Value, kw_only=True, frozen=True):
    """The modules that a recipe loads on some platforms."""

    recipe: str
    platforms: tuple[str, ...]
    modules: tuple[str, ...]
    source: str
    checked: str


class Tried(Value, kw_only=True, frozen=True):
    """Versions that somebody has run together, with what came of it."""

    nccl: str
    cuda: str | None = None
    plugin: str | None = None
    libfabric: str | None = None
    image: str | None = None
    platforms: tuple[str, ...]
    result: str | None
    source: str
    checked: str


class Versions(Value, kw_only=True, frozen=True):
    """Everything in data/recipes/versions.toml."""

    wheel: tuple[Wheel, ...]
    package: tuple[Package, ...]
    release: tuple[Release, ...]
    image: tuple[Image, ...]
    plugin: tuple[Plugin, ...]
    misfit: tuple[Misfit, ...]
    modules: tuple[ModuleNames, ...]
    tried: tuple[Tried, ...]


class FabricStack(Value, kw_only=True, frozen=True):
    """What a fabric needs of a stack beyond NCCL."""

    kinds: tuple[str, ...]
    plugin: str
    # Of libfabric; None: the plug-in does not use it.
    provider: str | None = None
    # Where the right libfabric lies, in words.
    libfabric: str | None = None
    source: str
    checked: str


class VersionSet(Value, kw_only=True, frozen=True):
    """Versions that somebody has built and put together on some platforms."""

    platforms: tuple[str, ...]
    where: str
    parts: dict[str, str]
    result: str
    why: str | None = None
    source: str
    checked: str


class Newest(Value, kw_only=True, frozen=True):
    """The newest release of a project that is known."""

    name: str
    version: str
    source: str
    checked: str


class NetInterfaces(Value, kw_only=True, frozen=True):
    """Which versions of ncclNetPlugin releases ask for (NCCL) or have (its plug-in)."""

    of: Literal["NCCL", "aws-ofi-nccl"]
    releases: str
    least: Integer
    most: Integer
    source: str
    checked: str


class Toolchain(Value, kw_only=True, frozen=True):
    """A compiler, module or folder that platforms have to build with."""

    platforms: tuple[str, ...]
    what: str
    value: str
    why: str
    source: str
    checked: str


class BuildOption(Value, kw_only=True, frozen=True):
    """An option of a project's own build, what it decides, and what goes wrong otherwise."""

    project: str
    option: str
    decides: str
    wrong: str
    source: str
    checked: str


class Pitfall(Value, kw_only=True, frozen=True):
    """Something that goes wrong with stacks built from source; fabrics empty: on any."""

    text: str
    fabrics: tuple[str, ...] = ()
    source: str
    checked: str


class Instructions(Value, kw_only=True, frozen=True):
    """Where the makers of a project, or a site, say how it is built; platforms empty: for any."""

    project: str
    at: str
    platforms: tuple[str, ...] = ()


# Fabrics over which NCCL goes by verbs itself, without a plug-in and libfabric.
OVER_VERBS = ("InfiniBand", "RoCE")


class FromSource(Value, kw_only=True, frozen=True):
    """Everything in data/recipes/from_source.toml, or what of it is about one platform."""

    title: str
    about: str
    fabric: tuple[FabricStack, ...]
    set: tuple[VersionSet, ...]
    newest: tuple[Newest, ...]
    interface: tuple[NetInterfaces, ...]
    toolchain: tuple[Toolchain, ...]
    option: tuple[BuildOption, ...]
    pitfall: tuple[Pitfall, ...]
    instructions: tuple[Instructions, ...]
    # Compute capability times ten of the platform's GPUs; None: no platform was named, or it is not known.
    sm: Integer | None = None
    platform: str | None = None
    # The platform's fabric; None: no platform was named, or it is not known.
    fabric_kind: str | None = None


class _Recipes(Value, kw_only=True, frozen=True):
    recipe: tuple[RecipeFacts, ...]


@cache
def recipe_facts() -> tuple[RecipeFacts, ...]:
    """Return every recipe, in the order of the file."""
    return msgspec.toml.decode(_read("recipes.toml"), type=_Recipes).recipe


@cache
def adopting_facts() -> tuple[RecipeFacts, ...]:
    """Return the recipes for what somebody built: on the hosts, and in an image."""
    return msgspec.toml.decode(_read("adopt.toml"), type=_Recipes).recipe


@cache
def from_source() -> FromSource:
    """Return what must hold for a stack that is built from source."""
    return msgspec.toml.decode(_read("from_source.toml"), type=FromSource)


@cache
def recipe_versions() -> Versions:
    """Return what is known of versions."""
    return msgspec.toml.decode(_read("versions.toml"), type=Versions)


@cache
def recipe_text(name: str) -> str:
    """Return one of the texts that scripts and definitions are put together from, as it is shipped."""
    return files("busbw").joinpath("data", _FOLDER, "scripts", name).read_text(encoding="utf-8")


def _read(name: str) -> bytes:
    return files("busbw").joinpath("data", _FOLDER, name).read_bytes()
