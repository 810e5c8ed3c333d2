"""Texts that a script writes into files or gives to other programs: here-documents, and what echo prints."""

import re

from busbw.env.reading.context import Context
from busbw.env.reading.expansion import Expander, Field
from busbw.env.reading.shell_tokens import Redirect
from busbw.env.reading.spelled import Spelled, joined

# By the end of its name, what a file is written in. Others are read where they begin as scripts do.
_BY_NAME = (
    (re.compile(r"(?:^|[/.])nccl\.conf$"), "nccl.conf"),
    (re.compile(r"\.(?:sh|bash|sbatch|slurm|slrm|job|pbs|profile|bashrc|bash_profile)$|(?:^|/)\.?profile$"), "shell"),
    (re.compile(r"(?:^|/)(?:Dockerfile|Containerfile)[\w.-]*$|\.dockerfile$"), "dockerfile"),
    (re.compile(r"\.def$"), "apptainer"),
    (re.compile(r"\.ya?ml$"), "kubernetes"),
    (re.compile(r"\.lua$"), "modulefile"),
    (re.compile(r"(?:^|/)(?:\.?env(?:ironment)?(?:\.\w+)?|[\w.-]+\.env|\.deepspeed_env)$"), "environment"),
)
_ENVIRONMENT_OF_CONTAINER = {"APPTAINER_ENVIRONMENT", "SINGULARITY_ENVIRONMENT"}
_SCRIPT = re.compile(r"\s*#!.*\b(?:ba|z|k|da)?sh\b")
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
