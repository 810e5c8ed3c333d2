"""The options of a launcher's line and of #SBATCH, held against those there are, and their values."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from busbw.env.misspelled import letters_off
from busbw.env.rules.option_names import NUMERALS, as_written, known_option, meant_option, told_otherwise
from busbw.env.rules.subject import SettingsSubject, place_of, report, shown
from busbw.facts.launchers import LauncherOptions, OptionValue, launcher_options
from busbw.model.finding import FilePlace, Finding
from busbw.model.settings import LaunchCommand

_DIRECTIVE = re.compile(r"#SBATCH[ \t]+(?=-)")
_HETEROGENEOUS = re.compile(r"#SBATCH[ \t]+(?:hetjob|packjob)\b")
_LONGEST = 1_000
_MOST_LINES = 40
# What is filled in before anything runs: variables, templates, names in capitals.
_FILLED_IN = re.compile(r"[$`{}<>@%\[\]|]|\.\.\.|[^\x00-\x7f]")
_IN_CAPITALS = re.compile(r"\b[A-Z][A-Z0-9_]+\b")
_OPTION = re.compile(r"(?P<dashes>--?)(?P<name>[A-Za-z][\w.-]*)(?P<equals>=?)(?P<value>.*)", re.ASCII | re.DOTALL)
_COUNT = re.compile(r"(?P<name>[a-z]+)(?P<count>\d+)", re.ASCII)
_LIKE_COUNT = re.compile(r"[np]{2,4}", re.ASCII)
_YES_OR_NO = {"yes", "no", "true", "false", "on", "off"}
_UNITS = {"KB", "MB", "GB", "TB"}
# A letter for a digit.
_LIKE_DIGITS = re.compile(r"[\dOoIl]*\d[\dOoIl]*", re.ASCII)
_RUNTIMES = {"docker", "nvidia-docker", "podman", "nerdctl", "apptainer", "singularity", "enroot", "ray"}
_VERBS = {"run", "create", "exec", "shell", "start"}
_SCRIPT = re.compile(r".*\.(?:py|sh)|.*/.*")
# Options that another rule holds against their words: bindings and types of MPI.
_CHECKED_ELSEWHERE = frozenset({"cpu-bind", "cpu_bind", "mem-bind", "mem_bind", "gpu-bind", "distribution", "mpi"})


@dataclass(frozen=True, slots=True)
class _Line:
    """The words of one command or directive behind its program, and where it stands."""

    at: FilePlace
    launcher: str
    words: tuple[str, ...]
    vocabulary: LauncherOptions
    # What is taken for the program.
    program: str | None = None
    # Whether no word of it is hidden in a variable, and the launcher's name stands in the line itself.
    is_whole: bool = True
    is_written: bool = True
    # The lines from where it begins; (): they are what the words say.
    lines: tuple[str, ...] = ()
    is_directive: bool = False
    # The numbers that its options were given so far, by the option.
    given: dict[str, str] = field(default_factory=dict)

    def has(self, option: str, meant: str, effect: str | None = None, *, sure: bool = True) -> Finding:
        """Return that the launcher has no such option."""
        return report(
            "ENV110",
            at=self.at,
            evidence=option[:60],
            confidence="certain" if sure else "likely",
            effect=effect or f"{self.launcher} ends with an error",
            fix=meant,
            source=self.vocabulary.source,
            launcher=self.launcher,
            option=option[:60],
            meant=meant,
        )

    def takes(self, option: str, value: str, wanted: str) -> Finding:
        """Return that an option has a value that it does not take."""
        return report(
            "ENV111",
            at=self.at,
            evidence=f"{option} {value}"[:80],
            effect=f"{self.launcher} ends with an error, or takes it for something else",
            fix=wanted,
            source=self.vocabulary.source,
            option=option,
            value=shown(value),
        )


def launch_options(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield options of launchers that are near one there is, and values that an option does not take."""
    for launch in subject.reading.launches:
        line = _line_of(launch, subject.reading.lines)
        if line is not None:
            yield from _checked(line)
    given: dict[str, str] = {}
    is_head = True
    for number, text in enumerate(subject.reading.lines, start=1):
        directive = _DIRECTIVE.match(text)
        is_head = (is_head or text.startswith("#!")) and (text.startswith("#") or not text.strip())
        if not is_head or text.startswith("#!") or _HETEROGENEOUS.match(text):
            # Another part of the job, or another script; what stands behind a command is not read at all.
            given = {}
        if directive is None or len(text) > _LONGEST:
            continue
        at = FilePlace(file=subject.reading.file, line=number, column=directive.end() + 1)
        words = _words(text[directive.end() :])
        if words:
            line = _Line(at, "sbatch", words, launcher_options()["sbatch"], is_directive=True, given=given)
            yield from _checked(line)


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a directive as sbatch divides them, none where a quote is left open."""
    try:
        return tuple(shlex.split(text, comments=True))
    except ValueError:
        return ()


def _line_of(launch: LaunchCommand, lines: tuple[str, ...]) -> _Line | None:
    """Return the options of a launch with those of its program, None for one of which they are not known."""
    argv = launch.argv[: launch.program] if launch.program is not None else launch.argv
    if not argv:
        return None
    name, first = argv[0].rpartition("/")[2], 1
    known = launcher_options()
    if name in ("accelerate", "flux", "helm", "kubectl") and len(argv) > 1:
        name, first = f"{name} {argv[1]}", 2
    elif name in _RUNTIMES:
        first = next((at for at, word in enumerate(argv) if at and word in _VERBS), 0) + 1
        name = f"{name} {argv[first - 1]}"
    elif name.startswith("python") and "-m" in argv[:-1]:
        first = argv.index("-m") + 2
        name = argv[first - 1]
    if name not in known:
        return None
    program = launch.argv[len(argv)] if len(argv) < len(launch.argv) else None
    own = lines[launch.line - 1 : launch.line - 1 + _MOST_LINES]
    return _Line(
        place_of(launch),
        name,
        argv[first:],
        known[name],
        program,
        is_whole=not launch.computed,
        is_written=argv[0].rpartition("/")[2] in own[0],
        lines=own,
    )


def _checked(line: _Line) -> Iterator[Finding]:
    """Go through the words of a line up to its program."""
    at = 0
    while at < len(line.words):
        word = line.words[at]
        at += 1
        if word.startswith("#") or word == "--":
            return
        rest = line.words[at:] if at < len(line.words) or line.program is None else (line.program,)
        parts = _OPTION.fullmatch(word)
        if parts is None:
            if (word.startswith("-") and word != "-") or line.vocabulary.has_operands:
                continue
            if not line.is_directive:
                # The program, or what is not known.
                return
            is_word = word in _UNITS or not _IN_CAPITALS.search(word)
            if _FILLED_IN.search(" ".join(line.words)) is None and is_word:
                yield _stray(line, word)
            return
        finding, taken = _option(line, word, parts, rest)
        if finding is not None:
            yield finding
        at += taken


def _stray(line: _Line, word: str) -> Finding:
    return report(
        "ENV133",
        at=line.at,
        evidence=" ".join(line.words)[:80],
        effect="sbatch ends with an error",
        fix="# before it, if it is a remark",
        word=shown(word),
    )


_Step = tuple[Finding | None, int]


def _option(line: _Line, word: str, parts: re.Match[str], rest: tuple[str, ...]) -> _Step:
    """Return what is wrong with an option, and how many of the words behind it are its values."""
    if line.vocabulary.reads == "any dashes":
        return _any_dashes(line, parts, rest)
    following = rest[0] if rest else None
    if parts["dashes"] == "-":
        return _short(line, word, following)
    name = parts["name"]
    known = known_option(line.vocabulary, name.replace("-", "_") if line.vocabulary.dashes_alike else name)
    if len(name) == 1 and known != name:
        # One letter begins several words: then it is none of them.
        return _letter(line, name), 1 if following and not parts["equals"] else 0
    if known is None or isinstance(known, tuple):
        return _unknown(line, name, known, "" if parts["equals"] else following)
    if not parts["equals"]:
        return _with_next(line, f"--{name}", known, following)
    is_bare = known in line.vocabulary.bare and line.vocabulary.reads == "getopt"
    return line.has(word, f"--{known}") if is_bare else _value(line, f"--{name}", known, parts["value"]), 0


def _letter(line: _Line, name: str) -> Finding | None:
    """Return that an option of one letter has one dash, None where there is no such letter."""
    is_known = name in line.vocabulary.short_takes or name in line.vocabulary.short_flags
    return line.has(f"--{name}", f"-{name}") if is_known else None


def _unknown(line: _Line, name: str, several: tuple[str, ...] | None, following: str | None) -> _Step:
    """Return what was meant by a long option that is none, or the beginning of several."""
    # A value may stand behind it.
    taken = 1 if following and _is_value(line, following) else 0
    if several is not None:
        return line.has(f"--{name}", f"--{' or --'.join(several[:3])}", f"{line.launcher} calls it ambiguous"), taken
    meant = meant_option(line.vocabulary, name)
    if meant is None or (not line.is_written and meant == told_otherwise(line.vocabulary, name)):
        # Options for several launchers, one of which a variable stands for.
        return None, taken
    is_own = meant in line.vocabulary.names
    fix = (
        f"--{as_written(line.vocabulary, name, meant)}" if is_own or meant.endswith("=") or " " not in meant else meant
    )
    return line.has(f"--{name}", fix, sure=is_own and name not in line.vocabulary.instead), taken


def _short(line: _Line, word: str, following: str | None) -> _Step:
    """Return the same for an option behind one dash."""
    vocabulary = line.vocabulary
    name, equals, value = word[1:].partition("=")
    if name in vocabulary.named_short:
        return _with_next(line, f"-{name}", vocabulary.named_short[name], following)
    finding = _word_behind_dash(line, name)
    if finding is not None:
        return finding, 1 if name not in vocabulary.names and following and not equals else 0
    letter, rest = word[1], word[2:]
    while letter in vocabulary.short_flags and rest:
        letter, rest = rest[0], rest[1:]
    if letter not in vocabulary.short_takes:
        return None, 0
    option, known = f"-{letter}", vocabulary.same.get(letter, "")
    if not rest:
        return _with_next(line, option, known, following)
    if equals and len(name) == 1 and letter not in vocabulary.free_text and vocabulary.reads != "whole":
        return (None if _FILLED_IN.search(value) else line.takes(option, f"={value}", f"{option} {value}")), 0
    return _value(line, option, known, rest.lstrip("=") if vocabulary.reads == "whole" else rest), 0


def _word_behind_dash(line: _Line, name: str) -> Finding | None:
    """Return that a word behind one dash has two, or is an option of another launcher."""
    vocabulary = line.vocabulary
    if len(name) > 3 and (name.replace("-", "_") if vocabulary.dashes_alike else name) in vocabulary.names:
        return line.has(f"-{name}", f"--{name}", "the first letter is taken for an option")
    told = told_otherwise(vocabulary, name) if len(name) > 1 and name not in vocabulary.names else None
    if told is None or not line.is_written:
        return None
    return line.has(f"-{name}", told if " " in told else f"--{told}")


def _any_dashes(line: _Line, parts: re.Match[str], rest: tuple[str, ...]) -> _Step:
    """Return the same for launchers that take words behind one dash and two."""
    vocabulary, name = line.vocabulary, parts["name"]
    option, following = f"{parts['dashes']}{name}", rest[0] if rest else None
    if name in vocabulary.pairs.split():
        # The component that `--mca NAME VALUE` names.
        finding = _value(line, f"{option} {rest[0]}", f"mca {rest[0]}", rest[1]) if len(rest) > 1 else None
        # Hydra takes NAME=VALUE as one argument too.
        return finding, 1 if rest and "=" in rest[0] else 2
    if name in vocabulary.names:
        if parts["equals"]:
            return _value(line, option, name, parts["value"]), 0
        return _with_next(line, option, name, following)
    return _unknown_anywhere(line, name, option, "" if parts["equals"] else following)


def _unknown_anywhere(line: _Line, name: str, option: str, following: str | None) -> _Step:
    """Return what was meant by a word behind one dash or two that is no option."""
    vocabulary = line.vocabulary
    counted = _COUNT.fullmatch(name)
    if counted is not None and counted["name"] in vocabulary.numbers_glued.split():
        # Launchers with options of one letter take `-n4`.
        is_one = len(counted["name"]) == 1
        return (None if is_one else line.has(option, f"-{counted['name']} {counted['count']}")), 0
    if _LIKE_COUNT.fullmatch(name) and following and following.isdecimal():
        return line.has(option, "-ppn" if name.count("p") > 1 and name[0] == "p" else "-np"), 1
    meant = meant_option(vocabulary, name) if len(name) > 3 else None
    if meant is None:
        return None, 0
    effect = "the launcher ends with an error, or takes it for the program"
    return line.has(option, f"--{meant}", effect), 1 if meant in vocabulary.valued and following else 0


def _is_value(line: _Line, following: str) -> bool:
    """Whether the word behind an option that is not known is its value rather than the program."""
    return not following.startswith("-") and (line.is_directive or _SCRIPT.fullmatch(following) is None)


def _follows(line: _Line, option: str, following: str) -> bool:
    """Whether a word is written right behind an option: a variable that is empty may stand between the two."""
    text = " ".join(word for own in line.lines for word in own.removesuffix("\\").split())
    return not text or f"{option} {following.partition('=')[0]}" in text


def _with_next(line: _Line, option: str, known: str, following: str | None) -> _Step:
    """Return the same for an option whose value is the next word, if it takes one."""
    is_letter = not option.startswith("--") and len(option) == 2 and line.vocabulary.reads != "any dashes"
    if not is_letter and known not in line.vocabulary.valued:
        return None, 0
    if following is None or following.startswith("#"):
        is_known = line.is_directive or line.vocabulary.reads != "any dashes"
        if not line.is_whole or not is_known or (not line.is_directive and line.launcher != "aprun"):
            return None, 0
        return line.takes(option, "nothing", f"a value behind {option}"), 0
    parts = _OPTION.fullmatch(following)
    is_option = parts is not None and parts["dashes"] == "--" and parts["name"] in line.vocabulary.names
    is_checked = line.vocabulary.reads != "any dashes" or known in line.vocabulary.values
    if is_option and is_checked and _follows(line, option, following):
        return line.takes(option, following, f"a value behind {option}"), 0
    return _value(line, option, known, following), 1


def _value(line: _Line, option: str, known: str, value: str) -> Finding | None:
    """Return what is wrong with the value of an option."""
    wanted = line.vocabulary.values.get(known)
    if known in _CHECKED_ELSEWHERE or wanted is None or not value or _FILLED_IN.search(value) or len(value) > _LONGEST:
        return None
    if value.startswith("="):
        return line.takes(option, value, f"{option} {value.lstrip('=')}")
    if wanted.pattern is None:
        return _word(line, option, value, wanted)
    if re.fullmatch(wanted.pattern, value):
        return _again(line, option, known, value)
    # What begins with a letter may stand for a number that is put in later.
    is_written = value[0].isdecimal() or "/" in value or _LIKE_DIGITS.fullmatch(value) is not None
    is_written = is_written or value.lower() in _YES_OR_NO or value.lower() in NUMERALS
    return line.takes(option, value, f"{option} with {wanted.wants}") if is_written else None


# Each time it is given it says something else.
_SEVERAL_TIMES = {"ulimit"}
_SAME = {"np": "n", "tasks-per-node": "ntasks-per-node"}


def _again(line: _Line, option: str, known: str, value: str) -> Finding | None:
    """Return that an option has been given with another number before."""
    name = _SAME.get(known, known)
    before = line.given.setdefault(name, value)
    line.given[name] = value
    if before == value or known in _SEVERAL_TIMES:
        return None
    return report(
        "ENV134",
        at=line.at,
        evidence=f"{option} {value}"[:80],
        confidence="likely",
        effect=f"{value} counts",
        fix="one of the two",
        source=line.vocabulary.source,
        option=option,
        first=before[:40],
        second=value[:40],
    )


def _word(line: _Line, option: str, value: str, wanted: OptionValue) -> Finding | None:
    """Return the word of a value that an option does not know."""
    for word, shape in wanted.then.items():
        if value.lower().startswith(f"{word}:") and re.match(shape, value[len(word) + 1 :]) is None:
            return line.takes(option, value, f"{option} {word}:{wanted.wants}")
    known = [each.lower() for each in wanted.words]
    for each in re.split(f"[{wanted.divided_by}]", value) if wanted.divided_by else [value]:
        word = each.lower().partition("=")[0] if wanted.begins else each.lower()
        if word in known or not re.fullmatch(r"[a-z][\w-]*", word):
            continue
        if wanted.begins and any(one.startswith(word) or word.startswith(one) for one in known):
            continue
        near = sorted((letters_off(word, one, 2), one) for one in known)
        is_near = near[0][0] <= (2 if len(word) > 3 else 1)
        if not is_near and (wanted.is_open or _IN_CAPITALS.search(each)):
            # A component of a site, or a name that something is put in for.
            continue
        return report(
            "ENV129",
            at=line.at,
            evidence=f"{option} {value}"[:80],
            confidence="certain" if is_near else "likely",
            effect=f"{line.launcher} ends with an error" + (", or goes on without it" if wanted.is_open else ""),
            fix=value.replace(each, wanted.words[known.index(near[0][1])], 1) if is_near else None,
            source=line.vocabulary.source,
            option=option,
            written=shown(each),
        )
    return None
