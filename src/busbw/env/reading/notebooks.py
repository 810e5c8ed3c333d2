"""Reads notebooks of Jupyter: cells of Python, with lines for a shell and settings by `%env`, and cells for a shell."""

import re

from busbw.env.reading.context import NAME, Context
from busbw.env.reading.shell_commands import language_of
from busbw.env.reading.spelled import Spelled, joined
from busbw.env.reading.yaml_trees import Mapping, Scalar, Sequence, yaml_documents

# What a cell printed as a picture is most of a notebook.
_PICTURE = re.compile(r"(\"(?:image|application)/[\w.+-]+\":\s*\")([^\"\\]*)(?=\")")
_OF_SHELL = re.compile(r"%%(?:bash|sh|script\s+(?:ba)?sh)\b")
_WRITTEN = re.compile(r"%%(?:writefile|file)\s+(?:-a\s+)?(\S+)")
# The rest of the line is the value, with its quotes.
_SET = re.compile(r"\s*%(?:set_)?env\s+(?P<name>[A-Za-z_]\w*)(?:=|\s+)(?P<value>\S.*?)\s*$")
_COMMAND = re.compile(r"\s*!+")
_MAGIC = re.compile(r"\s*%")


def read_notebook(piece: Spelled, context: Context) -> None:
    """Take down what the cells of code set and start, in their order."""
    blanked = _PICTURE.sub(lambda found: found[1] + " " * len(found[2]), piece.text)
    for root in yaml_documents(Spelled(blanked, piece.runs), context.ledger):
        cells = root.get("cells") if isinstance(root, Mapping) else None
        for cell in cells.items if isinstance(cells, Sequence) else ():
            kind = cell.scalar("cell_type") if isinstance(cell, Mapping) else None
            if isinstance(cell, Mapping) and kind is not None and kind.spelled.text == "code":
                _cell(cell, context)


def _cell(cell: Mapping, context: Context) -> None:
    source = cell.get("source")
    texts = source.items if isinstance(source, Sequence) else [source]
    lines = [text.spelled for text in texts if isinstance(text, Scalar)]
    if not lines:
        return
    whole = joined(lines, at=lines[0].origin(0))
    end = (whole.text.find("\n") + 1) or len(whole.text)
    written = _WRITTEN.match(whole.text)
    if _OF_SHELL.match(whole.text) is not None:
        context.read("shell", whole.part(end), context.inner())
    elif written is not None:
        language = language_of(written[1], whole.text[end:]) or ("python" if written[1].endswith(".py") else None)
        if language is not None:
            context.read(language, whole.part(end), context.inner(target=written[1], is_new=True))
    elif not whole.text.startswith("%%"):
        _program(whole, context)


def _program(whole: Spelled, context: Context) -> None:
    """Read a cell of Python line by line, and what is left of it as a program."""
    left: list[Spelled] = []
    at = 0
    while at < len(whole.text):
        end = _line_end(whole.text, at)
        line = whole.part(at, end)
        setting, command = _SET.match(line.text), _COMMAND.match(line.text)
        if setting is not None:
            value = line.part(setting.start("value"), setting.end("value"))
            if NAME.fullmatch(setting["name"]):
                context.put(setting["name"], value, "export", at=line.origin(setting.start("name")))
        elif command is not None:
            context.read("shell", line.part(command.end()), context.inner())
        elif _MAGIC.match(line.text) is None:
            left.append(line)
        at = end
    if left:
        context.read("python", joined(left, at=left[0].origin(0)), context.inner())


def _line_end(text: str, at: int) -> int:
    """Return where a line ends; one for a shell goes on behind a backslash."""
    is_command = _COMMAND.match(text, at) is not None
    end = (text.find("\n", at) + 1) or len(text)
    while is_command and text[at:end].endswith("\\\n") and end < len(text):
        end = (text.find("\n", end) + 1) or len(text)
    return end
