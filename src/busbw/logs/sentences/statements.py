"""What any program says of a failure, read by how such sentences are made: of what it says what.

A line is a statement where it holds words of a predicate (`data/failure_words.toml`). What they are about is looked for
in the line: a library, file, device, option. A line that tells that it was got over, or only how something ended,
is none.
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal, NamedTuple

from busbw.facts.failure_words import Predicate, Reading, predicates
from busbw.formats.lines.prefix import split
from busbw.logs.boxes import BoxedMessage
from busbw.logs.reader import HARMLESS
from busbw.logs.sentences.subjects import Subject, subject_of

Level = Literal["error", "warning", "unknown"]

_LONGEST = 600
_MOST_JOINED = 4
# A sentence that goes on in the next line is at least so long.
_WRAPPED = 30
_MOST_BELOW = 8
_RULE = re.compile(r"\s*[-=*]{40,120}\s*")
_LONGEST_BOX = 40
_LONGEST_HINT = 200
# So few words are a heading, as is what ends with a colon.
_MOST_OF_HEADING = 4
_FEWEST_WORDS = 4
# A line that holds none of these says nothing.
_STEMS = re.compile(
    r"more|lock|insert|entry|able to|requested|found|different|same|version|module|"
    r"n[o']t\b|\bno\b|n't|fail|cannot|unable|error|invalid|illegal|unknown|unrecog|missing|without|"
    r"mis-?match|differ|"
    r"denied|refus|require|must|should|exceed|limit|too |insuff|enough|exhaust|memory|busy|in use|already|"
    r"unset|unbound|"
    r"down|disabled|unavail|unreach|conflict|exclusive|duplicat|twice|incompat|inconsist|unsupported|"
    r"expected|older|"
    r"corrupt|malformed|syntax|parse|undefined|unresolv|forbidden|unauthor|expired|replay|root|bad|"
    r"offline|uncorrect|"
    r"hardware|fell|fallen|degraded|ecc|checksum|truncated|resolv|out of|lack|named|divi|multiple|only|"
    r"larger|greater|"
    r"compiled|built|implement|quota|overflow|outdated|upgrade|update|at least|power|overheat|elf",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b(?:error|fatal|critical|panic|severe|exception|abort\w*|cannot|can't|could not|couldn't|unable|"
    r"failed|failure)\b|"
    r"[a-z]Error\b|Exception\b|^E\d{4} |\[E\b|\bERR\b",
    re.IGNORECASE | re.ASCII,
)
# In the first words of a line.
_MARKED = re.compile(r"\b(?:error|fatal|critical|panic|abort)\b|[a-z]Error: |Exception: ", re.IGNORECASE | re.ASCII)
_FRONT = 60
_WARNING = re.compile(r"\bwarn(?:ing)?s?\b|^W\d{4} |\[W\b|\bWRN\b", re.IGNORECASE | re.ASCII)
# The level that a line has of a logger, below that of an error.
_QUIET = re.compile(
    r"^[^a-z]{0,60}\b(?:INFO|DEBUG|TRACE|DIAG|VERBOSE|NOTICE|NOTE)\b|<(?:info|debug|trace)>|"
    r"\blevel=(?:info|debug)\b|"
    r"^\W{0,4}(?:info|note|debug|notice|debug\d)\b ?:|^[ID]\d{4} |\[[ID]\d{0,4} |\bUCX +(?:INFO|DIAG|"
    r"DEBUG)\b|\bINFO\b",
    re.ASCII,
)
# The program goes on, or only advises.
_GOT_OVER = re.compile(
    r"\bignor(?:e|ed|ing)\b|\bskip(?:ped|ping|s)?\b|fall(?:s|ing)? ?back|(?:us|tak|go)(?:e|es|"
    r"ing) .{1,60} instead|default(?:ing)? to|using default|"
    r"\bwill (?:now )?(?:re-?try|try|use|be (?:used|ignored|disabled|skipped)|continue|fall|default|"
    r"attempt)|retry(?:ing)?\b|"
    r"retries|continu(?:e|ing)\b|(?:will|going to) proceed|proceeding|non-?fatal|is deprecated|deprecation|"
    r"deprecated (?:since|in|and)\b|\boptional\b|harmless|disabling|attempt \d|"
    r"performance|"
    r"recommend|\bconsider\b|\b0 (?:errors?|failed|failures)|no errors?\b|error(?:s|_count)?[ =:]+0\b|waiting for|"
    r"in the future|at your own risk|trying (?:next|another|again)|re-?connect|\bnot (?:an|a fatal) error|assuming|"
    r"setting it to|set(?:ting)? .{1,40} to (?:default|1)|\bmay (?:be|cause|lead|result|not)\b|\bmight\b|"
    r"please (?:ignore|note)|succe(?:ss|eded)|warning only|no action|as expected|disabled by default|not needed",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"(?<=\s)\([^()]{12,200}\)")
_FAILED = re.compile(r"\[ ?FAILED ?\]")
# How something ended or was lost, and what only follows.
_OUTCOME = re.compile(
    r"non-?zero|exit(?:ed|ing)? (?:with|on|code|status)|exit(?:code| code|status)|terminat(?:ed|ion|ing)|"
    r"task \d+: |mpi_abort|errors_are_fatal|core dumped|broken pipe|connection (?:closed|reset|lost)|reset by peer|"
    r"closed by (?:remote )?peer|lost (?:connection|communication)|backtrace|traceback|stack trace|"
    r"processes? .{0,30}(?:died|failed|exited)|child(?:process|failed)|failures?:$|root cause|bad termination|"
    r"cancel+ed|job (?:step )?aborted|segmentation fault|signal \d|error_file|more help|"
    r"for (?:more )?(?:details|information)",
    re.IGNORECASE,
)
# Lines of scripts, sources, tables and of the programs' own help.
_NO_STATEMENT = re.compile(
    r"\s*(?:(?:[+$>%|=*~]|#(?!\d))|File \"|(?:raise|if|elif|else|return|assert|print\w*|except|try|def|with|for|"
    r"while|fi|then|do|"
    r"echo|export|import|from|logger|self|throw|sudo|srun|mpirun|mpiexec|docker|pip|apt|module)\b(?!\w*:)[ (.]|"
    r"-{1,2}[A-Za-z][\w-]*[ ,=]|at \S+ ?\(|\d{1,4} \||\[?\d{1,3}\]? 0x|\{|\}|<)"
)
# Work goes on, or went well.
_WORKED = re.compile(
    r"\b(?:epoch|step|iter(?:ation)?|global_step|batch|timestep|cycle)s?\b[\s:=\[#]{1,4}\d|"
    r"\bloss'?[\s:=]{1,3}\d|it/s\b|samples/s|tokens/s|ns/day|\d{1,3}%\||\btime step\b|\ball tests passed|"
    r"(?:completed|finished|terminated) (?:successfully|normally)|without errors?\b|normal termination|"
    r"\b(?:job|training|run|simulation) (?:is )?(?:done|finished|completed?)|avg bus bandwidth|\bpassed\b|"
    r"\bhello\b.{1,60}\b(?:rank|process\w*|task)\s{0,16}\d|^\W{0,4}performance:|\btotal (?:run|wall|elapsed|"
    r"cpu)? ?time\b|"
    r"\bstartup complete\b|\bHTTP/\d\.\d\" 200\b|"
    r"\btime elapsed\b|\belapsed time\b|\bgflop/?s\b|\baccuracy\b|train_runtime|"
    r"^\s*\d[\d.]{0,15}(?:\s{1,30}[\d.][\d.eE+-]{0,15}){1,12}\s*$",
    re.IGNORECASE | re.ASCII,
)
_ENDED = re.compile(
    r"core dumped|segmentation fault|\baborted\b|mpi_abort|\bkilled\b|"
    r"\bexit(?:ed)?(?: with)?(?: error)? ?(?:code|status)[ :=]{1,3}[1-9]|"
    r"non-?zero (?:exit )?(?:status|code)|^traceback|job (?:has )?failed|terminated due to|\bdied\b",
    re.IGNORECASE | re.ASCII,
)
_HINT = re.compile(
    r"^\W{0,6}(?:hint|-->|fix|solution|tip|suggestion|possible (?:reason|cause|solution)s?|please|try|"
    r"consider|you (?:can|may|"
    r"need|must|should|might)|use |set |to (?:fix|solve|avoid|resolve)|make sure|check|run |see |install|"
    r"did you)\b",
    re.IGNORECASE,
)

_SPEAKERS = tuple(
    re.compile(regex, re.ASCII)
    for regex in (
        r"^\[(?P<name>[A-Za-z]\w{1,20})(?::[\d:]{1,20})?@[\w.-]{1,200}\]",
        r"\b(?P<name>[A-Za-z_][\w.]{0,80}(?:Error|Exception)):",
        r"^(?:\S{0,200}/)?(?P<name>[A-Za-z][\w.+-]{1,40})(?:\[\d{1,9}\]|\(\d{1,9}\))?: ",
        r"^[\w./:+-]{0,80}\b(?P<name>UCX|libfabric|NVRM|slurmstepd|mlx5_core|kubelet|Lmod)\b",
    )
)
# A line that names who speaks goes on with no other's sentence.
_SPEAKS = re.compile(r"\s*[A-Za-z][\w./@+-]{1,60}(?:\[\d{1,9}\])?: ", re.ASCII)
_NO_SPEAKER = frozenset({"error", "fatal", "warning", "abort", "critical", "note", "line", "failed", "panic"})


# In what lines of one form differ.
_VARIES = re.compile(r"\d[\da-f]*", re.ASCII)

# Characters between the words and what they are about.
_NEAR_SUBJECT = 30
# A new clause begins there.
_CLAUSE = re.compile(r"[;,:.]\s|\b(?:but|because|while|when|if|unless|for|so|than|which|that|and|or)\b", re.IGNORECASE)
# As the system's errors are written: "PATH: permission denied", "open(PATH): permission denied".
_SAID_OF = re.compile(r"[\"'`)\]]{0,3}: ")
# What the system calls an error, at the end of a sentence, says it once more.
_ERRNO = re.compile(
    r"[:,(] ?(?:no such (?:file or directory|device)|permission denied|operation not permitted|invalid argument|"
    r"cannot allocate memory|device or resource busy|function not implemented|no space left on device|"
    r"connection refused|no data available|operation not supported|name or service not known|not found)\W*$",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:than|instead of|rather|unless|either|neither|nor|both|between|except|versus|vs)\b|[!=<>]=|<>|\s[<>]\s",
    re.IGNORECASE,
)
_NEGATES = re.compile(r"\b(?:not|no|never|nothing|none|without|neither)\b|n't\b", re.IGNORECASE)
# Predicates that say the same thing of one sentence.
_ALIKE = (
    frozenset({"library", "absent", "symbol"}),
    frozenset({"command", "absent"}),
    frozenset({"not-installed", "absent"}),
    frozenset({"option", "invalid", "wrong-name"}),
    frozenset({"wrong-name", "invalid"}),
    frozenset({"name", "unreachable"}),
    frozenset({"no-address", "absent"}),
    frozenset({"kernel-module", "absent", "not-running"}),
    frozenset({"symbol", "too-old"}),
    frozenset({"busy", "absent"}),
)


class Statement(NamedTuple):
    """What a line says. `program`: who says it; `below`: what the program itself advises after it."""

    source: int
    line: int
    text: str
    program: str
    level: Level
    predicate: Predicate
    about: Subject | None
    # Where the words of the predicate stand.
    said: re.Match[str]
    below: str | None
    # Whether it says in its first words that it is an error.
    marked: bool
    # The lines of the message between lines of dashes that it stands in.
    box: range

    @property
    def reading(self) -> Reading:
        """How far the sentence is understood."""
        return _reading(self.said.string, self.said, self.predicate, self.about)

    @property
    def subject(self) -> str | None:
        """What it is about, as it is called there."""
        return self.about.name if self.about is not None else None

    @property
    def weight(self) -> int:
        """How much it tells, from 0: what it is about, how sure the words are, and how the program rates it."""
        kind = self.about.kind if self.about is not None else None
        typed = kind is not None and kind != "name"
        of_subject = 2 if typed else 1 if self.predicate.plain or kind is not None else 0
        is_setting = kind in {"variable", "option"} and "=" in (self.subject or "")
        is_error = self.level == "error" or is_setting or (self.predicate.decisive and self.level == "unknown")
        return of_subject + (1 if is_error else -1 if self.level == "warning" else 0)


# Source, number, what was written before the text (None: nothing), text.
_Line = tuple[int, int, str | None, str]


class JobWords(NamedTuple):
    """The statements of a job's lines.

    `worked`: of each source the last line that tells that work goes on, or went well; `ended`: the last that tells that
    something ended badly.
    """

    statements: tuple[Statement, ...]
    worked: dict[int, int]
    ended: dict[int, int]


def words_in(lines: Iterable[tuple[int, int, str]]) -> JobWords:
    """Return what lines (source, number, text) say, in their order; of equal sentences the first."""
    every = [_line(source, number, text[: 2 * _LONGEST]) for source, number, text in lines]
    statements: list[Statement] = []
    worked: dict[int, int] = {}
    ended: dict[int, int] = {}
    boxes = _boxes(every)
    shapes: dict[str, dict[int, int] | None] = {}
    for at, (source, number, _tag, text) in enumerate(every):
        shape = _VARIES.sub("#", text)
        if shape in shapes:
            last = shapes[shape]
            if last is not None:
                last[source] = number
            continue
        last = worked if _WORKED.search(text) is not None else ended if _ENDED.search(text) is not None else None
        shapes[shape] = last
        if last is not None:
            last[source] = number
        if _NO_STATEMENT.match(text) is not None:
            continue
        if at and every[at - 1][3].lstrip().startswith('File "'):
            continue
        found = _statement(every, at)
        box = boxes.get(at)
        if found is not None and box is None:
            statements.append(found)
        elif found is not None and box is not None and not _is_harmless(box.text):
            level: Level = "warning" if _WARNING.search(box.text) is not None else "error"
            statements.append(found._replace(level=level, box=box.lines, marked=level == "error"))
    return JobWords(tuple(statements), worked, ended)


def last_error(lines: Iterable[tuple[int, int, str]]) -> str | None:
    """Return the last of some lines that calls itself an error in its first words, and tells no outcome.

    A heading comes with the line below it.
    """
    texts = [_line(source, number, line[:_LONGEST])[3].strip() for source, number, line in lines]
    last: str | None = None
    for text, below in pairwise([*texts, ""]):
        is_heading = text.endswith(":") or len(text.split()) <= _MOST_OF_HEADING
        whole = f"{text} {below}" if is_heading and any(map(str.isalpha, below)) else text
        if _MARKED.search(text[:_FRONT]) is None or len(whole.split()) < _FEWEST_WORDS:
            continue
        if not any(regex.search(whole) for regex in (_OUTCOME, _QUIET, _WARNING, HARMLESS, _GOT_OVER)):
            last = whole
    return last


def _line(source: int, number: int, text: str) -> _Line:
    tag, rest = split(text)
    return source, number, (tag if tag or len(rest) < len(text.rstrip("\r")) else None), rest


def _boxes(every: list[_Line]) -> dict[int, BoxedMessage]:
    """Return the message of each line, by its place, that stands between two lines of dashes."""
    found: dict[int, BoxedMessage] = {}
    start: int | None = None
    for at, (_source, _number, _tag, text) in enumerate(every):
        if _RULE.fullmatch(text) is None:
            continue
        if start is not None and every[start][0] == every[at][0] and 1 < at - start <= _LONGEST_BOX:
            lines = range(every[start][1], every[at][1] + 1)
            box = BoxedMessage(lines, " ".join(line[3].strip() for line in every[start + 1 : at]))
            found |= dict.fromkeys(range(start + 1, at), box)
            start = None
        else:
            start = at
    return found


def _statement(every: list[_Line], at: int) -> Statement | None:
    source, number, _before, first = every[at]
    text, used = _sentence(every, at)
    if _STEMS.search(text) is None or _is_harmless(text) or _QUIET.search(first) is not None:
        return None
    # What stands behind how something ended may be why.
    behind = max((match.end() for match in _OUTCOME.finditer(text)), default=0)
    # What stands in brackets is said beside the matter.
    plain = _BRACKETS.sub(lambda match: " " * len(match[0]), text)
    for predicate in predicates():
        match = predicate.regex().search(plain)
        if match is None or not behind <= match.start() <= len(first.strip()):
            continue
        about = subject_of(text, match, predicate)
        if about is None and not predicate.plain:
            continue
        marked = _MARKED.search(first[:_FRONT]) is not None
        return Statement(
            source, number, text, _speaker(first), _level(text), predicate, about,
            match, _below(every, at + used, source), marked,
            range(number, number + used),
        )  # fmt: skip
    return None


def _reading(text: str, said: re.Match[str], predicate: Predicate, about: Subject | None) -> Reading:
    """Return how far a sentence is understood in which the words of a predicate stand.

    It is told in other words only where they say one thing, in plain form, of something right beside them.
    """
    words = _ERRNO.sub(lambda match: " " * len(match[0]), text)
    for other in predicates():
        if other.id == predicate.id or any({other.id, predicate.id} <= alike for alike in _ALIKE):
            continue
        match = other.regex().search(words)
        if match is not None and (match.end() <= said.start() or match.start() >= said.end()):
            return "several"
    if predicate.open or about is None or about.kind in {"name", "amount"}:
        return "one"
    between = text[min(said.end(), about.end) : max(said.start(), about.start)]
    is_beside = len(between) <= _NEAR_SUBJECT and (
        _SAID_OF.fullmatch(between) is not None or _CLAUSE.search(between) is None
    )
    around = f"{words[: said.start()]} {words[said.end() :]}"
    is_plain = _COMPARES.search(text) is None and _NEGATES.search(around) is None
    return "sure" if is_beside and is_plain else "one"


def _is_harmless(text: str) -> bool:
    """Whether a text says that the program goes on."""
    if _FAILED.search(text) is not None:
        return False
    return HARMLESS.search(text) is not None or _GOT_OVER.search(text) is not None


def _sentence(every: list[_Line], at: int) -> tuple[str, int]:
    """Return a line with those below that go on with its sentence, and how many lines that is."""
    text = every[at][3].strip()[:_LONGEST]
    used = 1
    while used < _MOST_JOINED and at + used < len(every):
        source, number, before, below = every[at + used]
        is_next = source == every[at][0] and number == every[at][1] + used and before is None
        goes_on = text[-1:] not in ".!;" and (
            (text[-1:] == ":" and below[:1].isspace())
            or (len(text) >= _WRAPPED and text[-1:] not in ":)]" and below.lstrip()[:1].islower())
        )
        if not is_next or not goes_on or not below.strip() or _SPEAKS.match(below) is not None:
            break
        text = f"{text} {below.strip()}"[:_LONGEST]
        used += 1
    return text, used


def _level(text: str) -> Level:
    if _WARNING.search(text) is not None:
        return "warning"
    return "error" if _ERROR.search(text) is not None else "unknown"


def _speaker(text: str) -> str:
    text = text.strip()
    for regex in _SPEAKERS:
        match = regex.search(text)
        if match is not None and match["name"].lower() not in _NO_SPEAKER:
            return match["name"]
    return "the program"


def _below(every: list[_Line], at: int, source: int) -> str | None:
    """Return what the program itself advises in the lines below."""
    for other, _number, _tag, text in every[at : at + _MOST_BELOW]:
        if other != source:
            break
        if _HINT.match(text) is not None:
            return text.strip()[:_LONGEST_HINT]
    return None


def going_on(words: JobWords, statement: Statement) -> bool:
    """Whether the program went on with its work after a statement."""
    return words.worked.get(statement.source, 0) > statement.line
