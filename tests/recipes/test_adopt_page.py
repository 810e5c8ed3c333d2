"""The sample of docs/recipe-adopt.md is what adopt prints of a stack like it, made with gcc.

After a wanted change: `ADOPT_PAGE=write python -m pytest tests/recipes/test_adopt_page.py` writes what is printed now.
"""

import os
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from busbw.api.recipes import adopted, machine
from busbw.recipes.stack_rules import adoption
from busbw.show.text.stack import adoption_text

from .building import build, container, entry, libfabric, moved, nccl, needs_gcc, plugin

pytestmark = needs_gcc
PAGE = Path(__file__).resolve().parents[2] / "docs" / "recipe-adopt.md"
PLATFORM = "isambard-ai-phase2"
BLOCK = re.compile(
    r"(?<=```text\n)\$ busbw recipe adopt (~/\S+(?: ~/\S+)*) --platform (\S+)\n(.+?)(?=\n```)", re.DOTALL
)
COLLECTIVES = (
    "all_gather", "all_reduce", "alltoall", "broadcast", "gather", "hypercube", "reduce", "reduce_scatter", "scatter",
    "sendrecv",
)  # fmt: skip


def stack(root: Path) -> None:
    """Make the stack of the page: its plug-in has the path of a libfabric without the provider of Slingshot."""
    home, fabric, cray = root / "home" / "u", root / "opt" / "libfabric" / "lib", root / "opt" / "cray" / "pe" / "lib64"
    made = nccl(home / "nccl" / "build" / "lib", code=container(entry(90)))
    without = libfabric(fabric, provider="efa", version="1.17.0", options=("-Wl,-rpath,$ORIGIN",))
    plugin(home / "aws-ofi-nccl" / "build" / "lib", without, options=(f"-Wl,-rpath,{fabric}",))
    mpi = build(
        cray / "libmpi_gnu_123.so.12",
        defines=("MPI_Init",),
        texts=("CRAY MPICH version 8.1.32",),
        soname="libmpi_gnu_123.so.12",
    )
    for name in COLLECTIVES:
        build(
            home / "nccl-tests" / "build" / f"{name}_perf", program=True, needs=(made, mpi), code=container(entry(90)),
            texts=("nccl-tests version %s", "2.19.6"), options=(f"-Wl,-rpath,{cray}",),
        )  # fmt: skip


def test_the_page_shows_what_adopt_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (shown,) = BLOCK.finditer(text)
    assert shown[2] == PLATFORM
    stack(tmp_path)
    home = tmp_path / "home" / "u"
    places = tuple(word.replace("~", str(home)) for word in shown[1].split())
    read = adopted(places, PLATFORM).stack
    # As on the platform: its folders, and its processor, of which the test's compiler makes no code.
    found = adoption(moved(read, tmp_path, ""), replace(machine(PLATFORM), processor=os.uname().machine))
    adoption_text(found)
    printed = capsys.readouterr().out.rstrip("\n")
    if os.environ.get("ADOPT_PAGE") == "write":
        PAGE.write_text(text[: shown.start(3)] + printed + text[shown.end(3) :], encoding="utf-8")
    assert printed == shown[3]
