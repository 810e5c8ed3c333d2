"""Reads scripts of shells: the constructs that decide what is run, and for csh, the words that differ."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from busbw.env.reading.context import Changes, Context, Known
from busbw.env.reading.launchers import read_directive, read_pbs_directive
from busbw.env.reading.shell_commands import SimpleCommand, is_test
from busbw.env.reading.shell_expansion import Expander, Word
from busbw.env.reading.shell_words import Directive, Operator, Redirect, Words
from busbw.env.reading.spelled import HOLE, Field, Spelled, joined
from busbw.model.settings import Arm

# Arms deeper than this are not put down with an assignment.
_MOST_ARMS = 30
# What closes what.
CLOSERS = {"fi": "if", "esac": "case", "done": "loop", "}": "group"}
# What closes a construct, and what begins its body.
_LACKS = {"fi": "then", "done": "do"}
# What a shell takes for the name of a command where a blank is missing.
_GLUED = re.compile(r"(?P<word>if|elif|while|until)(?P<mark>\[\[?|\(\()")
_WITHOUT_END = {
    "if": "`if` without `fi`", "case": "`case` without `esac`", "loop": "a loop without `done`",
    "head": "a loop without `done`",
}  # fmt: skip


@dataclass
class Construct:
    """One construct that is open."""

    # if, case, loop, group, subshell, list; head: a `for` whose body has not begun.
    kind: str
    at: int
    # Its number among those of the text, None for one without arms of its own: a group, a loop that is run for certain.
    number: int | None = None
    arm: int = -1
    is_in_arm: bool = False
    # Whether one of its ways is taken for certain.
    is_complete: bool = False
    ways: list[Changes] = field(default_factory=list)
    # The ways of the text around it.
    arms: tuple[Arm, ...] = ()
    # What had been taken down where its arm began, and the arms that end the script, or the function.
    begun: int = 0
    is_ended: bool = False
    ended: dict[int, bool] = field(default_factory=dict)


def _reject(context: Context, at: int, reason: str) -> None:
    """Take down that a shell refuses the text here; of a part of one, that it is not read."""
    if context.is_whole:
        context.ledger.rejected(at, reason)
    else:
        context.ledger.unread(at, f"{reason}: the shell would not run this")


class Constructs:
    """The open constructs, the innermost last. Keeps the context's arms and variables as they are at each place."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open: list[Construct] = []
        self._outer = context.arms

    @property
    def top(self) -> Construct | None:
        """The innermost construct, None where none is open."""
        return self._open[-1] if self._open else None

    def has_open(self, kinds: set[str]) -> bool:
        """Whether one of these is open, however far out."""
        return any(construct.kind in kinds for construct in self._open)

    def begin(self, kind: str, at: int, *, has_arms: bool) -> Construct:
        """Open a construct."""
        number = None
        if has_arms:
            number = self._context.constructs
            self._context.constructs += 1
        construct = Construct(kind, at, number)
        self._open.append(construct)
        return construct

    def begin_arm(self) -> None:
        """Begin the next way through the innermost construct; the one before it ends."""
        construct = self._open[-1]
        self.end_arm()
        construct.arm += 1
        construct.is_in_arm = True
        construct.arms, construct.begun = self._context.arms, self._context.ledger.count
        self._context.scope.begin()
        if construct.number is not None and len(self._context.arms) < _MOST_ARMS:
            self._context.arms = (*self._context.arms, Arm(construct=construct.number, arm=construct.arm))

    def end_arm(self) -> None:
        """End the way that is open through the innermost construct, if one is."""
        construct = self._open[-1]
        if not construct.is_in_arm:
            return
        construct.is_in_arm = False
        changes = self._context.scope.end()
        if construct.is_ended:
            construct.ended[construct.arm] = self._context.ledger.count > construct.begun
            construct.is_ended = False
        else:
            construct.ways.append(changes)
        self._context.arms = construct.arms

    def end(self, kind: str) -> bool:
        """Close the innermost construct, which is of this kind; False where another one is open."""
        if self.top is None or self.top.kind != kind:
            return False
        self.end_arm()
        construct = self._open.pop()
        self._go_on_behind(construct)
        # What a subshell changes ends with it.
        if construct.kind != "subshell":
            self._context.scope.merge(construct.ways, is_complete=construct.is_complete)
        return True

    def leave(self) -> None:
        """Say that the way that is open ends the script, or the function."""
        if self.top is not None and self.top.kind in {"if", "case"} and self.top.is_in_arm:
            self.top.is_ended = True

    def _go_on_behind(self, construct: Construct) -> None:
        """Put what follows on the one way that goes on, where the others set or started something and then ended."""
        if construct.number is None or not any(construct.ended.values()):
            return
        arms = range(construct.arm + (1 if construct.is_complete else 2))
        live = [arm for arm in arms if arm not in construct.ended]
        if len(live) == 1 and len(self._context.arms) < _MOST_ARMS:
            self._context.arms = (*self._context.arms, Arm(construct=construct.number, arm=live[0]))

    def end_list(self) -> None:
        """Close the && list that ends here, if there is one."""
        while self.top is not None and self.top.kind == "list":
            self.end("list")

    def end_all(self) -> None:
        """Close what the text leaves open, and say so."""
        self.end_list()
        if self.top is not None:
            reason = _WITHOUT_END.get(self._open[0].kind, "a bracket that is never closed")
            _reject(self._context, self._open[0].at, reason)
        while self.top is not None:
            self.end(self.top.kind)
        self._context.arms = self._outer


_RESERVED = {
    "if", "then", "elif", "else", "fi", "while", "until", "for", "select", "do", "done", "case", "esac", "function",
    "{", "}", "!",
}  # fmt: skip


def read_shell(piece: Spelled, context: Context) -> None:
    """Take down what a script sets and starts."""
    Script(context).read(piece)


class Script:
    """Goes through the tokens of one script."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._command = SimpleCommand(context)
        self._constructs = Constructs(context)
        self._words: list[Word] = []
        self._redirects: list[Redirect] = []
        # What is expected instead of a command: the head of a loop or of a case, a pattern, a function's name or body.
        self._expects = ""
        self._function = -1
        # Whether a group, a loop... ends here, which makes a command of it for what divides commands.
        self._closed = False
        # Whether a command depends on the one before it.
        self._is_joined = False

    def read(self, piece: Spelled) -> None:
        """Take down everything in the text."""
        for token in Words(piece, self._context.ledger, is_whole=not self._context.depth).tokens():
            if isinstance(token, Word):
                self._word(token)
            elif isinstance(token, Redirect):
                self._redirects.append(token)
            elif isinstance(token, Directive):
                self._directive(token)
            else:
                self._operator(token)
        self._finish()
        self._constructs.end_all()

    def _word(self, word: Word) -> None:
        if word.plain in _RESERVED and self._words and not self._expects:
            self._end_prefix()
        if not self._expects and (self._words or word.plain not in _RESERVED):
            # An argument, or the name of a command: nearly every word is one of these.
            self._words.append(word)
        elif self._expects == "pattern)" or (self._expects == "pattern" and word.plain != "esac"):
            self._words.append(word)
        elif self._expects == "name":
            self._expects, self._function = "", word.start
        elif self._expects == "case" and word.plain == "in" and self._words:
            self._words, self._expects = [], "pattern"
        elif not self._words and word.plain in _RESERVED and self._expects in {"", "pattern"}:
            self._expects = ""
            self._reserved(word.plain, word.start)
        elif self._expects == "loop" and word.plain in {"do", "{"} and len(self._words) == 1:
            self._loop_head()
            self._reserved(word.plain, word.start)
        else:
            self._words.append(word)

    def _end_prefix(self) -> None:
        """End what a word of the shell may follow on the same line: `time -p if ...`, `if ((x)) then ...`."""
        if _may_precede(self._words):
            self._words = []
        elif len(self._words) == 1 and is_test(self._words[0]):
            self._finish()

    def _reserved(self, name: str, at: int) -> None:
        if name in {"if", "while", "until"}:
            self._constructs.begin("if" if name == "if" else "loop", at, has_arms=True)
        elif name in {"for", "select"}:
            self._expects = "loop"
            self._words = []
        elif name == "case":
            self._constructs.begin("case", at, has_arms=True)
            self._expects = "case"
        elif name == "function":
            self._expects = "name"
        elif name == "{":
            self._open_brace(at)
        elif name in {"then", "else", "do"}:
            self._check_open(name, at)
            self._arm(name)
        elif name == "elif":
            self._check_open(name, at)
            self._end_arm_of("if")
        elif name in CLOSERS:
            self._close(name, at)

    def _open_brace(self, at: int) -> None:
        top = self._constructs.top
        if top is not None and top.kind == "head":
            # `for NAME in WORDS; { ...; }`
            top.kind = "group"
            self._constructs.begin_arm()
            return
        is_function, self._function = self._function >= 0, -1
        self._constructs.begin("group", at, has_arms=is_function)
        if is_function:
            self._constructs.begin_arm()

    def _check_open(self, name: str, at: int) -> None:
        kinds = {"loop", "head"} if name == "do" else {"if"}
        if not self._constructs.has_open(kinds):
            _reject(self._context, at, f"`{name}` without {'a loop' if name == 'do' else '`if`'}")

    def _arm(self, name: str) -> None:
        top = self._constructs.top
        if top is not None and top.kind == "head" and name == "do":
            top.kind = "loop"
        if top is None or top.kind != ("loop" if name == "do" else "if"):
            return
        if name == "else":
            top.is_complete = True
        self._constructs.begin_arm()

    def _end_arm_of(self, kind: str) -> None:
        if self._constructs.top is not None and self._constructs.top.kind == kind:
            self._constructs.end_arm()

    def _close(self, name: str, at: int) -> None:
        self._closed = True
        top = self._constructs.top
        lacks = _LACKS.get(name)
        if lacks is not None and top is not None and top.kind in {CLOSERS[name], "head"} and top.arm < 0:
            _reject(self._context, at, f"`{name}` without `{lacks}`")
            top.kind = CLOSERS[name]
        if not self._constructs.end(CLOSERS[name]) and name != "}":
            _reject(self._context, at, f"`{name}` closes nothing here")

    def _loop_head(self) -> None:
        """Let the variable of a `for` loop hold each of its words."""
        words, self._words, self._expects = self._words, [], ""
        at = words[0].start if words else 0
        values = words[2:] if len(words) > 1 and words[1].plain == "in" else []
        expander = Expander(self._context.scope, self._context.ledger)
        fields = [field for word in values for field in expander.fields(word, 0)]
        is_known = bool(fields) and not any(HOLE in field.text for field in fields)
        construct = self._constructs.begin("head", at, has_arms=not is_known)
        construct.is_complete = is_known
        if is_known and len(fields) > 1:
            self._alternatives(fields)
        if words and words[0].plain.isidentifier():
            possible = tuple(Known((field.spelled,)) for field in fields) if is_known else (None,)
            self._context.scope.set(words[0].plain, possible)

    def _alternatives(self, fields: list[Field]) -> None:
        """Say that settings in the words of a `for` loop hold one after the other."""
        number, self._context.constructs = self._context.constructs, self._context.constructs + 1
        for arm, word in enumerate(fields):
            start, end = word.spelled.origin(0), word.spelled.end()
            self._context.ledger.conditional.add(start, end, (Arm(construct=number, arm=arm),))

    def _operator(self, token: Operator) -> None:
        text = token.text
        if self._expects in {"pattern", "pattern)"}:
            self._pattern(text)
        elif text == "(":
            self._open_bracket(token.at)
        elif text == ")":
            self._close_bracket()
        elif self._expects == "loop":
            # Behind the name, the words or `do` may stand on the next line.
            if len(self._words) > 1 or (self._words and text != "\n"):
                self._loop_head()
        elif self._expects == "case":
            # The head of a case may go on after a line end.
            if text != "\n":
                self._expects = ""
        else:
            self._separator(text, token.at)

    def _pattern(self, text: str) -> None:
        top = self._constructs.top
        if text == "(":
            self._expects = "pattern)"
        if text != ")" or top is None or top.kind != "case":
            return
        top.is_complete = top.is_complete or [word.plain for word in self._words] == ["*"]
        self._words, self._expects = [], ""
        self._constructs.begin_arm()

    def _open_bracket(self, at: int) -> None:
        if self._words and self._words[0].plain == "time" and _may_precede(self._words):
            # `time (command)`: no function of that name.
            self._words = []
        if len(self._words) == 1 and self._words[0].plain and not self._redirects:
            # NAME ( ) begins a function.
            self._function, self._words = self._words[0].start, []
            self._expects = "function"
            return
        if not self._words:
            self._function = -1
            self._constructs.begin("subshell", at, has_arms=False)
            self._constructs.begin_arm()

    def _close_bracket(self) -> None:
        if self._expects == "function":
            self._expects = ""
            return
        self._finish()
        self._constructs.end_list()
        self._constructs.end("subshell")
        self._closed = True

    def _separator(self, text: str, at: int) -> None:
        had_words, self._closed = bool(self._words) or self._closed, False
        self._finish()
        self._is_joined = text in {"&&", "||", "|", "|&"}
        if text not in {"|", "|&"}:
            self._command.printed = None
        if text in {"&&", "||"}:
            self._list(text, at)
        elif text in {"|", "|&"}:
            return
        elif had_words or text != "\n":
            self._constructs.end_list()
        if text in {";;", ";&", ";;&"}:
            self._end_arm_of("case")
            if self._constructs.top is not None and self._constructs.top.kind == "case":
                self._expects = "pattern"

    def _list(self, operator: str, at: int) -> None:
        """Begin another way where what follows depends on a test, or on a failure."""
        top = self._constructs.top
        if operator == "&&" and not self._command.was_test:
            return
        if top is None or top.kind != "list":
            self._constructs.begin("list", at, has_arms=True)
        self._constructs.begin_arm()

    def _finish(self) -> None:
        words, redirects = self._words, self._redirects
        self._words, self._redirects = [], []
        if self._expects == "loop" and words:
            self._words = words
            self._loop_head()
        elif words and self._expects == "":
            self._function = -1
            self._check_glued(words[0])
            self._command.run(words, redirects)
            if self._command.was_end and not self._is_joined:
                self._constructs.leave()

    def _check_glued(self, word: Word) -> None:
        """Take down `if[` and its like, and go on as it was meant."""
        first = word.segments[0].spelled.text if word.segments else ""
        glued = _GLUED.match(first)
        if glued is None or not self._context.is_whole:
            return
        reason = f"`{glued.group()}` is taken for a command: a blank is missing behind `{glued['word']}`"
        self._context.ledger.rejected(word.start, reason, is_certain=True)
        if glued["word"] != "elif":
            self._constructs.begin("if" if glued["word"] == "if" else "loop", word.start, has_arms=True)

    def _directive(self, token: Directive) -> None:
        expander = Expander(self._context.scope, self._context.ledger)
        fields: list[Field] = []
        inner = Words(token.options, self._context.ledger)
        for word in inner.tokens():
            if isinstance(word, Word):
                fields += expander.fields(word, 0)
        if token.system == "SBATCH":
            read_directive(fields, self._context)
        elif token.system == "PBS":
            read_pbs_directive(fields, self._context)


def _may_precede(words: list[Word]) -> bool:
    """Whether a construct may follow on the same line: `time -p if ...`, `coproc NAME { ...; }`."""
    if words[0].plain == "coproc":
        return len(words) <= 2
    return words[0].plain == "time" and all(word.plain in {"-p", "--", "!"} for word in words[1:])


# csh and tcsh: what they say in words of their own is put into those of a shell, in its place.
_WORD = re.compile(
    r"[ \t]*((?:else[ \t]+if|if|else|endif|foreach|while|end|switch|case|default|breaksw|endsw|set)(?![\w./=-])|@)"
)
_ENDS = {"endif": "fi", "end": "done", "breaksw": ":", "else": "else"}
_THEN = re.compile(r"[ \t]*then[ \t\r]*(?:#.*)?")
_SET = re.compile(r"set[ \t]+([A-Za-z_]\w*)[ \t]*=[ \t]*")
_FOREACH = re.compile(r"[ \t]+([A-Za-z_]\w*)[ \t]*")
_CASE = re.compile(r"(?:case[ \t]+([^:\n]*)|default[ \t]*):")
_LABEL = re.compile(r"[A-Za-z_]\w*:[ \t\r]*")


def read_csh(piece: Spelled, context: Context) -> None:
    """Take down what a script sets and starts. What decides about a branch is not looked at."""
    read_shell(joined(_as_shell(piece)), context)


def _as_shell(piece: Spelled) -> Iterator[Spelled]:
    # For each `switch` that is open, whether it has had a case.
    switches: list[bool] = []
    at = 0
    for line in piece.text.split("\n"):
        yield from _line(piece, at, at + len(line), switches)
        at += len(line) + 1
        if at <= len(piece.text):
            yield piece.part(at - 1, at)


def _line(piece: Spelled, start: int, end: int, switches: list[bool]) -> Iterator[Spelled]:
    """Yield one line as a shell has it."""
    line = piece.text[start:end]
    found = _WORD.match(line)
    word = " ".join(found[1].split()) if found is not None else ""
    place = start + (found.start(1) if found is not None else 0)

    def written(text: str) -> Spelled:
        return Spelled(text, ((0, piece.origin(place)),))

    if word in {"if", "else if", "while", "switch", "foreach"}:
        yield from _head(piece, word, place, end, switches)
    elif word in _ENDS:
        yield written(_ENDS[word])
    elif word in {"case", "default"} and (label := _CASE.match(piece.text, place, end)) is not None:
        yield written(";; " if switches and switches[-1] else "")
        switches[-1:] = [True]
        yield piece.part(label.start(1), label.end(1)) if label[1] else written("*")
        yield written(") ")
        yield piece.part(label.end(), end)
    elif word == "endsw":
        switches[-1:] = []
        yield written("esac")
    elif word == "set" and (setting := _SET.match(piece.text, place, end)) is not None:
        yield piece.part(setting.start(1), setting.end(1))
        yield written("=")
        yield piece.part(setting.end(), end)
    elif word == "@" or _LABEL.fullmatch(line) is not None:
        yield written(":")
    else:
        yield piece.part(start, end)


def _head(piece: Spelled, word: str, place: int, end: int, switches: list[bool]) -> Iterator[Spelled]:
    """Yield the head of a branch or a loop; `place` is where its word begins."""

    def written(text: str, at: int = place) -> Spelled:
        return Spelled(text, ((0, piece.origin(at)),))

    opening = piece.text.find("(", place, end)
    closing = _closing(piece.text, opening, end) if opening >= 0 else None
    if closing is None:
        yield piece.part(place, end)
    elif word == "switch":
        switches.append(False)
        yield written("case x in")
    elif word == "while":
        yield written("while true; do")
    elif word == "foreach" and (name := _FOREACH.match(piece.text, place + len(word), opening)) is not None:
        yield written("for ")
        yield piece.part(name.start(1), name.end(1))
        yield written(" in ")
        yield piece.part(opening + 1, closing)
        yield written("; do", closing)
    elif _THEN.fullmatch(piece.text, closing + 1, end) is not None:
        yield written("elif true; then" if word == "else if" else "if true; then")
    else:
        yield written("if true; then ")
        yield piece.part(closing + 1, end)
        yield written("; fi", end)


def _closing(text: str, opening: int, end: int) -> int | None:
    depth = 0
    for at in range(opening, end):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    return None
