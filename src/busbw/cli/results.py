"""The verbs that look at runs: `show`, `load`."""

import shlex

from busbw.api.loading import load, read
from busbw.api.locating import find_stored, is_bisection, is_comparison, is_import
from busbw.base import layout
from busbw.base.errors import InputError
from busbw.cli.present import present_run


def show_run(name: str, *, as_json: bool) -> None:
    """Print a stored result, an import, or what a comparison or a bisection came to."""
    where = find_stored(name)
    if is_comparison(where):
        from busbw.cli.comparing import show_comparison

        show_comparison(where, as_json=as_json)
    if is_bisection(where):
        from busbw.cli.bisecting import show_bisection

        show_bisection(where, as_json=as_json)
    if is_import(where):
        from busbw.cli.importing import show_import

        show_import(where, as_json=as_json)
    present_run(read(where), where, as_json=as_json)


def load_run(name: str, *, as_json: bool) -> None:
    """Rebuild a result from raw records and print it."""
    where = find_stored(name)
    if is_comparison(where):
        raise InputError(
            "this is a comparison: its launches are what is rebuilt",
            where=str(where),
            hint=f"what they come to, from their results: busbw compare {shlex.quote(str(where))}",
        )
    if is_bisection(where):
        raise InputError(
            "this is a bisection: its comparisons' launches are what is rebuilt",
            where=str(where),
            hint=f"what it found: busbw show {shlex.quote(str(where))}",
        )
    if is_import(where):
        copies = shlex.quote(str(where / layout.RAW_DIRECTORY))
        raise InputError(
            "this is an import: it stays as it was read, and is not rebuilt",
            where=str(where),
            hint=f"read its copies into a new one: busbw import {copies}",
        )
    present_run(load(where), where, as_json=as_json)
