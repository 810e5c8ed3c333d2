"""How many slips `busbw env lint` finds of those made by rule: one edit of each name, value and option that it knows.

    python benchmarks/env/slips.py [--seed 1] [--missed FILE]

For every variable that has a domain, and every option of every launcher, the ways people get it wrong are made by rule:
a letter off, words moved, the wrong sign, a word for a number, another program's word. Each is linted in a script of
three lines, and found is an error or a warning. `right` makes the neighbours that must stay silent: every word that a
variable takes, every option with a value that it takes. What a reader takes all the same is not made (TAKEN).
"""

import argparse
import random
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.env.rules.subject import CheckContext
from busbw.facts.envvars import variables
from busbw.facts.launchers import LauncherOptions, concepts, launcher_options
from busbw.model.envvar import EnvVar

# Slips of the pen that are none: the reader takes them, or what it makes of them is not known.
TAKEN = {
    "another number for a switch": "read as on: atoi, strtol or a comparison with 0",
    "other capitals in a value": "most readers compare without them, and of the others each says so by itself",
    "the number of a word": "enumerations of UCX, Open MPI and NCCL's levels take numbers too",
    "NAME=VALUE behind one dash": "Hydra and PRRTE take it, Open MPI 4 does not: which one runs is not known",
}
NOT_FOR_RANKS = {"build scripts", "loader", "shell"}
# Beginnings that only names of this field have.
PREFIXES = {"NCCL", "UCX", "FI", "OFI", "OMPI", "PRTE", "MPICH", "MPIR", "MV2", "MVP", "I", "SHARP", "HCOLL", "UCC"}
_SHORTEST = 4


class Slip(NamedTuple):
    """One slip: what it is, whose the variable or the option is, and a script that has it."""

    kind: str
    owner: str
    text: str


def found(text: str) -> bool:
    """Whether anything in a script is told as an error or a warning."""
    return any(each.is_serious for each in lint(read(text, "job.sh"), CheckContext()))


def edits(word: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield a word with one letter left out, doubled, wrong, and swapped with the next."""
    letters = [at for at, letter in enumerate(word) if at and letter.isalpha()]
    if len(letters) < _SHORTEST - 1:
        return
    at = chance.choice(letters)
    yield "a letter left out", word[:at] + word[at + 1 :]
    at = chance.choice(letters)
    yield "a letter doubled", word[: at + 1] + word[at:]
    at = chance.choice(letters)
    other = "q" if word[at].lower() != "q" else "x"
    yield "a wrong letter", word[:at] + (other.upper() if word[at].isupper() else other) + word[at + 1 :]
    pairs = [at for at in letters if at + 1 < len(word) and word[at + 1].isalpha() and word[at] != word[at + 1]]
    if pairs:
        at = chance.choice(pairs)
        yield "two letters swapped", word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def wrong_values(variable: EnvVar, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield values that are none for a variable, by how they came about."""
    words = [each for each in variable.choices if not each.lstrip("-").isdecimal()]
    if words:
        word = chance.choice([each for each in words if len(each) >= _SHORTEST] or words)
        known = {each.lower() for each in words}
        yield from ((f"value: {what}", text) for what, text in edits(word, chance) if text.lower() not in known)
        yield "value: quotes within", f'"{word}"'
        return
    if variable.kind in ("int", "size", "bool", "float"):
        yield (
            "value: a word for a number",
            "four" if variable.kind != "bool" else chance.choice(("tru", "yess", "flase")),
        )
        yield "value: quotes within", '"1"'
        yield "value: an equals sign too many", "=1"
    if variable.kind in ("int", "size"):
        yield (
            "value: a unit that is not read",
            chance.choice(("8Q", "10s") if variable.kind == "size" else ("8K", "4MB", "10s")),
        )
        yield "value: a decimal", "1.5x" if variable.kind == "size" else "1.5"
        yield "value: the letter O for a zero", "1O"
    if variable.kind in ("int", "bool"):
        yield "value: two numbers", "1;2"
    if variable.most is not None:
        yield "value: too large", str(variable.most + 1)
    if variable.least is not None and variable.least > 0:
        yield "value: too small", str(variable.least - 1)
    if variable.kind == "list" and variable.divider is None:
        yield "value: blanks for commas", "eth0 eth1"
        yield "value: semicolons for commas", "eth0;eth1"


def wrong_names(name: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield names that nothing reads, by how they came about."""
    prefix, _, rest = name.partition("_")
    if prefix not in PREFIXES or not rest:
        return
    before = f"{prefix}_MCA_" if rest.startswith("MCA_") else f"{prefix}_"
    rest = name.removeprefix(before)
    yield from ((f"name: {what}", before + text) for what, text in edits(rest, chance))
    words = rest.split("_")
    if len(words) > 1:
        yield "name: words moved", before + "_".join((words[-1], *words[:-1]))
        at = chance.randrange(len(words))
        yield "name: a word twice", before + "_".join(words[: at + 1] + words[at:])
        yield "name: a word left out", before + "_".join(words[:at] + words[at + 1 :])
        yield "name: no sign between words", before + "".join(words)
    yield "name: one for several", name.removesuffix("S") if name.endswith("S") else f"{name}S"
    yield "name: other capitals", name.upper() if "_MCA_" in name else name.lower()
    if before != "NCCL_" and prefix == "UCX":
        yield "name: the prefix of another", f"NCCL_{rest}"


def settings(seed: str = "1") -> Iterator[Slip]:
    """Yield slips in every variable that ranks are given, each set, passed on and used."""
    known = variables()
    for name, variable in sorted(known.items()):
        if variable.owner in NOT_FOR_RANKS or variable.until is not None:
            continue
        chance = random.Random(f"{seed}{name}")  # noqa: S311 - slips are no secrets
        value = variable.choices[0] if variable.choices else "1"
        pairs = [(what, name, text) for what, text in wrong_values(variable, chance)]
        pairs += [(what, text, value) for what, text in wrong_names(name, chance) if text not in known]
        for what, set_name, set_value in pairs:
            yield Slip(what, variable.owner, script(set_name, set_value))


def script(name: str, value: str) -> str:
    """Return a script that sets one variable and starts ranks with it."""
    return f"#!/bin/bash\nexport {name}={shlex.quote(value)}\nmpirun -x {name} ./app\n"


def value_of(option: str, vocabulary: LauncherOptions) -> str | None:
    """Return a value that an option takes, None for one that takes none."""
    wanted = vocabulary.values.get(option)
    if wanted is None:
        return "4" if option in vocabulary.valued else None
    return (
        wanted.words[0]
        if wanted.words
        else {"append or truncate": "append", "NAME=SOFT:HARD, such as memlock=-1": "core=0"}.get(
            wanted.wants or "", "4"
        )
    )


def line(program: str, vocabulary: LauncherOptions, option: str, value: str | None) -> str:
    """Return a script with one option of a launcher, of which `=` divides the value where all releases take it."""
    sign = " " if vocabulary.reads == "any dashes" else "="
    return f"#!/bin/bash\n{program} --{option}{'' if value is None else f'{sign}{value}'} ./app\n"


def _programs() -> list[tuple[str, LauncherOptions]]:
    """Return the launchers as they are called: a module of Python by `python -m`."""
    modules = ("torch.", "accelerate.")
    return [
        (f"python -m {name}" if name.startswith(modules) else name, each)
        for name, each in sorted(launcher_options().items())
    ]


def command_lines(seed: str = "1") -> Iterator[Slip]:
    """Yield slips in every option of every launcher."""
    for program, vocabulary in _programs():
        chance = random.Random(f"{seed}{program}")  # noqa: S311 - slips are no secrets
        for option in sorted(each for each in vocabulary.names if len(each) > _SHORTEST):
            yield from _of_option(program, vocabulary, option, chance)
        for option, wanted in sorted(vocabulary.values.items()):
            if " " not in option and not wanted.words:
                yield Slip("value: a word for a number", program, line(program, vocabulary, option, "four"))
                yield Slip("value: the letter O for a zero", program, line(program, vocabulary, option, "1O"))
            elif " " not in option:
                words = [each for each in wanted.words if len(each) > _SHORTEST]
                yield from (
                    Slip(f"value: {what}", program, line(program, vocabulary, option, text))
                    for what, text in (edits(chance.choice(words), chance) if words else ())
                    if text not in wanted.words and option not in ("mpi", "cpu-bind")
                )
        for name in sorted(each for each in concepts() if each.replace("-", "_") not in _alike(vocabulary)):
            yield Slip("option: another launcher's", program, line(program, vocabulary, name, "4"))


def _alike(vocabulary: LauncherOptions) -> set[str]:
    return {each.replace("-", "_") for each in (*vocabulary.names, *vocabulary.named_short)}


def _of_option(program: str, vocabulary: LauncherOptions, option: str, chance: random.Random) -> Iterator[Slip]:
    value = value_of(option, vocabulary)
    begun = vocabulary.reads in ("getopt", "argparse")
    changed = [
        *edits(option, chance),
        ("one for several", option.removesuffix("s") if option.endswith("s") else f"{option}s"),
    ]
    words = option.replace("_", "-").split("-")
    if len(words) > 1:
        changed.append(("words moved", ("_" if "_" in option else "-").join((words[-1], *words[:-1]))))
    for what, text in changed:
        is_one = text in vocabulary.names or (begun and any(each.startswith(text) for each in vocabulary.names))
        if not is_one:
            yield Slip(f"option: {what}", program, line(program, vocabulary, text, value))


def right() -> Iterator[str]:
    """Yield scripts that nothing is wrong with: words and defaults of variables, options with what they take."""
    for name, variable in sorted(variables().items()):
        if variable.owner in NOT_FOR_RANKS or variable.until is not None or variable.deprecated is not None:
            continue
        for value in variable.choices if variable.kind != "list" else variable.choices[:1]:
            yield script(name, value)
    for program, vocabulary in _programs():
        for option in sorted(vocabulary.names - set(vocabulary.pairs.split())):
            yield line(program, vocabulary, option, value_of(option, vocabulary))


def main() -> None:
    """Print how many are found, by kind and by whose they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--missed", type=Path, help="the file to write those into that are not found")
    given = parser.parse_args()
    missed: list[str] = []
    for title, slips in (("settings", settings(given.seed)), ("command lines", command_lines(given.seed))):
        made: Counter[str] = Counter()
        told: Counter[str] = Counter()
        for slip in slips:
            is_found = found(slip.text)
            for key in (slip.kind, f"of {slip.owner}"):
                made[key] += 1
                told[key] += is_found
            if not is_found:
                missed.append(f"{slip.kind} | {slip.owner} | {slip.text.splitlines()[1]}")
        print(f"{title}\n")
        for key in sorted(made):
            print(f"{key:40} {told[key]:6} of {made[key]:6}  {100 * told[key] / made[key]:.0f} %")
        print()
    silent = sum(not found(text) for text in right())
    print(f"right: {silent} of {sum(1 for _each in right())} are silent")
    if given.missed is not None:
        given.missed.write_text("\n".join(missed) + "\n")


if __name__ == "__main__":
    main()
