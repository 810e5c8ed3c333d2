"""Generated files say what their sources say, and tools have exact versions."""

import re
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path

from .tree import PACKAGE, ROOT


def test_the_stub_of_the_core_is_fresh(tmp_path: Path) -> None:
    fresh = tmp_path / "_core.pyi"
    stubgen = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "busbw._core", "-o", str(fresh)]
    subprocess.run(stubgen, check=True, timeout=60)
    assert fresh.read_text() == (PACKAGE / "_core.pyi").read_text(), "run `make stub` and commit the result"


def test_the_page_of_options_is_fresh() -> None:
    page = subprocess.run(
        [sys.executable, ROOT / "scripts" / "run_options.py"], check=True, timeout=60, capture_output=True
    )
    fresh = page.stdout.decode()
    said = "write it with: scripts/run_options.py > docs/run-options.md"
    assert fresh == (ROOT / "docs" / "run-options.md").read_text(), said


def test_the_pages_of_rules_are_fresh() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "rule_pages.py", "--check"], timeout=120, capture_output=True, check=False
    )
    assert (checked.stdout.decode().split(), checked.stderr) == ([], b""), "write them with: scripts/rule_pages.py"


def test_the_installed_package_tells_type_checkers_that_it_is_typed() -> None:
    assert resources.files("busbw").joinpath("py.typed").is_file()


def test_every_tool_has_an_exact_version() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    loose = [each for group in groups.values() for each in group if not re.fullmatch(r"[\w.-]+==[\w.]+", each)]
    assert not loose


def test_the_version_is_said_once_and_the_same() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f'__version__ = "{declared}"' in (PACKAGE / "__init__.py").read_text()
