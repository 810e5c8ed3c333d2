"""What the report is made of besides the run: templates, style, script, Plotly; and JSON that is safe inside a page."""

import gzip
import pkgutil
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from busbw.show.plain import printable

SCRIPT = "report.js"
# All that could end a script element, or that is not plain ASCII (U+2028 and U+2029 among it).
_UNSAFE = re.compile(r"[<>&\x7f-\U0010ffff]")


def embedded(json: bytes) -> Markup:
    """Return JSON that means the same and can stand in a script element: ASCII without `<`, `>` and `&`."""
    return Markup(_UNSAFE.sub(_escape, json.decode()))  # noqa: S704  nothing that is left can be markup


def inlined(name: str) -> Markup:
    """Return a style sheet or script of this package, as it is."""
    return Markup(_text("busbw.show.page", f"templates/{name}"))  # noqa: S704  shipped with busbw


def packed(content: bytes) -> Markup:
    """Return anything, compressed, as letters that are safe anywhere; the same for the same content."""
    return Markup(b64encode(gzip.compress(content, 9, mtime=0)).decode())  # noqa: S704  base64 has no markup


@cache
def plotly() -> Markup:
    """Return Plotly's JavaScript, which the plotly package brings along, packed."""
    return packed(_plotly().encode())


@cache
def script_policy() -> str:
    """Return what a page may run, as its security policy says it: busbw's script and Plotly by their digests."""
    digests = (b64encode(sha256(text.encode()).digest()).decode() for text in (inlined(SCRIPT), _plotly()))
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def _plotly() -> str:
    return _text("plotly", "package_data/plotly.min.js")


def environment() -> Environment:
    """Return Jinja's environment: everything printed is escaped, and control characters are shown."""
    return Environment(
        autoescape=True,
        finalize=_printable,
        loader=FunctionLoader(lambda name: _text("busbw.show.page", f"templates/{name}")),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )


def _printable(value: object) -> object:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _text(package: str, path: str) -> str:
    raw = pkgutil.get_data(package, path)
    if raw is None:
        raise FileNotFoundError(f"{package} comes without {path}")
    return raw.decode()
