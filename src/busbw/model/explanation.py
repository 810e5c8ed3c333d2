"""What is known of one variable, and what it is set to where a job starts."""

from typing import Literal

from busbw.base.value import Value
from busbw.model.envvar import EnvVar, Misspelling
from busbw.model.settings import PluginExport, Setting
from busbw.model.understood import NameRead, Understood


class Recipe(Value, kw_only=True, frozen=True):
    """What is published to set a variable to, and for which platforms."""

    # None: make sure that it is unset.
    value: str | None
    platforms: tuple[str, ...]
    # What it is for, where it is not for every job.
    goal: str | None = None
    reason: str | None = None
    # Where it is published, in words.
    source: tuple[str, ...] = ()


class InForce(Value, kw_only=True, frozen=True):
    """What a variable is set to in some place, and who set it."""

    # `this host`, `run 20261121-143012`.
    where: str
    # Every choice, the one in force first, those that lost after it; (): nobody set it.
    choices: tuple[Setting, ...] = ()
    # What the reader makes of the value in force; None: nothing is set, or nothing reads it.
    understood: Understood | None = None
    # What could not be looked at and may set something too.
    unseen: tuple[str, ...] = ()


class Explanation(Value, kw_only=True, frozen=True):
    """Everything there is to say of one name."""

    name: str
    # What nothing declares is read as this.
    read: NameRead
    variable: EnvVar | None = None
    # The version of its owner that this is told for; None: its versions are not known.
    version: str | None = None
    # What is to be known of that version: that it is newer than all that were looked at.
    version_note: str | None = None
    standing: Literal["yes", "not yet", "removed"] | None = None
    # In that version.
    default: str | None = None
    # What is known of this name as a wrong one, and the wrong names for this variable.
    mistaken: Misspelling | None = None
    misspellings: tuple[Misspelling, ...] = ()
    recipes: tuple[Recipe, ...] = ()
    # What plug-ins set it to by themselves.
    exports: tuple[PluginExport, ...] = ()
    in_force: InForce | None = None
