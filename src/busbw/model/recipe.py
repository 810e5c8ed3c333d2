"""A recipe: how to get NCCL, its network plug-in and a benchmark onto a machine, and how to prove that they work."""

from typing import Literal

from busbw.base.value import Integer, Value


class Question(Value, kw_only=True, frozen=True):
    """What somebody asks of a recipe. None, or nothing: what the recipe takes by itself."""

    # Release of NCCL, as 2.28.9.
    nccl: str | None = None
    # CUDA, as 12 or 12.9.
    cuda: str | None = None
    # Compute capability times ten, as 90.
    cuda_arch: Integer | None = None
    # Environment modules to load, in order.
    modules: tuple[str, ...] = ()
    # Container image that the stack comes with, as a registry names it.
    image: str | None = None
    # Release of what else the recipe installs: the EFA software, the OSU benchmarks.
    release: str | None = None


class Machine(Value, kw_only=True, frozen=True):
    """What a recipe needs to know of a platform."""

    id: str
    fabric: str | None
    gpus: Integer
    # Compute capability times ten; None: no NVIDIA GPU.
    sm: Integer | None
    # The settings for it as files, by name, and the words that its launcher should be told.
    settings: tuple[tuple[str, str], ...] = ()
    launch_options: tuple[str, ...] = ()


class RecipeNote(Value, kw_only=True, frozen=True):
    """What somebody should know before using a recipe."""

    severity: Literal["warning", "note"]
    text: str
    source: str | None = None


class RecipeFile(Value, kw_only=True, frozen=True):
    """One file of a recipe; `use` says in one line what it is for."""

    name: str
    use: str
    text: str
    executable: bool = False


class Recipe(Value, kw_only=True, frozen=True):
    """A recipe for one machine, complete."""

    name: str
    title: str
    about: str
    # Id of the platform; None: for any that it fits.
    platform: str | None
    needs: tuple[str, ...]
    # Commands in order, as a person types them.
    steps: tuple[str, ...]
    notes: tuple[RecipeNote, ...]
    files: tuple[RecipeFile, ...]
    # What is for versions that no package has: where their maker says how to build.
    from_source: str
    sources: tuple[str, ...]
