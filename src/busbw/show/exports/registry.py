"""The formats of `busbw export`, by name."""

from collections.abc import Callable
from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.show.exports.junit import junit_xml
from busbw.show.exports.markdown import markdown_text
from busbw.show.exports.nccl_tests import nccl_tests_text
from busbw.show.exports.prometheus import prometheus_text
from busbw.show.exports.rows import Export
from busbw.show.exports.superbench import superbench_lines
from busbw.show.exports.tables import csv_text, json_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """A format: how it is written, whether a terminal can show it, and what it needs beside rows."""

    name: str
    # None: DuckDB writes it, which `store` knows.
    write: Callable[[Export], bytes] | None
    is_text: bool = True
    # Whether it says of each point what it was judged to be.
    has_verdicts: bool = False


def _utf8(write: Callable[[Export], str]) -> Callable[[Export], bytes]:
    return lambda export: write(export).encode()


FORMATS = {
    form.name: form
    for form in (
        Format(name="nccl-tests", write=_utf8(nccl_tests_text)),
        Format(name="json", write=json_bytes),
        Format(name="csv", write=_utf8(csv_text)),
        Format(name="parquet", write=None, is_text=False),
        Format(name="superbench", write=superbench_lines),
        Format(name="prometheus", write=_utf8(prometheus_text)),
        Format(name="junit", write=junit_xml, has_verdicts=True),
        Format(name="markdown", write=_utf8(markdown_text), has_verdicts=True),
    )
}


def find(name: str) -> Format:
    """Return the format called `name`. Raises InputError when there is none."""
    if name not in FORMATS:
        raise InputError(f"{name!r} is not a format", hint="one of: " + ", ".join(FORMATS))
    return FORMATS[name]
