"""The source tree as the house tests look at it: parsed, never imported."""

import ast
import gc
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "busbw"


@dataclass(frozen=True)
class Module:
    """One file of src/busbw; `name` is relative to the package: `probe.read`, and "" for the package itself."""

    name: str
    path: Path
    text: str
    tree: ast.Module
    is_package: bool

    @property
    def where(self) -> str:
        return str(self.path.relative_to(ROOT))


@cache
def modules() -> tuple[Module, ...]:
    # A million nodes that all stay: looking for garbage among them takes as long as parsing.
    gc.disable()
    try:
        return _parsed()
    finally:
        gc.enable()
        gc.freeze()


def _parsed() -> tuple[Module, ...]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        text = path.read_text(encoding="utf-8")
        name = ".".join(parts[:-1] if is_package else parts)
        found.append(Module(name=name, path=path, text=text, tree=ast.parse(text, str(path)), is_package=is_package))
    return tuple(found)


@cache
def names() -> frozenset[str]:
    compiled = {path.stem for path in PACKAGE.glob("*.pyi")}
    return frozenset({module.name for module in modules()} | compiled)


def imports(module: Module) -> set[tuple[str, int]]:
    """Return the modules of busbw that `module` imports, anywhere in it, each with a line."""
    found = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node)
            targets = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {(_known(target), node.lineno) for target in targets if target.split(".")[0] == "busbw"}
    return found


def outside_imports(module: Module) -> set[tuple[str, int]]:
    """Return the top-level names of all other modules that `module` imports, each with a line."""
    found = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found |= {(alias.name.split(".")[0], node.lineno) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add((node.module.split(".")[0], node.lineno))
    return found


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    parts = ["busbw", *module.name.split(".")] if module.name else ["busbw"]
    up = node.level - 1 if module.is_package else node.level
    base = parts[: len(parts) - up]
    return ".".join([*base, node.module] if node.module else base)


def _known(dotted: str) -> str:
    """Return the longest beginning of `dotted` that is a module: `busbw.base.units.parse_size` is in `base.units`."""
    parts = dotted.split(".")[1:]
    while parts and ".".join(parts) not in names():
        parts.pop()
    return ".".join(parts)
