"""What was meant by a name that nothing reads."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from busbw.facts.envvars import misspellings, readers, variables
from busbw.model.envvar import Misspelling, NameRead

# Beginnings that only names of this field have. RANK, MASTER_PORT, OMP_PLACES and the like are near too many names that
# scripts give to their own variables; SLURM_ and SBATCH_ names are made up by scripts as well.
_DISTINCT = {
    *(
        "NCCL",
        "OFI",
        "UCX",
        "UCC",
        "FI",
        "RDMAV",
        "SHARP",
        "HCOLL",
        "NVSHMEM",
        "DOCA",
        "RCCL",
        "MSCCL",
        "MSCCLPP",
        "HSA",
    ),
    *("OMPI", "OPAL", "PMIX", "PRTE", "MPICH", "MPIR", "HYDRA", "I", "MV2", "MVP"),
    *("CUDA", "NVIDIA", "TORCH", "PYTORCH", "GLOO", "APPTAINER", "SINGULARITY", "ENROOT"),
}
# Of these every name is known, of one release at least.
_LISTED = {"FI", "MV2", "MVP", "MPIR"}
# Libraries of collectives of other makers: HCCL, MCCL, XCCL, CNCL. Their variables are no slips of NCCL's.
_OTHER_LIBRARY = re.compile(r"(?!N+C*CCL)[A-Z]{1,3}CCL|CNCL")
_STEM = 3
_FEWEST_WORDS = 2
# Prefixes of three letters are a slip away from each other: what follows must then be a name of theirs to the letter.
_SHORT = 3
# MP_ is read by IBM's environment, MPI_ by many.
_OTHERS = {"MP", "MPI"}


@dataclass(frozen=True, slots=True)
class KnownName:
    """A name that something reads."""

    name: str
    spelled: str
    letters: int

    def may_be_meant(self, spelled: str, limit: int) -> bool:
        """Return whether the letters of the two, whatever their order, are few enough apart. Quick, and never wrong."""
        if abs(len(spelled) - len(self.spelled)) > limit:
            return False
        # A letter that is missing, too many or wrong changes two bits at most.
        return (letters_of(spelled) ^ self.letters).bit_count() <= 2 * limit


@cache
def letters_of(spelled: str) -> int:
    """Return a bit for each letter of a name, another for its second, third and fourth time."""
    bits = 0
    for character in spelled:
        first = (ord(character) % 64) * 4
        while (bits >> first) & 1 and first % 4 < 3:
            first += 1
        bits |= 1 << first
    return bits


def folded(name: str) -> str:
    """Return a name as it would be written: in capitals, with underscores; MCA parameters keep their small letters."""
    straight = name.strip().replace("-", "_").replace(".", "_")
    prefix, mark, rest = straight.partition("_MCA_")
    return f"{prefix.upper()}{mark}{rest.lower()}" if mark else straight.upper()


class NameIndex:
    """Known names by how they may be looked for."""

    def __init__(self) -> None:
        """Order every variable that is read today and has a beginning of its own."""
        self._by_letters: dict[str, list[str]] = defaultdict(list)
        self._by_words: dict[tuple[str, ...], list[str]] = defaultdict(list)
        self._by_stems: dict[tuple[str, ...], list[str]] = defaultdict(list)
        self._by_prefix: dict[str, list[KnownName]] = defaultdict(list)
        self._by_shortened: dict[tuple[str, ...], list[str]] = defaultdict(list)
        self._vocabulary: set[str] = set()
        described = variables()
        for name in (*described, *(each for each in readers() if each not in described)):
            prefix, each = name.partition("_")[0], described.get(name)
            if prefix not in _DISTINCT or (each is not None and (each.until or each.owner == "build scripts")):
                continue
            spelled = folded(name)
            self._by_letters[spelled.replace("_", "")].append(name)
            self._by_words[_words(spelled)].append(name)
            self._by_stems[_stems(spelled)].append(name)
            self._vocabulary.update(spelled.split("_"))
            if prefix in _LISTED:
                self._add_shortened(name)
            self._by_prefix[prefix].append(KnownName(name, spelled, letters_of(spelled)))

    def _add_shortened(self, name: str) -> None:
        words = name.split("_")
        for place in range(1, len(words)):
            self._by_shortened[(*words[:place], *words[place + 1 :])].append(name)

    def lacking_a_word(self, spelled: str) -> Iterator[str]:
        """Yield the name that has one word more, of readers whose names are all known; none where there are several."""
        words = tuple(spelled.split("_"))
        found = set(self._by_shortened.get(words, ())) if len(words) > _FEWEST_WORDS else set[str]()
        yield from found if len(found) == 1 else ()

    def alike(self, spelled: str) -> Iterator[str]:
        """Yield names that differ in case, hyphens or underscores only."""
        yield from self._by_letters.get(spelled.replace("_", ""), ())

    def has_words_of(self, spelled: str) -> bool:
        """Return whether each word of a name is one of some known name: then none of them is a slip."""
        return self._vocabulary.issuperset(spelled.split("_"))

    def with_words_moved(self, spelled: str) -> Iterator[str]:
        """Yield names of the same words in another order."""
        words = _words(spelled)
        if len(words) > _FEWEST_WORDS:
            yield from self._by_words.get(words, ())

    def with_words_shortened(self, spelled: str) -> Iterator[str]:
        """Yield names whose words are the beginnings of this name's, or the other way round."""
        words = spelled.split("_")
        for name in self._by_stems.get(_stems(spelled), ()):
            others = folded(name).split("_")
            if all(one.startswith(other) or other.startswith(one) for one, other in zip(words, others, strict=True)):
                yield name

    def with_prefix_mended(self, spelled: str) -> Iterator[str]:
        """Yield names of a short prefix that this one's is a slip away from, the rest being the same."""
        prefix, _, rest = spelled.partition("_")
        if prefix in self._by_prefix or prefix in _OTHERS or len(rest) <= _SHORT:
            return
        for other, candidates in self._by_prefix.items():
            if len(other) == _SHORT and _slip_away(prefix, other):
                yield from (each.name for each in candidates if each.spelled == f"{other}_{rest}")

    def beginning_alike(self, spelled: str) -> Iterator[KnownName]:
        """Yield names with the same prefix, or with one that is a slip away from it."""
        prefix = spelled.partition("_")[0]
        if prefix in self._by_prefix:
            yield from self._by_prefix[prefix]
            return
        if _OTHER_LIBRARY.fullmatch(prefix) is not None:
            return
        for other, candidates in self._by_prefix.items():
            if len(other) > _STEM and _slip_away(prefix, other):
                yield from candidates


def _words(spelled: str) -> tuple[str, ...]:
    prefix, *others = spelled.split("_")
    return (prefix, *sorted(others))


def _stems(spelled: str) -> tuple[str, ...]:
    prefix, *others = spelled.split("_")
    return (prefix, *(word[:_STEM] for word in others))


def _slip_away(one: str, other: str) -> bool:
    """Return whether a letter is missing, too many or wrong, or two are swapped."""
    if sorted(one) == sorted(other):
        return sum(left != right for left, right in zip(one, other, strict=True)) <= 2
    short, long = sorted((one, other), key=len)
    if len(short) == len(long):
        return sum(left != right for left, right in zip(one, other, strict=True)) == 1
    return len(long) == len(short) + 1 and any(long[:at] + long[at + 1 :] == short for at in range(len(long)))


@cache
def index() -> NameIndex:
    """Return the index of every known name."""
    return NameIndex()


# Every name that NCCL itself reads is known.
_COMPLETE = "NCCL_"
# What else begins so is read by plug-ins, whose names are not...
_PLUGINS = (
    "NCCL_FASTRAK_",
    "NCCL_GPUDIRECTTCPX_",
    "NCCL_GPUDIRECTTCPXO_",
    "NCCL_SHIMNET_",
    "NCCL_GIB_",
    "NCCL_SHARP_",
    "NCCL_UCX_",
    "NCCL_INSPECTOR_",
    "NCCL_PROFILE_",
    "NCCL_TESTS_",
    "NCCL_EP_",
)
# ... or made up by a script for itself: NCCL_TEST_ARGS, NCCL_IMAGE_TAG.
_OF_SCRIPTS = re.compile(
    r"[A-Z0-9_]*_(HOME|ROOT|DIR|DIRS|FOLDER|BIN|EXE|EXEC|CMD|COMMAND|ARGS|ARGV|OPTS|OPTIONS|FLAGS|PARAMS|SETTINGS|ENV|"
    r"ENVS|VARS|VERSION|VER|TAG|BRANCH|COMMIT|REPO|URL|IMAGE|CONTAINER|SIF|SRC|BUILD|INSTALL|TEST|TESTS|BENCH|BENCHMARK|"
    r"SCRIPT|LOG|LOGS|OUT|OUTPUT|RESULT|RESULTS|JOB|NODES|HOSTS|HOSTFILE|NAME|PREFIX|MODULE|PKG|PACKAGE)",
    re.ASCII,
)
_LONGEST = 128
# How many letters may be off in a name with so many letters behind its prefix.
_LETTERS_OFF = ((2, 0), (11, 1), (23, 2), (_LONGEST, 3))
_MOST_SHOWN = 3
_SWITCHES = {"ENABLE": "DISABLE", "DISABLE": "ENABLE"}


@lru_cache(maxsize=8192)
def read_name(name: str) -> NameRead:
    """Return whether anything reads `name`, and what was meant where nothing does.

    A name is misspelt only where one is near that something reads: a letter off, two swapped, small letters, a hyphen,
    words shortened or in another order. A name of an open-ended reader (UCX, Open MPI, Slurm, ...) is never called
    unknown.
    """
    mistake = misspellings().get(name)
    if name in variables() and (mistake is None or mistake.kind != "misspelling"):
        return NameRead(seen=name, verdict="known")
    if mistake is not None:
        return _by_mistake(mistake)
    if name in readers() or len(name) > _LONGEST:
        by = " and ".join(readers().get(name, ()))
        note = f"read by {by}; what it does is not described here" if by else None
        return NameRead(seen=name, verdict="open", note=note)
    meant = tuple(dict.fromkeys(_candidates(name)))[:_MOST_SHOWN]
    if meant:
        return NameRead(seen=name, verdict="misspelt", meant=meant)
    if name.startswith(_COMPLETE) and not name.startswith(_PLUGINS) and not _OF_SCRIPTS.fullmatch(name):
        note = _opposite(name) or "no version of NCCL that is known reads it"
        return NameRead(seen=name, verdict="unknown", note=note)
    return NameRead(seen=name, verdict="open")


def _by_mistake(mistake: Misspelling) -> NameRead:
    return NameRead(
        seen=mistake.seen,
        verdict="misspelt" if mistake.intended else "unknown",
        meant=mistake.intended,
        note=mistake.note,
        source=mistake.source,
    )


def _candidates(name: str) -> Iterator[str]:
    """Yield names that something reads and that are near, the nearest first."""
    spelled = folded(name)
    known = index()
    alike = tuple(known.alike(spelled))
    yield from alike
    if alike or _OF_SCRIPTS.fullmatch(name):
        return
    yield from known.with_words_moved(spelled)
    yield from known.with_prefix_mended(spelled)
    yield from _last_letter(name)
    yield from _said_twice(name)
    yield from _of_another(name)
    yield from known.lacking_a_word(spelled)
    if not name.startswith(_COMPLETE) and known.has_words_of(spelled):
        # Such as RX for TX: of these readers not every name is known.
        return
    yield from known.with_words_shortened(spelled)
    yield from _few_letters_off(spelled, known.beginning_alike(spelled))
    for ending in ("_ENABLE", "_FILE"):
        if spelled + ending in variables():
            yield spelled + ending


def _last_letter(name: str) -> Iterator[str]:
    """Yield described variables that the name lacks the last letter of, and parameters of Open MPI without `MCA_`."""
    yield from (name + letter for letter in "DS" if name + letter in variables())
    if name.startswith("OMPI_") and f"OMPI_MCA_{name.removeprefix('OMPI_')}" in variables():
        yield f"OMPI_MCA_{name.removeprefix('OMPI_')}"


def _said_twice(name: str) -> Iterator[str]:
    """Yield the known name that has each word once, where one stands twice in a row."""
    words = name.split("_")
    once = "_".join(word for word, before in zip(words, ["", *words], strict=False) if word != before)
    if once != name and once in variables():
        yield once


# Libraries whose names are taken for NCCL's, and whose own have other words behind the prefix.
_BESIDE_NCCL = {"UCX", "FI", "UCC", "SHARP", "HCOLL", "GLOO"}
# What components of MPI itself are set by, and never those that start its processes.
_OF_MPI = re.compile(
    r"(?:PRTE|PMIX)_MCA_(?=(?:mpi|btl|pml|mtl|osc|coll|bml|io|fcoll|fbtl|opal|op|topo|spml|scoll)(?:_|$))"
)


def _of_another(name: str) -> Iterator[str]:
    """Yield the variable of NCCL or Open MPI that a name with the prefix of a library beside it is but for that."""
    prefix, _, rest = name.partition("_")
    meant = f"{_COMPLETE}{rest}" if prefix in _BESIDE_NCCL and "_" in rest else _OF_MPI.sub("OMPI_MCA_", name)
    if meant != name and meant in variables() and not variables()[meant].until:
        yield meant


def _opposite(name: str) -> str | None:
    """Return a sentence where the name turns on what a variable turns off, or the other way round."""
    prefix, *words = name.split("_")
    for place, word in enumerate(words):
        if word in _SWITCHES:
            others = words[:place] + words[place + 1 :]
            opposite = "_".join((prefix, *others, _SWITCHES[word]))
            return f"{opposite} says the opposite" if opposite in variables() else None
    return f"{name}_DISABLE says the opposite" if f"{name}_DISABLE" in variables() else None


def _few_letters_off(spelled: str, known: Iterator[KnownName]) -> Iterator[str]:
    """Yield the known names with the least letters off, where these are few for the length of the name."""
    body = spelled.partition("_")[2]
    allowed = next(off for length, off in _LETTERS_OFF if len(body) <= length)
    if not spelled.startswith(_COMPLETE):
        # Of other readers not every name is known: what is two letters off may be one that is not.
        allowed = min(allowed, 1)
    if allowed == 0:
        return
    near = []
    for each in known:
        if each.may_be_meant(spelled, allowed):
            distance = letters_off(spelled, each.spelled, allowed)
            if distance <= allowed:
                near.append((distance, each.name))
    least = min((distance for distance, _name in near), default=None)
    yield from (name for distance, name in sorted(near) if distance == least)


def letters_off(one: str, other: str, limit: int) -> int:
    """Return how many letters are missing, too many, wrong or swapped with their neighbour; `limit` + 1 for more."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        earlier, before, row = before, row, [place]
        for column, opposite in enumerate(other, 1):
            cost = min(before[column] + 1, row[-1] + 1, before[column - 1] + (letter != opposite))
            if place > 1 and column > 1 and letter == other[column - 2] and one[place - 2] == opposite:
                cost = min(cost, earlier[column - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]
