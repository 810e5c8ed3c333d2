"""Print docs/run-options.md, made from the options that `busbw run` declares."""

import sys

import click

from busbw.cli.options import HEADINGS, GroupedOption
from busbw.cli.run import run

_TOP = """# Every option of `busbw run`

Options in *italics* are in `busbw run --help-all` only. `busbw compare` and `busbw bisect` take all but those of a
batch system. This page is made from the program: `scripts/run_options.py > docs/run-options.md`.
"""


def page() -> str:
    """Return the page: a table for each heading of the help."""
    context = click.Context(run, info_name="busbw run")
    made = [each for each in run.params if isinstance(each, GroupedOption) and not each.hidden]
    parts = [_TOP]
    for group, heading in HEADINGS.items():
        rows = [_row(each, context) for each in made if each.group == group]
        if rows:
            parts.append("\n".join((f"\n## {heading}\n", "| option | what |", "|---|---|", *rows, "")))
    return "".join(parts)


def _row(option: GroupedOption, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None
    spelled, said = (text.replace("|", "\\|") for text in record)
    return f"| {'*' * option.rare}`{spelled}`{'*' * option.rare} | {said} |"


if __name__ == "__main__":
    sys.stdout.write(page())
