"""The variables that something on a cluster reads, what plug-ins set, and the algorithms that MPI lets users choose."""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import TypeVar

import msgspec

from busbw.base.value import Value
from busbw.model.envvar import EnvVar, Misspelling, Owner
from busbw.model.machine import MpiFamily
from busbw.model.settings import PluginExport

T = TypeVar("T")


class NamesRead(Value, frozen=True, kw_only=True):
    """Names that something reads and that are not described: each of `names` behind each of `prefixes`."""

    owner: str
    prefixes: tuple[str, ...]
    names: tuple[str, ...]
    source: str


class EnvVarFile(Value, frozen=True, kw_only=True):
    """What one file declares."""

    owner: tuple[Owner, ...] = ()
    read: tuple[NamesRead, ...] = ()
    variable: tuple[EnvVar, ...] = ()
    misspelling: tuple[Misspelling, ...] = ()


@cache
def variables() -> dict[str, EnvVar]:
    """Return every variable by its name, in the order of the files and within them. Cheap after the first call."""
    return by_name((file, each.name, each) for file, declared in _declared() for each in declared.variable)


def variable(name: str) -> EnvVar:
    """Return the variable of this exact name. Raises KeyError for one that is not declared."""
    return variables()[name]


@cache
def misspellings() -> dict[str, Misspelling]:
    """Return what is known of names that are set and not read as their writer thinks, by the name as seen.

    A name may stand here and among the variables: one that was read once (`stale`).
    """
    return by_name((file, each.seen, each) for file, declared in _declared() for each in declared.misspelling)


@cache
def readers() -> dict[str, tuple[str, ...]]:
    """Return who reads each name that is in a list of names, described or not, the oldest reader first."""
    found: dict[str, tuple[str, ...]] = {}
    for _file, declared in _declared():
        for each in declared.read:
            for name in (prefix + name for prefix in each.prefixes for name in each.names):
                found[name] = (*found.get(name, ()), each.owner)
    return found


def by_name(declared: Iterable[tuple[str, str, T]]) -> dict[str, T]:
    """Return file, name and declaration by the name. Raises ValueError for a name that comes twice."""
    found: dict[str, T] = {}
    for file, name, each in declared:
        if name in found:
            raise ValueError(f"{file}: {name} is declared twice")
        found[name] = each
    return found


@cache
def owners() -> dict[str, Owner]:
    """Return whose versions are known, by name."""
    return {each.name: each for _file, declared in _declared() for each in declared.owner}


def _declared() -> Iterator[tuple[str, EnvVarFile]]:
    """Yield the files in alphabetical order."""
    for path in sorted(files("busbw").joinpath("data", "envvars").iterdir(), key=lambda path: path.name):
        if path.name.endswith(".toml"):
            # These files are part of the package: an error in them is a bug, and says so.
            yield path.name, msgspec.toml.decode(path.read_bytes(), type=EnvVarFile)


class KnownWord(Value, frozen=True, kw_only=True):
    """One word that a variable takes."""

    name: str
    # The first version that takes it, as 2.26; None: every one that reads the variable.
    since: str | None = None
    # The functions that an algorithm is for.
    functions: tuple[str, ...] = ()


class WordList(Value, frozen=True, kw_only=True):
    """The words that variables take, in the order in which NCCL has them."""

    variables: tuple[str, ...]
    words: tuple[KnownWord, ...]
    # What the numbers from 0 on mean.
    numbers: tuple[str, ...] = ()
    source: str


class MeantWord(Value, frozen=True, kw_only=True):
    """What people write for variables that take words, and the word that they mean."""

    variables: tuple[str, ...]
    written: tuple[str, ...]
    means: str
    source: str


class _Words(Value, frozen=True, kw_only=True):
    list: tuple[WordList, ...]
    meant: tuple[MeantWord, ...]


@cache
def _words() -> _Words:
    raw = files("busbw").joinpath("data", "words_nccl.toml").read_bytes()
    return msgspec.toml.decode(raw, type=_Words)


@cache
def word_list(name: str) -> WordList:
    """Return the words that a variable of NCCL takes. Raises StopIteration for one without a list."""
    return next(each for each in _words().list if name in each.variables)


@cache
def meant_words(name: str) -> dict[str, str]:
    """Return what is written for a variable of NCCL, and the word that is meant."""
    return {word: each.means for each in _words().meant if name in each.variables for word in each.written}


class WordsOfList(Value, frozen=True, kw_only=True):
    """The words that lists of other readers than NCCL take, as far as they are known, with blanks between them."""

    variables: tuple[str, ...]
    words: str
    # What one of them is called.
    what: str
    # Letters of the shortest word that is looked at.
    shortest: int = 4
    source: str


class _WordsOfLists(Value, frozen=True, kw_only=True):
    list: tuple[WordsOfList, ...]


@cache
def _words_of_lists() -> dict[str, WordsOfList]:
    raw = files("busbw").joinpath("data", "words_of_lists.toml").read_bytes()
    declared = msgspec.toml.decode(raw, type=_WordsOfLists).list
    return {name: each for each in declared for name in each.variables}


def words_of_list(name: str) -> WordsOfList | None:
    """Return the words that the list of a variable takes; None for one whose words are not declared."""
    return _words_of_lists().get(name)


class _Exports(Value, frozen=True, kw_only=True):
    export: tuple[PluginExport, ...]


@cache
def plugin_exports() -> tuple[PluginExport, ...]:
    """Return everything that plug-ins are known to export, in the order of the file."""
    raw = files("busbw").joinpath("data", "plugin_exports.toml").read_bytes()
    return msgspec.toml.decode(raw, type=_Exports).export


class Choice(Value, frozen=True, kw_only=True):
    """The environment variable that chooses the algorithm of one collective, and the names it takes."""

    variable: str
    values: tuple[str, ...]


class Algorithms(Value, frozen=True, kw_only=True):
    """What one MPI family lets its users choose, by busbw's name of the collective."""

    name: MpiFamily
    # `NAME=value` settings without which the choice has no effect.
    requires: tuple[str, ...]
    choices: dict[str, Choice]
    source: str


class _Families(Value, frozen=True, kw_only=True):
    family: tuple[Algorithms, ...]


@cache
def algorithms() -> dict[MpiFamily, Algorithms]:
    """Return what each MPI family lets its users choose."""
    raw = files("busbw").joinpath("data", "algorithms.toml").read_bytes()
    return {family.name: family for family in msgspec.toml.decode(raw, type=_Families).family}
