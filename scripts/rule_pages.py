"""Write docs/findings, a page for each rule, from busbw's data/rules and data/rule_pages.

A rule and its page are two files: what busbw prints is read with every finding, the rest of a page only here.
"""

import argparse
import re
import shlex
import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from click.testing import CliRunner

from busbw.cli.command import busbw
from busbw.facts.rules import Rule, rules

ROOT = Path(__file__).parents[1]
TEXTS = ROOT / "src" / "busbw" / "data" / "rule_pages"
PAGES = ROOT / "docs" / "findings"


class Lint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file whose findings are the example."""

    file: str
    text: str
    platform: str | None = None
    nccl: str | None = None


class PageText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What people write of a rule beside its declaration."""

    code: str
    # Where the rule's own, with the names of what is filled in, does not read well.
    title: str | None = None
    finds: str
    # What follows the rule's `why`.
    matters: str | None = None
    # In Markdown; None: what `busbw env lint` says of `lint`.
    example: str | None = None
    lint: Lint | None = None
    # Where it says more than the rule's.
    source: str | None = None


class _Texts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    page: tuple[PageText, ...]


def texts() -> dict[str, PageText]:
    """Return the texts by code. Raises ValueError for a code that stands twice."""
    found: dict[str, PageText] = {}
    for path in sorted(TEXTS.glob("*.toml")):
        for text in msgspec.toml.decode(path.read_bytes(), type=_Texts).page:
            if found.setdefault(text.code, text) is not text:
                raise ValueError(f"{path.name} has {text.code} twice")
    return found


def pages() -> dict[str, str]:
    """Return all pages by file name. Raises KeyError for a rule without a text, ValueError for the other way round."""
    written = texts()
    if stray := written.keys() - rules().keys():
        raise ValueError(f"no rule is called {', '.join(sorted(stray))}")
    return {f"{code}.md": page(rule, written[code]) for code, rule in rules().items()}


def example(text: PageText) -> str:
    """Return the example of a page. Raises ValueError where there is none, or the finding is not in it."""
    if text.example is not None and text.lint is None:
        return text.example.strip()
    if text.lint is None or text.example is not None:
        raise ValueError(f"{text.code} needs one example")
    return f"```\n{linted(text.code, text.lint)}\n```"


def linted(code: str, asked: Lint) -> str:
    """Return the command that lints a file, and what it prints of the findings with this code."""
    options = [("--platform", asked.platform), ("--nccl", asked.nccl)]
    arguments = ["env", "lint", asked.file, *(word for name, value in options if value for word in (name, value))]
    with TemporaryDirectory() as folder, chdir(folder):
        Path(asked.file).write_text(asked.text, newline="")
        printed = CliRunner().invoke(busbw, arguments).stdout
    told = [part for part in printed.split("\n\n") if re.match(rf"\S+: \w+ {code}:", part)]
    if len(told) != 1:
        raise ValueError(f"{code} is not found in its example: {printed}")
    return "\n".join((f"$ busbw {shlex.join(arguments)}", *(line.rstrip() for line in told[0].splitlines())))


def page(rule: Rule, text: PageText) -> str:
    """Return the page of a rule."""
    title = text.title or re.sub(r"\{(\w+)\}", r"`\1`", rule.title)
    matters = rule.why if text.matters is None else f"{rule.why}\n\n{text.matters.strip()}"
    source = text.source or rule.source
    if source is None:
        raise ValueError(f"nobody says where {rule.code} comes from")
    parts = (
        f"# {rule.code}: {title}",
        f"## What it finds\n\n{text.finds.strip()}",
        f"## Why it matters\n\n{matters}",
        f"## Example\n\n{example(text)}",
        f"## Source\n\n{source.strip().removesuffix('.')}.",
    )
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write the pages, and remove those of rules that are gone; with --check exit with 1 where one is not fresh."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; name the pages that are not fresh")
    fresh = pages()
    here = {path.name: path.read_text() for path in PAGES.glob("*.md")}
    stale = sorted(name for name in fresh.keys() | here.keys() if fresh.get(name) != here.get(name))
    if parser.parse_args().check:
        print("\n".join(stale))
        sys.exit(bool(stale))
    for name in stale:
        if name in fresh:
            (PAGES / name).write_text(fresh[name])
        else:
            (PAGES / name).unlink()


if __name__ == "__main__":
    main()
