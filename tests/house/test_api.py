"""`import busbw.api`: every example of its functions runs, and no module of the folder hides one of them."""

import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import busbw.api

FUNCTIONS = {
    name: value
    for name, value in vars(busbw.api).items()
    if inspect.isfunction(value) and not name.startswith("_") and value.__module__ == "busbw.api"
}


def test_every_example_gives_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUSBW_RUNS", str(tmp_path))
    result = doctest.testmod(busbw.api)
    assert result.attempted >= 10
    assert result.failed == 0


def test_no_module_of_the_folder_has_the_name_of_a_function() -> None:
    modules = {path.stem for path in Path(busbw.api.__file__).parent.glob("*.py")}
    assert modules & set(FUNCTIONS) == set()


def test_every_function_says_which_verb_it_is() -> None:
    assert len(FUNCTIONS) >= 20
    unsaid = [name for name, each in FUNCTIONS.items() if "busbw " not in (each.__doc__ or "")]
    assert unsaid == []


def test_importing_it_imports_nothing_else() -> None:
    code = "import sys, busbw.api; print(*(name for name in sys.modules if name.startswith('busbw')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout.decode().split() == ["busbw", "busbw.api"]
