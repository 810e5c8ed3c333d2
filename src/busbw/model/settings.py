"""Settings: what each variable is set to, who said so, and what that replaced."""

from typing import Literal, Self

from busbw.base.value import Value

# Weakest first.
Layer = Literal["default", "platform", "topology", "site", "etc_conf", "conf", "tuned", "shell", "command_line"]


class Setting(Value, kw_only=True, frozen=True):
    """One choice for one variable."""

    name: str
    # None: make sure that it is unset.
    value: str | None
    layer: Layer
    # Who says so: a file with its line, a rule, an article.
    source: str
    # Why, in one sentence; what it costs; the conditions it holds for.
    reason: str | None = None
    cost: str | None = None
    conditions: str | None = None


class SettingsFile(Value, kw_only=True, frozen=True):
    """A settings file of NCCL as it stands on a host."""

    path: str
    # conf: what NCCL_CONF_FILE names, else .nccl.conf in the home folder; etc_conf: /etc/nccl.conf.
    layer: Literal["conf", "etc_conf"]
    text: str


class Surroundings(Value, kw_only=True, frozen=True):
    """What a job finds that starts on a host: its environment and the settings files NCCL reads there."""

    # In words: `this host`, `run 20261121-143012`, `host.tar`.
    where: str
    environment: dict[str, str]
    files: tuple[SettingsFile, ...] = ()
    # The version of the NCCL it would load; None: not known.
    nccl: str | None = None
    # The platform it is; None: not known. And who says so: whoever asked for the run, or a rung of model.detection.
    platform: str | None = None
    platform_from: Literal["asked", "firmware", "metadata", "hardware"] | None = None
    # Files that these settings name and that are not there; None: nobody looked.
    absent: tuple[str, ...] | None = None
    # What could not be looked at and may set something, a line each.
    unseen: tuple[str, ...] = ()


class PluginExport(Value, kw_only=True, frozen=True):
    """What a plug-in of NCCL puts into the environment when it is loaded, where nobody has set it."""

    by: str
    name: str
    # None: it depends on the machine.
    value: str | None = None
    # The platforms it is known for; empty: see `conditions`.
    platforms: tuple[str, ...] = ()
    # The first version of NCCL for which it does not.
    before: str | None = None
    reason: str | None = None
    conditions: str | None = None
    source: str


class Settings(Value, kw_only=True, frozen=True):
    """Every choice that was made, in the order in which it was made: the last one for a name is in force."""

    history: tuple[Setting, ...] = ()

    def then(self, *later: Setting) -> Self:
        """Return these settings with later choices on top."""
        return type(self)(history=(*self.history, *later))

    def explain(self, name: str) -> tuple[Setting, ...]:
        """Return every choice for `name`, the one in force first; () where nobody chose."""
        return tuple(choice for choice in reversed(self.history) if choice.name == name)

    def in_force(self) -> tuple[Setting, ...]:
        """Return the choice in force for each name, in the order in which the names first came up."""
        last = {choice.name: choice for choice in self.history}
        return tuple(last[name] for name in dict.fromkeys(choice.name for choice in self.history))

    def env(self) -> dict[str, str]:
        """Return the variables to set; those that are to be unset are left out."""
        return {choice.name: choice.value for choice in self.in_force() if choice.value is not None}
