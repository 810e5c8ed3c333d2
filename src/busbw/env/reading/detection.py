"""What a text that sets something is written in, by its name and by what it holds."""

import re
from pathlib import PurePath

from busbw.base.errors import InputError
from busbw.env.reading.documents import language_of

_FIRST = 65_536
_MODULE = re.compile(r"\A#%Module")
_SHEBANG = re.compile(r"\A\s*#!")
_LUA = re.compile(r"^\s*(?:setenv|pushenv|prepend_path|append_path|whatis|help|load|depends_on)\s*[({\[]", re.MULTILINE)
_APPTAINER = re.compile(r"^\s*Bootstrap\s*:|^%(?:environment|post|runscript)\b", re.IGNORECASE | re.MULTILINE)
_MANIFEST = re.compile(r"^(?:apiVersion|kind|services|metadata)\s*:|^\s*-?\s*containers\s*:", re.MULTILINE)
_DOCKERFILE = re.compile(r"\A(?:\s*(?:#[^\n]*|ARG[ \t][^\n]*)?\n)*\s*FROM[ \t]+[\w$\"{]", re.IGNORECASE)
_BATCH = re.compile(r"^#SBATCH\b", re.MULTILINE)
_ASSIGNMENT = re.compile(r"[A-Za-z_][\w.%()-]*=")
_SHELL_LINE = re.compile(r"(?:export|declare|typeset|unset|setenv|source|module|if|for|echo)\b|[a-z]\S*\s+-")
# Values of an environment hold quotes and dollars as they stand; in a script they mean something.
_QUOTED_LINE = re.compile(r"[A-Za-z_]\w*=(?:[\"'].*[\"']|\(.*\)|.*\$[({A-Za-z_].*|.*\s#.*|[^\s\"']+;.*)\s*$")


# Files that name variables too, and that no shell would read as they are meant.
_NOT_READ = {
    ".toml": "TOML", ".tf": "Terraform", ".tfvars": "Terraform", ".hcl": "HCL", ".ini": "an INI file",
    ".c": "C", ".cc": "C++", ".cpp": "C++", ".h": "C", ".hpp": "C++", ".cu": "CUDA", ".go": "Go",
    ".rs": "Rust", ".am": "a makefile", ".mk": "a makefile", ".ac": "an input of Autoconf", ".cmake": "CMake",
    ".json": "JSON", ".html": "HTML", ".xml": "XML", ".csv": "a table", ".ipynb": "a notebook",
}  # fmt: skip
_BY_SUFFIX = {
    ".md": "markdown", ".markdown": "markdown", ".py": "python", ".pyw": "python",
    ".csh": "csh", ".tcsh": "csh",
    ".service": "systemd", ".mount": "systemd", ".socket": "systemd", ".timer": "systemd",
}  # fmt: skip
_CSH = re.compile(r"\A\s*#![^\n]*\bt?csh\b")
_PYTHON = re.compile(r"\A#![^\n]*\bpython[\d.]*\s*$|^(?:import|from) os\b", re.MULTILINE)
_HOSTS = re.compile(r"(?:^|/)(?:host|machine|rank)file(?:[.\w-]*\.txt)?$")
_MAKEFILE = re.compile(r"(?:^|/)(?:GNU)?[Mm]akefile$")


def language(text: str, file: str) -> str:
    """Return the language of a text; a shell script where nothing tells.

    Raises InputError for a file whose name says that it is in a language that is not read.
    """
    _refuse(file)
    suffixed = _BY_SUFFIX.get(PurePath(file).suffix.lower())
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
    return _by_content(start)


def _script(start: str) -> str:
    """Return what a text is that begins with the program that reads it, or is called a shell script."""
    if _CSH.match(start):
        return "csh"
    if _BATCH.search(start):
        return "slurm"
    return "python" if _SHEBANG.match(start) and _PYTHON.match(start) else "shell"


def _refuse(file: str) -> None:
    other = "a makefile" if _MAKEFILE.search(file) else _NOT_READ.get(PurePath(file).suffix.lower())
    other = "a list of hosts" if _HOSTS.search(file) else other
    if other is not None:
        raise InputError(
            f"by its name it is {other}, which is not read",
            where=file,
            hint="name what it really is: --as shell; or give the part with the settings on standard input",
        )


def _by_content(start: str) -> str:
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
    return "environment" if _is_environment(start) else "shell"


def _is_environment(start: str) -> bool:
    """Whether every line is NAME=value or goes on with one, and none is quoted as a shell would need it."""
    if "\0" in start:
        return True
    lines = [line.rstrip("\r") for line in start.split("\n") if line.strip() and not line.startswith("#")]
    if not lines or _ASSIGNMENT.match(lines[0]) is None:
        return False
    settings = [line for line in lines if _ASSIGNMENT.match(line)]
    if any(_QUOTED_LINE.match(line) for line in settings[:1000]):
        # An environment has some of these too, but not among so few.
        return len(settings) > 15 and any(line.startswith(("PATH=", "HOME=", "PWD=", "SHLVL=")) for line in settings)
    others = [line for line in lines if not _ASSIGNMENT.match(line)]
    return not any(_SHELL_LINE.match(line.lstrip()) for line in others) and not any(
        _has_words(line) for line in settings[:1000] if len(settings) < 15
    )


def _has_words(line: str) -> bool:
    """Whether a line is `NAME=value command ...` rather than a value with spaces: a command or its path follows."""
    return re.match(r"[A-Za-z_]\w*=\S* +(?:\S+ +)*(?:\S*/\S+|mpirun|srun|python3?|torchrun)(?: |$)", line) is not None
