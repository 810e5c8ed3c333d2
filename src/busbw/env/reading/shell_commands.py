"""One command of a script: its settings, the builtins, what it writes into files or gives to another shell."""

import re

from busbw.env.reading import commands
from busbw.env.reading.arguments import is_cut_off, is_cut_off_alone, note_space_after, note_space_before
from busbw.env.reading.context import NAME, Context, Known, Possible
from busbw.env.reading.shell_expansion import Expander, Word, assignment_of
from busbw.env.reading.shell_words import Redirect
from busbw.env.reading.spelled import FILLED, Field, Spelled, joined
from busbw.model.settings import Form

_DECLARING = {"export", "declare", "typeset", "local", "readonly"}
_TESTS = {"[", "[[", "test", "((", "grep", "which", "type", "hash"}
_ENDS = {"exit", "return"}
# Builtins after whose options the names stand that they change.
_CHANGING = {"getopts", "mapfile", "readarray", "let"}
# Commands of the shell itself that set something, and what gives a text to a pipe.
_BUILTINS = _CHANGING | {"unset", "set", "source", ".", "setenv", "pushenv", "unsetenv", "read", "echo", "printf"}
# The command in $(...), <(...) or backticks; ((...)) is arithmetic. It is read where it may set or start something.
_SUBSTITUTION = re.compile(r"(?:[$<>]\((?!\()|`)(?P<body>.*)[)`]", re.DOTALL)
_MAY_SET = re.compile(
    r"\b[A-Z][A-Z0-9_]*=|\b(?:mpirun|mpiexec|srun|torchrun|docker|podman|apptainer|singularity|eval)\b"
)
# What a shell shows before a command, and a page that was copied still has.
_PROMPTS = {"$", "%"}
_MOST_WORDS = 100_000


class SimpleCommand:
    """Reads commands one after the other; `printed` is what the last one gives to a pipe behind it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._expander = Expander(context.scope, context.ledger)
        self.printed: Spelled | None = None
        self.was_test = False
        # Whether it was one behind which nothing is run: exit, return.
        self.was_end = False

    def run(self, words: list[Word], redirects: list[Redirect]) -> None:
        """Take down what a command sets. What it reads and writes is read too, where that sets something."""
        if len(words) > _MOST_WORDS:
            self._context.ledger.unread(words[0].start, f"a command of more than {_MOST_WORDS} words")
            return
        piped, self.printed = self.printed, None
        while words and words[0].plain in _PROMPTS:
            words = words[1:]
        self._context.ledger.begin_command()
        count = next((at for at, word in enumerate(words) if assignment_of(word) is None), len(words))
        before, rest = words[:count], words[count:]
        first = rest[0].plain if rest else ""
        self.was_end = first in _ENDS
        self.was_test = first in _TESTS or first == "command" or (bool(rest) and is_test(rest[0]))
        for word in words:
            if not word.plain or word.items:
                self._substitutions(word)
        if not rest:
            for word in before:
                self._assign(word, self._form_of(word))
        elif first in _DECLARING:
            self._declare(first, rest[1:])
        elif not before and not redirects and piped is None and _does_nothing(rest):
            self._context.runs_at = max(self._context.runs_at, rest[0].start)
        else:
            self._command(before, rest, redirects, piped)

    def _substitutions(self, word: Word) -> None:
        """Read the commands whose output goes into a word: they see settings of their own."""
        for segment in word.segments:
            found = _SUBSTITUTION.fullmatch(segment.spelled.text) if segment.kind == "unknown" else None
            if found is not None and _MAY_SET.search(found["body"]):
                body = segment.spelled.part(found.start("body"), found.end("body"))
                inner = self._context.inner()
                if self._context.launch is None:
                    # What it exports ends with it.
                    inner.launch = commands.other([_as_field(segment.spelled)], self._context, family="$(...)")
                self._context.read("shell", body, inner)
        for item in word.items or ():
            self._substitutions(item)

    def _form_of(self, word: Word) -> Form:
        found = assignment_of(word)
        is_exported = found is not None and found[0] in self._context.scope.exported
        return self._context.exported_as if is_exported or self._context.exports_all else "shell"

    def _assign(self, word: Word, form: Form) -> list[int]:
        """Let a variable hold what a word assigns; return the numbers of what was taken down."""
        found = assignment_of(word)
        if found is None:
            return []
        name, operator = found
        self._context.ledger.conditional.add(word.start, word.end, self._context.arms)
        numbers: list[int] = []
        possible: list[Known | None] = []
        before = self._context.scope.get(name)
        for way in range(max(self._expander.ways([word]), len(before) if operator == "+=" else 1)):
            previous = before[min(way, len(before) - 1)]
            if word.items is not None:
                possible.append(self._list(word.items, way, previous if operator == "+=" else None))
                continue
            value = self._expander.value(word, way)
            at = value.origin(0) if value.text else word.end
            written = (word.start + _length(word), word.end)
            if operator == "+=":
                value = _appended(previous, value, at)
            number = self._context.put(name, value, form, at=word.start, written=written)
            numbers += [] if number is None else [number]
            possible.append(None if value.text == FILLED else Known((value,)))
        self._context.scope.set(name, tuple(possible))
        return numbers

    def _list(self, items: tuple[Word, ...], way: int, before: Known | None) -> Known:
        fields = [field.spelled for item in items for field in self._expander.fields(item, way)]
        return Known((*(before.fields if before is not None else ()), *fields), is_list=True)

    def _declare(self, name: str, words: list[Word]) -> None:
        options = "".join(word.plain for word in words if word.plain.startswith("-"))
        if "f" in options or "F" in options:
            return
        exports = (name == "export" and "n" not in options) or "x" in options
        previous: Word | None = None
        for word in words:
            found = assignment_of(word)
            if previous is not None:
                self._check_space(previous, word)
            previous = word
            if found is not None:
                if exports:
                    self._context.scope.exported.add(found[0])
                self._assign(word, self._context.exported_as if exports else "shell")
            elif exports and NAME.fullmatch(word.plain):
                self._show(word.plain)
            elif exports and (opaque := self._expander.fields(word, 0)):
                # `export $SETTINGS`, where the variable holds NAME=VALUE words.
                for field in opaque:
                    self._context.assign(field, self._context.exported_as)

    def _show(self, name: str) -> None:
        self._context.scope.exported.add(name)
        self._context.ledger.show(name)

    def _check_space(self, before: Word, word: Word) -> None:
        """Find `export NAME= value` and `export NAME = value`."""
        if before.items is not None:
            return
        fields = self._expander.fields(before, 0)
        following = self._expander.fields(word, 0)
        if len(fields) != 1 or not following or assignment_of(word) is not None:
            return
        if following[0].text.startswith("=") and NAME.fullmatch(fields[0].text):
            note_space_before(self._context, [*fields, *following])
        elif is_cut_off(fields[0], following[0]) or _is_bare(fields[0]):
            note_space_after(self._context, fields[0], following[0])

    def _command(self, before: list[Word], words: list[Word], redirects: list[Redirect], piped: Spelled | None) -> None:
        for way in range(self._expander.ways([*before, *words])):
            fields = [field for word in words for field in self._expander.fields(word, way)]
            numbers = [number for word in before for number in self._prefix(word, way)]
            if not fields:
                continue
            self._context.runs_at = max(self._context.runs_at, words[0].start)
            if way == 0:
                self._documents(fields, redirects, piped)
            if before and len(fields) == 1:
                self._cut_off(before[-1], fields[0])
            if fields[0].text == "read":
                self._read_document(fields, redirects)
                continue
            if self._builtin(fields):
                continue
            launch = commands.run(fields, self._context)
            if numbers:
                commands.belong(numbers, launch, fields, self._context)

    def _prefix(self, word: Word, way: int) -> list[int]:
        found = assignment_of(word)
        if found is None or word.items is not None:
            return []
        value = self._expander.value(word, way)
        written = (word.start + _length(word), word.end)
        number = self._context.put(found[0], value, "prefix", at=word.start, written=written)
        return [] if number is None else [number]

    def _cut_off(self, before: Word, following: Field) -> None:
        fields = self._expander.fields(before, 0)
        if len(fields) == 1 and is_cut_off_alone(fields[0], following):
            note_space_after(self._context, fields[0], following)

    def _documents(self, fields: list[Field], redirects: list[Redirect], piped: Spelled | None) -> None:
        """Read what is written to files, and what another shell is given to run."""
        output = printed(fields)
        if not redirects and piped is None:
            self.printed = output
            return
        text = body_of(redirects, self._expander)
        tee = tee_target(fields)
        given = text if text is not None else piped
        target = written_to(redirects, self._expander)
        if fields[0].text == "cat" and given is not None:
            output = given
        if tee is not None and given is not None:
            read_written(tee, given, self._context)
        elif target is not None and output is not None:
            read_written(target, output, self._context)
        elif given is not None and fields[0].text == "ssh":
            number = commands.on_another_host(fields, self._context)
            self._context.read("shell", given, self._context.inner(launch=number, is_new=True))
        elif given is not None and reads_script(fields):
            self._context.read("shell", given, self._context.inner())
        elif given is not None and fields[0].text == "kubectl":
            # `kubectl exec` is given scripts, and `kubectl apply` manifests.
            language = language_of("", given.text) or "kubernetes"
            self._context.read(language, given, self._context.inner(is_new=True))
        self.printed = output

    def _builtin(self, fields: list[Field]) -> bool:
        """Read a builtin that changes variables; False for any other command."""
        name, rest = fields[0].text, fields[1:]
        if name == "unset":
            self._unset(rest)
        elif name == "set":
            self._set(rest)
        elif name in {"source", "."}:
            reason = "is not read: give it to busbw env lint by itself"
            self._context.ledger.unread(fields[0].start, f"the file that `{name}` takes in {reason}")
        elif name in {"setenv", "pushenv"} and len(rest) >= 1:
            # csh and tcsh.
            self._setenv(rest)
        elif name == "unsetenv" and rest:
            self._unset(rest)
        elif name in _CHANGING:
            for field in rest:
                if NAME.fullmatch(field.text):
                    self._context.scope.set(field.text, (None,))
            return name != "let"
        else:
            return False
        return True

    def _read_document(self, fields: list[Field], redirects: list[Redirect]) -> None:
        """Let `read -d '' NAME <<EOF` set its variable to the here-document; what else it reads is not known."""
        names = [field.text for field in fields[1:] if NAME.fullmatch(field.text)]
        body = body_of(redirects, self._expander) if any("d" in f.text for f in fields[1:-1]) else None
        for name in names:
            is_read = body is not None and name == names[-1]
            self._context.scope.set(name, (Known((body,)) if body is not None and is_read else None,))

    def _unset(self, fields: list[Field]) -> None:
        if any(field.text == "-f" for field in fields):
            return
        for field in fields:
            if NAME.fullmatch(field.text):
                self._context.scope.set(field.text, (None,))
                self._context.scope.exported.discard(field.text)
                self._context.put(field.text, None, self._context.exported_as, at=field.start)

    def _set(self, fields: list[Field]) -> None:
        texts = [field.text for field in fields]
        if "-a" in texts or texts[:2] == ["-o", "allexport"] or any(re.fullmatch(r"-[a-z]*a[a-z]*", t) for t in texts):
            self._context.exports_all = True
        elif "+a" in texts or texts[:2] == ["+o", "allexport"]:
            self._context.exports_all = False
        if "--" in texts:
            given = fields[texts.index("--") + 1 :]
            known = Known(tuple(field.spelled for field in given), is_list=True)
            possible: Possible = (known,)
            self._context.scope.set("@", possible)

    def _setenv(self, fields: list[Field]) -> None:
        name = fields[0].text
        if not NAME.fullmatch(name):
            return
        value = fields[1] if len(fields) > 1 else None
        spelled = Spelled("", ((0, fields[0].end),)) if value is None else value.spelled
        written = None if value is None else (value.start, value.end)
        self._context.put(name, spelled, self._context.exported_as, at=fields[0].start, written=written)
        self._context.scope.set(name, (Known((spelled,)),))


def _does_nothing(words: list[Word]) -> bool:
    """Whether a command of plain words sets and starts nothing, as most of a script does: it need not be expanded."""
    names = [word.plain for word in words]
    if not all(names) or names[0] in _BUILTINS or (len(names) > 1 and names[1].startswith("=")):
        return False
    return commands.HANDING_ON.isdisjoint(names) and not any(map(commands.is_known, names))


def _length(word: Word) -> int:
    """Return the length of `NAME=` at the beginning of a word."""
    return word.segments[0].spelled.text.find("=") + 1


def _appended(before: Known | None, value: Spelled, at: int) -> Spelled:
    previous = Spelled(FILLED, ((0, at),)) if before is None or not before.fields else before.fields[0]
    return joined((previous, value), at=at)


def _as_field(spelled: Spelled) -> Field:
    return Field(spelled, spelled.origin(0), spelled.end(), is_whole=True)


def _is_bare(field: Field) -> bool:
    return field.text.endswith("=") and not field.is_quoted and NAME.fullmatch(field.text[:-1]) is not None


def is_test(word: Word) -> bool:
    """Whether a word is a whole [[ ... ]] or ((...))."""
    first = word.segments[0] if word.segments else None
    return first is not None and first.spelled.text.startswith(("[[", "(("))


# Texts that a script writes into files or gives to other programs: here-documents, and what echo prints.

# By the end of its name, what a file is written in. Others are read where they begin as scripts do.
_BY_NAME = (
    (re.compile(r"(?:^|[/.])nccl\.conf$"), "nccl.conf"),
    (re.compile(r"\.(?:sh|bash|sbatch|slurm|slrm|job|pbs|profile|bashrc|bash_profile)$|(?:^|/)\.?profile$"), "shell"),
    (re.compile(r"(?:^|/)(?:Dockerfile|Containerfile)[\w.-]*$|\.dockerfile$"), "dockerfile"),
    (re.compile(r"\.def$"), "apptainer"),
    (re.compile(r"\.ya?ml$"), "kubernetes"),
    (re.compile(r"\.jsonc?$"), "json"),
    (re.compile(r"\.lua$"), "modulefile"),
    (re.compile(r"(?:^|/)(?:\.?env(?:ironment)?(?:\.\w+)?|[\w.-]+\.env|\.deepspeed_env)$"), "environment"),
)
_ENVIRONMENT_OF_CONTAINER = {"APPTAINER_ENVIRONMENT", "SINGULARITY_ENVIRONMENT"}
_SCRIPT = re.compile(r"\s*#!.*\b(?:ba|z|k|da)?sh\b")
_EXPORTING = re.compile(rf"^[ \t]*(?:export|setenv)[ \t]+{commands.FAMILY_NAME.pattern}[= \t]", re.MULTILINE)
_CAT = re.compile(r"\s*(?:cat|tee)\s*>{0,2}\s*([^\s;|&<>]+)\s*")
_ESCAPED = re.compile(r"\\([nt\\])")
_LETTERS = {"n": "\n", "t": "\t", "\\": "\\"}


def language_of(name: str, text: str) -> str | None:
    """Return the language that a file of this name and beginning is written in, None for one that sets nothing."""
    for pattern, language in _BY_NAME:
        if pattern.search(name):
            return language
    return "shell" if _SCRIPT.match(text) else None


def body_of(redirects: list[Redirect], expander: Expander) -> Spelled | None:
    """Return the text that a command is given on its standard input, None where it is given none."""
    for redirect in reversed(redirects):
        if redirect.body is not None:
            return redirect.body if redirect.is_literal else expander.document(redirect.body)
        if redirect.operator == "<<<" and redirect.word is not None:
            return expander.one(redirect.word.segments, 0, at=redirect.word.start)
    return None


def printed(fields: list[Field]) -> Spelled | None:
    """Return what `echo` or `printf` prints, None for other commands."""
    name = fields[0].text if fields else ""
    if name == "echo":
        at = 1
        while at < len(fields) and fields[at].text in {"-e", "-n", "-E", "-ne", "-en"}:
            at += 1
        escapes = any("e" in field.text for field in fields[1:at])
        parts = [part for field in fields[at:] for part in (field.spelled, Spelled(" ", ((0, field.end),)))]
        text = joined(parts[:-1], at=fields[0].end)
        return _unescaped(text) if escapes else text
    if name == "printf" and len(fields) > 1:
        form = fields[1].spelled
        if form.text in {"%s\\n", "%s"}:
            return joined([part for field in fields[2:] for part in (field.spelled, Spelled("\n", ((0, field.end),)))])
        return _unescaped(form) if len(fields) == 2 else None
    return None


def _unescaped(text: Spelled) -> Spelled:
    parts: list[Spelled] = []
    done = 0
    for found in _ESCAPED.finditer(text.text):
        parts.append(text.part(done, found.start()))
        parts.append(Spelled(_LETTERS[found[1]], ((0, text.origin(found.start())),)))
        done = found.end()
    parts.append(text.part(done))
    return joined(parts, at=text.origin(0))


def written_to(redirects: list[Redirect], expander: Expander) -> str | None:
    """Return the file that a command's output goes to, None where it goes to none."""
    for redirect in reversed(redirects):
        if redirect.operator in {">", ">>", ">|", "&>", "&>>"} and redirect.word is not None:
            return target_of(redirect, expander)
    return None


def target_of(redirect: Redirect, expander: Expander) -> str | None:
    """Return the name of the file, with the variables of containers by their name."""
    if redirect.word is None:
        return None
    for segment in redirect.word.segments:
        if segment.kind == "name" and segment.spelled.text in _ENVIRONMENT_OF_CONTAINER:
            return f"${segment.spelled.text}"
    fields = expander.fields(redirect.word, 0)
    return fields[0].text if fields else None


def read_written(target: str, text: Spelled, context: Context) -> None:
    """Read what is written into a file, where that is a file that sets something."""
    if target.startswith("$"):
        context.read("shell", text, context.inner(target=target, is_new=True, exported_as="apptainer"))
        return
    language = language_of(target, text.text)
    if language is None and _EXPORTING.search(text.text) is not None:
        # A script that is put together line by line, whose name is in a variable.
        language = "shell"
    if language is not None:
        context.read(language, text, context.inner(target=target, is_new=True))


def tee_target(fields: list[Field]) -> str | None:
    """Return the file that `tee` or `bash -c "cat > FILE"` writes, None for other commands."""
    names = [field.text for field in fields]
    if len(names) > 2 and (found := _CAT.fullmatch(names[-1])):
        return found[1]
    if names[:1] == ["sudo"]:
        names = [name for name in names[1:] if name not in {"-E", "-n"}]
    if names[:1] != ["tee"]:
        return None
    return next((name for name in names[1:] if not name.startswith("-")), None)


def reads_script(fields: list[Field]) -> bool:
    """Whether a command takes a script on its standard input: a shell, sbatch, or a launcher of a shell."""
    last = [field.text.rpartition("/")[2] for field in fields if not field.text.startswith("-")]
    return bool(last) and (last[0] in {"sbatch", "qsub"} or last[-1] in {"bash", "sh", "zsh"})
