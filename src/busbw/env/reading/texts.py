"""Settings from any text: which language it is in, and one door for all of them."""

import codecs
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import PurePath

import msgspec

from busbw.base.errors import InputError
from busbw.env.reading.commands import FAMILY_NAME, LAUNCHERS, as_script
from busbw.env.reading.context import Context, Ledger, Scope
from busbw.env.reading.images import read_apptainer, read_dockerfile
from busbw.env.reading.makefiles import read_makefile
from busbw.env.reading.manifests import read_json, read_kubernetes
from busbw.env.reading.modulefiles import read_modulefile
from busbw.env.reading.notebooks import read_notebook
from busbw.env.reading.python import read_python
from busbw.env.reading.settings_files import (
    names_settings,
    read_environment,
    read_nccl_conf,
    read_systemd,
    read_toml,
)
from busbw.env.reading.shell import read_csh, read_shell
from busbw.env.reading.shell_commands import language_of
from busbw.env.reading.spelled import Spelled, joined, separated
from busbw.model.settings import SettingsReading

LARGEST_BYTES = 8 * 2**20
# Manifests and modulefiles are read slower, and written by hand.
_LARGEST = {
    "kubernetes": 2**20,
    "json": 2**20,
    "modulefile": 2**20,
    "makefile": 2**20,
    "markdown": 2**20,
    "python": 2**20,
    "notebook": 2**22,
}
_READERS: dict[str, Callable[[Spelled, Context], None]] = {
    "environment": read_environment,
    "nccl.conf": read_nccl_conf,
    "shell": read_shell,
    "slurm": read_shell,
    "csh": read_csh,
    "dockerfile": read_dockerfile,
    "apptainer": read_apptainer,
    "kubernetes": read_kubernetes,
    "json": read_json,
    "modulefile": read_modulefile,
    "systemd": read_systemd,
    "makefile": read_makefile,
    "python": read_python,
    "notebook": read_notebook,
    "toml": read_toml,
}
_MARKDOWN = "markdown"
LANGUAGES = (*_READERS, _MARKDOWN)
# Scripts of one page; more, and it is none for people.
_MOST_BLOCKS = 500
_REPLACED = "\N{REPLACEMENT CHARACTER}"
# Lone surrogates stand for bytes that are no UTF-8; the last two characters are kept for what is not known.
_UNREADABLE = re.compile("[\ud800-\udfff\ufffe\uffff]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
# More control characters than these, and more among so many, and it is not text.
_MOST_CONTROLS = 16
_CONTROLS_PER_CHARACTER = 0.05


def text_of(raw: bytes) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 where it says so; other bytes stay as lone surrogates."""
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if raw.startswith(mark):
            return raw[len(mark) :].decode(encoding, "replace")
    return raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def read(text: str, file: str, language: str | None = None) -> SettingsReading:
    """Return what a text sets and starts, in this language or the one it seems to be written in.

    Nothing is run, and no other file is read. Raises InputError for what is too large, no text, or a language that is
    not known.
    """
    _check(text, file, language)
    chosen = _detected(text, file) if language is None else language
    most = _LARGEST.get(chosen, LARGEST_BYTES)
    if len(text) > most:
        raise InputError(f"{len(text)} characters are over the limit of {most} for {chosen}", where=file)
    unreadable = [found.start() for found in _UNREADABLE.finditer(text)]
    cleaned = _UNREADABLE.sub(_REPLACED, text) if unreadable else text
    if chosen == _MARKDOWN:
        return _page(cleaned, file)
    ledger = Ledger(file, cleaned)
    if unreadable:
        ledger.unread(unreadable[0], f"{len(unreadable)} bytes from here on are no UTF-8; each is read as {_REPLACED}")
    is_posix = _SHEBANG.match(text) is None or _POSIX.match(text) is not None
    is_script = language is not None or _is_script(cleaned[:_FIRST], file)
    # A log may begin with the script that it is of.
    is_whole = PurePath(file).suffix.lower() not in _OUTPUTS and _TEMPLATES.search(text) is None
    ledger.is_script = chosen in {"shell", "slurm"} and is_posix and is_whole
    if chosen in _OF_SHELLS and not is_script and not _acts(cleaned[:_FIRST], file):
        ledger.spoken(0, len(cleaned))
    context = Context(ledger=ledger, scope=Scope(), nested=_nested)
    # A file of settings with quotes in it reads as a shell does; what takes it in exports what it has.
    context.exports_all = chosen == "shell" and language_of(file, "") == "environment"
    _READERS[chosen](Spelled(cleaned), context)
    if chosen in {"shell", "slurm"} and not ledger.has_launches:
        _read_options(context)
    returns = cleaned.count("\r\n")
    if (
        returns
        and chosen not in {"kubernetes", "json", "dockerfile", "python"}
        and _end_on_windows(cleaned, ledger, chosen)
    ):
        ledger.every("carriage_return", cleaned.index("\r\n"), "\\r", count=returns)
    return ledger.reading(chosen)


def _is_script(start: str, file: str) -> bool:
    """Whether a text is shown to be a script: by its name, its first line, or directives."""
    is_named = language_of(file, "") is not None or PurePath(file).suffix.lower() in _BY_SUFFIX
    return is_named or _SHEBANG.match(start) is not None or _DIRECTIVE.search(start) is not None


def _acts(start: str, file: str) -> bool:
    """Whether lines of a text set something or start ranks; among texts for people, whether it begins with that."""
    first = next(filter(str.strip, start.split("\n")), "")
    is_of_people = PurePath(file).suffix.lower() in _OF_PEOPLE
    return (_SCRIPT.match(first) if is_of_people else _DOES.search(start)) is not None


def _end_on_windows(text: str, ledger: Ledger, language: str) -> bool:
    """Whether the lines were written so: a log has such lines too, from its terminal, behind the commands it shows."""
    lines = text.split("\n")
    reading = ledger.reading(language)
    own = [each.line for each in reading.assignments if FAMILY_NAME.match(each.name)]
    own += [each.line for each in reading.launches if each.kind != "other"]
    return lines[0].endswith("\r") or any(lines[line - 1].endswith("\r") for line in own)


def _read_options(context: Context) -> None:
    """Read what variables hold for commands of another file, where a script starts nothing itself."""
    for name in context.scope.names():
        for possible in context.scope.get(name):
            items = possible.fields if possible is not None else ()
            text = joined(list(separated(items, Spelled(" ")))) if items else None
            script = as_script(text) if text is not None else None
            if script is not None:
                context.read("shell", script, context.inner())


def _page(text: str, file: str) -> SettingsReading:
    """Return the reading of a page: each of its scripts is one by itself, at its place in the page."""
    parts: list[SettingsReading] = []
    # In reStructuredText a line of tildes is under a title and opens no block.
    is_fenced = _FENCED.search(text) is not None and PurePath(file).suffix.lower() != ".rst"
    for block in islice(blocks(text) if is_fenced else passages(text), _MOST_BLOCKS):
        ledger = Ledger(file, block.masked)
        if block.is_spoken:
            ledger.spoken(0, len(block.masked))
        _READERS[block.language](block.piece, Context(ledger=ledger, scope=Scope(), nested=_nested))
        parts.append(ledger.reading(block.language))
    lines = tuple(line.removesuffix("\r") for line in text.split("\n"))
    return SettingsReading(file=file, language=_MARKDOWN, parts=tuple(parts), lines=lines)


def _nested(language: str, piece: Spelled, context: Context) -> None:
    _READERS[language](piece, context)


def _check(text: str, file: str, language: str | None) -> None:
    if language is not None and language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise InputError(f"no such kind of text: {language[:40]}", where=file, hint=f"--as takes one of {known}")
    if len(text) > LARGEST_BYTES:
        raise InputError(f"{len(text)} characters are over the limit of {LARGEST_BYTES}", where=file)
    controls = len(_CONTROLS.findall(text))
    # `env -0` divides variables by NUL.
    divided = text.count("\0") if re.match(r"[A-Za-z_]\w*=", text) else 0
    if controls - divided > max(_MOST_CONTROLS, _CONTROLS_PER_CHARACTER * len(text)):
        raise InputError("this is not text", where=file, hint="give a script, an environment, or an nccl.conf")


# Which language a text is in: by its name, and by what it holds.
_FIRST = 65_536
_MODULE = re.compile(r"\A#%Module")
_SHEBANG = re.compile(r"\A\s*#!")
_POSIX = re.compile(r"\A\s*#![^\n]*\b(?:ba|da|k)?sh\b")
# What a program puts in before a shell sees the text: Jinja, Go, ERB.
_TEMPLATES = re.compile(r"\{\{[^{}\n]*\}\}|\{%|<%")
_LUA = re.compile(r"^\s*(?:setenv|pushenv|prepend_path|append_path|whatis|help|load|depends_on)\s*[({\[]", re.MULTILINE)
_APPTAINER = re.compile(r"^\s*Bootstrap\s*:|^%(?:environment|post|runscript)\b", re.IGNORECASE | re.MULTILINE)
_MANIFEST = re.compile(r"^(?:apiVersion|kind|services|metadata)\s*:|^\s*-?\s*containers\s*:", re.MULTILINE)
_DOCKERFILE = re.compile(r"\A(?:\s*(?:#[^\n]*|ARG[ \t][^\n]*)?\n)*\s*FROM[ \t]+[\w$\"{]", re.IGNORECASE)
_BATCH = re.compile(r"^#SBATCH\b", re.MULTILINE)
_OF_SHELLS = {"shell", "slurm", "csh"}
_DIRECTIVE = re.compile(r"^#(?:SBATCH|PBS|BSUB|COBALT|PJM|\$) ", re.MULTILINE)
# What a line of a script does: it sets something for others, or starts ranks.
_DOES = re.compile(
    rf"^[ \t]*(?:(?:export |setenv )[A-Za-z_]\w*[ =]|{FAMILY_NAME.pattern}=|(?:\S+/)?(?:{LAUNCHERS})[ \t]+-)",
    re.MULTILINE,
)
# Texts for people, and what programs print: a script among them begins as one.
_OUTPUTS = {".log", ".out", ".err"}
_OF_PEOPLE = {".txt", ".log", ".out", ".err", ".rst", ".tex", ".org", ".adoc", ".snap", ".golden", ".1", ".7"}
_ASSIGNMENT = re.compile(r"[A-Za-z_][\w.%()-]*=")
_SHELL_LINE = re.compile(r"(?:export|declare|typeset|unset|setenv|source|module|if|for|echo)\b|[a-z]\S*\s+-")
# Values of an environment hold quotes and dollars as they stand; in a script they mean something.
_QUOTED_LINE = re.compile(r"[A-Za-z_]\w*=(?:[\"'].*[\"']|\(.*\)|.*\$[({A-Za-z_].*|.*\s#.*|[^\s\"']+;.*)\s*$")
# A quote that is closed on another line, and a line that goes on, are a shell's.
_GOES_ON = re.compile(r"[A-Za-z_]\w*=(?:\"[^\"]*|'[^']*)\\$")
# Files that name variables too, and that no shell would read as they are meant.
_NOT_READ = {
    ".toml": "TOML", ".tf": "Terraform", ".tfvars": "Terraform", ".hcl": "HCL", ".ini": "an INI file",
    ".c": "C", ".cc": "C++", ".cpp": "C++", ".h": "C", ".hpp": "C++", ".cu": "CUDA", ".go": "Go",
    ".rs": "Rust", ".ac": "an input of Autoconf", ".cmake": "CMake",
    ".html": "HTML", ".xml": "XML", ".csv": "a table", ".tex": "LaTeX", ".sty": "LaTeX", ".bib": "BibTeX",
}  # fmt: skip
_OF_TEMPLATES = {".in", ".j2", ".jinja", ".template", ".tmpl", ".tpl"}
_BY_SUFFIX = {
    ".md": "markdown", ".markdown": "markdown", ".rst": "markdown", ".py": "python", ".pyw": "python",
    ".eb": "python", ".ipynb": "notebook",
    ".json": "json", ".jsonc": "json", ".json5": "json", ".code-workspace": "json",
    ".csh": "csh", ".tcsh": "csh", ".am": "makefile", ".mk": "makefile",
    ".service": "systemd", ".mount": "systemd", ".socket": "systemd", ".timer": "systemd",
}  # fmt: skip
# Pages by their whole name, which say no language.
_PAGE = re.compile(r"(?:^|/)(?:[\w.+-]*\.)?(?:README|INSTALL|HOWTO|FAQ)(?:[-_.][\w-]+)?(?:\.txt)?$")
_CSH = re.compile(r"\A\s*#![^\n]*\bt?csh\b")
_PYTHON = re.compile(r"\A#![^\n]*\bpython[\d.]*\s*$|^(?:import|from) os\b", re.MULTILINE)
# A sentence has a capital, several words and an end. A page has some, and not one to a hundred lines.
_SENTENCE = re.compile(r"\s*(?:[-*\u2022\d.)]+\s+)?[A-Z][\w'\u2019-]*,?(?: [^\s=$\\|;]+){5,}.*[\w)\]\"'][.:!?]\s*$")
_FEWEST_SENTENCES = 3
_LINES_PER_SENTENCE = 12
# `NAME: value` under a key of its own, and what no such file begins a line with.
_KEY_ALONE = re.compile(r"^[\w-]+:[ \t]*$", re.MULTILINE)
_MAPPED = re.compile(rf"^[ \t]+[\"']?{FAMILY_NAME.pattern}[\"']?:[ \t]", re.MULTILINE)
_SHELL_START = re.compile(r"^(?:export|if|for|set|source|mpirun|srun|echo) ", re.MULTILINE)
_JSON = re.compile(r"\s*\{\s*(?://[^\n]*\s*)*\"[^\"\n]*\"[ \t]*:")
_HOSTS = re.compile(r"(?:^|/)(?:host|machine|rank)file(?:[.\w-]*\.txt)?$")
_MAKEFILE = re.compile(r"(?:^|/)(?:GNU)?[Mm]akefile(?:\.(?!sh$|py$|md$)[\w-]+)?$")
# Files of build systems, by their whole name.
_BUILD = (
    (re.compile(r"(?:^|/)CMakeLists\.txt$"), "CMake"),
    (re.compile(r"(?:^|/)meson(?:\.build|_options\.txt)$"), "an input of Meson"),
    (re.compile(r"(?:^|/)Jenkinsfile(?:[.-][\w.-]+)?$"), "Groovy"),
)


def _detected(text: str, file: str) -> str:
    """Return the language of a text; a shell script where nothing tells.

    Raises InputError for a file whose name says that it is in a language that is not read.
    """
    if PurePath(file).suffix.lower() == ".toml" and names_settings(text[:_FIRST]):
        return "toml"
    _refuse(file)
    suffixed = "makefile" if _MAKEFILE.search(file) else _BY_SUFFIX.get(PurePath(file).suffix.lower())
    if suffixed is not None:
        return suffixed
    named = language_of(file, "")
    start = text[:_FIRST]
    if named == "modulefile" or _MODULE.search(start):
        return "modulefile"
    if named is not None and named not in {"shell", "environment"}:
        return named
    if _SHEBANG.match(start) or named == "shell":
        return _script(start)
    return "json" if _JSON.match(start) else _by_content(start, file)


def _script(start: str) -> str:
    """Return what a text is that begins with the program that reads it, or is called a shell script."""
    if _CSH.match(start):
        return "csh"
    if _BATCH.search(start):
        return "slurm"
    return "python" if _SHEBANG.match(start) and _PYTHON.match(start) else "shell"


def _refuse(file: str) -> None:
    path = PurePath(file)
    # What `configure` and the like write a file from ends as that file before its own ending.
    path = path.with_suffix("") if path.suffix.lower() in _OF_TEMPLATES else path
    of_build = (what for name, what in _BUILD if name.search(path.as_posix()))
    other = next(of_build, _NOT_READ.get(path.suffix.lower()))
    other = "a list of hosts" if _HOSTS.search(file) else other
    if other is not None:
        raise InputError(
            f"by its name it is {other}, which is not read",
            where=file,
            hint="name what it really is: --as shell; or give the part with the settings on standard input",
        )


def _by_content(start: str, file: str) -> str:
    is_page = _PAGE.search(file) is not None and not _ASSIGNMENT.match(start)
    if is_page or (_is_prose(start) and not _PYTHON.search(start)):
        return _MARKDOWN
    if _APPTAINER.search(start):
        return "apptainer"
    if _DOCKERFILE.match(start):
        return "dockerfile"
    if _MANIFEST.search(start):
        return "kubernetes"
    if _LUA.search(start):
        return "modulefile"
    return _by_lines(start)


def _by_lines(start: str) -> str:
    if _PYTHON.search(start):
        return "python"
    if _BATCH.search(start):
        return "slurm"
    if _MAPPED.search(start) and _KEY_ALONE.search(start) and not _SHELL_START.search(start):
        return "kubernetes"
    return "environment" if _is_environment(start) else "shell"


def _is_prose(start: str) -> bool:
    """Whether a text is a page for people: sentences, and commands among them."""
    lines = [line for line in start.split("\n") if line.strip()]
    sentences = sum(_SENTENCE.match(line) is not None for line in lines)
    fewest = _FEWEST_SENTENCES * (4 if "<<" in start else 1)
    return sentences >= fewest and sentences * _LINES_PER_SENTENCE >= len(lines)


def _is_environment(start: str) -> bool:
    """Whether every line is NAME=value or goes on with one, and none is quoted as a shell would need it."""
    if "\0" in start:
        return True
    lines = [line.rstrip("\r") for line in start.split("\n") if line.strip() and not line.startswith("#")]
    if not lines or _ASSIGNMENT.match(lines[0]) is None or any(_GOES_ON.match(line) for line in lines):
        return False
    settings = [line for line in lines if _ASSIGNMENT.match(line)]
    if any(_QUOTED_LINE.match(line) for line in settings[:1000]):
        # An environment has some of these too, but not among so few, and none around a path of its own.
        own = [line for line in settings if line.startswith(("PATH=", "HOME=", "PWD=", "SHLVL="))]
        return len(settings) > 15 and bool(own) and not any(_QUOTED_LINE.match(line) for line in own)
    others = [line for line in lines if not _ASSIGNMENT.match(line)]
    return not any(_SHELL_LINE.match(line.lstrip()) for line in others) and not any(
        _has_words(line) for line in settings[:1000] if len(settings) < 15
    )


def _has_words(line: str) -> bool:
    """Whether a line is `NAME=value command ...` rather than a value with spaces: a command or its path follows."""
    return re.match(r"[A-Za-z_]\w*=\S* +(?:\S+ +)*(?:\S*/\S+|mpirun|srun|python3?|torchrun)(?: |$)", line) is not None


# Pages of Markdown, and of text.
_FENCED = re.compile(r"^[ \t]*(?:`{3}|~{3})", re.MULTILINE)
_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*\{?\.?(?P<info>[\w.+-]*)(?P<rest>[^`\n]*)")
_BY_INFO = {
    **dict.fromkeys(("bash", "sh", "shell", "zsh", "ksh"), "shell"),
    **dict.fromkeys(("slurm", "sbatch"), "slurm"),
    **dict.fromkeys(("csh", "tcsh"), "csh"),
    **dict.fromkeys(("dockerfile", "docker", "containerfile"), "dockerfile"),
    **dict.fromkeys(("yaml", "yml"), "kubernetes"),
    **dict.fromkeys(("json", "jsonc", "json5"), "json"),
    **dict.fromkeys(("singularity", "apptainer"), "apptainer"),
}  # fmt: skip
# What shows a session: the lines behind prompts are commands, and without one all of it was printed.
_SESSIONS = {"console", "shell-session", "sh-session", "shellsession", "terminal"}
# What a block without a language begins with where it is a script; others are logs, tables, trees.
_SCRIPT = re.compile(r"\s*(?:#!/\S*sh\b|#SBATCH|(?:\$ )?(?:export [A-Z_]+=|(?:mpirun|srun|sbatch|torchrun) ))")
# Or with a remark, where it exports a setting further down.
_REMARKED = re.compile(rf"\s*#[^\n]*\n(?:[^\n]*\n)*?[ \t]*export {FAMILY_NAME.pattern}=")
# Marks that MkDocs takes out of a page and puts its notes in.
_MARK = re.compile(r"[ \t]+# ?\(\d{1,3}\)!?[ \t]*$")
_DOCUMENT = re.compile(r"<<-?[ \t]*[\"'\\\\]?(\w+)")
_PROMPT = re.compile(r"[ \t]*[$%] ")
# A prompt that names an environment, a user, a host or a folder: `(env) user@host:~$ `, `[user@host dir]$ `, `host>$ `.
_LONG_PROMPT = re.compile(
    r"[ \t]*(?:\([\w.-]{1,40}\) ?)?"
    r"(?:\[[\w.-]{1,40}@[^\]\n]{1,80}\]|[\w.-]{1,40}[@:][\w.@:~/-]{1,80}?)(?:>?[$%]|\$>|>) +(?=\S)"
)


# Lines of a page that begin a command or set something, those that begin a whole script, and options of a command.
_PASSAGE = re.compile(
    rf"[ \t]*(?:[$%>] )?(?:(?:export |setenv )?[A-Za-z_]\w*= ?\S|setenv [A-Z]|#SBATCH |#!/\S*sh\b"
    rf"|-x {FAMILY_NAME.pattern}|(?:if|elif|while) ?\[|for \w+ in |(?:then|else|fi|do|done|esac)[ \t]*$"
    rf"|(?:\S+/)?(?:{LAUNCHERS})\s+(?:-|\\|run |exec )|(?:[A-Z][A-Z0-9_]*=\S* )+\S)"
)
_CODE_BLOCK = re.compile(r"[ ]*\.\. (?:code-block|code|sourcecode|prompt):: *(?P<info>[\w-]*)")
_MOST_EMPTY = 4
_SCRIPT_LINE = re.compile(r"[ \t]*(?:#SBATCH |#!/\S*sh\b)")
_OPTION_LINE = re.compile(r"[ \t]*--?[a-zA-Z][\w-]*(?:[ =]|\s*\\?\s*$)")


class Block(msgspec.Struct, frozen=True):
    """One script of a page. `masked`: the page with nothing but it; `piece`: the script with its places in that."""

    language: str
    masked: str
    piece: Spelled
    # Whether nothing shows that it is a script: lines of a sentence, of a list, of an output.
    is_spoken: bool = False


def blocks(text: str) -> Iterator[Block]:
    """Yield the scripts of a page, in its order. One that is never closed goes on to the end of the page."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        at += 1
        if opening is None:
            continue
        first = at
        while at < len(lines) and not _closes(lines[at], opening["mark"]):
            at += 1
        language = _language(opening["info"].lower(), "\n".join(lines[first:at]))
        if language is not None:
            yield _block(language, lines, first, at)
        at += 1


def passages(text: str) -> Iterator[Block]:
    """Yield the commands and settings of a page without fences: each run of lines between those for people."""
    lines = text.split("\n")
    marked = _directed(lines)
    at = 0
    while at < len(lines):
        if _PASSAGE.match(lines[at]) is None:
            at += 1
            continue
        first, is_script = at, _SCRIPT_LINE.match(lines[at]) is not None
        at += 1
        while (following := _following(lines, at, is_script=is_script)) is not None:
            at = following + 1
        is_shown = first in marked or _SCRIPT.match(lines[first]) is not None
        yield _block("shell", lines, first, at, is_spoken=not is_shown)


def _directed(lines: list[str]) -> set[int]:
    """Return the lines of a page in reStructuredText that stand in a block of code for a shell."""
    inside: set[int] = set()
    indent: int | None = None
    for number, line in enumerate(lines):
        own = len(line) - len(line.lstrip(" "))
        if indent is not None and line.strip() and own <= indent:
            indent = None
        if (found := _CODE_BLOCK.match(line)) is not None:
            indent = own if _BY_INFO.get(found["info"].lower()) in _OF_SHELLS else None
        elif indent is not None:
            inside.add(number)
    return inside


def _following(lines: list[str], at: int, *, is_script: bool) -> int | None:
    """Return the next line of a passage that goes on: it continues the one before, is an option, or another command.

    Pages put empty lines between the lines of a command. A whole script goes on up to a sentence.
    """
    continues = lines[at - 1].rstrip().endswith("\\")
    for number in range(at, min(at + _MOST_EMPTY + 1, len(lines))):
        if lines[number].strip():
            others = _OPTION_LINE.match(lines[number]) or _PASSAGE.match(lines[number])
            is_part = continues or others is not None or (is_script and _SENTENCE.match(lines[number]) is None)
            return number if is_part else None
    return None


def _closes(line: str, mark: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(mark) and not stripped.strip(mark[0])


def _language(info: str, body: str) -> str | None:
    if info in _SESSIONS:
        return "shell" if any(_is_prompted(line) for line in body.split("\n")) else None
    if info:
        return _BY_INFO.get(info)
    lines = body.split("\n")
    is_session = any(_LONG_PROMPT.match(line) and FAMILY_NAME.search(line) for line in lines)
    return "shell" if is_session or _SCRIPT.match(body) or _REMARKED.match(body) else None


def _is_prompted(line: str) -> bool:
    return _PROMPT.match(line) is not None or _LONG_PROMPT.match(line) is not None


def _block(language: str, lines: list[str], first: int, end: int, *, is_spoken: bool = False) -> Block:
    """Return the lines of one block, of a session those that were typed, without the indent of the block."""
    body = [_MARK.sub("", line) for line in lines[first:end]]
    if language == "shell" and any(_is_prompted(line) for line in body):
        body = list(_typed(body))
    indent = min((len(line) - len(line.lstrip(" \t")) for line in body if line.strip()), default=0)
    parts: list[Spelled] = []
    offset = first
    for line in body:
        parts.append(Spelled(f"{line[indent:]}\n", ((0, offset + min(indent, len(line))),)))
        offset += len(line) + 1
    masked = "\n".join([*[""] * first, *body, *[""] * (len(lines) - end)])
    return Block(language, masked, joined(parts, at=first), is_spoken)


def _typed(body: list[str]) -> Iterator[str]:
    """Yield the lines behind a prompt and those that go on with one; what was printed is left empty."""
    goes_on, document = False, ""
    for line in body:
        prompt = None if goes_on else _LONG_PROMPT.match(line)
        is_typed = goes_on or prompt is not None or _PROMPT.match(line) is not None
        typed = line if prompt is None else " " * prompt.end() + line[prompt.end() :]
        yield typed if is_typed else ""
        if document:
            document = "" if line.strip() == document else document
        elif is_typed and (found := _DOCUMENT.search(line)):
            document = found[1]
        goes_on = bool(document) or (is_typed and line.rstrip("\r").endswith("\\"))
