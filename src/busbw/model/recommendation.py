"""What is recommended for a platform, settings and recipes, each with reason, source and conditions."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.platform import PlatformSource
from busbw.model.request import Goal

# needed: without it the job fails, hangs or takes another network; helps: somebody measured or explained a gain, or
# the platform's facts give it; check_first: it can cost as much as it gains, so measure here with and without.
Need = Literal["needed", "helps", "check_first"]
Topic = Literal[
    "transport", "nics", "topology", "affinity", "channels", "algorithm", "sharp", "start_up", "log", "other"
]
LeftOutKind = Literal[
    "default",  # what happens anyway in this version
    "set_already",  # by the plug-in, when it is loaded
    "unread",  # nothing reads this name
    "not_yet",  # this version does not read it yet
    "removed",  # this version no longer reads it
    "other_job",  # for another goal, collective or number of nodes
    "no_effect",  # read, and changes nothing for this job
    "risky",  # it can break a job or slow it down, and nobody shows that it helps
    "unreasoned",  # published without a reason
    "logging",  # for looking for a fault
]


class Alternative(Value, kw_only=True, frozen=True):
    """What another source says to set instead."""

    # None: leave it unset.
    value: str | None
    source: tuple[str, ...]
    # Why it is not followed.
    reason: str | None = None


class Recommended(Value, kw_only=True, frozen=True):
    """One variable to set."""

    name: str
    # None: make sure that it is unset.
    value: str | None
    need: Need
    topic: Topic
    # What reads it: nccl, mpi, libfabric, sharp, cuda...
    scope: str
    reason: str
    # Ids of `Recommendation.sources`.
    source: tuple[str, ...]
    # What it takes for the reason to hold.
    conditions: str | None = None
    # What it takes from the job.
    cost: str | None = None
    # Commands that show whether it holds and helps on this machine.
    checks: tuple[str, ...] = ()
    # The older spelling under which it is published.
    published_as: str | None = None
    alternatives: tuple[Alternative, ...] = ()


class LeftOut(Value, kw_only=True, frozen=True):
    """One variable that somebody publishes for this platform, and that is not recommended for this job."""

    name: str
    value: str | None
    kind: LeftOutKind
    reason: str
    source: tuple[str, ...]

    @classmethod
    def of(cls, setting: Recommended, kind: LeftOutKind, reason: str) -> "LeftOut":
        """Return a recommended variable as one that is left out of this job after all."""
        return cls(name=setting.name, value=setting.value, kind=kind, reason=reason, source=setting.source)


class LaunchAdvice(Value, kw_only=True, frozen=True):
    """An option of the launcher that belongs to the settings."""

    option: str
    reason: str
    source: tuple[str, ...]


class Recommendation(Value, kw_only=True, frozen=True):
    """Settings for one job: so many nodes of a platform, for a goal."""

    # Id of the platform; `generic` where the machine is none that is known.
    platform: str
    nodes: Integer
    goal: Goal
    # What matters most; None: everything alike.
    collective: str | None = None
    size_bytes: Integer | None = None
    # The source that was followed where sources disagree, as its id.
    follow: str | None = None
    # The version of NCCL that it is for.
    nccl: str
    # The MPI that it is for too; None: MPI starts the ranks at most.
    mpi: str | None = None
    # Those that are needed first, then those that help, then those to check first; by topic within.
    settings: tuple[Recommended, ...] = ()
    launch: tuple[LaunchAdvice, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    # What could not be told, and why.
    cannot_tell: tuple[str, ...] = ()
    # Ids of sources that `follow` takes here.
    followable: tuple[str, ...] = ()
    # Every source that is cited.
    sources: tuple[PlatformSource, ...] = ()

    def env(self) -> dict[str, str]:
        """Return the variables to set, in order; those that are to be unset are left out."""
        return {each.name: each.value for each in self.settings if each.value is not None}

    @property
    def libraries(self) -> str:
        """What the settings are for, in words: NCCL with its version, an MPI, or both."""
        has_nccl = self.mpi is None or any(each.scope == "nccl" for each in self.settings)
        return ", ".join([*([f"NCCL {self.nccl}"] if has_nccl else []), *([self.mpi] if self.mpi is not None else [])])

    @property
    def recommends(self) -> bool:
        """Whether there is more to set than what is logged."""
        return any(each.topic != "log" for each in self.settings) or (self.mpi is not None and bool(self.launch))


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
    # Compute capability times ten; None: no NVIDIA GPU, or not known.
    sm: Integer | None
    has_amd_gpus: bool = False
    # As `uname -m` says it; None: not known.
    processor: Literal["x86_64", "aarch64"] | None = None
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
