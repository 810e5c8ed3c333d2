"""A module imports only from its own package or a lower floor, and pure floors do not touch the world."""

import ast

import pytest

from .tree import Module, imports, modules, outside_imports

FLOORS = (
    ("errors",),
    ("units", "cpus", "collectives", "layout"),
    ("model",),
    ("codec", "catalog", "stats"),
    ("formats",),
    ("topo", "detect", "limits", "backends", "launchers", "containers"),
    ("probe.read", "env", "doctor", "judge", "report", "exports", "recipes", "fabric", "train"),
    ("probe.capture", "execute", "store"),
    ("api",),
    ("cli",),
    ("__main__",),
)
DOORS = ("probe.capture", "execute", "store")
FLOOR_OF = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}
# The program a rank runs stands beside the floors: nobody imports it.
RANK_MAY_IMPORT = {"rank", "codec", "stats", "cpus", "collectives", "layout", "model", "errors", "units", "_core", ""}
CORE_IMPORTERS = {"rank", "doctor"}
# What a pure module has no use for; `signal` is not here: it also names signals.
WORLD = {"os", "platform", "random", "secrets", "shutil", "socket", "subprocess", "tempfile", "threading", "time"}
FILE_METHODS = {
    "exists", "iterdir", "mkdir", "open", "read_bytes", "read_text", "rename", "stat", "touch", "unlink", "write_bytes",
    "write_text",
}  # fmt: skip


def package_of(name: str) -> str:
    """Return the entry of FLOORS, or the root of the tree, that `name` belongs to."""
    known = [package for package in FLOOR_OF if name == package or name.startswith(package + ".")]
    return max(known, key=len, default=name.split(".", maxsplit=1)[0])


def is_pure(module: Module) -> bool:
    floor = FLOOR_OF.get(package_of(module.name))
    return floor is not None and floor < FLOOR_OF["store"]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.where)
def test_every_module_stands_on_a_floor(module: Module) -> None:
    package = package_of(module.name)
    # The package itself and `probe` hold no code: whoever imports them gets nothing from above.
    bare = package in {"", "probe"} and not imports(module)
    assert package in FLOOR_OF or package == "rank" or bare, f"{module.where}: give it a place in FLOORS"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.where)
def test_a_module_imports_from_its_own_package_or_a_lower_floor(module: Module) -> None:
    package = package_of(module.name)
    for target, line in sorted(imports(module)):
        other = package_of(target)
        where = f"{module.where}:{line} imports busbw.{target}"
        if package == "rank":
            assert other in RANK_MAY_IMPORT, where
        elif other == "_core":
            assert package in CORE_IMPORTERS, where
        elif other not in {"", package}:
            assert other in FLOOR_OF, f"{where}: only `python -m` starts it"
            assert FLOOR_OF[other] < FLOOR_OF[package], f"{where}, which is not on a lower floor"


@pytest.mark.parametrize("module", [module for module in modules() if is_pure(module)], ids=lambda module: module.where)
def test_a_pure_module_does_not_touch_the_world(module: Module) -> None:
    touched = [f"{module.where}:{line} imports {name}" for name, line in outside_imports(module) if name in WORLD]
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        is_file_access = called in FILE_METHODS if isinstance(node.func, ast.Attribute) else called == "open"
        # The catalogue reads the facts that are shipped with it.
        if is_file_access and package_of(module.name) != "catalog":
            touched.append(f"{module.where}:{node.lineno} calls {called}")
    assert not touched


def test_the_floors_can_fail() -> None:
    text = "import busbw.cli\nfrom busbw import units\nfrom . import errors\nfrom .model import run\n"
    module = Module(name="codec", path=modules()[0].path, text=text, tree=ast.parse(text), is_package=False)
    assert {target for target, _ in imports(module)} == {"cli", "units", "errors", "model.run"}
    with pytest.raises(AssertionError, match="cli"):
        test_a_module_imports_from_its_own_package_or_a_lower_floor(module)
