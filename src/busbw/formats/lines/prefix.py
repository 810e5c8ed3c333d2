"""What launchers write in front of a line: whose it is, and when. The rest is the line as the program wrote it."""

import re

_DATE = (
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d "
    # No size in bytes is taken for a year.
    r"\d\d:\d\d:\d\d(?: 20[0-3]\d(?=[ <\[])|(?= )) ?"
    r"|\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]? "
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]? "
)
_TAG = (
    # mpirun --tag-output: [1,0]<stdout>: and, since Open MPI 5, [prterun-host-77@1,0]<stdout>:
    r"\[(?:[\w.@-]{1,80}@)?\d+,\d+\](?:<std(?:out|err|diag)>)?:"
    r"|<std(?:out|err|diag)>:"
    # mpiexec -prepend-rank: [0]; torchrun: [rank0]: or [default0]:
    r"|\[\d+\]:? |\[(?:rank|default)\d+\]: ?"
    # srun -l: the number, padded to the width of the largest
    r"|[ ]{0,6}\d{1,7}:(?: |$)"
    # kubectl logs --prefix, docker compose
    r"|\[pod/[\w./-]{1,250}\] "
    r"|[\w.-]{1,80} +\| "
    # A text that a mail or a comment quotes.
    r"|(?:> ?){1,5}"
    # pdsh, where a line of a table follows
    r"|[A-Za-z][\w.-]{0,80}: (?=#| *\d+ +\d+ +[a-z])"
)
# A line may have a date, a tag, and a date again.
_MOST = 3
PREFIXES = rf"(?:{_DATE}|{_TAG}){{0,{_MOST}}}"
_ONE = re.compile(rf"(?:(?P<date>{_DATE})|(?P<tag>{_TAG}))", re.ASCII)
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\(B)")
# What pages on the web have for a blank, and marks without a width.
_BLANKS = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " ") | dict.fromkeys("\u200b\ufeff", ""))
# Below an indentation only these are tags; a row of a table is none.
_INDENTED_TAG = re.compile(r"\s+(?=\[\d{1,7}[,\]]|\d{1,7}:(?: |$))", re.ASCII)


def split(line: str) -> tuple[str, str]:
    """Return the tag in front of a line, "" when there is none, and the line without tag, dates and colour."""
    text = uncoloured(line.rstrip("\r\n"))
    if not text.isascii():
        text = text.translate(_BLANKS)
    if text.startswith("#"):
        return "", text
    indentation = _INDENTED_TAG.match(text) if text.startswith((" ", "\t")) else None
    start, tags = indentation.end() if indentation is not None else 0, ""
    for _ in range(_MOST):
        match = _ONE.match(text, start)
        if match is None:
            break
        start = match.end()
        tags += (match["tag"] or "").strip()
    return tags, text[start:]


def uncoloured(text: str) -> str:
    """Return a line without the escapes that colour it."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text
