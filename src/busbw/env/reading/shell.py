"""Reads shell scripts, batch scripts and command lines: what they set and start. Nothing is run."""

from busbw.env.reading.constructs import CLOSERS, Constructs
from busbw.env.reading.context import Context
from busbw.env.reading.expansion import Expander, Field
from busbw.env.reading.scope import Known
from busbw.env.reading.shell_tokens import Directive, Operator, Redirect, Word
from busbw.env.reading.shell_words import Words
from busbw.env.reading.simple_commands import SimpleCommand
from busbw.env.reading.slurm import read_directive, read_pbs_directive
from busbw.env.reading.spelled import HOLE, Spelled
from busbw.model.settings import Arm

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
        for token in Words(piece, self._context.ledger).tokens():
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
        if not self._expects and (self._words or word.plain not in _RESERVED):
            # An argument, or the name of a command: nearly every word is one of these.
            self._words.append(word)
        elif self._expects == "pattern" and word.plain != "esac":
            self._words.append(word)
        elif self._expects == "name":
            self._expects, self._function = "", word.start
        elif self._expects == "case" and word.plain == "in" and self._words:
            self._words, self._expects = [], "pattern"
        elif not self._words and word.plain in _RESERVED and self._expects in {"", "pattern"}:
            self._expects = ""
            self._reserved(word.plain, word.start)
        elif self._expects == "loop" and word.plain == "do" and self._words:
            self._loop_head()
            self._reserved("do", word.start)
        else:
            self._words.append(word)

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
            self._arm(name)
        elif name == "elif":
            self._end_arm_of("if")
        elif name in CLOSERS:
            self._close(name, at)

    def _open_brace(self, at: int) -> None:
        is_function, self._function = self._function >= 0, -1
        self._constructs.begin("group", at, has_arms=is_function)
        if is_function:
            self._constructs.begin_arm()

    def _arm(self, name: str) -> None:
        top = self._constructs.top
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
        if not self._constructs.end(CLOSERS[name]) and name != "}":
            self._context.ledger.unread(at, f"`{name}` closes nothing here: the shell would not run this")

    def _loop_head(self) -> None:
        """Let the variable of a `for` loop hold each of its words."""
        words, self._words, self._expects = self._words, [], ""
        at = words[0].start if words else 0
        values = words[2:] if len(words) > 1 and words[1].plain == "in" else []
        expander = Expander(self._context.scope, self._context.ledger)
        fields = [field for word in values for field in expander.fields(word, 0)]
        is_known = bool(fields) and not any(HOLE in field.text for field in fields)
        construct = self._constructs.begin("loop", at, has_arms=not is_known)
        construct.is_complete = is_known
        if is_known and len(fields) > 1:
            self._alternatives(fields)
        if words and words[0].plain.isidentifier():
            possible = tuple(Known((field.spelled,)) for field in fields) if is_known else (None,)
            self._context.scope.set(words[0].plain, possible)

    def _alternatives(self, fields: list[Field]) -> None:
        """Say that settings in the words of a `for` loop hold one after the other."""
        number, self._context.constructs = self._context.constructs, self._context.constructs + 1
        for arm, field in enumerate(fields):
            start, end = field.spelled.origin(0), field.spelled.end()
            self._context.ledger.conditional.add(start, end, (Arm(construct=number, arm=arm),))

    def _operator(self, token: Operator) -> None:
        text = token.text
        if self._expects == "pattern":
            self._pattern(text)
        elif text == "(":
            self._open_bracket(token.at)
        elif text == ")":
            self._close_bracket()
        elif self._expects == "loop":
            if self._words:
                self._loop_head()
        elif self._expects == "case":
            # The head of a case may go on after a line end.
            if text != "\n":
                self._expects = ""
        else:
            self._separator(text, token.at)

    def _pattern(self, text: str) -> None:
        top = self._constructs.top
        if text != ")" or top is None or top.kind != "case":
            return
        top.is_complete = top.is_complete or [word.plain for word in self._words] == ["*"]
        self._words, self._expects = [], ""
        self._constructs.begin_arm()

    def _open_bracket(self, at: int) -> None:
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
            self._command.run(words, redirects)
            if self._command.was_end and not self._is_joined:
                self._constructs.leave()

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
