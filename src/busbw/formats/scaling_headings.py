"""Headings of tables as people write them: `Number of nodes`, `Time (s)`, `Wall clock [min]`; and numbers likewise."""

import re

_UNIT = re.compile(
    r"[\s_]*[(\[]\s*(us|ms|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|[KMGT][Bb](?:/s|ps))\s*[)\]]\s*$", re.ASCII
)
_UNITS = {"sec": "s", "second": "s", "minute": "min", "hr": "h", "hour": "h"}
_COUNT = re.compile(
    r"(?:#|n|no\.?|num\.?|nr\.?|number)[\s_]*(?:of[\s_]+)?(?P<what>nodes|vms|hosts|gpus|ranks|processes|tasks|cores|cpus)"
    r"|(?P<one>node|vm|host|gpu|rank|core)[\s_]+count",
    re.ASCII | re.IGNORECASE,
)
# What is computed from the others, here too: speed-up, efficiency, the share of the peak that a model reaches.
_DERIVED = re.compile(
    r"(?:(?:parallel[\s_]+)?(?:speed[\s_-]?up|efficiency|scaling)|[mh]fu)(?:[\s_]*(?:[(\[]?%[)\]]?|pct|percent))?",
    re.IGNORECASE,
)
# What somebody wrote beside a row, and where it is from.
_REMARK = re.compile(r"(?:sources?|notes?|remarks?|comments?|references?|urls?|links?|document)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,40},\d{1,40}(?:[eE][+-]?\d{1,3})?", re.ASCII)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3}){1,12}(?:\.\d{0,40})?", re.ASCII)


def plain_name(heading: str) -> str:
    """Return a heading as a name of busbw.formats.scaling_columns: `Time (s)` is `Time_s`, `# of nodes` is `nodes`."""
    heading = heading.strip()
    if match := _COUNT.fullmatch(heading):
        return match["what"] or f"{match['one']}s"
    match = _UNIT.search(heading)
    if match is None:
        return heading
    unit = match[1].replace("/s", "ps")
    short = _UNITS.get(unit.removesuffix("s"), "min" if unit == "mins" else unit)
    words = re.sub(r"\W+", "_", heading[: match.start()].strip(), flags=re.ASCII).strip("_")
    return f"{words}_{short}" if words else heading


def is_passed_over(heading: str) -> bool:
    """Whether a column holds what follows from the others (speed-up, efficiency), or remarks (source, notes)."""
    heading = heading.strip()
    return _DERIVED.fullmatch(heading) is not None or _REMARK.fullmatch(heading) is not None


def plain_number(cell: str, separator: str) -> str:
    """Return a number with a point and without marks of thousands.

    Between semicolons a comma is a decimal one, as spreadsheets write where it is; between commas one marks thousands.
    """
    cell = cell.strip()
    if separator == ";" and _DECIMAL_COMMA.fullmatch(cell):
        return cell.replace(",", ".")
    if separator != ";" and _THOUSANDS.fullmatch(cell):
        return cell.replace(",", "")
    return cell
