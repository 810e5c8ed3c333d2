"""The names that something reads, ordered for finding those near another."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from busbw.facts.envvars import variables

# Beginnings that only names of this field have. RANK, MASTER_PORT, OMP_PLACES and the like are near too many names that
# scripts give to their own variables; SLURM_ and SBATCH_ names are made up by scripts as well.
_DISTINCT = {
    *("NCCL", "OFI", "UCX", "UCC", "FI", "RDMAV", "SHARP", "HCOLL", "NVSHMEM", "DOCA", "RCCL", "HSA"),
    *("OMPI", "OPAL", "PMIX", "PRTE", "MPICH", "MPIR", "HYDRA", "I", "MV2", "MVP"),
    *("CUDA", "NVIDIA", "TORCH", "PYTORCH", "GLOO", "APPTAINER", "SINGULARITY", "ENROOT"),
}
_STEM = 3
_FEWEST_WORDS = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A name that something reads."""

    name: str
    spelled: str
    letters: int

    def may_be_near(self, spelled: str, limit: int) -> bool:
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


class Index:
    """Known names by how they may be looked for."""

    def __init__(self) -> None:
        """Order every variable that is read today and has a beginning of its own."""
        self._by_letters: dict[str, list[str]] = defaultdict(list)
        self._by_words: dict[tuple[str, ...], list[str]] = defaultdict(list)
        self._by_stems: dict[tuple[str, ...], list[str]] = defaultdict(list)
        self._by_prefix: dict[str, list[Candidate]] = defaultdict(list)
        self._vocabulary: set[str] = set()
        for name, each in variables().items():
            prefix = name.partition("_")[0]
            if each.until is not None or each.owner == "build scripts" or prefix not in _DISTINCT:
                continue
            spelled = folded(name)
            self._by_letters[spelled.replace("_", "")].append(name)
            self._by_words[_words(spelled)].append(name)
            self._by_stems[_stems(spelled)].append(name)
            self._vocabulary.update(spelled.split("_"))
            self._by_prefix[prefix].append(Candidate(name, spelled, letters_of(spelled)))

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

    def beginning_alike(self, spelled: str) -> Iterator[Candidate]:
        """Yield names with the same prefix, or with one that is a slip away from it."""
        prefix = spelled.partition("_")[0]
        if prefix in self._by_prefix:
            yield from self._by_prefix[prefix]
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
def index() -> Index:
    """Return the index of every known name."""
    return Index()
