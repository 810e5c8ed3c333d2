"""What #PBS and #BSUB, qsub and bsub ask for: lists of resources with signs between them, and values of one shape."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from busbw.env.misspelled import letters_off
from busbw.env.rules.option_names import NUMERALS, meant_option
from busbw.env.rules.subject import SettingsSubject, report, shown
from busbw.facts.batch_resources import ResourceList, directive_options, resource_lists, resource_values
from busbw.facts.launchers import launcher_options
from busbw.model.finding import FilePlace, Finding

_DIRECTIVE = re.compile(r"(?P<word>#(?:PBS|BSUB))[ \t]+(?=\S)")
# A command line where a command may begin, behind a prompt at most.
_COMMAND = re.compile(
    r"(?:^|[;&|(`]|\b(?:then|do|else|echo \S+ \|)\b)\s*(?:[$%] )?(?:[\w./-]*/)?(?P<word>qsub|bsub)[ \t]+(?=-)", re.ASCII
)
_DIRECTIVE_OF = {"qsub": "#PBS", "bsub": "#BSUB"}
_SHELLS = {"shell", "slurm", "csh", "markdown", "makefile"}
_MOST_LINES = 20
# Resources of PBS that are an option of no qsub.
_NO_OPTIONS = re.compile(r"--?(?P<name>walltime|select|ncpus|ngpus|mpiprocs)(?:=.*)?", re.ASCII)
_SLOTS = re.compile(r"[\d,-]+")
_LONGEST = 1_000
_FILLED_IN = re.compile(r"[$`{}<>@%]|\.\.\.|[^\x00-\x7f]|\b[A-Z][A-Z0-9_]{2,}\b")
_ENTRY = re.compile(r"(?P<name>[A-Za-z_][\w.-]*)(?P<sign>=|==|:)(?P<value>.*)", re.ASCII | re.DOTALL)
_SECTION = re.compile(r"(?P<name>[a-z]+)(?P<opens>[\[({])(?P<text>[^\[\]{}]*)(?P<closes>[\])}]?)", re.ASCII)
_SECTIONS = ("select", "order", "rusage", "span", "same", "cu", "affinity")
_LONG_OPTION = re.compile(r"--(?P<name>[a-z][\w-]*)", re.ASCII)
_UNFINISHED = (",", ":", "=", "+")
# What a job with `select` asks for in its chunks alone.
_OF_CHUNKS = ("ncpus", "ngpus")
# A name of fewer letters is near too many others.
_FEWEST_LETTERS = 4


@dataclass(frozen=True, slots=True)
class _Directive:
    at: FilePlace
    word: str
    words: tuple[str, ...]
    # Whether it is a command line: which batch system has this qsub is not known.
    is_command: bool = False

    @property
    def program(self) -> str:
        """The program that reads it."""
        return "qsub" if self.word == "#PBS" else "bsub"

    def takes(self, option: str, value: str, fix: str, source: str) -> Finding:
        """Return that a value is none that an option or a resource takes."""
        return report(
            "ENV111",
            at=self.at,
            evidence=" ".join(self.words)[:80],
            effect=f"{self.program} refuses the job, or asks for something else",
            fix=fix,
            source=source,
            option=option,
            value=shown(value),
        )

    def has_no(self, option: str, meant: str, source: str) -> Finding:
        """Return that the program has no such option."""
        return report(
            "ENV110",
            at=self.at,
            evidence=" ".join(self.words)[:80],
            confidence="likely",
            effect=f"{self.program} refuses the job, or takes it for other options",
            fix=meant,
            source=source,
            launcher=self.program,
            option=option[:60],
            meant=meant,
        )

    def knows(self, option: str, name: str, fix: str, source: str) -> Finding:
        """Return that a resource is none, and near one."""
        return report(
            "ENV129",
            at=self.at,
            evidence=" ".join(self.words)[:80],
            confidence="likely",
            effect=f"{self.program} refuses the job, unless the site has a resource of that name",
            fix=fix,
            source=source,
            option=option,
            written=shown(name),
        )


def resource_directives(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield what PBS and LSF cannot make anything of in their directives."""
    for number, text in enumerate(subject.reading.lines, start=1):
        found = _DIRECTIVE.match(text)
        if found is None or len(text) > _LONGEST:
            continue
        try:
            words = tuple(shlex.split(text[found.end() :], comments=True))
        except ValueError:
            continue
        at = FilePlace(file=subject.reading.file, line=number, column=found.end() + 1)
        yield from _checked(_Directive(at, found["word"], words))


def submissions(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield what PBS and LSF cannot make anything of on the command lines of qsub and bsub."""
    lines = subject.reading.lines
    for number, text in enumerate(lines, start=1):
        if subject.reading.language not in _SHELLS or len(text) > _LONGEST or text.lstrip().startswith("#"):
            continue
        for found in _COMMAND.finditer(text):
            words = _words_of_command(text[found.end() :], lines[number : number + _MOST_LINES])
            words = words[: _command_at(words)] if found["word"] == "bsub" else words
            at = FilePlace(file=subject.reading.file, line=number, column=found.start("word") + 1)
            directive = _Directive(at, _DIRECTIVE_OF[found["word"]], words, is_command=True)
            yield from _checked(directive)
            yield from _option_names(directive) if found["word"] == "bsub" else _no_options(directive)


def _words_of_command(text: str, following: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words up to the end of a command, with the lines that it goes on in; none with an open quote."""
    for line in following:
        if not text.endswith("\\"):
            break
        text = f"{text[:-1]} {line[:_LONGEST]}"
    words: list[str] = []
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";|&()<>`")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        for word in lexer:
            if set(word) <= set(";|&()<>`") or word.startswith("#"):
                break
            words.append(word)
    except ValueError:
        return ()
    return tuple(words)


def _command_at(words: tuple[str, ...]) -> int:
    """Return where the command that bsub is given begins: its options are not bsub's."""
    valued = launcher_options()["bsub"].valued
    at = 0
    while at < len(words) and words[at].startswith("-"):
        # A word that is not known may take the next one.
        at += 1 if words[at].lstrip("-") not in valued else 2
    return at


def _option_names(directive: _Directive) -> Iterator[Finding]:
    """Yield options of bsub that are near one there is, up to its command."""
    vocabulary = launcher_options()["bsub"]
    skips = False
    for word in directive.words:
        if skips:
            skips = False
            continue
        name = word.lstrip("-")
        if not word.startswith("-") or name == "":
            return
        if name in vocabulary.names or not name.replace("_", "").isalpha():
            skips = name in vocabulary.valued
            continue
        meant = meant_option(vocabulary, name) if len(name) > 3 else None
        if meant is not None:
            yield directive.has_no(word, f"-{meant}" if " " not in meant else meant, vocabulary.source)
        # Whether a value follows is not known.
        return


def _no_options(directive: _Directive) -> Iterator[Finding]:
    """Yield resources that stand as options of qsub, and an environment of Grid Engine without its slots."""
    source = resource_lists()["#PBS -l"].source
    for word, second, third in zip(directive.words, directive.words[1:], (*directive.words[2:], ""), strict=False):
        found = _NO_OPTIONS.fullmatch(word)
        if found is not None:
            yield directive.has_no(word, f"-l {found['name']}=", source)
        elif word == "-pe" and not _SLOTS.fullmatch(third) and not _FILLED_IN.search(f"{second} {third}"):
            yield directive.takes("-pe", f"{second} {third}", f"-pe {second} and a number", "Grid Engine, qsub(1)")


def _checked(directive: _Directive) -> Iterator[Finding]:
    if not directive.is_command:
        yield from _long_option(directive)
    for option, value in _options(directive.words):
        if _FILLED_IN.search(value):
            continue
        # Those of Grid Engine have other values: `-j y`.
        is_known = not (directive.is_command and directive.word == "#PBS")
        wanted = directive_options().get((directive.word, option)) if is_known else None
        if wanted is not None and _is_none(value, wanted.pattern):
            yield directive.takes(option, value, f"{option} with {wanted.wants}", wanted.source)
        elif directive.word == "#PBS" and option == "-l":
            yield from _list(directive, "-l", value)
        elif option == "-gpu" and value != "-":
            yield from _list(directive, "-gpu", value)
        elif option == "-R":
            yield from _sections(directive, value)
    if not any(_FILLED_IN.search(word) for word in directive.words):
        yield from _blank(directive)


def _options(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the options with their values, `-lnodes=2` as two words."""
    for word, following in pairwise((*words, "")):
        if word.startswith("-l") and len(word) > 2 and "=" in word:
            yield "-l", word[2:]
        elif re.fullmatch(r"-[A-Za-z]\w*", word) and not following.startswith("-"):
            yield word, following


def _long_option(directive: _Directive) -> Iterator[Finding]:
    """Yield an option with two dashes, which qsub of PBS does not have."""
    found = _LONG_OPTION.match(directive.words[0]) if directive.words and directive.word == "#PBS" else None
    name = found["name"].replace("-", "_") if found is not None else ""
    # NEC's qsub has long options: others than resources of this one may be of that.
    if found is not None and name in resource_lists()["#PBS -l"].names.split():
        meant = f"-l {name}="
        yield report(
            "ENV110",
            at=directive.at,
            evidence=directive.words[0][:60],
            effect="qsub refuses the job",
            fix=meant,
            source=resource_lists()["#PBS -l"].source,
            launcher=directive.program,
            option=f"--{found['name']}",
            meant=meant,
        )


def _blank(directive: _Directive) -> Iterator[Finding]:
    """Yield a list that a blank cuts: what stands behind it is another argument."""
    for option, value, following in zip(directive.words, directive.words[1:], directive.words[2:], strict=False):
        is_list = directive.word == "#PBS" and option == "-l" and "=" in value
        if (
            is_list
            and not following.startswith("-")
            and (value.endswith(_UNFINISHED) or following in ("gb", "GB", "mb"))
        ):
            fix = f"{option} {value}{following}"
            yield directive.takes(option, f"{value} {following}", fix, resource_lists()["#PBS -l"].source)


def _list(directive: _Directive, option: str, text: str) -> Iterator[Finding]:
    """Yield what is wrong with a list of NAME=VALUE."""
    where = f"{directive.word} {option}"
    known = resource_lists()[where]
    entries = [each.strip() for each in re.split(f"[{known.divided_by}]", text)]
    names = [each.partition("=")[0] for each in entries]
    for entry, name in zip(entries, names, strict=True):
        inner = resource_lists().get(f"{where} {name}")
        if inner is not None:
            yield from _chunks(directive, f"{option} {name}", entry.partition("=")[2], inner)
        elif (outer := _outer(name, names, known)) is not None:
            fix = f"{option} {text.replace(f',{entry}', f':{entry}', 1)}"
            yield directive.takes(f"{option} {outer}", text, fix, known.source)
        else:
            yield from _entry(directive, option, entry, known)


def _outer(name: str, names: list[str], known: ResourceList) -> str | None:
    """Return the resource that a name belongs into, where the list has that one too."""
    if "select" in names and name in (*known.inner.split(), *_OF_CHUNKS):
        return "select"
    return "nodes" if "nodes" in names and name in known.inner.split() else None


def _chunks(directive: _Directive, option: str, text: str, known: ResourceList) -> Iterator[Finding]:
    for entry in re.split(f"[{known.divided_by}]", text):
        yield from _entry(directive, option, entry.strip(), known)


def _entry(directive: _Directive, option: str, entry: str, known: ResourceList) -> Iterator[Finding]:
    parts = _ENTRY.fullmatch(entry)
    if parts is None:
        return
    name, value, there_are = parts["name"], parts["value"], known.names.split()
    if name not in there_are:
        near = sorted((letters_off(name.lower().replace("-", "_"), one, 1), one) for one in there_are)
        is_near = near[0][0] <= 1 and min(len(name), len(near[0][1])) >= _FEWEST_LETTERS
        if is_near and not name[-1].isdecimal():
            yield directive.knows(option, name, f"{near[0][1]}={value}", known.source)
        return
    wanted = resource_values().get(name)
    if value.startswith("=") or (wanted is not None and _is_none(value, wanted.pattern)):
        wants = (
            f"{name}={value.lstrip('=')}" if wanted is None or value.startswith("=") else f"{name}= with {wanted.wants}"
        )
        yield directive.takes(f"{option} {name}", value, wants, known.source)


def _is_none(value: str, pattern: str) -> bool:
    """Whether a value has not the shape that it is to have: where that is a number, another word may stand for one."""
    if not value or not value[0].isalnum() or re.fullmatch(pattern, value) is not None:
        return False
    return not pattern.lstrip("-?").startswith(r"\d") or value[0].isdecimal() or value.lower() in NUMERALS


def _sections(directive: _Directive, text: str) -> Iterator[Finding]:
    """Yield what is wrong with the sections of a resource requirement of LSF: `span[ptile=4] rusage[mem=8]`."""
    source = resource_lists()["#BSUB -R span"].source
    for section in _SECTION.finditer(text):
        name = section["name"]
        near = min((letters_off(name, one, 1), one) for one in _SECTIONS)
        if (section["opens"] != "[" and name in _SECTIONS) or (section["opens"] == "[" and not section["closes"]):
            yield directive.takes("-R", text, f"{name}[{section['text']}]", source)
        elif name not in _SECTIONS and near[0] <= 1 and len(name) >= _FEWEST_LETTERS:
            yield directive.knows("-R", name, f"{near[1]}[{section['text']}]", source)
        elif f"#BSUB -R {name}" in resource_lists():
            yield from _chunks(directive, f"-R {name}", section["text"], resource_lists()[f"#BSUB -R {name}"])
