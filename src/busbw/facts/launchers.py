"""The options of programs that start ranks, and what each takes, from data/launchers.toml."""

from functools import cache, cached_property
from importlib.resources import files
from typing import Literal

import msgspec

from busbw.base.value import Value


class OptionValue(Value, frozen=True, kw_only=True):
    """What some options take: words, or a text of one shape; `mca btl` is the parameter of `--mca btl`."""

    options: tuple[str, ...]
    # One of these, whatever the capitals; several where `divided_by` has a character.
    words: tuple[str, ...] = ()
    divided_by: str = ""
    # Whether the beginning of a word is taken for it, and a word with more behind it.
    begins: bool = False
    # Whether there may be other words: then only what is near one of these is a slip.
    is_open: bool = False
    # What is taken beside the words, as a regular expression.
    lists: str | None = None
    # What has to stand behind a word and its colon, as a regular expression; `wants` says it.
    then: dict[str, str] = msgspec.field(default_factory=dict)
    # The shape of the whole value, as a regular expression, and how it is said.
    pattern: str | None = None
    wants: str | None = None


class LauncherOptions(Value, frozen=True, kw_only=True, dict=True):
    """The options of programs that take the same; names without dashes, with blanks between them."""

    programs: tuple[str, ...]
    # getopt: one letter behind one dash, words behind two, and a beginning that fits one word only is that word;
    # argparse: the same; whole: the same without beginnings; any dashes: words behind one or two, whole.
    reads: Literal["getopt", "argparse", "whole", "any dashes"]
    source: str
    checked: str
    flags: str = ""
    takes: str = ""
    # A value only behind an equals sign.
    optional: str = ""
    # Two values.
    pairs: str = ""
    # Known by name, and of a kind that does not matter.
    other: str = ""
    plugin: str = ""
    # Whether options may stand behind what the program works on.
    has_operands: bool = False
    # Whether - and _ between words are one.
    dashes_alike: bool = False
    # What every release of every program has.
    everywhere: str = ""
    # Options of one letter: with a value, without one, with one that is any text.
    short_takes: str = ""
    short_flags: str = ""
    free_text: str = ""
    # Options that people give a number without a blank.
    numbers_glued: str = ""
    # What another launcher calls an option; the long name of one letter, and of several behind one dash.
    instead: dict[str, str] = msgspec.field(default_factory=dict)
    same: dict[str, str] = msgspec.field(default_factory=dict)
    named_short: dict[str, str] = msgspec.field(default_factory=dict)
    value: tuple[OptionValue, ...] = ()

    @cached_property
    def names(self) -> frozenset[str]:
        """Return every long option."""
        texts = (self.flags, self.takes, self.optional, self.pairs, self.other, self.plugin)
        return frozenset(name for text in texts for name in text.split())

    @cached_property
    def common(self) -> frozenset[str]:
        """Return the options of every release."""
        return frozenset(self.everywhere.split())

    @cached_property
    def valued(self) -> frozenset[str]:
        """Return the options that take the next word where none stands behind an equals sign."""
        return frozenset(self.takes.split())

    @cached_property
    def bare(self) -> frozenset[str]:
        """Return the options that take nothing."""
        return frozenset(self.flags.split()) - frozenset(self.optional.split())

    @cached_property
    def values(self) -> dict[str, OptionValue]:
        """Return what options take, by their long names."""
        return {name: each for each in self.value for name in each.options}


class Concept(Value, frozen=True, kw_only=True):
    """What several launchers are told, each by an option of its own."""

    names: tuple[str, ...]
    # The launcher that the first of the names is of.
    of: str


class _Launchers(Value, frozen=True, kw_only=True):
    launcher: tuple[LauncherOptions, ...]
    concept: tuple[Concept, ...]


@cache
def _declared() -> _Launchers:
    # The file is part of the package: an error in it is a bug, and says so.
    return msgspec.toml.decode(files("busbw").joinpath("data", "launchers.toml").read_bytes(), type=_Launchers)


@cache
def launcher_options() -> dict[str, LauncherOptions]:
    """Return the options by program; `accelerate launch` and `flux run` are two words. Cheap after the first call."""
    return {program: each for each in _declared().launcher for program in each.programs}


@cache
def concepts() -> dict[str, Concept]:
    """Return what options of several launchers say, by their names without dashes, with hyphens."""
    return {name.replace("_", "-"): each for each in _declared().concept for name in each.names}
